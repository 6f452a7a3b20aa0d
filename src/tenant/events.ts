// The tenant's log events (logins, sign-ups, failures …), with the hosted service's type codes. They are
// for people who look into what happened; no request waits for them, and none holds a secret.
import type { Logger } from 'pino';
import type { LogEventRecord } from '../records/log-events.ts';
import { type Clock, epochSeconds } from '../runtime/clock.ts';
import type { Random } from '../runtime/random.ts';
import type { Store } from '../store/contract.ts';

/** The codes of the hosted service that are recorded here. */
export const EVENT_TYPES = [
  // A login: it ended well, otherwise, with a wrong password or code, with an unknown name; a second factor is due.
  's',
  'f',
  'fp',
  'fu',
  'mfar',
  // Signing up.
  'ss',
  'fs',
  // At the token endpoint: tokens for a password, and with a second factor (an app's code, out of band, recovery).
  'sepft',
  'seotpft',
  'seoobft',
  'sercft',
  // None for a password, an app's code, out of band, a recovery code, a passwordless code, an authorization code, a
  // refresh token, a refresh token that was used before, an application's own credentials.
  'fepft',
  'feotpft',
  'feoobft',
  'fercft',
  'fepotpft',
  'feacft',
  'fertft',
  'ferrt',
  'feccft',
  // Messages: a link or code sent, a code by SMS sent, one that could not be.
  'cls',
  'cs',
  'fn',
  // A change of password: asked for, and done.
  'scpr',
  'fcpr',
  'scp',
  'fcp',
  // The verification of an address: asked for, and done.
  'svr',
  'fvr',
  'sv',
  'fv',
  // A user was deleted.
  'sdu',
  // A cross-origin login's credentials.
  'scoa',
  'fcoa',
  // Logging out.
  'slo',
  'flo',
  'oidc_backchannel_logout_succeeded',
  'oidc_backchannel_logout_failed',
  // Attack protection: an account is locked, an address slowed down.
  'limit_wc',
  'limit_mu',
  // The second factor.
  'gd_start_enroll',
  'gd_enrollment_complete',
  'gd_start_auth',
  'gd_auth_succeed',
  'gd_auth_failed',
  'gd_auth_rejected',
  'gd_otp_rate_limit_exceed',
  'gd_recovery_succeed',
  'gd_recovery_failed',
  'gd_unenroll',
  'gd_send_email',
  'gd_send_sms',
] as const;

export type EventType = (typeof EVENT_TYPES)[number];

/** An event as it is told; `user_name` is the identifier as the user typed it. */
export type TenantEvent = Omit<LogEventRecord, 'id' | 'date' | 'expiresAt' | 'details' | 'type'> & {
  type: EventType;
};

/**
 * Which events are recorded of those that anybody can cause.
 * @returns `leftOut`: how many of the type were not recorded since the last that was.
 */
export type EventBudget = (event: TenantEvent) => { isRecorded: boolean; leftOut: number };

export interface Events {
  /** Records an event, without waiting for it; one of no known user only while the budget has room. */
  record(event: TenantEvent): void;
  /** Waits for the events recorded so far. */
  flush(): Promise<void>;
}

/** How long events are kept. */
const RETENTION_SECONDS = 30 * 86_400;
/** What whoever sends the request has typed is cut, lest it fill the log. */
const LONGEST = { name: 255, description: 1000 };

export interface EventsDependencies {
  store: Store;
  clock: Clock;
  random: Random;
  log: Logger;
  budget: EventBudget;
}

/** The event log of a tenant, in its store. */
export function createEvents({ store, clock, random, log, budget }: EventsDependencies): Events {
  const pending = new Set<Promise<void>>();
  return {
    record: (event) => {
      const { isRecorded, leftOut } = budget(event);
      if (!isRecorded) return;
      const record: LogEventRecord = {
        ...event,
        ...(leftOut === 0 ? {} : { details: { left_out: leftOut } }),
        // Ids in the order of time, so that a list of events is one, too.
        id: `${new Date(clock()).toISOString().replaceAll(/\D/g, '')}${random(12).toString('hex')}`,
        date: new Date(clock()).toISOString(),
        expiresAt: epochSeconds(clock) + RETENTION_SECONDS,
      };
      for (const field of ['user_name', 'client_id', 'connection', 'description'] as const) {
        const longest = field === 'description' ? LONGEST.description : LONGEST.name;
        if (event[field] !== undefined) record[field] = event[field].slice(0, longest);
      }
      log.info(
        { event: record.type, client_id: event.client_id, user_id: event.user_id, ip: event.ip },
        'event',
      );
      const write = store
        .collection('logs')
        .insert(record)
        .catch((error: unknown) => log.error({ err: error }, 'an event could not be recorded'))
        .finally(() => pending.delete(write));
      pending.add(write);
    },
    flush: async () => {
      await Promise.all(pending);
    },
  };
}
