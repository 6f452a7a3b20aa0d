// How many requests are allowed (wire-details 12.1), and the tenant's own numbers for them:
// `attackProtection.rateLimits.<name>: { capacity, perMinute }` in the tenant file.
import { z } from 'zod';
import type { Directory } from '../tenant/directory.ts';

export interface Bucket {
  /** How many requests may come at once. */
  capacity: number;
  /** How many come back per minute. */
  perMinute: number;
}

const DEFAULTS = {
  /** Per user; the spec's semantics: minus one per request, plus one per minute. */
  userinfo: { capacity: 10, perMinute: 1 },
  /** Per address. */
  signup: { capacity: 50, perMinute: 50 },
  /** Per user and address, at every place where a password is tried. */
  login: { capacity: 20, perMinute: 10 },
  /** Per address and e-mail address. */
  changePassword: { capacity: 10, perMinute: 1 },
  /** Per address: 50 an hour. */
  passwordlessStart: { capacity: 50, perMinute: 50 / 60 },
  /** Per e-mail address or phone number, whoever asks: nobody's phone is flooded from many addresses. */
  passwordlessDestination: { capacity: 10, perMinute: 1 / 6 },
  /** Per e-mail address or phone number: asking for another code at the hosted page. */
  passwordlessResend: { capacity: 1, perMinute: 2 },
  /** Per address. */
  passwordlessVerify: { capacity: 50, perMinute: 50 },
  /** Per address: five a second. */
  coAuthenticate: { capacity: 50, perMinute: 300 },
} as const satisfies Record<string, Bucket>;

export type LimitName = keyof typeof DEFAULTS;

const override = z.object({ capacity: z.number().positive(), perMinute: z.number().positive() });

/** The bucket of a limit: the tenant's where it sets one that makes sense, else the default. */
export function limitOf(directory: Directory, name: LimitName): Bucket {
  const { attackProtection } = directory.settings() as {
    attackProtection?: { rateLimits?: Record<string, unknown> };
  };
  const own = override.safeParse(attackProtection?.rateLimits?.[name]);
  return own.success ? own.data : DEFAULTS[name];
}
