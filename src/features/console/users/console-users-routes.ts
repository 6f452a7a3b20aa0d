// The routes of the user pages.

import type { Context } from 'koa';
import { bodyTexts } from '../../../http/server/body.ts';
import type { RouteDeclarations } from '../../../http/server/router.ts';
import { strategyRecord } from '../../../records/connections/connections.ts';
import { callApi } from '../api-calls.ts';
import { type ConsoleSession, consoleForm, consolePage, redirectAfterForm } from '../console-page.ts';
import { type FaultModel, type FormFault, faultModel, faultOf } from '../form-fault.ts';
import { declareConsolePage, renderConsole } from '../render.ts';
import { accessRoutes } from './access.ts';
import { profileRoutes } from './console-user-profile.ts';
import { sessionRoutes } from './console-user-sessions.ts';
import type { UsersDependencies } from './dependencies.ts';
import { listRoutes } from './list.ts';
import { loginMethodRoutes } from './login-methods.ts';
import { USERS, userPath } from './paths.ts';
import { requireRight, rightsOf } from './rights.ts';
import { transferRoutes } from './transfer.ts';
import { userActionRoutes } from './user-actions.ts';

// /console/users/new: creating a user.

const PATH = `${USERS}/new` as const;
const SCOPES = ['read:users', 'create:users'];

/** The members that the form can set; others are ignored. */
const MEMBERS = ['connection', 'email', 'phone_number', 'username', 'password', 'name'] as const;

const newUserRoutes: RouteDeclarations<UsersDependencies> = {
  [`GET ${PATH}`]: consolePage<UsersDependencies>('users', { scopes: SCOPES }, (deps, ctx, session) => {
    requireRight(rightsOf(session).create);
    return showForm(deps, ctx, session);
  }),
  [`POST ${PATH}`]: consoleForm<UsersDependencies>('users', { scopes: SCOPES, isDangerous: true }, create),
};

async function create(deps: UsersDependencies, ctx: Context, session: ConsoleSession): Promise<void> {
  requireRight(rightsOf(session).create);
  const texts = bodyTexts(ctx);
  const filled = MEMBERS.flatMap((name) => {
    // A password may begin or end with spaces.
    const text = name === 'password' ? texts[name] : texts[name]?.trim();
    return text === undefined || text === '' ? [] : [[name, text]];
  });
  const isVerified = texts.verified === 'yes';
  const body = {
    ...Object.fromEntries(filled),
    ...(texts.email?.trim() && {
      email_verified: isVerified,
      verify_email: !isVerified && texts.mail === 'yes',
    }),
  };
  let created: { user_id: string };
  try {
    created = (await callApi(deps, ctx, session, 'POST /users', { body })).body as { user_id: string };
  } catch (thrown) {
    return showForm(deps, ctx, session, faultOf(thrown), texts);
  }
  redirectAfterForm(ctx, userPath(created.user_id), 'console.users.said.userMade');
}

interface UsersNewModel extends FaultModel {
  users: string;
  connections: string[];
  /** As entered. */
  values: Readonly<Record<string, string>>;
}

export const USERS_NEW_PAGE = declareConsolePage<UsersNewModel>('console/users-new');

async function showForm(
  deps: UsersDependencies,
  ctx: Context,
  session: ConsoleSession,
  fault?: FormFault,
  { _csrf, password: _, ...values }: Record<string, string> = {},
): Promise<void> {
  const connections = (await deps.config.connections())
    .filter(({ strategy }) => strategyRecord(strategy)?.isUpstream !== true)
    .map(({ name }) => name);
  await renderConsole(deps, ctx, session, {
    page: USERS_NEW_PAGE,
    section: 'users',
    title: 't:console.users.new.title',
    model: {
      users: USERS,
      connections,
      values: { connection: connections[0] ?? '', ...values },
      ...faultModel(fault),
    },
    status: fault?.status ?? 200,
  });
}

export const usersRoutes: RouteDeclarations<UsersDependencies> = {
  ...listRoutes,
  ...newUserRoutes,
  ...transferRoutes,
  ...profileRoutes,
  ...userActionRoutes,
  ...loginMethodRoutes,
  ...sessionRoutes,
  ...accessRoutes,
};
