// The limits and log events of the account page and the My Account API.
import { limitsOf } from '../../http/limits.ts';
import { eventTypesOf } from '../../records/base/log-events.ts';

export const accountLimits = limitsOf({
  myAccount: { capacity: 100, perMinute: 100, per: 'address', where: '`/me/`' },
  accountMail: {
    capacity: 5,
    perMinute: 1 / 10,
    per: 'user',
    where: 'codes that `/account` sends',
  },
});

export const accountEvents = eventTypesOf({
  account_changed: 'A user changed something at their account page; the description says what.',
  sce: 'A user changed their e-mail address and proved the new one.',
  passkey_removed: 'A user removed one of their passkeys.',
  account_connected: 'A user connected an account at another provider, for its tokens.',
  account_disconnected: 'A user removed an account that they had connected, with its tokens.',
});
