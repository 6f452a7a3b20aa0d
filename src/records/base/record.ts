// What all records have in common.

/** Deeply read-only. Records from the store are shared and must not be changed. */
export type Frozen<T> = T extends (infer U)[]
  ? readonly Frozen<U>[]
  : T extends object
    ? { readonly [K in keyof T]: Frozen<T[K]> }
    : T;

/** Returns a copy of JSON data that may be changed. */
export function thawed<T>(value: T): Thawed<T> {
  if (Array.isArray(value)) return value.map(thawed) as Thawed<T>;
  if (typeof value !== 'object' || value === null) return value as Thawed<T>;
  // Built from entries, so that a member named `__proto__` is copied like any other.
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, thawed(one)])) as Thawed<T>;
}

type Thawed<T> = T extends readonly (infer U)[]
  ? Thawed<U>[]
  : T extends object
    ? { -readonly [K in keyof T]: Thawed<T[K]> }
    : T;

/** Every record has an id. One with `expiresAt` (epoch seconds) no longer exists from then on. */
export interface Stored {
  id: string;
  expiresAt?: number;
}

// The user and the session that an artifact of the engine belongs to.

/** Returns a member of an artifact's payload if it is a text. */
export const text = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);

const field = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined;

/** Returns the `uid` of the session that an artifact (a token or a waiting request) belongs to. */
export function sessionUid(payload: Readonly<Record<string, unknown>>): string | undefined {
  return text(payload.sessionUid) ?? text(field(payload.session, 'uid'));
}

/**
 * Returns the users that an artifact belongs to. A waiting request also belongs to the user who has just logged in to
 * it, or who has given the first factor there.
 */
export function accountsOf(payload: Readonly<Record<string, unknown>>): string[] {
  const accounts = [
    payload.accountId,
    field(payload.session, 'accountId'),
    field(field(payload.result, 'login'), 'accountId'),
    field(field(payload.lastSubmission, 'firstFactor'), 'userId'),
  ];
  return [...new Set(accounts.flatMap((account) => text(account) ?? []))];
}
