// A tenant that refuses nothing for being asked too often.
import { LIMIT_NAMES } from '../../src/records/limits.ts';

const [capacity, perMinute] = [1_000_000, 1_000_000];

/** Members of the tenant file. */
export const UNLIMITED = {
  attackProtection: {
    rateLimits: Object.fromEntries(LIMIT_NAMES.map((name) => [name, { capacity, perMinute }])),
    bruteForceProtection: { enabled: false },
    suspiciousIpThrottling: { enabled: false },
  },
};
