// Account linking at the end of a login. A completed login has one of three results: it ends as usual; the user is offered to
// link the account to an existing one; or it is the login to that existing account, and the two accounts become one.
import type { Context } from 'koa';
import type { Messages } from '../../../capabilities/delivery/delivery-messages.ts';
import { reportLink } from '../../../capabilities/delivery/link-notice.ts';
import { admissionOf } from '../../../engine/admission/admission.ts';
import type { Answer, PendingLink, WaitingRequest } from '../../../engine/authorize/waiting-requests.ts';
import { languagesOf } from '../../../http/languages.ts';
import type { Connection } from '../../../records/collections.ts';
import type { Store } from '../../../store/contract.ts';
import type { Config } from '../../../tenant/config.ts';
import type { Events } from '../../../tenant/events.ts';
import { type Identity, isLinked, primaryIdentity } from '../../../users/changes.ts';
import type { LinkedUsers } from '../../../users/linking.ts';
import type { Login } from '../../../users/login.ts';
import type { User } from '../../../users/user.ts';
import type { Users } from '../../../users/users.ts';
import type { AfterLogin } from '../../flow/finish.ts';
import { connectionsFor } from '../resolve.ts';
import { strategyOf } from '../strategies.ts';

interface LinkingDependencies extends CandidateDependencies {
  events: Events;
  messages: Messages;
  /** Ends the sessions, tokens and the like of a user whose account has become an identity of another user. */
  endLinked(userId: string): Promise<void>;
}

/** Returns the function that decides the result of a completed login ({@link AfterLogin}). */
export function linkAfterLogin(deps: LinkingDependencies): AfterLogin {
  return async (ctx, request, login) => {
    const { link } = request;
    if (link?.isAccepted === true) return linkAccounts(deps, ctx, request, { link, login });
    const candidate = await candidateFor(deps, request, login);
    return candidate === undefined ? { login } : { link: { ...candidate, login, isAccepted: false } };
  };
}

/**
 * Links the new account to the offered one, to which the user has now logged in as well, second factor included. The
 * conditions of the offer are checked again: they may have changed since, or another window may have linked the accounts.
 */
async function linkAccounts(
  deps: LinkingDependencies,
  ctx: Context,
  request: WaitingRequest,
  { link, login }: { link: PendingLink; login: Login },
): Promise<Answer | { link: PendingLink }> {
  if (login.userId !== link.userId) return { link: { ...link, isAccepted: false, isOther: true } };
  const { userId: newAccountId, connection } = link.login;
  let linked: LinkedUsers | undefined;
  const isLinked = await deps.users.link(link.userId, newAccountId, async (users) => {
    linked = users;
    const logins = await Promise.all([login, link.login].map((one) => admissionOf(deps.users, one)));
    if (logins.some(({ refusal }) => refusal !== undefined)) return false;
    return (await candidateFor(deps, request, link.login))?.userId === link.userId;
  });
  if (isLinked && linked !== undefined) {
    await deps.endLinked(newAccountId);
    const { clientId } = request;
    const facts = { clientId, connection, ip: login.ip, languages: languagesOf(ctx) };
    await reportLink(deps, linked, facts);
  } else if (!(await isIdentityOf(deps, link.userId, link.login))) {
    return { error: 'access_denied', description: 'The login is no longer valid.' };
  }
  // The session belongs to the new connection: the request may have named it, and a federated logout goes there.
  return { login: { ...login, connection } };
}

/** Whether a user has the identity of a login, because the accounts are linked already. */
async function isIdentityOf(
  { users }: LinkingDependencies,
  userId: string,
  { userId: accountId, connection }: Login,
): Promise<boolean> {
  const identities = await users.identitiesOf(userId);
  return identities.some(
    (one) => one.connection === connection && `${one.provider}|${one.upstream_id}` === accountId,
  );
}

// Finds an existing account of a user who has just logged in with a new identity. The same verified e-mail address is only a
// reason to ask the user; accounts are linked after a login to the existing one.

interface CandidateDependencies {
  config: Config;
  store: Pick<Store, 'collection'>;
  users: Users;
  /** Whether a link would take the protection of a second factor away. */
  losesFactor(users: LinkedUsers): Promise<boolean>;
}

// docs/understand/decisions/users-linking.md#users-are-asked-to-link-at-the-first-login-with-a-new-identity-or-later-if-nothing-is-lost
/** An account that may belong to the same person, and the connection to log in to it with. */
type Candidate = Pick<PendingLink, 'userId' | 'connection' | 'email'>;

// docs/understand/decisions/users-linking.md#the-same-verified-address-in-another-connection-is-always-another-account
/**
 * Returns the account that a user is offered to link the new one to. It has the same e-mail address, verified in both
 * accounts; it is not blocked; the user has not declined it before; and a connection of the application can log in to it.
 * The offer is made at the first login with the new account, and at later ones while that account has no data to lose.
 * @returns undefined when there is no such account, and when the tenant does not offer linking (`account_linking`).
 */
async function candidateFor(
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
