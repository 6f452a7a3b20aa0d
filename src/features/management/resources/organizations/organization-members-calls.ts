// `/organizations/{id}/members`: the members of an organization and their roles.
import { z } from 'zod';
import { membershipId } from '../../../../records/users/organizations.ts';
import type { Store } from '../../../../store/contract.ts';
import { type Call, callsWith, noContent, ok } from '../../call.ts';
import {
  arrayAnswer,
  arraySource,
  cursorOf,
  cursorQuery,
  type ListSource,
  listAnswer,
  mapped,
  pageQuery,
} from '../../list.ts';
import { apiError } from '../../management-errors.ts';
import { fieldsQuery, selectFields } from '../../management-fields.ts';
import { notFound } from '../../resource.ts';
import { organizationOf } from './organizations.ts';
import { memberView, requireRoles } from './roles-calls.ts';

const userIds = z.strictObject({ members: z.array(z.string().min(1).max(255)).min(1).max(50) });
const roleIds = z.strictObject({ roles: z.array(z.string().min(1).max(64)).min(1).max(50) });

async function roleViews(store: Store, ids: readonly string[]) {
  const found = await Promise.all(ids.map((id) => store.collection('roles').get(id)));
  return found.flatMap((role) =>
    role === undefined ? [] : [{ id: role.id, name: role.name, description: role.description }],
  );
}

async function membershipOf(store: Store, params: Readonly<Record<string, string>>) {
  const { id } = await organizationOf(store, params.id);
  const found = await store.collection('memberships').get(membershipId(id, params.user_id ?? ''));
  if (found !== undefined) return found;
  throw notFound('The user is not a member of the organization.', 'inexistent_member')();
}

/** Returns a list source of members. As at the hosted service, every page that is not empty has `next`. */
function memberSource<T extends { user_id: string }>(items: readonly T[]): ListSource {
  const source = arraySource(items, ({ user_id }) => user_id);
  return {
    ...source,
    after: async (page) => {
      const found = await source.after(page);
      const last = found.items.at(-1) as T | undefined;
      return { ...found, next: last && cursorOf(last.user_id) };
    },
  };
}

const call = callsWith<{ store: Store }>();
const path = '/organizations/:id/members';

export const organizationMemberCalls: Call<{ store: Store }>[] = [
  call({
    method: 'GET',
    path,
    scopes: ['read:organization_members'],
    summary: 'Get members of an organization',
    query: z.strictObject({ ...pageQuery, ...cursorQuery, ...fieldsQuery }),
    handle: async ({ store }, { params, query }) => {
      const { id } = await organizationOf(store, params.id);
      const all = await store.collection('memberships').findBy('organization', id);
      const withRoles = (query.fields ?? '').split(',').includes('roles');
      const views = await Promise.all(
        all.map(async ({ user_id, roles }) => {
          const user = await store.collection('users').get(user_id);
          if (user === undefined) return [];
          return [{ ...memberView(user), ...(withRoles ? { roles: await roleViews(store, roles) } : {}) }];
        }),
      );
      const source = mapped(memberSource(views.flat()), (one) => selectFields(one, query));
      return ok(await listAnswer(query, source, { key: 'members', reach: 1000 }));
    },
  }),
  call({
    method: 'POST',
    path,
    scopes: ['create:organization_members'],
    summary: 'Add members to an organization',
    body: userIds,
    handle: async ({ store }, { params, body }) => {
      const { id } = await organizationOf(store, params.id);
      for (const userId of body.members) {
        if ((await store.collection('users').get(userId)) === undefined) {
          throw apiError(404, 'The user does not exist.', 'inexistent_user');
        }
      }
      for (const user_id of body.members) {
        await store.collection('memberships').upsert(membershipId(id, user_id), (current) => ({
          id: membershipId(id, user_id),
          organization_id: id,
          user_id,
          roles: [...(current?.roles ?? [])],
        }));
      }
      return noContent({ after: body.members });
    },
  }),
  call({
    method: 'DELETE',
    path,
    scopes: ['delete:organization_members'],
    summary: 'Remove members from an organization',
    body: userIds,
    handle: async ({ store }, { params, body }) => {
      const { id } = await organizationOf(store, params.id);
      for (const userId of body.members)
        await store.collection('memberships').delete(membershipId(id, userId));
      return noContent({ before: body.members });
    },
  }),
  call({
    method: 'GET',
    path: `${path}/:user_id/roles`,
    scopes: ['read:organization_member_roles'],
    summary: 'Get the roles of a member',
    query: z.strictObject(pageQuery),
    handle: async ({ store }, { params, query }) => {
      const roles = await roleViews(store, (await membershipOf(store, params)).roles);
      return ok(await arrayAnswer(query, roles, ({ id }) => id, { key: 'roles' }));
    },
  }),
  call({
    method: 'POST',
    path: `${path}/:user_id/roles`,
    scopes: ['create:organization_member_roles'],
    summary: 'Assign roles to a member',
    body: roleIds,
    handle: async ({ store }, { params, body }) => {
      const { id, organization_id, roles: before } = await membershipOf(store, params);
      await requireRoles(store, body.roles, organization_id);
      const after = await store.collection('memberships').update(id, (current) => ({
        ...current,
        roles: [...new Set([...current.roles, ...body.roles])],
      }));
      return noContent({ before, after: after?.roles });
    },
  }),
  call({
    method: 'DELETE',
    path: `${path}/:user_id/roles`,
    scopes: ['delete:organization_member_roles'],
    summary: 'Remove roles from a member',
    body: roleIds,
    handle: async ({ store }, { params, body }) => {
      const { id, roles: before } = await membershipOf(store, params);
      const after = await store.collection('memberships').update(id, (current) => ({
        ...current,
        roles: current.roles.filter((role) => !body.roles.includes(role)),
      }));
      return noContent({ before, after: after?.roles });
    },
  }),
];
