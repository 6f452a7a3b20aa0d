// /account/data: a copy of the user's data, and the deletion of the account.

import type { Context } from 'koa';
import { DONE_PAGE } from '../../../capabilities/pages/views.ts';
import type { RefreshTokenDirectory } from '../../../engine/session/refresh-directory.ts';
import type { SessionDirectory } from '../../../engine/session/session-directory.ts';
import { formFields } from '../../../http/server/body.ts';
import type { RouteDeclarations } from '../../../http/server/router.ts';
import { lookupEmail } from '../../../records/base/email.ts';
import type { LogEventRecord } from '../../../records/base/log-events.ts';
import type { Frozen } from '../../../records/base/record.ts';
import type { AuthenticatorRecord } from '../../../records/users/authenticators.ts';
import { IDENTITY_MEMBERS, SERVER_MEMBERS } from '../../../records/users/users.ts';
import { isSameSecret } from '../../../runtime/secrets.ts';
import type { Store } from '../../../store/contract.ts';
import type { Identity } from '../../../users/changes.ts';
import type { User } from '../../../users/user.ts';
import type { Users } from '../../../users/users.ts';
import { connectedAccountsOf, connectedAccountView } from '../../../users/users-connected-accounts.ts';
import { databaseEvents } from '../../connections/database/base/database-declaration.ts';
import { accountEvents } from '../account-declaration.ts';
import { ACCOUNT } from './account-callbacks.ts';
import {
  type AccountPageDependencies,
  allowsDeletion,
  back,
  declareAccountPage,
  formRoute,
  pageRoute,
  renderAccount,
} from './account-page.ts';
import { endAccountSession, type PageActor } from './account-session.ts';
import { type NoticeDependencies, notifyUser, recordChange } from './notices.ts';

export interface DataDependencies extends AccountPageDependencies, NoticeDependencies, CopyDependencies {
  /** Deletes a user and everything that belongs to them. */
  removeUser(userId: string, by: User): Promise<void>;
}

const SECTION = '/data';

export const dataRoutes: RouteDeclarations<DataDependencies> = {
  [`GET ${ACCOUNT}${SECTION}`]: pageRoute(SECTION, (deps, ctx, actor) => showData(deps, ctx, actor)),
  [`POST ${ACCOUNT}${SECTION}/copy`]: formRoute(SECTION, { act: 'copy' }, async (deps, ctx, actor) => {
    const copy = await copyOfData(deps, actor.user.id);
    recordChange(deps, ctx, actor, { type: accountEvents.account_changed, description: 'copy of the data' });
    ctx.set('Cache-Control', 'no-store');
    ctx.set('Content-Disposition', 'attachment; filename="account.json"');
    ctx.type = 'application/json';
    ctx.body = `${JSON.stringify(copy, null, 2)}\n`;
  }),
  [`POST ${ACCOUNT}${SECTION}/delete`]: formRoute(SECTION, { act: 'deletion' }, deleteAccount),
};

export const OWN_DATA_PAGE = declareAccountPage<{ confirm: string }>('own/data');

function showData(deps: DataDependencies, ctx: Context, actor: PageActor, alert?: string): Promise<void> {
  const model = { confirm: identifierOf(actor) };
  const shown = { page: OWN_DATA_PAGE, section: SECTION, model } as const;
  return renderAccount(deps, ctx, actor, shown, alert === undefined ? {} : { status: 400, alert });
}

/** Returns what a user has to type to confirm the deletion. */
function identifierOf({ user }: PageActor): string {
  return user.email ?? user.username ?? user.phone_number ?? user.id;
}

/** Browsers change the spelling of an address that is copied from the page to a field. */
const plainName = (text: string) => lookupEmail(text) ?? text.trim().toLowerCase();

async function deleteAccount(deps: DataDependencies, ctx: Context, actor: PageActor): Promise<void> {
  if (!allowsDeletion(deps, actor)) return back(ctx, SECTION);
  const { confirm } = formFields(ctx, 'confirm');
  const isMeant = isSameSecret(plainName(confirm), plainName(identifierOf(actor)));
  if (!isMeant) return showData(deps, ctx, actor, 'own.delete.differs');
  await deps.removeUser(actor.user.id, actor.user);
  recordChange(deps, ctx, actor, { type: databaseEvents.sdu, description: 'deleted by its user' });
  await notifyUser(deps, ctx, actor.user, 'deleted');
  await endAccountSession(deps, ctx);
  await deps.views.page(ctx, DONE_PAGE, { done: 'own.deleted' });
}

// A copy of the data stored of a user, for that user. It has no secrets, and no metadata that the tenant keeps for
// itself.

interface CopyDependencies {
  refreshTokens: RefreshTokenDirectory;
  sessionDirectory: SessionDirectory;
  store: Store;
  users: Users;
}

// docs/understand/decisions/console-account.md#the-copy-of-a-users-data-has-no-app_metadata
/** The members of the user's record in the copy. `app_metadata` is the tenant's. */
const MEMBERS = ['id', ...IDENTITY_MEMBERS, 'user_metadata', ...SERVER_MEMBERS] as const;

/** How many log events the copy has, the newest first. */
const EVENTS = 1_000;

async function copyOfData(deps: CopyDependencies, userId: string): Promise<object> {
  const { store, users } = deps;
  const [
    user,
    identities,
    sessions,
    tokens,
    consents,
    authenticators,
    passkeys,
    memberships,
    connected,
    logs,
  ] = await Promise.all([
    users.get(userId),
    users.identitiesOf(userId),
    deps.sessionDirectory.of(userId),
    deps.refreshTokens.of(userId),
    store.collection('consents').findBy('user', userId),
    store.collection('authenticators').findBy('user', userId),
    store.collection('passkeys').findBy('user', userId),
    store.collection('memberships').findBy('user', userId),
    connectedAccountsOf(deps, userId),
    store.collection('logs').list({
      where: { field: 'user_id', equals: userId },
      sort: { field: 'date', descending: true },
      limit: EVENTS,
    }),
  ]);
  return {
    profile: Object.fromEntries(
      MEMBERS.flatMap((name) => (user?.[name] === undefined ? [] : [[name, user[name]]])),
    ),
    identities: identities.map(identityOf),
    sessions: sessions.map(({ session_metadata: _notes, ...session }) => session),
    refresh_tokens: tokens.map(({ refresh_token_metadata: _notes, ...token }) => token),
    consents: consents.map(({ client_id, scopes }) => ({ client_id, scopes })),
    authentication_methods: [
      ...authenticators.filter(({ active }) => active).map(factorOf),
      ...passkeys.map(({ name, user_agent, created_at, last_used_at }) => ({
        type: 'passkey',
        name,
        user_agent,
        created_at,
        last_used_at,
      })),
    ],
    connected_accounts: connected.map(connectedAccountView),
    organizations: memberships.map(({ organization_id }) => organization_id),
    log: logs.records.map(eventOf),
  };
}

function identityOf(one: Identity) {
  const { connection, provider, upstream_id: user_id, email, username, phone_number, profile } = one;
  return { connection, provider, user_id, email, username, phone_number, profile };
}

/**
 * Leaves out the details: for administrators they hold requests and answers of the Management API, with others'
 * data.
 */
function eventOf({ date, type, description, client_id, connection, user_name, ip }: Frozen<LogEventRecord>) {
  return { date, type, description, client_id, connection, user_name, ip };
}

function factorOf({ kind, name, phone_number, email, created_at }: Frozen<AuthenticatorRecord>) {
  return { type: kind, name, phone_number, email, created_at };
}
