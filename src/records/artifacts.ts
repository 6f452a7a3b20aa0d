// Whose the engine's artifacts are, and of which session.

/** A member of an artifact's payload, where it is a text. */
export const text = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);

const field = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined;

/** The `uid` of the session that an artifact of the engine belongs to: a token's, or a waiting request's. */
export function sessionUid(payload: Readonly<Record<string, unknown>>): string | undefined {
  return text(payload.sessionUid) ?? text(field(payload.session, 'uid'));
}

/**
 * Whose an artifact is; a waiting request is also of the user who has just logged in to it, or who has given the
 * first factor there.
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
