// `/roles`: roles, their permissions and their users.
import { z } from 'zod';
import type { Records } from '../../records/collections.ts';
import type { Frozen } from '../../records/record.ts';
import type { UserRecord } from '../../records/users.ts';
import type { Random } from '../../runtime/random.ts';
import type { Store } from '../../store/contract.ts';
import { type Call, callsWith, created, noContent, ok } from '../call.ts';
import { apiError } from '../errors.ts';
import { idOf } from '../ids.ts';
import { arraySource, cursorQuery, listAnswer, pageQuery } from '../list.ts';
import { conflict, merged, notFound, resourceCalls } from '../resource.ts';
import type { Resource } from '../resource-declaration.ts';
import {
  permissionBody,
  permissionViews,
  requirePermissions,
  withoutPermissions,
  withPermissions,
} from './permissions.ts';

export interface RolesDependencies {
  store: Store;
  random: Random;
}

type Role = Frozen<Records['roles']>;

const name = z
  .string()
  .min(1)
  .max(255)
  .regex(/^[^<>]*$/, 'String does not match pattern ^[^<>]*$');

const description = z.string().max(255).nullish();

const missing = notFound('Role not found', 'inexistent_role');

const resource: Resource<'roles', RolesDependencies> = {
  collection: 'roles',
  path: '/roles',
  name: 'role',
  noun: 'roles',
  list: { key: 'roles' },
  // A deploy tool sends `type=tenant`, which is ignored.
  filters: { name_filter: z.string().max(255).optional(), type: z.string().max(64).optional() },
  matches: (role, { name_filter: text }) =>
    typeof text !== 'string' || role.name.toLowerCase().includes(text.toLowerCase()),
  orderOf: (role) => `${role.name}\n${role.id}`,
  createBody: z.strictObject({ name, description }),
  patchBody: z.strictObject({ name: name.optional(), description }),
  make: async ({ random }, body) => ({
    name: '',
    permissions: [],
    ...merged({}, body),
    id: idOf('rol', random),
  }),
  change: (_deps, role, body) => merged(role, body),
  view: (_deps, role) => ({ id: role.id, name: role.name, description: role.description ?? null }),
  missing,
  taken: conflict('The role already exists.', 'role_conflict'),
  isRemovalStrict: true,
  statuses: { create: 200, remove: 200 },
};

async function find({ store }: RolesDependencies, id = ''): Promise<Role> {
  const role = await store.collection('roles').get(id);
  if (role === undefined) throw missing();
  return role;
}

const call = callsWith<RolesDependencies>();

function permissionCalls(): Call<RolesDependencies>[] {
  const path = '/roles/:id/permissions';
  return [
    call({
      method: 'GET',
      path,
      scopes: ['read:roles'],
      summary: 'Get permissions of a role',
      query: z.strictObject(pageQuery),
      handle: async (deps, { params, query }) => {
        const { permissions } = await find(deps, params.id);
        const source = arraySource(await permissionViews(deps.store, permissions), String);
        return ok(await listAnswer(query, source, { key: 'permissions' }));
      },
    }),
    call({
      method: 'POST',
      path,
      scopes: ['update:roles'],
      summary: 'Add permissions to a role',
      body: permissionBody,
      handle: async (deps, { params, body }) => {
        const { id, permissions: before } = await find(deps, params.id);
        await requirePermissions(deps.store, body.permissions);
        const after = await deps.store.collection('roles').update(id, (role) => ({
          ...role,
          permissions: withPermissions(role.permissions, body.permissions),
        }));
        return { ...created({}), before, after: after?.permissions };
      },
    }),
    call({
      method: 'DELETE',
      path,
      scopes: ['update:roles'],
      summary: 'Remove permissions from a role',
      body: permissionBody,
      handle: async (deps, { params, body }) => {
        const { id, permissions: before } = await find(deps, params.id);
        const after = await deps.store.collection('roles').update(id, (role) => ({
          ...role,
          permissions: withoutPermissions(role.permissions, body.permissions),
        }));
        return noContent({ before, after: after?.permissions });
      },
    }),
  ];
}

/** Returns a user as lists of members show it. */
export function memberView({
  id,
  email,
  name: full,
  picture,
}: Pick<Frozen<UserRecord>, 'id' | 'email' | 'name' | 'picture'>) {
  return { user_id: id, email, name: full ?? email, picture };
}

function userCalls(): Call<RolesDependencies>[] {
  const path = '/roles/:id/users';
  return [
    call({
      method: 'GET',
      path,
      scopes: [],
      allScopes: ['read:users', 'read:roles'],
      summary: 'Get the users who have a role',
      query: z.strictObject({ ...pageQuery, ...cursorQuery }),
      handle: async (deps, { params, query }) => {
        const { id } = await find(deps, params.id);
        const source = arraySource(
          (await deps.store.collection('users').findBy('role', id)).map(memberView),
          (one) => one.user_id,
        );
        return ok(await listAnswer(query, source, { key: 'users', reach: 1000 }));
      },
    }),
    call({
      method: 'POST',
      path,
      scopes: [],
      allScopes: ['update:roles'],
      summary: 'Give a role to users',
      body: z.strictObject({ users: z.array(z.string().min(1).max(255)).min(1).max(1000) }),
      handle: async (deps, { params, body }) => {
        const { id } = await find(deps, params.id);
        for (const userId of body.users) {
          if ((await deps.store.collection('users').get(userId)) === undefined)
            throw apiError(404, 'The user does not exist.', 'inexistent_user');
        }
        for (const userId of body.users) {
          await deps.store
            .collection('users')
            .update(userId, (user) => ({ ...user, roles: [...new Set([...(user.roles ?? []), id])] }));
        }
        return ok({}, { after: body.users });
      },
    }),
  ];
}

/** The calls for roles. */
export const roleCalls: Call<RolesDependencies>[] = [
  ...resourceCalls(resource),
  ...permissionCalls(),
  ...userCalls(),
];
