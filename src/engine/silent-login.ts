// A silent request (`prompt=none`) that brings a login ticket: the user has proved who they are already, and
// no page may be shown, so the login ends here instead of at an interaction.
import type { Context } from 'koa';
import { errors, type KoaContextWithOIDC } from 'oidc-provider';
import type { LoginTickets } from '../protection/login-tickets.ts';
import { isByConnection, refusalOf } from './admission.ts';
import { type LoginEventsDependencies, tellLogin } from './login-events.ts';
import { MFA_REQUIRED } from './policy.ts';
import type { SecondFactor } from './second-factor.ts';
import type { Sessions } from './sessions.ts';
import { engineLogin } from './settle.ts';
import { wantedOf } from './step-up.ts';

export interface SilentLoginDependencies extends LoginEventsDependencies {
  tickets: LoginTickets;
  secondFactor: SecondFactor;
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
  const koa = ctx as unknown as Context;
  const login = await deps.tickets.redeem(koa, ticket, client.clientId);
  const user = login === undefined ? undefined : await deps.users.get(login.userId);
  if (login === undefined || user === undefined) return;
  if (!isByConnection(params?.connection, login.connection)) return;
  const refusal = await refusalOf(deps.users, login);
  const place = { clientId: client.clientId, ip: ctx.ip };
  if (refusal !== undefined) {
    await tellLogin(deps, 'f', login, { ...place, description: refusal.error_description });
    if (refusal.error === 'invalid_grant') return;
    throw new errors.CustomOIDCProviderError(refusal.error, refusal.error_description);
  }
  const { amr, credentialVersion } = login;
  const asked = { ...wantedOf(params), browser: true, ctx: koa };
  if (
    await deps.secondFactor.isDemanded({
      userId: user.id,
      clientId: client.clientId,
      amr,
      credentialVersion,
      ...asked,
    })
  ) {
    await tellLogin(deps, 'mfar', login, place);
    throw new errors.LoginRequired(MFA_REQUIRED);
  }
  await leaveOtherAccount(deps, ctx, user.id);
  const { session } = ctx.oidc;
  session?.loginAccount({ accountId: user.id, amr: [...amr] });
  // A session id that was known before the login is not the login's (session fixation).
  session?.resetIdentifier();
  // As after an interaction: the policy's checks read it.
  Object.assign(ctx.oidc, { result: { login: engineLogin(login) } });
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
