// `/users`: creating, reading, changing and deleting users.
import { z } from 'zod';
import { lookupEmail } from '../../../../records/email.ts';
import type { Frozen } from '../../../../records/record.ts';
import type { UserRecord } from '../../../../records/users.ts';
import { type Call, callsWith, created, noContent, ok } from '../../call.ts';
import { apiError } from '../../errors.ts';
import { fieldsQuery, selectFields } from '../../fields.ts';
import { createUserBody, patchUserBody } from './bodies.ts';
import { createUser } from './create.ts';
import { patchUser } from './patch.ts';
import { type UsersDependencies, userOf, viewOf } from './user.ts';

/** Members that a user's own token may change. */
const USER_MEMBERS = new Set(['user_metadata']);

const call = callsWith<UsersDependencies>();

/** The calls for users. */
export const userRecordCalls: Call<UsersDependencies>[] = [
  call({
    method: 'POST',
    path: '/users',
    scopes: ['create:users'],
    summary: 'Create a user',
    body: createUserBody,
    handle: async (deps, { body, ip, userAgent }) =>
      created(await viewOf(deps, await createUser(deps, body, { ip, userAgent }))),
  }),
  call({
    method: 'GET',
    path: '/users-by-email',
    scopes: ['read:users'],
    summary: 'Search users by email',
    query: z.strictObject({ ...fieldsQuery, email: z.string().min(1).max(320) }),
    handle: async (deps, { query }) => {
      const email = lookupEmail(query.email) ?? query.email;
      const found = await deps.users.withEmail(email);
      return ok(await Promise.all(found.map(async (user) => selectFields(await viewOf(deps, user), query))));
    },
  }),
  call({
    method: 'GET',
    path: '/users/:id',
    scopes: ['read:users', 'read:user_idp_tokens'],
    ownScopes: ['read:current_user'],
    summary: 'Get a user',
    query: z.strictObject(fieldsQuery),
    handle: async (deps, { params, query, caller }) => {
      const user = await userOf(deps, params.id);
      const providerTokens = !caller.isUser && caller.scopes.has('read:user_idp_tokens');
      if (providerTokens) await deps.renewProviderTokens(user.id);
      return ok(selectFields(await viewOf(deps, user, { providerTokens }), query));
    },
  }),
  call({
    method: 'PATCH',
    path: '/users/:id',
    scopes: ['update:users', 'update:users_app_metadata'],
    ownScopes: ['update:current_user_metadata'],
    ownAct: 'profile',
    summary: 'Update a user',
    body: patchUserBody,
    handle: async (deps, { params, body, caller, ip, userAgent }) => {
      const allowed = caller.isUser
        ? USER_MEMBERS
        : caller.scopes.has('update:users')
          ? undefined
          : new Set(['app_metadata']);
      const refused = allowed && Object.keys(body).find((name) => !allowed.has(name));
      if (refused !== undefined)
        throw apiError(403, 'Insufficient scope, expected any of: update:users', 'insufficient_scope');
      const before = await userOf(deps, params.id);
      const { user, isUnchanged } = await patchUser(deps, before, body, { ip, userAgent });
      const log = { before: shortView(before), after: shortView(user), isUnchanged };
      return ok(await viewOf(deps, user), log);
    },
  }),
  call({
    method: 'DELETE',
    path: '/users/:id',
    scopes: ['delete:users'],
    ownScopes: ['delete:current_user'],
    ownAct: 'deletion',
    summary: 'Delete a user',
    handle: async (deps, { params, caller, admitAgain }) => {
      if (caller.isUser && !deps.config.settings().tenant.account_page.allow_deletion)
        throw apiError(403, 'Users may not delete their accounts.', 'operation_not_supported');
      const before = await deps.users.get(params.id ?? '');
      await admitAgain();
      if (before !== undefined) await deps.removeUser(before.id, caller.isUser ? before : undefined);
      return noContent(before === undefined ? {} : { before: shortView(before) });
    },
  }),
];

/** Returns a user as the log shows it: without metadata, which may contain anything. */
function shortView({
  id,
  email,
  username,
  phone_number,
  email_verified,
  blocked,
}: Frozen<UserRecord>): object {
  return { user_id: id, email, username, phone_number, email_verified, blocked };
}
