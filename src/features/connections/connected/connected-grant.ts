// The grant that gives an application the access token of a user's connected account, in exchange for a token that this server
// issued for the same user (docs/reference/wire/token.md). Refresh tokens of providers are never given out.
// docs/understand/decisions/connections.md#a-first-party-application-with-the-grant-can-get-the-token-of-a-connected-account

import type { Logger } from 'pino';
import { z } from 'zod';
import type { ReadSubjectToken } from '../../../engine/token/token-exchange.ts';
import type { GrantAnswer, GrantDeclaration, GrantRequest } from '../../../engine/token/tokens.ts';
import { AuthError } from '../../../http/errors.ts';
import { optional, required } from '../../../http/parameter-schemas.ts';
import { requiredField } from '../../../http/server/body.ts';
import { authenticationMethod } from '../../../records/clients/client-authentication.ts';
import type { UpstreamGrant } from '../../../records/connections/identities.ts';
import { epochSeconds } from '../../../runtime/clock.ts';
import type { Leases } from '../../../store/leases.ts';
import type { User } from '../../../users/user.ts';
import {
  type ConnectedAccount,
  connectedAccountsOf,
  isAccountOf,
} from '../../../users/users-connected-accounts.ts';
import type { UpstreamDependencies } from '../redirect.ts';
import type { Upstream } from '../upstream/begin.ts';
import { upstreamEvents } from '../upstream/upstream-declaration.ts';
import { connectableConnections } from './purposes.ts';

export interface ConnectedGrantDependencies extends RenewalDependencies {
  readSubjectToken: ReadSubjectToken;
}

/** Path of the token type's URI; its host is the tenant's `vendor_host`. */
const TOKEN_TYPE = '/oauth/token-type/federated-connection-access-token';

export const connectedGrant: GrantDeclaration<ConnectedGrantDependencies> = {
  grantType: 'urn:auth0:params:oauth:grant-type:token-exchange:federated-connection-access-token',
  summary:
    "The access token of a user's connected account, for a refresh token or access token of this server",
  parameters: z.object({
    connection: required('The name of the connection.'),
    subject_token: required('A refresh token of the application, or an access token for its API.'),
    subject_token_type: required('The type of the subject token (RFC 8693 §3).'),
    requested_token_type: optional(
      '`http://<vendor_host>/oauth/token-type/federated-connection-access-token`',
    ),
    login_hint: optional(
      'The id of the account at the provider; by default the account that was connected first.',
    ),
  }),
  gty: 'federated-connection-access-token',
  events: { success: upstreamEvents.connected_token_given, failure: upstreamEvents.connected_token_refused },
  authenticate: async (deps, request) => {
    const { clientId, params, ctx } = request;
    const type = `http://${deps.config.settings().vendor_host}${TOKEN_TYPE}`;
    const { requested_token_type: requested = type } = params;
    if (requested !== type)
      throw new AuthError(400, 'invalid_request', 'The requested_token_type is not supported.');
    await checkClient(deps, clientId);
    const upstream = await upstreamOf(deps, request);
    const token = requiredField(params, 'subject_token');
    const subject = { ctx, clientId, type: requiredField(params, 'subject_token_type'), token };
    const { user, requireStill } = await deps.readSubjectToken(subject);
    const account = await accountOf(deps, user, upstream, params.login_hint);
    const response = await tokenResponse(deps, user, upstream, account, type);
    // The provider may have taken its time to renew the token.
    await requireStill();
    return response;
  },
};

/** Rejects public clients and third-party applications. @throws AuthError 403. */
async function checkClient({ config }: ConnectedGrantDependencies, clientId: string): Promise<void> {
  const client = await config.client(clientId);
  if (client !== undefined && client.is_first_party !== false && authenticationMethod(client) !== 'none')
    return;
  throw new AuthError(
    403,
    'unauthorized_client',
    'Tokens of connected accounts are for first-party applications that authenticate.',
  );
}

/** Returns the connection that a request names. @throws AuthError 400 if the application cannot connect accounts with it. */
async function upstreamOf(
  { config }: ConnectedGrantDependencies,
  { clientId, params }: GrantRequest,
): Promise<Upstream> {
  const name = requiredField(params, 'connection');
  const found = (await connectableConnections(config, clientId)).find(
    ({ connection }) => connection.name === name,
  );
  if (found !== undefined) return found;
  throw new AuthError(
    400,
    'invalid_request',
    'The connection is not enabled for connected accounts of this application.',
  );
}

