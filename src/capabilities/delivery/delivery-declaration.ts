// The limits and log events of delivery.
import { limitsOf } from '../../http/limits.ts';
import { eventTypesOf } from '../../records/base/log-events.ts';
import type { Declaration } from '../../records/declaration.ts';

export const deliveryLimits = limitsOf({
  // Higher than the limit of messages that strangers can cause (`passwordlessDestination`), so that they cannot use up
  // the owner's.
  // docs/understand/decisions/passwordless-messages.md#messages-to-a-phone-number-are-limited-where-they-are-sent
  smsDestination: {
    capacity: 30,
    perMinute: 1 / 2,
    per: 'phone number',
    where: 'every SMS, for any purpose; beyond the limit none is sent, and a log event `fn` says so',
  },
  methodMail: {
    capacity: 10,
    perMinute: 1 / 6,
    per: 'user',
    where: 'mails about authentication methods that a user added or removed; beyond the limit none is sent',
  },
});

export const deliveryEvents = eventTypesOf({
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
  account_linked: 'Another account, which the description names, became an identity of the user.',
  account_absorbed: 'An account became an identity of another user, whom the description names.',
});

export const delivery: Declaration = {
  name: 'delivery',
  limits: deliveryLimits,
  events: deliveryEvents,
  collections: ['deliveries', 'leases'],
};
