// How many requests are allowed, and the tenant's own numbers for them:
// `attackProtection.rateLimits.<name>: { capacity, perMinute }` in the tenant file.
// The one table of them; no more than data, so that the tenant file's schema can name them.

export interface Bucket {
  /** How many requests may come at once. */
  capacity: number;
  /** How many come back per minute. */
  perMinute: number;
}

/** All limits but `signup`; docs/operating.md has them as a table. */
export const DEFAULTS = {
  /** Per user; the spec's semantics: minus one per request, plus one per minute. */
  userinfo: { capacity: 10, perMinute: 1 },
  /** Per user and address, at every place where a password is tried. */
  login: { capacity: 20, perMinute: 10 },
  /** Per address and e-mail address. */
  changePassword: { capacity: 10, perMinute: 1 },
  /** Mails with a reset link to one user: of all strangers together, and of each known caller. */
  changePasswordDestination: { capacity: 10, perMinute: 1 / 6 },
  /** Per e-mail address or phone number: of all strangers together, and of each caller by itself. */
  passwordlessDestination: { capacity: 10, perMinute: 1 / 6 },
  /** Per e-mail address or phone number, application and address: asking for another code at the hosted page. */
  passwordlessResend: { capacity: 1, perMinute: 2 },
  /** Wrong passwords of one account by all strangers together, from whatever addresses: 100 a day. */
  passwordFailures: { capacity: 100, perMinute: 100 / 1440 },
  /** Wrong passwordless codes, likewise, and of each known caller: 30 a day. */
  codeFailures: { capacity: 30, perMinute: 30 / 1440 },
  /** Mails about a locked account, per account and address that it was locked for. */
  lockNotice: { capacity: 1, perMinute: 1 / 60 },
  /** The same per account: it may be attacked from many addresses. */
  lockNoticeAccount: { capacity: 5, perMinute: 1 / 12 },
  /** Mails about an account that is locked for strangers wherever they are. */
  lockNoticeEverywhere: { capacity: 1, perMinute: 1 / 720 },
  /** Codes of a second factor of one user, whatever token or address they come by; right ones are given back. */
  mfaCode: { capacity: 10, perMinute: 1 / 6 },
  /** Codes sent for one user, wherever to: nobody's account pays for numbers of others; used ones are given back. */
  mfaMessage: { capacity: 10, perMinute: 1 / 60 },
  /** Requests to the devices of one user that approve logins, whoever asks; allowed ones are given back. */
  mfaPush: { capacity: 10, perMinute: 1 / 6 },
  /** Event streams that the devices of one user open; each lives for a minute at most. */
  deviceStream: { capacity: 60, perMinute: 60 },

  // The rest is per address.
  /** 50 an hour. */
  passwordlessStart: { capacity: 50, perMinute: 50 / 60 },
  passwordlessVerify: { capacity: 50, perMinute: 50 },
  coAuthenticate: { capacity: 50, perMinute: 300 },
  token: { capacity: 600, perMinute: 1800 },
  revoke: { capacity: 100, perMinute: 600 },
  authorize: { capacity: 600, perMinute: 600 },
  mfaChallenge: { capacity: 50, perMinute: 50 },
  mfaAssociate: { capacity: 50, perMinute: 50 },
  /** `/mfa/authenticators`, and codes at the hosted pages. */
  mfaVerify: { capacity: 100, perMinute: 100 },
  logout: { capacity: 200, perMinute: 300 },
  samlp: { capacity: 200, perMinute: 300 },
  /** The hosted pages and their forms. */
  hosted: { capacity: 300, perMinute: 300 },
  /** Discovery and keys. */
  discovery: { capacity: 200, perMinute: 1200 },
  /** Whatever has no limit of its own, unknown paths too: fifty a second. */
  other: { capacity: 600, perMinute: 3000 },
} as const satisfies Record<string, Bucket>;

/** `signup` has the deploy tool's own setting: suspiciousIpThrottling, stage pre-user-registration. */
export type LimitName = keyof typeof DEFAULTS | 'signup';

/** The names that `attackProtection.rateLimits` may have. */
export const LIMIT_NAMES = [...Object.keys(DEFAULTS), 'signup'] as LimitName[];

/** Limits that a route declares: per address, of every request. The others are taken by what they are about. */
const OF_ROUTES = [
  'token',
  'revoke',
  'authorize',
  'hosted',
  'discovery',
  'mfaChallenge',
  'mfaAssociate',
  'mfaVerify',
  'logout',
  'samlp',
  'other',
] as const satisfies LimitName[];

export type RouteLimit = (typeof OF_ROUTES)[number];

const BY_ROUTE: ReadonlySet<string> = new Set(OF_ROUTES);

/** Whether a limit is of a route: then each process counts for itself, lest every request wait for the store. */
export function isByRoute(name: string): name is RouteLimit {
  return BY_ROUTE.has(name);
}
