// Lazily created clients.

interface Once<T> {
  (): Promise<T>;
  /** Whether it was created. */
  isMade(): boolean;
}

/** Returns a function that creates a value at its first call. A failed creation is repeated at the next call. */
export function once<T>(make: () => Promise<T>): Once<T> {
  let made: Promise<T> | undefined;
  const get = () => {
    made ??= make().catch((error: unknown) => {
      made = undefined;
      throw error;
    });
    return made;
  };
  return Object.assign(get, { isMade: () => made !== undefined });
}
