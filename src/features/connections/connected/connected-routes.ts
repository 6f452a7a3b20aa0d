// The browser of a user who connects an account: to the provider, and back to the application.
import type { Context } from 'koa';
import type { Sessions } from '../../../engine/session/sessions.ts';
import { AuthError, linkExpired } from '../../../http/errors.ts';
import { PAGE, type RouteDeclarations } from '../../../http/server/router.ts';
import { upstreamFault, withQuery } from '../redirect.ts';
import type { PendingLogins } from '../upstream/begin.ts';
import { CALLBACK, type Upstream } from '../upstream/begin.ts';
import {
  type CompleteDependencies,
  identify,
  type ProviderCallback,
  recordFault,
} from '../upstream/complete.ts';
import { refuseUnusable } from '../upstream/upstream-login-user.ts';
import {
  type AccountConnection,
  type AccountConnectionDependencies,
  issueConnectCode,
  spendConnectTicket,
} from './connecting.ts';
import { connectableConnections } from './purposes.ts';

export interface ConnectedRouteDependencies extends CompleteDependencies, AccountConnectionDependencies {
  pendingLogins: PendingLogins;
  sessions: Pick<Sessions, 'current'>;
}

/** Path that the browser comes to with its ticket. */
export const CONNECT = '/connected-accounts/connect';

export const connectedRoutes: RouteDeclarations<ConnectedRouteDependencies> = {
  [`GET ${CONNECT}` as const]: { ...PAGE, handle: startAtProvider },
};

async function startAtProvider(deps: ConnectedRouteDependencies, ctx: Context): Promise<void> {
  ctx.set('Cache-Control', 'no-store');
  ctx.set('Referrer-Policy', 'no-referrer');
  const { ticket } = ctx.query;
  const accountConnection = typeof ticket === 'string' ? await spendConnectTicket(deps, ticket) : undefined;
  if (accountConnection === undefined) throw linkExpired();
  const { id: uid, clientId, connectionId, scopes, additional } = accountConnection;
  try {
    await refuseOtherUser(deps, ctx, accountConnection);
    const { connection, strategy } = await upstreamOf(deps, accountConnection);
    const pending = { uid, clientId, connectionId, connecting: accountConnection };
    const { state, nonce, codeVerifier } = await deps.pendingLogins.begin(ctx, pending);
    const { prompt, login_hint, max_age } = additional;
    const redirect = await strategy.redirect(deps, {
      connection,
      redirectUri: `${deps.baseUrl}${CALLBACK}`,
      state,
      nonce,
      codeVerifier,
      params: { prompt, login_hint, max_age, connection_scope: scopes.join(' ') },
      listsScopes: true,
      additional: Object.fromEntries(
        Object.entries(additional).filter(([name]) => !STANDARD_PARAMETERS.has(name)),
      ),
    });
    if (!('url' in redirect))
      throw upstreamFault('invalid_request', 'The provider is not asked by an address.');
    ctx.redirect(redirect.url);
  } catch (thrown) {
    returnToApplication(
      ctx,
      accountConnection,
      recordFault(deps, ctx, { clientId, userId: accountConnection.userId }, thrown),
    );
  }
}

/** Parameters that have the same meaning for every provider. */
const STANDARD_PARAMETERS: ReadonlySet<string> = new Set(['prompt', 'login_hint', 'max_age']);

/** Rejects a browser in which another user is logged in: that user may have been lured here by the one who made the ticket. */
async function refuseOtherUser(
  { sessions }: ConnectedRouteDependencies,
  ctx: Context,
  { userId }: AccountConnection,
): Promise<void> {
  const session = await sessions.current(ctx);
  if (session === undefined || session.userId === userId) return;
  throw new AuthError(403, 'access_denied', 'Another user is logged in in this browser.');
}

/** Returns the connection of an account connection. @throws AuthError if accounts can no longer be connected with it. */
async function upstreamOf(
  { config }: Pick<ConnectedRouteDependencies, 'config'>,
  { clientId, connectionId }: AccountConnection,
): Promise<Upstream> {
  const found = (await connectableConnections(config, clientId)).find(
    ({ connection }) => connection.id === connectionId,
  );
  if (found !== undefined) return found;
  throw upstreamFault('invalid_request', 'the connection is not enabled for connected accounts');
}

/** Handles the answer of a provider: stores its tokens, and sends the browser to the application with a `connect_code`. */
export async function finishAtProvider(
  deps: ConnectedRouteDependencies,
  ctx: Context,
  accountConnection: AccountConnection,
  callback: ProviderCallback,
): Promise<void> {
  const { clientId, userId } = accountConnection;
  try {
    const upstream = await upstreamOf(deps, accountConnection);
    const identity = await identify(deps, upstream, callback);
    refuseUnusable(identity);
    const { id: upstreamId, grant } = identity;
    if (grant?.access_token === undefined)
      throw upstreamFault('invalid_request', 'The identity provider gave no access token.');
    const connect_code = await issueConnectCode(deps, accountConnection, { upstreamId, grant });
    returnToApplication(ctx, accountConnection, { connect_code });
  } catch (thrown) {
    returnToApplication(ctx, accountConnection, recordFault(deps, ctx, { clientId, userId }, thrown));
  }
}

/** Sends the browser back to the application (as RFC 6749 §4.1.2). */
function returnToApplication(
  ctx: Context,
  { redirectUri, state }: AccountConnection,
  parameters: Readonly<Record<string, string>>,
): void {
  ctx.redirect(withQuery(redirectUri, { ...parameters, ...(state !== undefined && { state }) }));
  ctx.status = 303;
}
