// Clients that take a while to load: made when they are first needed.

/** Something that is made once. */
export interface Once<T> {
  (): Promise<T>;
  /** Whether anybody has needed it yet. */
  isMade(): boolean;
}

/** Makes it at the first call; where that fails (no file descriptor was left, say), at the next one again. */
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
