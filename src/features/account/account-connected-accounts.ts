// Connected accounts: accounts of a user at other providers, connected, listed and removed by an application.
import type { z } from 'zod';
import type { AccountChange } from '../../capabilities/delivery/delivery-messages.ts';
import { AuthError } from '../../http/errors.ts';
import { isCallbackOf } from '../../records/clients/allowed-urls.ts';
import { authenticationMethod } from '../../records/clients/client-authentication.ts';
import {
  type ConnectedAccount,
  connectedAccountsOf,
  storeConnectedAccount,
} from '../../users/users-connected-accounts.ts';
import {
  type AccountConnectionDependencies,
  beginConnecting,
  type Completion,
  completeConnecting,
} from '../connections/connected/connecting.ts';
import { connectableConnections } from '../connections/connected/purposes.ts';
import { accountEvents } from './account-declaration.ts';
import { invalidField } from './account-errors.ts';
import { type Actor, isStillValid, requireFactor, requireLoginFor } from './actor.ts';
import type { connectBody } from './connected-schemas.ts';
import { type MethodDependencies, unknownSession } from './methods.ts';

export interface ConnectedDependencies extends MethodDependencies, AccountConnectionDependencies {}

/** How many connected accounts a user may have. */
const MAX_ACCOUNTS = 100;

interface StartedConnection {
  authSession: string;
  ticket: string;
}

/**
 * @throws AuthError 401 as {@link requireLoginFor}; 400 when the connection does not connect accounts for this
 *   application, the redirect URI is not one of its callbacks, a public application sends no PKCE challenge, or the
 *   user has too many connected accounts.
 */
export async function startConnection(
  deps: ConnectedDependencies,
  actor: Actor,
  request: z.output<typeof connectBody>,
): Promise<StartedConnection> {
  await requireLoginFor(deps, actor, 'connected_account');
  const { user, clientId, login } = actor;
  const {
    connection: name,
    redirect_uri: redirectUri,
    code_challenge: codeChallenge,
    state,
    scopes,
  } = request;
  const client = await deps.config.client(clientId);
  const found = (await connectableConnections(deps.config, clientId)).find(
    ({ connection }) => connection.name === name,
  );
  if (found === undefined)
    throw invalidField(
      'connection',
      'The connection is not enabled for connected accounts of this application.',
    );
  if (client === undefined || !isCallbackOf(client, redirectUri))
    throw invalidField('redirect_uri', 'The address is not a callback of this application.');
  if (codeChallenge === undefined && authenticationMethod(client) === 'none')
    throw invalidField('code_challenge', 'A public application must send a code_challenge (RFC 7636).');
  if ((await connectedAccountsOf(deps, user.id)).length >= MAX_ACCOUNTS)
    throw invalidField('connection', 'There are too many connected accounts: one must be removed.');
  return beginConnecting(deps, {
    userId: user.id,
    clientId,
    login: login.id,
    connectionId: found.connection.id,
    scopes,
    redirectUri,
    state,
    codeChallenge,
    additional: Object.fromEntries(
      Object.entries(request.authorization_params ?? {}).map(([key, value]) => [key, String(value)]),
    ),
  });
}

/**
 * Of several concurrent calls one succeeds.
 * @throws AuthError 401 as {@link requireLoginFor}; 400 as {@link completeConnecting}, and when the connection no
 *   longer connects accounts.
 */
export async function completeConnection(
  deps: ConnectedDependencies,
  actor: Actor,
  proof: Pick<Completion, 'authSession' | 'connectCode' | 'codeVerifier' | 'redirectUri'>,
): Promise<ConnectedAccount> {
  await requireLoginFor(deps, actor, 'connected_account');
  const { user, clientId, login } = actor;
  const owner = { userId: user.id, clientId, login: login.id };
  const { accountConnection, upstreamId, grant } = await completeConnecting(deps, { ...proof, ...owner });
  const found = (await connectableConnections(deps.config, clientId)).find(
    ({ connection }) => connection.id === accountConnection.connectionId,
  );
  if (found === undefined) throw unknownSession();
  const authorized = { upstreamId, grant, requestedScopes: accountConnection.scopes };
  const account = await storeConnectedAccount(deps, user.id, found.connection, authorized);
  // What ended the login or removed the connection in the meantime did not find this record.
  const isThere =
    (await deps.store.collection('connections').get(accountConnection.connectionId)) !== undefined;
  if (!isThere || !(await isStillValid(deps, actor))) {
    await deps.store.collection('connectedAccounts').delete(account.id);
    throw unknownSession();
  }
  await notify(deps, actor, 'connected', account);
  return account;
}

/** @throws AuthError 401 as {@link requireFactor}. */
export async function listConnected(
  deps: ConnectedDependencies,
  actor: Actor,
  connection: string | undefined,
): Promise<ConnectedAccount[]> {
  await requireFactor(deps, actor);
  const all = await connectedAccountsOf(deps, actor.user.id);
  return all.filter((one) => connection === undefined || one.connection === connection);
}

/** @throws AuthError 401 as {@link requireLoginFor}; 404 if the user has none with that id. */
export async function removeConnected(deps: ConnectedDependencies, actor: Actor, id: string): Promise<void> {
  await requireLoginFor(deps, actor, 'connected_account');
  const found = (await connectedAccountsOf(deps, actor.user.id)).find((one) => one.id === id);
  if (found === undefined || !(await deps.store.collection('connectedAccounts').delete(id)))
    throw new AuthError(404, 'not_found', 'There is no such connected account.');
  await notify(deps, actor, 'disconnected', found);
}

/** Records a change in the log, and mails the user if the address is verified. */
async function notify(
  { events, messages }: Pick<ConnectedDependencies, 'events' | 'messages'>,
  { user, clientId, ip, languages }: Actor,
  change: Extract<AccountChange, 'connected' | 'disconnected'>,
  { connection }: ConnectedAccount,
): Promise<void> {
  const type = change === 'connected' ? accountEvents.account_connected : accountEvents.account_disconnected;
  events.record({ type, user_id: user.id, connection, client_id: clientId, ip });
  if (user.email === undefined || !user.email_verified) return;
  await messages.post('account_changed', { to: user.email, user, change, languages, ip });
}
