// `/organizations/{id}/roles`: who has a role within an organization.
import { z } from 'zod';
import type { Store } from '../../../../store/contract.ts';
import { type Call, callsWith, ok } from '../../call.ts';
import { arraySource, cursorQuery, listAnswer, mapped } from '../../list.ts';
import { fieldsQuery, selectFields } from '../../management-fields.ts';
import { organizationOf } from './organizations.ts';
import { memberView, requireRoles } from './roles-calls.ts';

const call = callsWith<{ store: Store }>();
const path = '/organizations/:id/roles/:role_id';

/** Returns the ids of an organization and of a role that its members can have. @throws AuthError 404, 400 */
async function found(store: Store, params: Readonly<Record<string, string>>) {
  const { id } = await organizationOf(store, params.id);
  const role = params.role_id ?? '';
  await requireRoles(store, [role], id);
  return { id, role };
}

export const organizationRoleCalls: Call<{ store: Store }>[] = [
  call({
    method: 'GET',
    path: `${path}/members`,
    scopes: ['read:organization_member_roles'],
    summary: 'Get members of an organization who have a role',
    query: z.strictObject({ ...cursorQuery, ...fieldsQuery }),
    handle: async ({ store }, { params, query }) => {
      const { id, role } = await found(store, params);
      const all = await store.collection('memberships').findBy('organization', id);
      const users = await Promise.all(
        all
          .filter(({ roles }) => roles.includes(role))
          .map(({ user_id }) => store.collection('users').get(user_id)),
      );
      const views = users.flatMap((user) => (user === undefined ? [] : [memberView(user)]));
      const source = mapped(
        arraySource(views, (one) => one.user_id),
        (one) => selectFields(one, query),
      );
      return ok(await listAnswer(query, source, { key: 'members', isCursorOnly: true }));
    },
  }),
  call({
    method: 'GET',
    path: `${path}/groups`,
    scopes: ['read:organization_group_roles'],
    summary: 'Get groups that have a role within an organization (there are none)',
    query: z.strictObject(cursorQuery),
    handle: async ({ store }, { params, query }) => {
      await found(store, params);
      return ok(await listAnswer(query, arraySource([], String), { key: 'groups', isCursorOnly: true }));
    },
  }),
];
