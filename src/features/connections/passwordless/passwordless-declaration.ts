// The limits and log events of passwordless logins.
import { limitsOf } from '../../../http/limits.ts';
import { eventTypesOf } from '../../../records/base/log-events.ts';

export const passwordlessLimits = limitsOf({
  passwordlessStart: {
    capacity: 50,
    perMinute: 50 / 60,
    per: 'address',
    where: '`/passwordless/start` and the hosted page',
  },
  passwordlessDestination: {
    capacity: 10,
    perMinute: 1 / 6,
    per: 'e-mail address or phone number: all unknown callers together, each caller',
    where:
      "the same, and codes of a second factor; beyond a caller's own limit the answer is 429, beyond the limit of unknown callers the answer is unchanged and nothing is sent",
  },
  passwordlessVerify: {
    capacity: 50,
    perMinute: 50,
    per: 'address',
    where: '`/passwordless/verify` (both forms) and login links',
  },
});

export const passwordlessEvents = eventTypesOf({
  fepotpft: 'No tokens were given for a passwordless code.',
});
