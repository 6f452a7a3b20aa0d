// The limits and log events of delivery.
import type { Declaration } from '../../records/declaration.ts';
import type { Limits } from '../../records/limits.ts';

const limits = {
  // Higher than the limit of messages that strangers can cause (`passwordlessDestination`), so that they cannot use up
  // the owner's.
  // docs/decisions/passwordless-messages.md#messages-to-a-phone-number-are-limited-where-they-are-sent
  smsDestination: {
    capacity: 30,
    perMinute: 1 / 2,
    per: 'phone number',
    where: 'every SMS, for any purpose; beyond the limit none is sent, and a log event `fn` says so',
  },
} satisfies Limits;

const events = {
  cls: 'A login link or code was sent by e-mail.',
  cs: 'A login code was sent by SMS.',
  fn: 'A message could not be sent.',
  template_failed: 'A template of the tenant failed, and ours was used.',
  scpr: 'A link to set a new password was sent.',
  fcpr: 'A link to set a new password was requested, but not sent.',
  svr: 'A link to verify an address was sent.',
  fvr: 'A link to verify an address could not be sent.',
  gd_send_email: 'A code of a second factor was sent by e-mail.',
  gd_send_sms: 'A code of a second factor was sent by SMS.',
};

declare module '../../records/limits.ts' {
  interface LimitNames extends Record<keyof typeof limits, Bucket> {}
}

declare module '../../records/log-events.ts' {
  interface EventTypes extends Record<keyof typeof events, string> {}
}

export const delivery: Declaration = {
  name: 'delivery',
  limits,
  events,
  collections: ['deliveries', 'leases'],
};
