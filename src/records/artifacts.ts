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
