// The limits and log events of passkeys.
import { limitsOf } from '../../../http/limits.ts';
import { eventTypesOf } from '../../../records/base/log-events.ts';

export const passkeyLimits = limitsOf({
  passkey: { capacity: 50, perMinute: 50, per: 'address', where: '`/passkey/`' },
});

export const passkeyEvents = eventTypesOf({
  fepk: 'No tokens were given for a passkey.',
  passkey_enrolled: 'A user created a passkey on the login page.',
});
