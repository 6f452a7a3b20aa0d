// A tenant without rate limits.
import { LIMITS } from '../../src/server/features.ts';

const [capacity, perMinute] = [1_000_000, 1_000_000];

/** Members of the tenant file. */
export const UNLIMITED = {
  attackProtection: {
    rateLimits: Object.fromEntries(Object.keys(LIMITS).map((name) => [name, { capacity, perMinute }])),
    bruteForceProtection: { enabled: false },
    suspiciousIpThrottling: { enabled: false },
  },
};
