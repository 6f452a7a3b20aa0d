// Lazily created clients.

interface Once<T> {
  (): Promise<T>;
  /** Whether it was created. */
  isMade(): boolean;
}

/** Creates it at the first call; a failed creation is tried again at the next. */
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
