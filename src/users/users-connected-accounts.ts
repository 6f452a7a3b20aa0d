// The accounts at providers that users have connected.

import type { Frozen } from '../records/base/record.ts';
import type { Connection } from '../records/collections.ts';
import type { UpstreamGrant } from '../records/connections/identities.ts';
import type { ConnectedAccountRecord } from '../records/users/connected-accounts.ts';
import type { Clock } from '../runtime/clock.ts';
import { sha256 } from '../runtime/secrets.ts';
import type { Store } from '../store/contract.ts';

/** The provider's id of an account, and the tokens that the provider issued for it. */
export interface ConnectedIdentity {
  upstreamId: string;
  grant: UpstreamGrant;
}

export type ConnectedAccount = Frozen<ConnectedAccountRecord>;

/** Returns the connected accounts of a user, oldest first. */
export async function connectedAccountsOf(
  { store }: { store: Pick<Store, 'collection'> },
  userId: string,
): Promise<ConnectedAccount[]> {
  const all = await store.collection('connectedAccounts').findBy('user', userId);
  return [...all].sort((a, b) => a.created_at.localeCompare(b.created_at) || a.id.localeCompare(b.id));
}

export function isAccountOf(
  { id, user_id, connection_id }: Pick<ConnectedAccount, 'id' | 'user_id' | 'connection_id'>,
  upstreamId: string,
): boolean {
  return id === idOf(user_id, connection_id, upstreamId);
}

/** @param requestedScopes are stored if the provider does not say which scopes it granted. */
export async function storeConnectedAccount(
  { store, wallClock }: { store: Pick<Store, 'collection'>; wallClock: Clock },
  userId: string,
  { id: connection_id, name, strategy }: Connection,
  { upstreamId, grant, requestedScopes }: ConnectedIdentity & { requestedScopes: readonly string[] },
): Promise<ConnectedAccount> {
  const id = idOf(userId, connection_id, upstreamId);
  const grantedScopes = grant.scope?.split(/[ ,]/).filter((one) => one !== '');
  return store.collection('connectedAccounts').upsert(id, (current) => ({
    id,
    user_id: userId,
    connection: name,
    connection_id,
    strategy,
    scopes: [...(grantedScopes ?? requestedScopes)],
    // Some providers issue a refresh token only the first time.
    grant: { ...(current && { refresh_token: current.grant.refresh_token }), ...grant },
    created_at: current?.created_at ?? new Date(wallClock()).toISOString(),
  }));
}

/** Returns the id of a record: a hash, which does not reveal the account. */
function idOf(...of: readonly string[]): string {
  return `cac_${sha256(of.join('\n')).slice(0, 24)}`;
}

/** Returns an account as the APIs show it, without its tokens. */
export function connectedAccountView({ id, connection, scopes, created_at, grant }: ConnectedAccount) {
  const { refresh_token, expires_at } = grant;
  return {
    id,
    connection,
    access_type: 'offline' as const,
    scopes: [...scopes],
    created_at,
    // With a refresh token the access can be renewed, so there is no known end.
    ...(refresh_token === undefined &&
      expires_at !== undefined && { expires_at: new Date(expires_at * 1000).toISOString() }),
  };
}
