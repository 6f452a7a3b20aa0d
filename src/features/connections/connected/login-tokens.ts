// Connected accounts that result from logins: if a connection is configured so, applications may use the tokens of a login.
import type { Clock } from '../../../runtime/clock.ts';
import type { Store } from '../../../store/contract.ts';
import { storeConnectedAccount } from '../../../users/connected-accounts.ts';
import type { UpstreamIdentity } from '../redirect.ts';
import type { Upstream } from '../upstream/begin.ts';
import { sharesLoginTokens } from './purposes.ts';

/** Stores the tokens of a login as a connected account of the user, if the connection is configured so. */
export async function storeLoginTokens(
  deps: { store: Store; wallClock: Clock },
  userId: string,
  { connection, strategy }: Upstream,
  { id: upstreamId, grant }: UpstreamIdentity,
): Promise<void> {
  if (!sharesLoginTokens(connection) || strategy.refresh === undefined) return;
  if (grant?.access_token === undefined) return;
  const { store } = deps;
  const account = await storeConnectedAccount(deps, userId, connection, {
    upstreamId,
    grant,
    requestedScopes: [],
  });
  // If the user or the connection was deleted meanwhile, that deletion did not see the new account.
  const [user, storedConnection] = await Promise.all([
    store.collection('users').get(userId),
    store.collection('connections').get(connection.id),
  ]);
  if (user === undefined || storedConnection === undefined)
    await store.collection('connectedAccounts').delete(account.id);
}
