// Actions on a user: blocking, mails, links, lifting lockouts, and deletion.
import type { Context } from 'koa';
import { formFields } from '../../../http/server/body.ts';
import type { RouteDeclarations } from '../../../http/server/router.ts';
import type { Connection } from '../../../records/collections.ts';
import { strategyRecord } from '../../../records/connections/connections.ts';
import { changesPasswords } from '../../../records/database-options.ts';
import { CONSOLE_CLIENT } from '../../../records/users/administrators.ts';
import { managementEvents } from '../../management/management-declaration.ts';
import { callApi } from '../api-calls.ts';
import { type ConsoleSession, consoleForm, consolePage, redirectAfterForm } from '../console-page.ts';
import { faultOf } from '../form-fault.ts';
import { declareConsolePage, renderConsole } from '../render.ts';
import { idOf, showTab, tabForm, userOf } from './console-user.ts';
import { PROFILE, takeOverForm } from './console-user-profile.ts';
import type { UsersDependencies } from './dependencies.ts';
import { USERS, userPath } from './paths.ts';
import { requireRight, rightsOf } from './rights.ts';
import { initialOf, nameOf, type UserAnswer } from './view.ts';

const PATH = `${USERS}/:id` as const;
const UPDATE = { scopes: ['update:users'] };

// docs/understand/decisions/console-account.md#a-link-that-an-administrator-hands-over-is-valid-for-24-hours
/** Lifetime of links that administrators pass on, seconds. */
const LINK_SECONDS = 24 * 3600;

const KINDS = { password: 'password-change', verification: 'email-verification' } as const;

export const userActionRoutes: RouteDeclarations<UsersDependencies> = {
  [`POST ${PATH}/block`]: tabForm(PROFILE, UPDATE, async (deps, ctx, session, { user_id: id }) => {
    await callApi(deps, ctx, session, 'PATCH /users/:id', { params: { id }, body: { blocked: true } });
    return { notice: 'console.users.said.blocked' };
  }),
  [`POST ${PATH}/unblock`]: tabForm(PROFILE, UPDATE, async (deps, ctx, session, { user_id: id }) => {
    await callApi(deps, ctx, session, 'PATCH /users/:id', { params: { id }, body: { blocked: false } });
    return { notice: 'console.users.said.unblocked' };
  }),
  [`POST ${PATH}/lockouts`]: tabForm(PROFILE, UPDATE, async (deps, ctx, session, { user_id: id }) => {
    await callApi(deps, ctx, session, 'DELETE /user-blocks/:id', { params: { id } });
    return { notice: 'console.users.said.lockoutsLifted' };
  }),
  [`POST ${PATH}/verify`]: tabForm(PROFILE, UPDATE, async (deps, ctx, session, { user_id }) => {
    await callApi(deps, ctx, session, 'POST /jobs/verification-email', { body: { user_id } });
    return { notice: 'console.users.said.mailSent' };
  }),
  [`POST ${PATH}/reset`]: tabForm(PROFILE, UPDATE, mailReset),
  // Whoever opens the link can log in as the user, so it needs the right to take over accounts.
  [`POST ${PATH}/link`]: takeOverForm(PROFILE, async (deps, ctx, session, { user_id }) => {
    const { kind } = formFields(ctx, 'kind');
    const call = KINDS[kind === 'verification' ? 'verification' : 'password'];
    const body = { user_id, ttl_sec: LINK_SECONDS };
    const answer = await callApi(deps, ctx, session, `POST /tickets/${call}`, { body });
    return { once: { link: (answer.body as { ticket: string }).ticket, linkHours: LINK_SECONDS / 3600 } };
  }),
  [`GET ${PATH}/delete`]: consolePage<UsersDependencies>(
    'users',
    { scopes: ['read:users', 'delete:users'] },
    showDeletion,
  ),
  [`POST ${PATH}/delete`]: consoleForm<UsersDependencies>(
    'users',
    { scopes: ['read:users', 'delete:users'], isDangerous: true },
    deleteUser,
  ),
};

/** Mails a link for a new password to the address that the user has in the database. */
async function mailReset(deps: UsersDependencies, ctx: Context, session: ConsoleSession, user: UserAnswer) {
  const account = await databaseAccountOf(deps, user);
  if (account === undefined) return { refused: { status: 400, key: 'console.users.reset.none' } };
  await deps.mailReset({ ...account, ip: ctx.ip });
  recordReset(deps, ctx, session, user, account.connection);
  return { notice: 'console.users.said.mailSent' as const };
}

