// Tabs of a user: sessions and refresh tokens, consents, and device credentials.
import type { Context } from 'koa';
import { type FormattedTime, timesOf } from '../../../capabilities/pages/times.ts';
import { AuthError } from '../../../http/errors.ts';
import { formFields } from '../../../http/server/body.ts';
import type { RouteDeclarations } from '../../../http/server/router.ts';
import { callApi } from '../api-calls.ts';
import type { ConsoleSession } from '../console-page.ts';
import { declareUserTab, scopesOf, tabForm, tabPage, type UserTab } from './console-user.ts';
import type { UsersDependencies } from './dependencies.ts';
import type { UserAnswer } from './view.ts';

/** The maximum number of items that are fetched for a page. */
const PAGE_SIZE = '100';

interface Device {
  initial_ip?: string;
  last_ip?: string;
  initial_user_agent?: string;
  last_user_agent?: string;
}

interface SessionAnswer {
  id: string;
  authenticated_at: string | null;
  last_interacted_at: string | null;
  expires_at: string | null;
  device?: Device;
  clients: { client_id: string }[];
}

interface TokenAnswer {
  id: string;
  client_id: string;
  resource_servers: { audience: string; scopes: string[] }[];
  created_at: string | null;
  last_exchanged_at: string | null;
  expires_at: string | null;
  device?: Device;
}

interface GrantAnswer {
  id: string;
  clientID: string;
  user_id: string;
  audience: string;
  scope: string[];
}

interface DeviceAnswer {
  id: string;
  device_name?: string;
  type: string;
  user_id: string;
  client_id: string;
}

/** Returns a function that gives the name of an application; its id when it does not exist. */
async function clientNames({ config }: UsersDependencies): Promise<(id: string) => string> {
  const names = new Map((await config.clients()).map(({ client_id, name }) => [client_id, name]));
  return (id) => names.get(id) ?? id;
}

async function sessionsOf(
  deps: UsersDependencies,
  ctx: Context,
  session: ConsoleSession,
  { user_id: id }: UserAnswer,
) {
  const answer = await callApi(deps, ctx, session, 'GET /users/:id/sessions', {
    params: { id },
    query: { take: PAGE_SIZE },
  });
  return (answer.body as { sessions: SessionAnswer[] }).sessions;
}

async function tokensOf(
  deps: UsersDependencies,
  ctx: Context,
  session: ConsoleSession,
  { user_id: id }: UserAnswer,
) {
  const answer = await callApi(deps, ctx, session, 'GET /users/:id/refresh-tokens', {
    params: { id },
    query: { take: PAGE_SIZE },
  });
  return (answer.body as { tokens: TokenAnswer[] }).tokens;
}

interface Usage {
  id: string;
  /** The browser or app. */
  agent: string | undefined;
  since: FormattedTime | undefined;
  used: FormattedTime | undefined;
  until: FormattedTime | undefined;
}

interface SessionsModel {
  sessions: (Usage & { address: string | undefined; applications: string[] })[];
  tokens: (Usage & { application: string; audiences: string[] })[];
}

export const USERS_SESSIONS_PAGE = declareUserTab<SessionsModel>('console/users-sessions');

const SESSIONS: UserTab<UsersDependencies, SessionsModel> = {
  tab: 'sessions',
  page: USERS_SESSIONS_PAGE,
  scopes: scopesOf('sessions'),
  model: async (deps, ctx, session, { user }) => {
    const [sessions, tokens, nameOf] = await Promise.all([
      sessionsOf(deps, ctx, session, user),
      tokensOf(deps, ctx, session, user),
      clientNames(deps),
    ]);
    const time = timesOf(deps, ctx);
    return {
      sessions: sessions.map((one) => ({
        id: one.id,
        agent: one.device?.last_user_agent ?? one.device?.initial_user_agent,
        address: one.device?.last_ip ?? one.device?.initial_ip,
        applications: one.clients.map(({ client_id }) => nameOf(client_id)),
        since: time(one.authenticated_at),
        used: time(one.last_interacted_at),
        until: time(one.expires_at),
      })),
      tokens: tokens.map((one) => ({
        id: one.id,
        application: nameOf(one.client_id),
        agent: one.device?.last_user_agent ?? one.device?.initial_user_agent,
        audiences: one.resource_servers.map(({ audience }) => audience),
        since: time(one.created_at),
        used: time(one.last_exchanged_at),
        until: time(one.expires_at),
      })),
    };
  },
};

async function grantsOf(
  deps: UsersDependencies,
  ctx: Context,
  session: ConsoleSession,
  { user_id }: UserAnswer,
) {
  const answer = await callApi(deps, ctx, session, 'GET /grants', {
    query: { user_id, per_page: PAGE_SIZE },
  });
  return answer.body as GrantAnswer[];
}

