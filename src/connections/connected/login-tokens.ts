// Accounts that users have connected by logging in: where a connection says so, the tokens of a login are for applications, too.
import type { Clock } from '../../runtime/clock.ts';
import type { Store } from '../../store/contract.ts';
import { keepConnectedAccount } from '../../users/connected-accounts.ts';
import type { UpstreamIdentity } from '../redirect.ts';
import type { Upstream } from '../upstream/begin.ts';
import { sharesLoginTokens } from './purposes.ts';

/** Keeps what a provider gave at a login of a user's as an account of theirs, where the connection has it so. */
export async function keepLoginTokens(
  deps: { store: Store; wallClock: Clock },
  userId: string,
  { connection, strategy }: Upstream,
  { id: upstreamId, grant }: UpstreamIdentity,
): Promise<void> {
  if (!sharesLoginTokens(connection) || strategy.refresh === undefined) return;
  if (grant?.access_token === undefined) return;
  const { store } = deps;
  const kept = await keepConnectedAccount(deps, userId, connection, { upstreamId, grant, asked: [] });
  // What removed either meanwhile did not find it.
  const [user, there] = await Promise.all([
    store.collection('users').get(userId),
    store.collection('connections').get(connection.id),
  ]);
  if (user === undefined || there === undefined) await store.collection('connectedAccounts').delete(kept.id);
}
