// When a session or a refresh token ends, as actions say, or the provider of the user: within what tenant and application allow.

/** Epoch seconds. */
export interface Bounds {
  /** Whatever is done with it. */
  expiresAt?: number;
  /** When the session ends at the provider that its user came from; the earlier end counts. */
  providerExpiresAt?: number;
  /** Unless it is used until then: in place of the idle lifetime, until actions say so again. */
  idleExpiresAt?: number;
}

/** The bounds of what the engine keeps. */
export function boundsOf(kept: object | undefined): Bounds {
  return (kept as { bounds?: Bounds } | undefined)?.bounds ?? {};
}

/** When it ends by bounds, epoch seconds; infinite where they say nothing of it. */
export function endOf({ expiresAt = Infinity, providerExpiresAt = Infinity }: Bounds): number {
  return Math.min(expiresAt, providerExpiresAt);
}

/**
 * The bounds after a login whose actions asked for these: what they do not say stays, but for the idle time. An end that they
 * say comes before that of the provider.
 */
export function boundsAfter(before: Bounds, asked: Bounds): Bounds {
  const { idleExpiresAt } = asked;
  const { expiresAt, providerExpiresAt } = asked.expiresAt === undefined ? before : asked;
  return {
    ...(expiresAt !== undefined && { expiresAt }),
    ...(providerExpiresAt !== undefined && { providerExpiresAt }),
    ...(idleExpiresAt !== undefined && { idleExpiresAt }),
  };
}

/**
 * Seconds left within bounds.
 * @param left what is left by the absolute lifetime. @param idle the idle lifetime. @param now epoch seconds.
 */
export function leftWithin(bounds: Bounds, left: number, idle: number, now: number): number {
  const { idleExpiresAt } = bounds;
  const absolute = Math.min(left, endOf(bounds) - now);
  return Math.min(absolute, idleExpiresAt === undefined ? idle : idleExpiresAt - now);
}