interface ConsentsModel {
  grants: { id: string; application: string; audience: string; scopes: string[] }[];
}

export const USERS_CONSENTS_PAGE = declareUserTab<ConsentsModel>('console/users-consents');

const CONSENTS: UserTab<UsersDependencies, ConsentsModel> = {
  tab: 'consents',
  page: USERS_CONSENTS_PAGE,
  scopes: scopesOf('consents'),
  model: async (deps, ctx, session, { user }) => {
    const [grants, nameOf] = await Promise.all([grantsOf(deps, ctx, session, user), clientNames(deps)]);
    return {
      grants: grants.map(({ id, clientID, audience, scope }) => ({
        id,
        application: nameOf(clientID),
        audience,
        scopes: scope,
      })),
    };
  },
};

async function devicesOf(
  deps: UsersDependencies,
  ctx: Context,
  session: ConsoleSession,
  { user_id }: UserAnswer,
) {
  const query = { user_id, type: 'public_key', per_page: PAGE_SIZE };
  return (await callApi(deps, ctx, session, 'GET /device-credentials', { query })).body as DeviceAnswer[];
}

interface DevicesModel {
  devices: { id: string; name: string | undefined; application: string }[];
}

export const USERS_DEVICES_PAGE = declareUserTab<DevicesModel>('console/users-devices');

const DEVICES: UserTab<UsersDependencies, DevicesModel> = {
  tab: 'devices',
  page: USERS_DEVICES_PAGE,
  scopes: scopesOf('devices'),
  model: async (deps, ctx, session, { user }) => {
    const [devices, nameOf] = await Promise.all([devicesOf(deps, ctx, session, user), clientNames(deps)]);
    return {
      devices: devices.map(({ id, device_name, client_id }) => ({
        id,
        name: device_name,
        application: nameOf(client_id),
      })),
    };
  },
};

/** Requires that an item named by a form belongs to the user: the sender chooses the id. @throws AuthError 404 */
function requireListed(items: readonly { id: string }[], id: string): void {
  if (!items.some((one) => one.id === id))
    throw new AuthError(404, 'not_found', 'There is no such thing of this user any more.');
}

const PATH = '/console/users/:id';

export const sessionRoutes: RouteDeclarations<UsersDependencies> = {
  [`GET ${PATH}/sessions`]: tabPage(SESSIONS),
  [`POST ${PATH}/sessions`]: tabForm(
    SESSIONS,
    { scopes: ['delete:sessions'] },
    async (deps, ctx, session, user) => {
      const { session: id } = formFields(ctx, 'session');
      requireListed(await sessionsOf(deps, ctx, session, user), id);
      await callApi(deps, ctx, session, 'DELETE /sessions/:id', { params: { id } });
      return { notice: 'console.users.said.sessionEnded' };
    },
  ),
  [`POST ${PATH}/sessions/all`]: tabForm(
    SESSIONS,
    { scopes: ['delete:sessions', 'delete:refresh_tokens'] },
    async (deps, ctx, session, user) => {
      const params = { id: user.user_id };
      await callApi(deps, ctx, session, 'POST /users/:id/revoke-access', { params, body: {} });
      return { notice: 'console.users.said.accessEnded' };
    },
  ),
  [`POST ${PATH}/sessions/token`]: tabForm(
    SESSIONS,
    { scopes: ['delete:refresh_tokens'] },
    async (deps, ctx, session, user) => {
      const { token } = formFields(ctx, 'token');
      requireListed(await tokensOf(deps, ctx, session, user), token);
      await callApi(deps, ctx, session, 'DELETE /refresh-tokens/:id', { params: { id: token } });
      return { notice: 'console.users.said.tokenEnded' };
    },
  ),
  [`GET ${PATH}/consents`]: tabPage(CONSENTS),
  [`POST ${PATH}/consents`]: tabForm(
    CONSENTS,
    { scopes: ['delete:grants'] },
    async (deps, ctx, session, user) => {
      const { grant } = formFields(ctx, 'grant');
      requireListed(await grantsOf(deps, ctx, session, user), grant);
      await callApi(deps, ctx, session, 'DELETE /grants/:id', { params: { id: grant } });
      return { notice: 'console.users.said.withdrawn' };
    },
  ),
  [`GET ${PATH}/devices`]: tabPage(DEVICES),
  [`POST ${PATH}/devices`]: tabForm(
    DEVICES,
    { scopes: ['delete:device_credentials'] },
    async (deps, ctx, session, user) => {
      const { device } = formFields(ctx, 'device');
      requireListed(await devicesOf(deps, ctx, session, user), device);
      const params = { credential_id: device };
      await callApi(deps, ctx, session, 'DELETE /device-credentials/:credential_id', { params });
      return { notice: 'console.users.said.deviceRemoved' };
    },
  ),
};
