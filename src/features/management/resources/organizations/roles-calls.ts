// `/roles`: roles, their permissions and their users.
import { z } from 'zod';
import type { Frozen } from '../../../../records/base/record.ts';
import type { Records } from '../../../../records/collections.ts';
import { isRoleFor } from '../../../../records/users/roles.ts';
import type { UserRecord } from '../../../../records/users/users.ts';
import type { Random } from '../../../../runtime/secrets.ts';
import type { Store } from '../../../../store/contract.ts';
import { type Call, callsWith, created, noContent, ok } from '../../call.ts';
import { idOf } from '../../ids.ts';
import { arraySource, cursorQuery, listAnswer, pageQuery } from '../../list.ts';
import { apiError } from '../../management-errors.ts';
import { conflict, merged, notFound, resourceCalls } from '../../resource.ts';
import type { Resource } from '../../resource-declaration.ts';
import {
  permissionBody,
  permissionViews,
  requirePermissions,
  withoutPermissions,
  withPermissions,
} from '../base/permissions.ts';
import { organizationOf } from './organizations.ts';

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

const roleType = z.enum(['tenant', 'organization']);

const typeOf = (role: Pick<Role, 'owner_id'>) => (role.owner_id === undefined ? 'tenant' : 'organization');

/** @throws AuthError 400, 404 */
async function requireOwner(store: Store, type: unknown, owner: unknown): Promise<void> {
  if ((type === 'organization') !== (owner !== undefined))
    throw apiError(
      400,
      'A role of the type organization has an owner_id, and no other role has',
      'invalid_body',
    );
  if (owner !== undefined) await organizationOf(store, String(owner));
}

/** Checks that somebody can have roles. @param organization as whose member @throws AuthError 404, 400 */
export async function requireRoles(
  store: Store,
  ids: readonly string[],
  organization?: string,
): Promise<void> {
  for (const id of ids) {
    const role = await store.collection('roles').get(id);
    if (role === undefined) throw missing();
    if (!isRoleFor(role, organization))
      throw apiError(
        400,
        'The role belongs to an organization: only its members can have it',
        'invalid_body',
      );
  }
}

const missing = notFound('Role not found', 'inexistent_role');

const resource: Resource<'roles', RolesDependencies> = {
  collection: 'roles',
  path: '/roles',
  name: 'role',
  noun: 'roles',
  list: { key: 'roles' },
  filters: {
    name_filter: z.string().max(255).optional(),
    type: roleType.optional(),
    owner_id: z.string().max(64).optional(),
  },
  matches: (role, { name_filter: text, type, owner_id: owner }) =>
    (typeof text !== 'string' || role.name.toLowerCase().includes(text.toLowerCase())) &&
    (type === undefined || typeOf(role) === type) &&
    (owner === undefined || role.owner_id === owner),
  orderOf: (role) => `${role.name}\n${role.id}`,
  createBody: z.strictObject({
    name,
    description,
    type: roleType.optional(),
    owner_id: z.string().min(1).max(64).optional(),
  }),
  patchBody: z.strictObject({ name: name.optional(), description }),
  make: async ({ random, store }, { type, ...body }) => {
    await requireOwner(store, type, body.owner_id);
    return { name: '', permissions: [], ...merged({}, body), id: idOf('rol', random) };
  },
  change: (_deps, role, body) => merged(role, body),
  view: (_deps, role) => ({
    id: role.id,
    name: role.name,
    description: role.description ?? '',
    type: typeOf(role),
    ...(role.owner_id !== undefined && { owner_id: role.owner_id }),
  }),
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
        await requireRoles(deps.store, [id]);
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

export const roleCalls: Call<RolesDependencies>[] = [
  ...resourceCalls(resource),
  ...permissionCalls(),
  ...userCalls(),
];
