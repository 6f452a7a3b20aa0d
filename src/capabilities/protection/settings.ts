// The tenant's attack protection settings, with defaults.

import { CONSOLE_DIRECTORY } from '../../records/administrators.ts';
import type { Limits } from '../../records/limits.ts';
import { type AttackProtection, attackProtectionSchema } from '../../records/protection.ts';
import type { TenantFile } from '../../records/tenant.ts';
import type { Config } from '../../tenant/config.ts';

/** Parsed once for each version of the tenant's settings, because every request needs them. */
const cache = new WeakMap<object, AttackProtection>();

/** Returns the tenant's `attackProtection`. Records of older versions get today's defaults. */
export function protectionSettings(config: Config): AttackProtection {
  const settings = config.settings();
  const cached = cache.get(settings);
  if (cached !== undefined) return cached;
  const parsed = attackProtectionSchema.parse(settings.attackProtection ?? {});
  cache.set(settings, parsed);
  return parsed;
}

/** The settings of the console's own directory. */
const OF_ADMINISTRATORS = attackProtectionSchema.parse({});

/**
 * Returns the settings for attempts at a connection. Those of administrators are the defaults: editors change the
 * tenant's, and could otherwise guess an owner's password without limit.
 */
export function protectionOf(config: Config, { connection }: { connection: string }): AttackProtection {
  return connection === CONSOLE_DIRECTORY ? OF_ADMINISTRATORS : protectionSettings(config);
}

/** Returns a warning for each limit of a tenant file that does not exist, such as a misspelt one. */
export function unknownLimits(
  { attackProtection }: Pick<TenantFile, 'attackProtection'>,
  limits: Limits,
): string[] {
  return Object.keys(attackProtection?.rateLimits ?? {})
    .filter((name) => !Object.hasOwn(limits, name))
    .map((name) => `attackProtection.rateLimits.${name} is not known here: it is kept, and has no effect`);
}
