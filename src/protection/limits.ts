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
