// When a session or a refresh token ends, as actions say: within what tenant and application allow.

/** Epoch seconds. */
export interface Bounds {
  /** Whatever is done with it. */
  expiresAt?: number;
  /** Unless it is used until then: in place of the idle lifetime, until actions say so again. */
  idleExpiresAt?: number;
}

/** The bounds of what the engine keeps. */
export function boundsOf(kept: object | undefined): Bounds {
  return (kept as { bounds?: Bounds } | undefined)?.bounds ?? {};
}

/** The bounds after a login whose actions asked for these: what they do not say stays, but for the idle time. */
export function boundsAfter(before: Bounds, { expiresAt = before.expiresAt, idleExpiresAt }: Bounds): Bounds {
  return {
    ...(expiresAt !== undefined && { expiresAt }),
    ...(idleExpiresAt !== undefined && { idleExpiresAt }),
  };
}

/**
 * Seconds left within bounds.
 * @param left what is left by the absolute lifetime. @param idle the idle lifetime. @param now epoch seconds.
 */
export function leftWithin(
  { expiresAt, idleExpiresAt }: Bounds,
  left: number,
  idle: number,
  now: number,
): number {
  const absolute = Math.min(left, (expiresAt ?? Number.POSITIVE_INFINITY) - now);
  return Math.min(absolute, idleExpiresAt === undefined ? idle : idleExpiresAt - now);
}
