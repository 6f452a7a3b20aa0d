// The tenant's attack protection settings, with defaults.

import type { Limits } from '../records/limits.ts';
import { type AttackProtection, attackProtectionSchema } from '../records/protection.ts';
import type { TenantFile } from '../records/tenant.ts';
import type { Config } from '../tenant/config.ts';

/** Parsed once for each version of the tenant's settings, because every request needs it. */
const read = new WeakMap<object, AttackProtection>();

/** The tenant's `attackProtection`; records of older versions get today's defaults. */
export function protectionSettings(config: Config): AttackProtection {
  const settings = config.settings();
  const known = read.get(settings);
  if (known !== undefined) return known;
  const parsed = attackProtectionSchema.parse(settings.attackProtection ?? {});
  read.set(settings, parsed);
  return parsed;
}

/** One sentence for each limit of a tenant file that there is none of, so that a misspelt one is not thought to hold. */
export function unknownLimits(
  { attackProtection }: Pick<TenantFile, 'attackProtection'>,
  limits: Limits,
): string[] {
  return Object.keys(attackProtection?.rateLimits ?? {})
    .filter((name) => !Object.hasOwn(limits, name))
    .map((name) => `attackProtection.rateLimits.${name} is not known here: it is kept, and has no effect`);
}
