// Which events of the tenant's log are logins: in which way somebody came in, or did not.

import type { Measures } from '../runtime/measures.ts';
import type { Config } from '../tenant/config.ts';

interface LoginOutcome {
  way: string;
  outcome: 'success' | 'failure';
}

/** The types of events, success and failure, of each way. */
const TYPES: Readonly<Record<string, readonly [success: readonly string[], failure: readonly string[]]>> = {
  // In a browser, and by the passwordless grant, whose logins are recorded alike.
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

/** The logins by the types of their events. */
export const LOGINS: ReadonlyMap<string, LoginOutcome> = new Map(
  Object.entries(TYPES).flatMap(([way, [success, failure]]) => [
    ...success.map((type): [string, LoginOutcome] => [type, { way, outcome: 'success' }]),
    ...failure.map((type): [string, LoginOutcome] => [type, { way, outcome: 'failure' }]),
  ]),
);

/** Has events counted, by the strategy of their connection: its name is whatever somebody has sent. */
export function measureEvents(measures: Pick<Measures, 'event'>, config: Pick<Config, 'connection'>) {
  return (type: string, connection: string | undefined): void => {
    config.connection(connection ?? '').then(
      (found) => measures.event(type, found?.strategy),
      () => measures.event(type, undefined),
    );
  };
}
