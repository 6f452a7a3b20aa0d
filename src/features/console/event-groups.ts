// Groups of log event types that the overview counts and the log can be filtered by.
import type { EventType } from '../../records/log-events.ts';

export const EVENT_GROUPS = {
  logins: ['s'],
  failures: ['f', 'fp', 'fu'],
  signups: ['ss'],
  codes: ['cls', 'cs', 'gd_send_email', 'gd_send_sms'],
  lockouts: ['limit_wc', 'limit_mu'],
} as const satisfies Record<string, readonly EventType[]>;

export type EventGroup = keyof typeof EVENT_GROUPS;

/** Returns the event types of a group, or the one type with that name. */
export function typesNamed(name: string): readonly string[] {
  return Object.hasOwn(EVENT_GROUPS, name) ? EVENT_GROUPS[name as EventGroup] : [name];
}
