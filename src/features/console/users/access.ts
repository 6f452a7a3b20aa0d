// Tabs of a user: roles and permissions, organizations, and log events.
import type { Context } from 'koa';
import { type FormattedTime, timesOf } from '../../../capabilities/pages/times.ts';
import { formFields } from '../../../http/server/body.ts';
import type { RouteDeclarations } from '../../../http/server/router.ts';
import { jsonOf } from '../../../runtime/json.ts';
import { callApi } from '../api-calls.ts';
import type { ConsoleSession } from '../console-page.ts';
import { describeEvent, type EventAnswer, isFailure } from '../log/describe-event.ts';
import { pageNumber, queryText } from '../query.ts';
import { type Act, declareUserTab, scopesOf, tabForm, tabPage, type UserTab } from './console-user.ts';
import type { UsersDependencies } from './dependencies.ts';
import { requireRight, rightsOf } from './rights.ts';

interface RoleAnswer {
  id: string;
  name: string;
  description?: string | null;
}

interface PermissionAnswer {
  resource_server_identifier: string;
  resource_server_name?: string;
  permission_name: string;
  description?: string;
  sources: { source_type: string; source_name?: string }[];
}

/** The maximum number of roles, permissions and APIs that are fetched. */
const PAGE_SIZE = '100';
/** The maximum number of permissions that are offered. */
const MAX_OFFERED = 500;

/** A permission that can be given: `value` names it in forms. */
interface OfferedPermission {
  api: string;
  name: string;
  value: string;
}

interface RolesModel {
  roles: RoleAnswer[];
  permissions: (OfferedPermission & {
    apiName: string;
    description: string | undefined;
    /** Whether it was given to the user, and not by a role alone. */
    isDirect: boolean;
    roles: (string | undefined)[];
  })[];
  otherRoles: RoleAnswer[];
  otherPermissions: OfferedPermission[];
}

export const USERS_ROLES_PAGE = declareUserTab<RolesModel>('console/users-roles');

const ROLES: UserTab<UsersDependencies, RolesModel> = {
  tab: 'roles',
  page: USERS_ROLES_PAGE,
  scopes: scopesOf('roles'),
  model: async (deps, ctx, session, { user }) => {
    const input = { params: { id: user.user_id }, query: { per_page: PAGE_SIZE } };
    const [roles, permissions, all, offered] = await Promise.all([
      callApi(deps, ctx, session, 'GET /users/:id/roles', input),
      callApi(deps, ctx, session, 'GET /users/:id/permissions', input),
      callApi(deps, ctx, session, 'GET /roles', { query: { per_page: PAGE_SIZE } }),
      offeredPermissions(deps, ctx, session),
    ]);
    const userRoles = roles.body as RoleAnswer[];
    const shown = (permissions.body as PermissionAnswer[]).map((one) => ({
      name: one.permission_name,
      api: one.resource_server_identifier,
      apiName: one.resource_server_name ?? one.resource_server_identifier,
      description: one.description,
      isDirect: one.sources.some(({ source_type }) => source_type === 'DIRECT'),
      roles: one.sources
        .filter(({ source_type }) => source_type === 'ROLE')
        .map(({ source_name }) => source_name),
      value: formatPermission(one),
    }));
    return {
      roles: userRoles,
      permissions: shown,
      otherRoles: (all.body as RoleAnswer[]).filter(({ id }) => !userRoles.some((one) => one.id === id)),
      otherPermissions: offered.filter(
        ({ value }) => !shown.some((one) => one.isDirect && one.value === value),
      ),
    };
  },
};

const formatPermission = (one: { resource_server_identifier: string; permission_name: string }): string =>
  JSON.stringify([one.resource_server_identifier, one.permission_name]);

/** Parses a permission. The API refuses an invalid one. */
function permissionIn(ctx: Context) {
  const { permission } = formFields(ctx, 'permission');
  const pair = jsonOf(permission);
  const [resource_server_identifier, permission_name] = Array.isArray(pair) ? (pair as unknown[]) : [];
  return { permissions: [{ resource_server_identifier, permission_name }] };
}

/** Returns the permissions of all APIs, for administrators who may assign them. */
async function offeredPermissions(deps: UsersDependencies, ctx: Context, session: ConsoleSession) {
  if (!rightsOf(session).changeRoles || !session.can('read:resource_servers')) return [];
  const answer = await callApi(deps, ctx, session, 'GET /resource-servers', {
    query: { per_page: PAGE_SIZE },
  });
  const apis = answer.body as { identifier: string; name?: string; scopes?: { value: string }[] }[];
  return apis
    .flatMap(({ identifier, name, scopes = [] }) =>
      scopes.map(({ value }) => ({
        api: name ?? identifier,
        name: value,
        value: formatPermission({ resource_server_identifier: identifier, permission_name: value }),
      })),
    )
    .slice(0, MAX_OFFERED);
}

