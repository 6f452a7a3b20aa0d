// The limits and log events of attack protection.
import type { Declaration } from '../../records/declaration.ts';
import type { Limits } from '../../records/limits.ts';

/** Limits that count failed logins, not requests. */
export const limits = {
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
} satisfies Limits;

const events = {
  limit_mu: 'An address was throttled after too many failed logins, over all accounts.',
  acls_summary:
    'A network access control list applied to a request. Requests that a list allows are recorded only if it logs, too.',
};

declare module '../../records/limits.ts' {
  interface LimitNames extends Record<keyof typeof limits, Bucket> {}
}
declare module '../../records/log-events.ts' {
  interface EventTypes extends Record<keyof typeof events, string> {}
}

export const protection: Declaration = {
  name: 'protection',
  limits,
  events,
  collections: ['limits', 'tries', 'failures', 'knownCallers', 'challenges', 'keyChecks'],
};
