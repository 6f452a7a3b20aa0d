// Whether somebody who has just come by a new identity has an account here already. Nothing is merged by this: the same
// verified address is a reason to ask, and the proof is a login.
import type { PendingLink, WaitingRequest } from '../../engine/pending-interaction.ts';
import type { Connection } from '../../records/collections.ts';
import type { Store } from '../../store/contract.ts';
import type { Config } from '../../tenant/config.ts';
import { type Identity, isLinked, primaryIdentity } from '../../users/identities.ts';
import type { Login } from '../../users/login.ts';
import type { User } from '../../users/user.ts';
import type { Users } from '../../users/users.ts';
import { connectionsFor } from '../resolve.ts';
import { strategyOf } from '../strategies.ts';

export interface CandidateDependencies {
  config: Config;
  store: Pick<Store, 'collection'>;
  users: Users;
}

/** An account that a login's user may have, too, and the connection that it can be proved by. */
type Candidate = Pick<PendingLink, 'userId' | 'connection' | 'email'>;

/**
 * The account that a login's user is asked about: another one with the e-mail address that their provider has verified,
 * verified there, too, not blocked, that can be proved by a connection of the application. Users are asked before their
 * first login ends, and at later ones while their account has nothing that would be lost.
 * @returns undefined where there is nothing to ask, or the tenant does not want it.
 */
export async function candidateFor(
  deps: CandidateDependencies,
  { clientId, params }: Pick<WaitingRequest, 'clientId' | 'params'>,
  login: Login,
): Promise<Candidate | undefined> {
  const { config, users } = deps;
  if (config.settings().tenant.account_linking !== 'suggest') return undefined;
  const connection = await config.connection(login.connection);
  if (connection === undefined || strategyOf(connection)?.page !== 'redirect') return undefined;
  const [user, identities] = await Promise.all([users.get(login.userId), users.identitiesOf(login.userId)]);
  const [identity] = identities;
  if (user === undefined || identity === undefined || identities.length > 1) return undefined;
  if (isLinked(identity) || !hasProvedEmail(user)) return undefined;
  const others = (await users.withEmail(user.email)).filter(
    (other) =>
      other.id !== user.id && hasProvedEmail(other) && identity.link_declined?.includes(other.id) !== true,
  );
  if (others.length === 0 || !(isNew(user) || (await isEmpty(deps, user)))) return undefined;
  const enabled = await connectionsFor(config, clientId, params.organization);
  const connections = enabled.filter(({ id }) => id !== connection.id);
  for (const other of others.sort((a, b) => a.created_at.localeCompare(b.created_at))) {
    const found = connectionOf(await users.identitiesOf(other.id), connections);
    if (found !== undefined) return { userId: other.id, connection: found, email: user.email };
  }
  return undefined;
}

function isNew({ logins_count }: User): boolean {
  return logins_count === 0;
}

/** Whether nothing is kept of a user that goes with the account: what people and administrators set there. */
async function isEmpty({ store }: CandidateDependencies, user: User): Promise<boolean> {
  const { user_metadata, app_metadata, roles = [], permissions = [], multifactor = [] } = user;
  const members = [user_metadata, app_metadata].flatMap((one) => Object.keys(one));
  if (members.length + roles.length + permissions.length + multifactor.length > 0) return false;
  const [memberships, authenticators] = await Promise.all([
    store.collection('memberships').findBy('user', user.id),
    store.collection('authenticators').findBy('user', user.id),
  ]);
  return memberships.length + authenticators.length === 0;
}

/** Whoever may not come in is neither offered anything nor offered to anybody. */
function hasProvedEmail(user: User): user is User & { email: string } {
  return user.email !== undefined && user.email_verified && user.blocked !== true;
}

/** The connection by which a user logs in: that of the identity that they were made with comes first. */
function connectionOf(
  identities: readonly Identity[],
  connections: readonly Connection[],
): string | undefined {
  const primary = primaryIdentity(identities);
  const ordered = [...identities].sort((a, b) => Number(b === primary) - Number(a === primary));
  const usable = ordered.find(({ connection, provider }) =>
    connections.some(
      (one) => one.name === connection && one.strategy === provider && strategyOf(one) !== undefined,
    ),
  );
  return usable?.connection;
}
