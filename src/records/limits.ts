// What a limit is: how many requests are allowed, and of whom. Each part of the house declares its own; the tenant's
// numbers for them are `attackProtection.rateLimits.<name>: { capacity, perMinute }` in the tenant file.

export interface Bucket {
  /** How many requests may come at once. */
  capacity: number;
  /** How many come back per minute. */
  perMinute: number;
}

/** A limit as it is declared: the default numbers, and for people whom it counts and where. */
export interface Limit extends Bucket {
  /** Whose requests one bucket counts: `address`, `user` … */
  per: string;
  /** What takes from it, in a few words. */
  where: string;
  /** Taken with each request to an endpoint, as its route's is, and counted alike: the request does not wait for the store. */
  ofRoute?: true;
  /** The stage of `suspiciousIpThrottling` that sets it, too, in the deploy tool's vocabulary. */
  stage?: 'pre-user-registration';
}

export type Limits = Readonly<Record<string, Limit>>;

/** The names of all limits: whoever declares one adds it here (`declare module`), so that no other can be named. */
// biome-ignore lint/suspicious/noEmptyInterface: its members are where they are declared
export interface LimitNames {}

export type LimitName = keyof LimitNames;
