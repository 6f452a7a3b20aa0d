// Groups of log event types that the overview counts and the log can be filtered by.
import { deliveryEvents } from '../../capabilities/delivery/delivery-declaration.ts';
import { protectionEvents } from '../../capabilities/protection/protection-declaration.ts';
import { engineEvents } from '../../engine/base/engine-declaration.ts';
import type { EventType } from '../../records/base/log-events.ts';
import { userEvents } from '../../users/users-declaration.ts';
import { databaseEvents } from '../connections/database/base/database-declaration.ts';

const { cls, cs, gd_send_email, gd_send_sms } = deliveryEvents;

export const EVENT_GROUPS = {
  logins: [engineEvents.s],
  failures: [engineEvents.f, userEvents.fp, databaseEvents.fu],
  signups: [userEvents.ss],
  codes: [cls, cs, gd_send_email, gd_send_sms],
  lockouts: [databaseEvents.limit_wc, protectionEvents.limit_mu],
} as const satisfies Record<string, readonly EventType[]>;

export type EventGroup = keyof typeof EVENT_GROUPS;

/** Returns the codes of the event types of a group, or of the one type with that name. */
export function typesNamed(name: string): readonly string[] {
  if (!Object.hasOwn(EVENT_GROUPS, name)) return [name];
  return EVENT_GROUPS[name as EventGroup].map(({ code }) => code);
}
