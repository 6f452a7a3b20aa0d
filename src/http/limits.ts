// Rate limits. Each feature declares its own; a tenant can change the numbers with
// `attackProtection.rateLimits.<name>: { capacity, perMinute }` in the tenant file.

export interface Bucket {
  /** Number of requests that may come at once. */
  capacity: number;
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
interface LimitDeclaration extends Bucket {
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

declare const declared: unique symbol;

/** A declared limit. Only {@link limitsOf} makes one, so that a limit that nobody declares does not compile. */
export interface Limit extends Readonly<LimitDeclaration> {
  readonly name: string;
  readonly [declared]: true;
}

export type Limits = Readonly<Record<string, Limit>>;

/**
 * Declares limits by their names. Whoever declares them lists them among the `limits` of their part (src/records/declaration.ts),
 * so that they are documented, and known in the tenant file.
 */
export function limitsOf<N extends string>(
  declarations: Readonly<Record<N, LimitDeclaration>>,
): Readonly<Record<N, Limit>> {
  return Object.fromEntries(
    Object.entries<LimitDeclaration>(declarations).map(([name, declaration]) => [
      name,
      { ...declaration, name },
    ]),
    // The compiler knows neither the names of entries nor the mark, which exists for it alone.
  ) as unknown as Record<N, Limit>;
}

/** The limits of pages for people, and of paths without one of their own. */
export const httpLimits = limitsOf({
  hosted: { capacity: 300, perMinute: 300, per: 'address', where: 'the hosted pages and their forms' },
  other: { capacity: 600, perMinute: 3000, per: 'address', where: 'every other path, also unknown ones' },
});
