// Lazily created clients.

interface Once<T> {
  (): Promise<T>;
  isCreated(): boolean;
}

/** Returns a function that creates a value at its first call. A failed creation is repeated at the next call. */
export function once<T>(create: () => Promise<T>): Once<T> {
  let created: Promise<T> | undefined;
  const get = () => {
    created ??= create().catch((error: unknown) => {
      created = undefined;
      throw error;
    });
    return created;
  };
  return Object.assign(get, { isCreated: () => created !== undefined });
}
