// A silent request (`prompt=none`) that brings a login ticket: the user has proved who they are already, and
// no page may be shown, so the login ends here instead of at a page.
import type { Context } from 'koa';
import { errors, type KoaContextWithOIDC } from 'oidc-provider';
import type { LoginTickets } from '../protection/login-tickets.ts';
import { loginAnswer, throwRefusal } from './browser-login.ts';
import type { SecondFactor } from './second-factor.ts';
import type { Sessions } from './sessions.ts';
import type { Settle } from './settle.ts';
import { wantedOf } from './step-up.ts';

export interface SilentLoginDependencies {
  tickets: LoginTickets;
  settle: Settle;
  secondFactor: Pick<SecondFactor, 'description'>;
  sessions: Pick<Sessions, 'end'>;
}

/**
 * Logs the ticket's user in to the browser's session, where the request is silent and the ticket is this
 * browser's and application's. Called when the request itself was found valid and before its session is looked
 * at, so that a request that fails anyway uses no ticket up; a ticket that is not good changes nothing, and
 * the interaction policy answers `login_required` for it.
 * @throws errors.OIDCProviderError, for the callback, when the user may not come in or needs a second factor.
 */
export async function logInSilently(
  deps: SilentLoginDependencies,
  ctx: KoaContextWithOIDC,
  ticket: string | undefined,
): Promise<void> {
  const { client, params, prompts } = ctx.oidc;
  if (ticket === undefined || client === undefined || !prompts.has('none')) return;
  const { clientId } = client;
  const koa = ctx as unknown as Context;
  const login = await deps.tickets.redeem(koa, ticket, clientId);
  if (login === undefined) return;
  const verdict = await deps.settle.judge(login, { clientId, ...wantedOf(params), browser: true, ctx: koa });
  if (verdict.is === 'incomplete') throw new errors.LoginRequired(deps.secondFactor.description);
  if (verdict.is === 'refused') {
    if (verdict.refusal.error === 'invalid_grant') return;
    return throwRefusal(verdict.refusal);
  }
  await leaveOtherAccount(deps, ctx, login.userId);
  const { session } = ctx.oidc;
  session?.loginAccount({ accountId: login.userId, amr: [...login.amr] });
  // A session id that was known before the login is not the login's (session fixation).
  session?.resetIdentifier();
  // As after an interaction.
  Object.assign(ctx.oidc, { result: loginAnswer(login) });
}

/** Another account's session ends for all its parties before this one begins, with an id of its own. */
async function leaveOtherAccount(
  { sessions }: SilentLoginDependencies,
  { oidc }: KoaContextWithOIDC,
  userId: string,
): Promise<void> {
  const { session } = oidc;
  if (session?.accountId === undefined || session.accountId === userId) return;
  await sessions.end(session.uid, { reason: 'session-revoked', requestsStay: true });
  // Made of something, though of nothing: the engine keeps an untouched new one out of the store.
  const Session = oidc.provider.Session as unknown as new (payload: object) => typeof session;
  const next = new Session({});
  Object.assign(oidc, { session: next });
  oidc.entity('Session', next);
}
