// A user's roles, permissions and organizations.
import { z } from 'zod';
import type { RoleRecord } from '../../../../records/users/roles.ts';
import type { Store } from '../../../../store/contract.ts';
import { permissionsOf } from '../../../../users/permissions.ts';
import type { Users } from '../../../../users/users.ts';
import { type Call, callsWith, created, noContent, ok } from '../../call.ts';
import { arrayAnswer, cursorQuery, pageQuery } from '../../list.ts';
import {
  permissionBody,
  permissionViews,
  requirePermissions,
  withoutPermissions,
  withPermissions,
} from '../base/permissions.ts';
import { requireRoles } from '../organizations/roles-calls.ts';
import { noUserNamed, userOf } from './user-calls.ts';

export interface UserAccessDependencies {
  store: Store;
  users: Users;
}

const call = callsWith<UserAccessDependencies>();

const rolesBody = z.strictObject({ roles: z.array(z.string().min(1).max(64)).min(1).max(50) });

async function rolesOf(store: Store, ids: readonly string[]): Promise<readonly RoleRecord[]> {
  const found = await Promise.all(ids.map((id) => store.collection('roles').get(id)));
  return found.flatMap((role) => (role === undefined ? [] : [role as RoleRecord]));
}

/** Changes a user's roles atomically, so that concurrent changes both take effect. @throws AuthError 404 */
async function changeRoles(
  { store }: UserAccessDependencies,
  userId: string,
  change: (roles: readonly string[]) => string[],
) {
  let before: readonly string[] = [];
  const after = await store.collection('users').update(userId, (user) => {
    before = user.roles ?? [];
    return { ...user, roles: change(before) };
  });
  if (after === undefined) throw noUserNamed(userId);
  return { before, after: after.roles };
}

function roleCalls(): Call<UserAccessDependencies>[] {
  const path = '/users/:id/roles';
  return [
    call({
      method: 'GET',
      path,
      scopes: [],
      allScopes: ['read:users', 'read:roles', 'read:role_members'],
      summary: "Get a user's roles",
      query: z.strictObject(pageQuery),
      handle: async (deps, { params, query }) => {
        const user = await userOf(deps, params.id);
        const views = (await rolesOf(deps.store, user.roles ?? [])).map(({ id, name, description }) => ({
          id,
          name,
          description: description ?? null,
        }));
        return ok(await arrayAnswer(query, views, ({ id }) => id, { key: 'roles' }));
      },
    }),
    call({
      method: 'POST',
      path,
      scopes: [],
      allScopes: ['update:users', 'create:role_members'],
      summary: 'Assign roles to a user',
      body: rolesBody,
      handle: async (deps, { params, body }) => {
        const user = await userOf(deps, params.id);
        const roleIds = [...new Set(body.roles)];
        await requireRoles(deps.store, roleIds);
        return noContent(await changeRoles(deps, user.id, (roles) => [...new Set([...roles, ...roleIds])]));
      },
    }),
    call({
      method: 'DELETE',
      path,
      scopes: [],
      allScopes: ['update:users', 'delete:role_members'],
      summary: 'Remove roles from a user',
      body: rolesBody,
      handle: async (deps, { params, body }) => {
        const user = await userOf(deps, params.id);
        return noContent(
          await changeRoles(deps, user.id, (roles) => roles.filter((role) => !body.roles.includes(role))),
        );
      },
    }),
  ];
}

type UserPermissions = { resource_server_identifier: string; permission_name: string }[];

async function changePermissions(
  { store }: UserAccessDependencies,
  userId: string,
  change: (permissions: UserPermissions) => UserPermissions,
) {
  let before: UserPermissions = [];
  const after = await store.collection('users').update(userId, (user) => {
    before = [...(user.permissions ?? [])];
    return { ...user, permissions: change(before) };
  });
  if (after === undefined) throw noUserNamed(userId);
  return { before, after: after.permissions };
}

function permissionCalls(): Call<UserAccessDependencies>[] {
  const path = '/users/:id/permissions';
  return [
    call({
      method: 'GET',
      path,
      scopes: ['read:users'],
      summary: "Get a user's permissions",
      query: z.strictObject(pageQuery),
      handle: async (deps, { params, query }) => {
        const all = await permissionsOf(deps.store, await userOf(deps, params.id));
        const views = await permissionViews(deps.store, all);
        const items = views.map((view, index) => ({ ...view, sources: all[index]?.sources ?? [] }));
        return ok(await arrayAnswer(query, items, String, { key: 'permissions' }));
      },
    }),
    call({
      method: 'POST',
      path,
      scopes: ['update:users'],
      summary: 'Assign permissions to a user',
      body: permissionBody,
      handle: async (deps, { params, body }) => {
        const user = await userOf(deps, params.id);
        await requirePermissions(deps.store, body.permissions);
        const log = await changePermissions(deps, user.id, (all) => withPermissions(all, body.permissions));
        return { ...created({}), ...log };
      },
    }),
    call({
      method: 'DELETE',
      path,
      scopes: ['update:users'],
      summary: 'Remove permissions from a user',
      body: permissionBody,
      handle: async (deps, { params, body }) => {
        const user = await userOf(deps, params.id);
        return noContent(
          await changePermissions(deps, user.id, (all) => withoutPermissions(all, body.permissions)),
        );
      },
    }),
  ];
}

function organizationCalls(): Call<UserAccessDependencies>[] {
  return [
    call({
      method: 'GET',
      path: '/users/:id/organizations',
      scopes: ['read:organizations'],
      summary: "Get a user's organizations",
      query: z.strictObject({ ...pageQuery, ...cursorQuery }),
      handle: async (deps, { params, query }) => {
        const { id } = await userOf(deps, params.id);
        const memberships = await deps.store.collection('memberships').findBy('user', id);
        const found = await Promise.all(
          memberships.map((one) => deps.store.collection('organizations').get(one.organization_id)),
        );
        const items = found.flatMap((organization) => {
          if (organization === undefined) return [];
          const { enabled_connections: _, client_grants: _grants, ...view } = organization;
          return [view];
        });
        return ok(
          await arrayAnswer(query, items, ({ id: organization }) => organization, { key: 'organizations' }),
        );
      },
    }),
  ];
}

export const userAccessCalls: Call<UserAccessDependencies>[] = [
  ...roleCalls(),
  ...permissionCalls(),
  ...organizationCalls(),
];
