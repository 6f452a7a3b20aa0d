// The section `attackProtection` of the tenant file, as the deploy tool writes it.
import { z } from 'zod';

const addresses = z.array(z.union([z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6()])).default([]);

/** The slowest rate is one a year, so that the time at which a bucket is full can be computed. */
const SLOWEST = 1 / 525_600;
const bucket = z.looseObject({
  capacity: z.number().min(1).max(1e9),
  perMinute: z.number().min(SLOWEST).max(1e9),
});

/** The defaults are those of the hosted service. */
export const attackProtectionSchema = z.looseObject({
  bruteForceProtection: z
    .looseObject({
      enabled: z.boolean().default(true),
      shields: z.array(z.enum(['block', 'user_notification'])).default(['block', 'user_notification']),
      mode: z
        .enum(['count_per_identifier_and_ip', 'count_per_identifier'])
        .default('count_per_identifier_and_ip'),
      allowlist: addresses,
      max_attempts: z.number().int().min(1).max(100).default(10),
    })
    .prefault({}),
  suspiciousIpThrottling: z
    .looseObject({
      enabled: z.boolean().default(true),
      shields: z.array(z.enum(['admin_notification', 'block'])).default(['admin_notification', 'block']),
      allowlist: addresses,
      stage: z
        .looseObject({
          /** `rate`: milliseconds after which one attempt is added. */
          'pre-login': z
            .looseObject({
              max_attempts: z.number().int().positive().default(100),
              rate: z.number().int().positive().default(864_000),
            })
            .prefault({}),
          'pre-user-registration': z
            .looseObject({
              max_attempts: z.number().int().positive().default(50),
              rate: z.number().int().positive().default(1_200),
            })
            .prefault({}),
          'pre-custom-token-exchange': z
            .looseObject({
              max_attempts: z.number().int().positive().default(10),
              rate: z.number().int().positive().default(600_000),
            })
            .prefault({}),
        })
        .prefault({}),
    })
    .prefault({}),
  /** Gatehouse's own rate limits, by name (docs/reference/limits.md). */
  rateLimits: z.record(z.string(), bucket).prefault({}),
});

export type AttackProtection = z.output<typeof attackProtectionSchema>;
