// The tenant's log events (logins, sign-ups, failures …), with the hosted service's type codes. They are
// for people who look into what happened; no request waits for them, and none holds a secret.
import type { Logger } from 'pino';
import { type Clock, epochSeconds, type Random } from '../http/runtime.ts';
import type { LogEventRecord } from '../store/collections.ts';
import type { Store } from '../store/contract.ts';

/**
 * Success and failure of login, wrong password, unknown user, sign-up, grants, revocation; code or link sent,
 * notification failed; change of password asked for and done; verification of an address asked for and done;
 * logout.
 */
export type EventType =
  | 's'
  | 'f'
  | 'fp'
  | 'fu'
  | 'ss'
  | 'fs'
  | 'sepft'
  | 'fepft'
  | 'feacft'
  | 'fertft'
  | 'feccft'
  | 'cls'
  | 'cs'
  | 'fn'
  | 'scpr'
  | 'fcpr'
  | 'scp'
  | 'fcp'
  | 'svr'
  | 'fvr'
  | 'sv'
  | 'fv'
  | 'scoa'
  | 'fcoa'
  | 'slo'
  | 'flo'
  | 'oidc_backchannel_logout_succeeded'
  | 'oidc_backchannel_logout_failed'
  | 'limit_wc'
  | 'limit_mu'
  | 'gd_start_enroll'
  | 'gd_enrollment_complete'
  | 'gd_start_auth'
  | 'gd_auth_succeed'
  | 'gd_auth_failed'
  | 'gd_auth_rejected'
  | 'gd_otp_rate_limit_exceed'
  | 'gd_recovery_succeed'
  | 'gd_unenroll'
  | 'gd_send_email'
  | 'gd_send_sms';

/** An event as it is told; `user_name` is the identifier as the user typed it. */
export type TenantEvent = Omit<LogEventRecord, 'id' | 'date' | 'expiresAt' | 'details' | 'type'> & {
  type: EventType;
};

export interface Events {
  /** Records an event, without waiting for it. */
  record(event: TenantEvent): void;
  /** Waits for the events recorded so far. */
  flush(): Promise<void>;
}

/** How long events are kept. */
const RETENTION_SECONDS = 30 * 86_400;
/** A name typed by whoever sends the request is cut, lest it fill the log. */
const LONGEST_NAME = 255;

/** The event log of a tenant, in its store. */
export function createEvents(store: Store, clock: Clock, random: Random, log: Logger): Events {
  const pending = new Set<Promise<void>>();
  return {
    record: (event) => {
      const record: LogEventRecord = {
        ...event,
        // Ids in the order of time, so that a list of events is one, too.
        id: `${new Date(clock()).toISOString().replaceAll(/\D/g, '')}${random(12).toString('hex')}`,
        date: new Date(clock()).toISOString(),
        expiresAt: epochSeconds(clock) + RETENTION_SECONDS,
      };
      if (event.user_name !== undefined) record.user_name = event.user_name.slice(0, LONGEST_NAME);
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
