// Maps events of the tenant's log to logins, for the metrics: how somebody logged in, and whether it succeeded.

import type { Measures } from '../../runtime/measures.ts';
import type { Config } from '../../tenant/config.ts';

interface LoginOutcome {
  way: string;
  outcome: 'success' | 'failure';
}

/** The types of events for each way to log in: of successes and of failures. */
const EVENT_TYPES: Readonly<
  Record<string, readonly [success: readonly string[], failure: readonly string[]]>
> = {
  // In a browser, and with the passwordless grant, whose logins have the same events.
  login: [['s'], ['f', 'fp', 'fu', 'fepotpft']],
  cross_origin: [['scoa'], ['fcoa']],
  password: [['sepft'], ['fepft']],
  native_social: [['sens'], ['fens']],
  device: [['sede'], ['fede', 'fdeac', 'fdecc']],
  ciba: [['seciba'], ['feciba']],
  second_factor: [
    ['gd_auth_succeed', 'gd_recovery_succeed', 'seoobft', 'seotpft', 'sercft'],
    ['gd_auth_failed', 'gd_auth_rejected', 'gd_recovery_failed', 'feoobft', 'feotpft', 'fercft'],
  ],
};

export const LOGINS: ReadonlyMap<string, LoginOutcome> = new Map(
  Object.entries(EVENT_TYPES).flatMap(([way, [success, failure]]) => [
    ...success.map((type): [string, LoginOutcome] => [type, { way, outcome: 'success' }]),
    ...failure.map((type): [string, LoginOutcome] => [type, { way, outcome: 'failure' }]),
  ]),
);

/** The connection's name is not used as a label, because a client may send any name. */
export function measureEvents(measures: Pick<Measures, 'event'>, config: Pick<Config, 'connection'>) {
  return (type: string, connection: string | undefined): void => {
    config.connection(connection ?? '').then(
      (found) => measures.event(type, found?.strategy),
      () => measures.event(type, undefined),
    );
  };
}
