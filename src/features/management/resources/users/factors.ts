// `/users/{id}/authentication-methods`: the second factors and passkeys of a user.
import { z } from 'zod';
import { type Call, callsWith, created, noContent, ok } from '../../call.ts';
import { arrayAnswer, pageQuery } from '../../list.ts';
import { apiError } from '../../management-errors.ts';
import { conflict } from '../../resource.ts';
import {
  factorOf,
  isSame,
  MAX_AUTHENTICATION_METHODS,
  method,
  methodOf,
  methodView,
  name,
  preferred,
  type UserFactorsDependencies,
} from './authentication-method.ts';
import { userOf } from './user-calls.ts';
import { passkeysOf, passkeyView } from './user-passkeys-calls.ts';

const call = callsWith<UserFactorsDependencies>();

const path = '/users/:id/authentication-methods';

const noun = 'authentication_methods';

const allCalls: Call<UserFactorsDependencies>[] = [
  call({
    method: 'GET',
    path,
    scopes: [`read:${noun}`],
    summary: 'Get the authentication methods of a user',
    query: z.strictObject(pageQuery),
    handle: async (deps, { params, query }) => {
      const user = await userOf(deps, params.id);
      const items = await viewsOf(deps, user.id);
      return ok(await arrayAnswer(query, items, String, { key: 'authenticators' }));
    },
  }),
  call({
    method: 'POST',
    path,
    scopes: [`create:${noun}`],
    summary: 'Create an authentication method of a user',
    body: method,
    handle: async (deps, { params, body }) => {
      const user = await userOf(deps, params.id);
      const newFactor = factorOf(body);
      const [authenticator] = await deps.authenticators.addConfirmed(user.id, [newFactor], {
        check: (existing) => {
          if (newFactor.kind !== 'otp' && existing.some((one) => one.active && isSame(one, newFactor)))
            throw conflict('The authentication method already exists.', 'authentication_method_conflict')();
          if (existing.length >= MAX_AUTHENTICATION_METHODS)
            throw apiError(400, 'The user has too many authentication methods.');
        },
      });
      return created(authenticator && methodView(authenticator));
    },
  }),
  call({
    method: 'PUT',
    path,
    scopes: [`update:${noun}`],
    summary: 'Replace all authentication methods of a user',
    body: z.array(method).max(MAX_AUTHENTICATION_METHODS),
    handle: async (deps, { params, body }) => {
      const user = await userOf(deps, params.id);
      if ((await passkeysOf(deps.store, user.id)).length > 0)
        throw apiError(403, 'The user has passkeys, which cannot be replaced.');
      const before = (await deps.authenticators.of(user.id)).map(methodView);
      const authenticators = await deps.authenticators.addConfirmed(user.id, body.map(factorOf), {
        replaces: true,
      });
      const after = authenticators.map(methodView);
      return ok(after, { before, after });
    },
  }),
  call({
    method: 'DELETE',
    path,
    scopes: [`delete:${noun}`],
    summary: 'Delete all authentication methods of a user',
    handle: async (deps, { params }) => {
      const user = await userOf(deps, params.id);
      const before = await viewsOf(deps, user.id);
      await deps.authenticators.removeAllOf(user.id);
      await deps.store.collection('passkeys').deleteBy('user', user.id);
      return noContent({ before });
    },
  }),
  call({
    method: 'DELETE',
    path: '/users/:id/authenticators',
    scopes: ['delete:guardian_enrollments'],
    summary: 'Delete all authenticators of a user',
    handle: async (deps, { params }) => {
      const user = await userOf(deps, params.id);
      const before = (await deps.authenticators.of(user.id)).map(methodView);
      await deps.authenticators.removeAllOf(user.id);
      return noContent({ before });
    },
  }),
];

/** Returns the second factors of a user, followed by the passkeys. */
async function viewsOf(
  { authenticators, store }: UserFactorsDependencies,
  userId: string,
): Promise<object[]> {
  const [factors, passkeys] = await Promise.all([authenticators.of(userId), passkeysOf(store, userId)]);
  return [...factors.map(methodView), ...passkeys.map(passkeyView)];
}

const oneCalls: Call<UserFactorsDependencies>[] = [
  call({
    method: 'GET',
    path: `${path}/:method_id`,
    scopes: [`read:${noun}`],
    summary: 'Get an authentication method of a user',
    handle: async (deps, { params }) => ok((await methodOf(deps, params)).view),
  }),
  call({
    method: 'PATCH',
    path: `${path}/:method_id`,
    scopes: [`update:${noun}`],
    summary: 'Update an authentication method of a user',
    body: z.strictObject({ name, preferred_authentication_method: preferred }),
    handle: async (deps, { params, body }) => {
      const { view: before, rename } = await methodOf(deps, params);
      const after = await rename(body.name);
      return ok(after, { before, after });
    },
  }),
  call({
    method: 'DELETE',
    path: `${path}/:method_id`,
    scopes: [`delete:${noun}`],
    summary: 'Delete an authentication method of a user',
    handle: async (deps, { params }) => {
      const { view: before, remove } = await methodOf(deps, params);
      await remove();
      return noContent({ before });
    },
  }),
];

export const userFactorCalls: Call<UserFactorsDependencies>[] = [...allCalls, ...oneCalls];
