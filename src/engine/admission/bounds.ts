// Bounds of a session or refresh token: ends that actions or the user's provider set. They can only shorten the
// lifetimes of tenant and application.

/** Epoch seconds. */
export interface Bounds {
  /** The absolute end. */
  expiresAt?: number;
  /** When the session at the user's provider ends. The earlier of the two ends counts. */
  providerExpiresAt?: number;
  /** The end unless it is used before. It replaces the idle lifetime until actions set another one. */
  idleExpiresAt?: number;
}

/** Returns the bounds of a session or refresh token. */
export function boundsOf(artifact: object | undefined): Bounds {
  return (artifact as { bounds?: Bounds } | undefined)?.bounds ?? {};
}

/** Returns the end that bounds set, epoch seconds; infinite when they set none. */
export function absoluteEnd({ expiresAt = Infinity, providerExpiresAt = Infinity }: Bounds): number {
  return Math.min(expiresAt, providerExpiresAt);
}

/**
 * Returns the bounds after a login whose actions asked for others. Bounds that they do not set stay, except the
 * idle end. An end that they set replaces that of the provider.
 */
export function updatedBounds(current: Bounds, changes: Bounds): Bounds {
  const { idleExpiresAt } = changes;
  const { expiresAt, providerExpiresAt } = changes.expiresAt === undefined ? current : changes;
  return {
    ...(expiresAt !== undefined && { expiresAt }),
    ...(providerExpiresAt !== undefined && { providerExpiresAt }),
    ...(idleExpiresAt !== undefined && { idleExpiresAt }),
  };
}

/**
 * Returns the seconds left within bounds.
 * @param left seconds left of the absolute lifetime.
 * @param idle the idle lifetime, seconds.
 * @param now epoch seconds.
 */
export function remainingSeconds(bounds: Bounds, left: number, idle: number, now: number): number {
  const { idleExpiresAt } = bounds;
  const absolute = Math.min(left, absoluteEnd(bounds) - now);
  return Math.min(absolute, idleExpiresAt === undefined ? idle : idleExpiresAt - now);
}
