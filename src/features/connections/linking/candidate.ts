// Finds an existing account of a user who has just logged in with a new identity. The same verified e-mail address is only a
// reason to ask the user; accounts are linked after a login to the existing one.
import type { PendingLink, WaitingRequest } from '../../../engine/pending-interaction.ts';
import type { Connection } from '../../../records/collections.ts';
import type { Store } from '../../../store/contract.ts';
import type { Config } from '../../../tenant/config.ts';
import { type Identity, isLinked, primaryIdentity } from '../../../users/identities.ts';
import type { LinkedUsers } from '../../../users/linking.ts';
import type { Login } from '../../../users/login.ts';
import type { User } from '../../../users/user.ts';
import type { Users } from '../../../users/users.ts';
import { connectionsFor } from '../resolve.ts';
import { strategyOf } from '../strategies.ts';

export interface CandidateDependencies {
  config: Config;
  store: Pick<Store, 'collection'>;
  users: Users;
  /** Whether a link would take the protection of a second factor away. */
  losesFactor(users: LinkedUsers): Promise<boolean>;
}

/** An account that may belong to the same person, and the connection to log in to it with. */
type Candidate = Pick<PendingLink, 'userId' | 'connection' | 'email'>;

/**
 * Returns the account that a user is offered to link the new one to. It has the same e-mail address, verified in both
 * accounts; it is not blocked; the user has not declined it before; and a connection of the application can log in to it.
 * The offer is made at the first login with the new account, and at later ones while that account has no data to lose.
 * @returns undefined when there is no such account, and when the tenant does not offer linking (`account_linking`).
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
    const isProtected = !(await deps.losesFactor({ stays: other, goes: user }));
    if (found !== undefined && isProtected) return { userId: other.id, connection: found, email: user.email };
  }
  return undefined;
}

function isNew({ logins_count }: User): boolean {
  return logins_count === 0;
}

/** Whether an account has no metadata, roles, permissions, memberships or authenticators, which linking would delete. */
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

/** Whether a user may take part in linking: with a verified e-mail address, and not blocked. */
function hasProvedEmail(user: User): user is User & { email: string } {
  return user.email !== undefined && user.email_verified && user.blocked !== true;
}

/** Returns the name of a connection that a user can log in with; that of the primary identity is preferred. */
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