/** Logs the mail with the administrator's name, as a call of the Management API would be. */
function recordReset(
  { management }: UsersDependencies,
  ctx: Context,
  { administrator }: ConsoleSession,
  user: UserAnswer,
  connection: Connection,
): void {
  management.events.record({
    type: managementEvents.sapi,
    description: 'Mail a link to set a new password',
    client_id: CONSOLE_CLIENT,
    user_id: administrator.userId,
    user_name: administrator.email,
    ip: ctx.ip,
    connection: connection.name,
    details: { request: { method: 'post', path: ctx.path, body: {} }, user_id: user.user_id },
  });
}

/**
 * Returns the database in which a link can set the user's password, and the address of the user's account there. A
 * linked account may have another address than the user, and the user's may be somebody else's in that database.
 */
async function databaseAccountOf(
  { config }: UsersDependencies,
  user: UserAnswer,
): Promise<{ connection: Connection; email: string } | undefined> {
  for (const [index, { connection: name, profileData }] of user.identities.entries()) {
    const email = index === 0 ? user.email : profileData?.email;
    const connection = email === undefined ? undefined : await config.connection(name);
    const isDatabase = connection && strategyRecord(connection.strategy)?.isDatabase === true;
    if (email !== undefined && isDatabase === true && changesPasswords(connection))
      return { connection, email };
  }
  return undefined;
}

interface UsersDeleteModel {
  users: string;
  path: string;
  user: { id: string; name: string; initial: string };
  consequences: {
    identities: number;
    sessions: number | undefined;
    tokens: number | undefined;
    methods: number | undefined;
    organizations: number | undefined;
  };
}

export const USERS_DELETE_PAGE = declareConsolePage<UsersDeleteModel>('console/users-delete');

async function showDeletion(deps: UsersDependencies, ctx: Context, session: ConsoleSession): Promise<void> {
  requireRight(rightsOf(session).delete);
  const user = await userOf(deps, ctx, session);
  const name = nameOf(user);
  await renderConsole(deps, ctx, session, {
    page: USERS_DELETE_PAGE,
    section: 'users',
    title: { text: name },
    model: {
      users: USERS,
      path: userPath(user.user_id),
      user: { id: user.user_id, name, initial: initialOf(name) },
      consequences: await consequencesOf(deps, ctx, session, user),
    },
  });
}

/** Counts what is deleted with a user. */
async function consequencesOf(
  deps: UsersDependencies,
  ctx: Context,
  session: ConsoleSession,
  user: UserAnswer,
) {
  const params = { id: user.user_id };
  const count = async (scope: string, request: () => Promise<{ body?: unknown }>) => {
    if (!session.can(scope)) return undefined;
    const { body } = await request();
    if (Array.isArray(body)) return body.length;
    return Object.values(body as object).find(Array.isArray)?.length ?? 0;
  };
  const [sessions, tokens, methods, organizations] = await Promise.all([
    count('read:sessions', () =>
      callApi(deps, ctx, session, 'GET /users/:id/sessions', { params, query: { take: '100' } }),
    ),
    count('read:refresh_tokens', () =>
      callApi(deps, ctx, session, 'GET /users/:id/refresh-tokens', { params, query: { take: '100' } }),
    ),
    count('read:authentication_methods', () =>
      callApi(deps, ctx, session, 'GET /users/:id/authentication-methods', {
        params,
        query: { per_page: '100' },
      }),
    ),
    count('read:organizations', () =>
      callApi(deps, ctx, session, 'GET /users/:id/organizations', { params, query: { per_page: '100' } }),
    ),
  ]);
  return { identities: user.identities.length, sessions, tokens, methods, organizations };
}

async function deleteUser(deps: UsersDependencies, ctx: Context, session: ConsoleSession): Promise<void> {
  requireRight(rightsOf(session).delete);
  const id = idOf(ctx);
  try {
    await callApi(deps, ctx, session, 'DELETE /users/:id', { params: { id } });
  } catch (thrown) {
    const fault = faultOf(thrown);
    return showTab(deps, ctx, session, PROFILE, { user: await userOf(deps, ctx, session), fault });
  }
  redirectAfterForm(ctx, USERS, 'console.users.said.userDeleted');
}