/**
 * @param hint the account's id at the provider; without one, the account connected first is returned.
 * @throws AuthError 401 `federated_connection_refresh_token_not_found` if there is none.
 */
async function accountOf(
  deps: ConnectedGrantDependencies,
  user: User,
  { connection }: Upstream,
  hint: string | undefined,
): Promise<ConnectedAccount> {
  const found = (await connectedAccountsOf(deps, user.id)).find(
    (one) => one.connection_id === connection.id && (!hint || isAccountOf(one, hint)),
  );
  if (found === undefined) throw notConnected();
  return found;
}

/** Returns the error by which published SDKs recognize that the user has to connect an account. */
function notConnected(): AuthError {
  return new AuthError(
    401,
    'federated_connection_refresh_token_not_found',
    'There is no connected account with a token that is good. The user has to connect it.',
  );
}

async function tokenResponse(
  deps: ConnectedGrantDependencies,
  { id: userId }: User,
  upstream: Upstream,
  account: ConnectedAccount,
  type: string,
): Promise<GrantAnswer> {
  const grant = await currentGrant(deps, account, upstream);
  if (grant === 'none') throw notConnected();
  if (grant === 'failed')
    throw new AuthError(
      401,
      'federated_connection_refresh_token_flow_failed',
      'The provider did not renew the token of the connected account. The user may have to connect it again.',
    );
  const { access_token, expires_at, scope = account.scopes.join(' ') } = grant;
  return {
    userId,
    connection: upstream.connection.name,
    answer: {
      access_token,
      issued_token_type: type,
      token_type: 'Bearer',
      ...(expires_at !== undefined && { expires_in: expires_at - epochSeconds(deps.wallClock) }),
      ...(scope !== '' && { scope }),
    },
  };
}

// Renews the access token of a connected account before it is given out, if it has expired or is about to (RFC 6749 §6).

interface RenewalDependencies extends UpstreamDependencies {
  leases: Pick<Leases, 'afterOthers'>;
  log: Logger;
}

/** Seconds. A token with a shorter remaining lifetime could expire before the application uses it. */
const MARGIN = 30;

/**
 * Returns the tokens of a connected account, with an access token that has not expired.
 * @returns `none` when it has expired and cannot be renewed, or the account is deleted; `failed` when the provider did not
 *   renew it.
 */
async function currentGrant(
  deps: RenewalDependencies,
  { id }: Pick<ConnectedAccount, 'id'>,
  upstream: Upstream,
): Promise<UpstreamGrant | 'none' | 'failed'> {
  const accounts = deps.store.collection('connectedAccounts');
  const grantOf = async () => (await accounts.get(id))?.grant;
  const stored = await grantOf();
  if (stored !== undefined && isUnexpired(deps, stored)) return stored;
  // A provider that rotates refresh tokens treats a second use of one as theft. A lease keeps other processes from it, too.
  let outcome: UpstreamGrant | 'none' | 'failed' = 'none';
  await deps.leases.afterOthers(`connected ${id}`, async () => {
    const latest = await grantOf();
    if (latest !== undefined)
      outcome = isUnexpired(deps, latest) ? latest : await renew(deps, id, latest, upstream);
  });
  return outcome;
}

async function renew(
  deps: RenewalDependencies,
  id: string,
  { refresh_token: refreshToken, id_token: idToken }: UpstreamGrant,
  { connection, strategy }: Upstream,
): Promise<UpstreamGrant | 'none' | 'failed'> {
  if (refreshToken === undefined || strategy.refresh === undefined) return 'none';
  try {
    const tokens = await strategy.refresh(deps, { connection, refreshToken, idToken });
    const updated = await deps.store.collection('connectedAccounts').update(id, (current) => {
      // The account was connected again meanwhile, so its tokens are newer.
      if (current.grant.refresh_token !== refreshToken) return current;
      // The expired token goes even if there is no new one: DPoP-bound tokens are not stored.
      const { access_token: _expired, expires_at: _at, ...before } = current.grant;
      return { ...current, grant: { ...before, ...tokens } };
    });
    return updated?.grant.access_token === undefined ? 'none' : updated.grant;
  } catch (err) {
    deps.log.warn({ err, connection: connection.name }, "a connected account's token was not renewed");
    return 'failed';
  }
}

function isUnexpired(
  { wallClock }: RenewalDependencies,
  { access_token, expires_at }: UpstreamGrant,
): boolean {
  if (access_token === undefined) return false;
  return expires_at === undefined || expires_at > epochSeconds(wallClock) + MARGIN;
}