interface OrganizationsModel {
  organizations: { id: string; name: string; title: string }[];
}

export const USERS_ORGANIZATIONS_PAGE = declareUserTab<OrganizationsModel>('console/users-organizations');

const ORGANIZATIONS: UserTab<UsersDependencies, OrganizationsModel> = {
  tab: 'organizations',
  page: USERS_ORGANIZATIONS_PAGE,
  scopes: scopesOf('organizations'),
  model: async (deps, ctx, session, { user }) => {
    const answer = await callApi(deps, ctx, session, 'GET /users/:id/organizations', {
      params: { id: user.user_id },
      query: { per_page: PAGE_SIZE },
    });
    const organizations = answer.body as { id: string; name: string; display_name?: string }[];
    return {
      organizations: organizations.map(({ id, name, display_name }) => ({
        id,
        name,
        title: display_name ?? name,
      })),
    };
  },
};

const EVENTS_PER_PAGE = 50;

interface EventsModel {
  events: {
    path: string;
    words: string;
    isBad: boolean;
    at: FormattedTime;
    description: string | undefined;
    application: string | undefined;
    connection: string | undefined;
    address: string | undefined;
    agent: string | undefined;
  }[];
  /** Whether the administrator may open an event in the log. */
  readsLog: boolean;
  hasBefore: boolean;
  hasMore: boolean;
  /** The numbers of the pages before and after. */
  before: number;
  next: number;
}

export const USERS_EVENTS_PAGE = declareUserTab<EventsModel>('console/users-events');

const LOG: UserTab<UsersDependencies, EventsModel> = {
  tab: 'events',
  page: USERS_EVENTS_PAGE,
  scopes: scopesOf('events'),
  model: async (deps, ctx, session, { user }) => {
    const page = pageNumber(queryText(ctx, 'page'));
    const answer = await callApi(deps, ctx, session, 'GET /users/:id/logs', {
      params: { id: user.user_id },
      query: { page: String(page), per_page: String(EVENTS_PER_PAGE) },
    });
    const locale = deps.views.locale(ctx);
    const time = timesOf(deps, ctx);
    const events = (answer.body as (EventAnswer & { user_agent?: string })[]).map((one) => ({
      path: `/console/log/${encodeURIComponent(one.log_id)}`,
      words: describeEvent(one, locale, deps.eventTypes),
      isBad: isFailure(one),
      at: time(one.date),
      description: one.description,
      application: one.client_name,
      connection: one.connection,
      address: one.ip,
      agent: one.user_agent,
    }));
    return {
      events,
      readsLog: session.can('read:logs'),
      hasBefore: page > 0,
      hasMore: events.length === EVENTS_PER_PAGE,
      before: page - 1,
      next: page + 1,
    };
  },
};

const PATH = '/console/users/:id';
const CHANGE = { scopes: ['update:users', 'create:role_members', 'delete:role_members'], isDangerous: true };

function rightsForm(act: Act<UsersDependencies, RolesModel>) {
  return tabForm(ROLES, CHANGE, (deps, ctx, session, user) => {
    requireRight(rightsOf(session).changeRoles);
    return act(deps, ctx, session, user);
  });
}

export const accessRoutes: RouteDeclarations<UsersDependencies> = {
  [`GET ${PATH}/roles`]: tabPage(ROLES),
  [`POST ${PATH}/roles`]: rightsForm(async (deps, ctx, session, { user_id: id }) => {
    const body = { roles: [formFields(ctx, 'role').role] };
    await callApi(deps, ctx, session, 'POST /users/:id/roles', { params: { id }, body });
    return { notice: 'console.users.said.roleGiven' };
  }),
  [`POST ${PATH}/roles/remove`]: rightsForm(async (deps, ctx, session, { user_id: id }) => {
    const body = { roles: [formFields(ctx, 'role').role] };
    await callApi(deps, ctx, session, 'DELETE /users/:id/roles', { params: { id }, body });
    return { notice: 'console.users.said.roleTaken' };
  }),
  [`POST ${PATH}/roles/permission`]: rightsForm(async (deps, ctx, session, { user_id: id }) => {
    await callApi(deps, ctx, session, 'POST /users/:id/permissions', {
      params: { id },
      body: permissionIn(ctx),
    });
    return { notice: 'console.users.said.permissionGiven' };
  }),
  [`POST ${PATH}/roles/permission/remove`]: rightsForm(async (deps, ctx, session, { user_id: id }) => {
    await callApi(deps, ctx, session, 'DELETE /users/:id/permissions', {
      params: { id },
      body: permissionIn(ctx),
    });
    return { notice: 'console.users.said.permissionTaken' };
  }),
  [`GET ${PATH}/organizations`]: tabPage(ORGANIZATIONS),
  [`GET ${PATH}/events`]: tabPage(LOG),
};
