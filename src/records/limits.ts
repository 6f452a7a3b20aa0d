// Rate limits. Each feature declares its own; a tenant can change the numbers with
// `attackProtection.rateLimits.<name>: { capacity, perMinute }` in the tenant file.

export interface Bucket {
  /** Number of requests that may come at once. */
  capacity: number;
  /** Number of requests that are added per minute. */
  perMinute: number;
}

/** Multiples of the numbers of a limit. */
export interface Times {
  capacity: number;
  perMinute: number;
}

/** What the network of an address (IPv4 /24, IPv6 /48) may take of a limit by address. */
export const NETWORK: Times = { capacity: 8, perMinute: 8 };

/** The declaration of a limit: its default numbers, and for the documentation, what it applies to. */
export interface Limit extends Bucket {
  /** What has a bucket of its own: `address`, `user` … */
  per: string;
  /** What the limit applies to, in a few words. */
  where: string;
  /** Set if each request to a route takes one. The request does not wait for the store to count it. */
  ofRoute?: true;
  /** For a limit by address: what a network may take; {@link NETWORK} by default. */
  network?: Times;
  /**
   * For a limit by address: what all may take together. Beyond it only networks are let in that have taken little, so that
   * nobody can use up what is there for all.
   */
  everybody?: Times;
  /** The stage of `suspiciousIpThrottling` that also sets the numbers, as in the deploy tool's files. */
  stage?: 'pre-user-registration';
}

export type Limits = Readonly<Record<string, Limit>>;

/**
 * The names of all limits. Each declaration adds its name here (`declare module`), so that the compiler accepts no
 * other.
 */
// biome-ignore lint/suspicious/noEmptyInterface: its members are where they are declared
export interface LimitNames {}

export type LimitName = keyof LimitNames;
