// `email` at /userinfo is the address at the time when the token was issued (docs/claims.md): a user's record keeps the earlier
// addresses. A token tells its time in seconds (`iat`). One that is issued in the same second as a change, and after it, also
// has the millisecond: otherwise a token from before the change could not be told from it.
import type { AccessToken, ClientCredentials, KoaContextWithOIDC } from 'oidc-provider';
import type { Frozen } from '../../records/record.ts';
import type { UserRecord } from '../../records/users.ts';
import type { Clock } from '../../runtime/clock.ts';
import { endsOf, ISSUED_AT_MS } from '../base/ended-tokens.ts';

/** The users for whom tokens are issued in the current request, by the engine's context. */
export type TokenUsers = WeakMap<object, Frozen<UserRecord>>;

/**
 * Returns the time of issue of a token, as a claim, if the user's address was changed in this second, or if what ended older
 * tokens did so in this second ({@link isBeforeEnd}).
 */
export function preciseIssue(
  { tokenUsers, clock }: { tokenUsers: TokenUsers; clock: Clock },
  ctx: KoaContextWithOIDC,
  token: AccessToken | ClientCredentials,
): Record<string, number> | undefined {
  const user = 'accountId' in token ? tokenUsers.get(ctx.oidc) : undefined;
  if (user === undefined) return undefined;
  const changes = [(user.email_history?.at(-1)?.until ?? 0) * 1000, ...endsOf(user)];
  const now = clock();
  const isInSecond = changes.some((at) => Math.floor(at / 1000) === Math.floor(now / 1000));
  return isInSecond ? { [ISSUED_AT_MS]: now } : undefined;
}

/**
 * Returns the user with the e-mail address at the time when a token was issued; all else is current.
 * @param issuedAt epoch seconds. @param issuedAtMs epoch milliseconds, if the token has them.
 */
export function userAtIssue(
  user: Frozen<UserRecord>,
  { issuedAt, issuedAtMs }: { issuedAt: number; issuedAtMs?: number | undefined },
): Frozen<UserRecord> {
  const then = user.email_history?.find(({ until }) =>
    issuedAtMs === undefined ? issuedAt <= Math.floor(until) : issuedAtMs < until * 1000,
  );
  if (then === undefined) return user;
  const { email: _now, ...rest } = user;
  return {
    ...rest,
    ...(then.email === undefined ? {} : { email: then.email }),
    email_verified: then.email_verified,
  };
}
