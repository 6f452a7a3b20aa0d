// How many requests are allowed (wire-details 12.1), and the tenant's own numbers for them:
// `attackProtection.rateLimits.<name>: { capacity, perMinute }` in the tenant file.
import type { Directory } from '../tenant/directory.ts';
import { protectionSettings } from './settings.ts';

export interface Bucket {
  /** How many requests may come at once. */
  capacity: number;
  /** How many come back per minute. */
  perMinute: number;
}

const DEFAULTS = {
  /** Per user; the spec's semantics: minus one per request, plus one per minute. */
  userinfo: { capacity: 10, perMinute: 1 },
  /** Per user and address, at every place where a password is tried. */
  login: { capacity: 20, perMinute: 10 },
  /** Per address and e-mail address. */
  changePassword: { capacity: 10, perMinute: 1 },
  /** Per e-mail address or phone number, whoever asks: nobody's phone is flooded from many addresses. */
  passwordlessDestination: { capacity: 10, perMinute: 1 / 6 },
  /** Per e-mail address or phone number and application: asking for another code at the hosted page. */
  passwordlessResend: { capacity: 1, perMinute: 2 },

  // The rest is per address.
  /** 50 an hour. */
  passwordlessStart: { capacity: 50, perMinute: 50 / 60 },
  passwordlessVerify: { capacity: 50, perMinute: 50 },
  coAuthenticate: { capacity: 50, perMinute: 300 },
  token: { capacity: 600, perMinute: 1800 },
  revoke: { capacity: 100, perMinute: 600 },
  authorize: { capacity: 600, perMinute: 600 },
  /** The hosted pages and their forms. */
  hosted: { capacity: 300, perMinute: 300 },
  /** Discovery and keys. */
  discovery: { capacity: 200, perMinute: 1200 },
} as const satisfies Record<string, Bucket>;

/** `signup` is the deploy tool's own: suspiciousIpThrottling, stage pre-user-registration. */
export type LimitName = keyof typeof DEFAULTS | 'signup';

/** The bucket of a limit: the tenant's where it sets one, else the default. */
export function limitOf(directory: Directory, name: LimitName): Bucket {
  const { rateLimits, suspiciousIpThrottling } = protectionSettings(directory);
  const own = rateLimits[name];
  if (own !== undefined) return own;
  if (name !== 'signup') return DEFAULTS[name];
  const { max_attempts: capacity, rate } = suspiciousIpThrottling.stage['pre-user-registration'];
  return { capacity, perMinute: 60_000 / rate };
}

/** Which limit a path is under, beside those that its endpoint takes itself. */
const PATHS: readonly [RegExp, LimitName][] = [
  [/^\/oauth\/token$/, 'token'],
  [/^\/oauth\/revoke$/, 'revoke'],
  [/^\/authorize(\/|$)/, 'authorize'],
  [/^\/u\//, 'hosted'],
  [/^\/\.well-known\//, 'discovery'],
];

/** The limit of a path, per address; undefined where its endpoint has one of its own or none is needed. */
export function limitOfPath(path: string): LimitName | undefined {
  return PATHS.find(([pattern]) => pattern.test(path))?.[1];
}
