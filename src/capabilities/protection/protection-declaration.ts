// The limits and log events of attack protection.
import { limitsOf } from '../../http/limits.ts';
import { eventTypesOf } from '../../records/base/log-events.ts';
import type { Declaration } from '../../records/declaration.ts';

export const protectionLimits = limitsOf({
  login: { capacity: 20, perMinute: 10, per: 'user and address', where: 'every login with a password' },
  // These two count failed logins, not requests.
  passwordFailures: {
    capacity: 100,
    perMinute: 100 / 1440,
    per: 'account: all unknown callers together',
    where: 'wrong passwords, over all addresses; part of brute-force protection',
  },
  codeFailures: {
    capacity: 30,
    perMinute: 30 / 1440,
    per: 'account: all unknown callers together, each known caller',
    where: 'wrong passwordless codes, even if brute-force protection is off',
  },
});

export const protectionEvents = eventTypesOf({
  limit_mu: 'An address was throttled after too many failed logins, over all accounts.',
  acls_summary:
    'A network access control list applied to a request. Requests that a list allows are recorded only if it logs, too.',
});

export const protection: Declaration = {
  name: 'protection',
  limits: protectionLimits,
  events: protectionEvents,
  collections: ['limits', 'tries', 'failures', 'knownCallers', 'challenges', 'keyChecks'],
};
