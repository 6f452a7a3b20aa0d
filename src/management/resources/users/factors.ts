// Second factors of a user: `authentication-methods`, the older `enrollments`, and what undoes them.
import { z } from 'zod';
import type { AuthenticatorRecord } from '../../../records/authenticators.ts';
import { normalizeEmail } from '../../../records/email.ts';
import type { PasskeyRecord } from '../../../records/passkeys.ts';
import type { Frozen } from '../../../records/record.ts';
import type { Store } from '../../../store/contract.ts';
import type { Users } from '../../../users/users.ts';
import { credentialView } from '../../../webauthn/credential-view.ts';
import { type Call, callsWith, created, noContent, ok } from '../../call.ts';
import { apiError } from '../../errors.ts';
import { arrayAnswer, pageQuery } from '../../list.ts';
import { conflict, notFound } from '../../resource.ts';
import { passkeyOf, passkeysOf, passkeyView } from './passkeys.ts';
import { userOf } from './user.ts';

type Authenticator = Frozen<AuthenticatorRecord>;

/** What is given of a new one. */
interface NewFactor {
  kind: string;
  prefix: string;
  fields: Pick<AuthenticatorRecord, 'phone_number' | 'email' | 'secret' | 'name'>;
}

/** The second factors that users have. */
interface UserFactors {
  of(userId: string): Promise<Authenticator[]>;
  get(id: string): Promise<Authenticator | undefined>;
  give(
    userId: string,
    given: readonly NewFactor[],
    options?: { instead?: boolean },
  ): Promise<Authenticator[]>;
  update(id: string, change: (current: Authenticator) => Authenticator): Promise<Authenticator | undefined>;
  remove(id: string): Promise<unknown>;
  removeAllOf(userId: string): Promise<void>;
}

export interface UserFactorsDependencies {
  users: Users;
  authenticators: UserFactors;
  store: Store;
}

/** What the hosted service calls the kinds of authenticators. */
const TYPES: Readonly<Record<string, string>> = { otp: 'totp', sms: 'phone' };

/** A user may have as many as they may enrol. */
const MOST = 20;

const noMethod = notFound('The authentication method does not exist.', 'inexistent_authentication_method');

/** An authenticator as it is answered: never what it is proved by. */
export function methodView(one: Authenticator): object {
  return {
    id: one.id,
    type: TYPES[one.kind] ?? one.kind,
    confirmed: one.active,
    ...(one.name === undefined ? {} : { name: one.name }),
    ...(one.phone_number === undefined
      ? {}
      : {
          phone_number: one.phone_number,
          preferred_authentication_method: 'sms',
          authentication_methods: [{ type: 'sms', id: one.id }],
        }),
    ...(one.email === undefined ? {} : { email: one.email }),
    ...(one.webauthn === undefined ? {} : credentialView(one.webauthn)),
    created_at: one.created_at,
    ...(one.active ? { enrolled_at: one.created_at } : {}),
    ...(one.last_used_at === undefined ? {} : { last_auth_at: one.last_used_at }),
  };
}

const name = z.string().min(1).max(20).optional();
const preferred = z.enum(['sms']).optional();
const method = z.discriminatedUnion('type', [
  z.strictObject({
    type: z.literal('phone'),
    phone_number: z.string().regex(/^\+[0-9]{1,15}$/, 'must match ^\\+[0-9]{1,15}$'),
    preferred_authentication_method: preferred,
    name,
  }),
  z.strictObject({ type: z.literal('email'), email: z.email().max(320), name }),
  z.strictObject({
    type: z.literal('totp'),
    // RFC 4648 §6; 80 bits at least, as authenticator apps have it.
    totp_secret: z
      .string()
      .max(256)
      .regex(/^[A-Z2-7]{16,}=*$/i, 'must be base32'),
    name,
  }),
]);

type Method = z.output<typeof method>;

function factorOf(body: Method): NewFactor {
  const named = body.name === undefined ? {} : { name: body.name };
  if (body.type === 'phone')
    return { kind: 'sms', prefix: 'sms', fields: { ...named, phone_number: body.phone_number } };
  if (body.type === 'email') {
    const email = normalizeEmail(body.email) ?? body.email;
    return { kind: 'email', prefix: 'email', fields: { ...named, email } };
  }
  const secret = body.totp_secret.toUpperCase().replace(/=+$/, '');
  return { kind: 'otp', prefix: 'totp', fields: { ...named, secret } };
}

function isSame(one: Authenticator, { kind, fields }: NewFactor): boolean {
  return one.kind === kind && one.phone_number === fields.phone_number && one.email === fields.email;
}

/** One of a user's own, as it is answered, and how it is renamed and removed. */
interface OwnMethod {
  view: object;
  /** @returns as it is answered then. */
  rename(name: string | undefined): Promise<object>;
  remove(): Promise<unknown>;
}

/** @throws AuthError 404 for another user's, too. */
async function methodOf(
  deps: UserFactorsDependencies,
  params: Readonly<Record<string, string>>,
): Promise<OwnMethod> {
  const user = await userOf(deps, params.id);
  const id = params.method_id ?? '';
  const passkey = await passkeyOf(deps.store, user.id, id);
  if (passkey !== undefined) return ownPasskey(deps, passkey);
  const found = await deps.authenticators.get(id);
  if (found === undefined || found.user_id !== user.id) throw noMethod();
  return {
    view: methodView(found),
    rename: async (called) => {
      const after = await deps.authenticators.update(id, (current) => ({
        ...current,
        ...(called === undefined ? {} : { name: called }),
      }));
      return methodView(after ?? found);
    },
    remove: () => deps.authenticators.remove(id),
  };
}

function ownPasskey({ store }: UserFactorsDependencies, passkey: Frozen<PasskeyRecord>): OwnMethod {
  const passkeys = store.collection('passkeys');
  return {
    view: passkeyView(passkey),
    rename: async (called) => {
      const named = called === undefined ? {} : { name: called };
      return passkeyView((await passkeys.update(passkey.id, (now) => ({ ...now, ...named }))) ?? passkey);
    },
    remove: async () => {
      await passkeys.delete(passkey.id);
    },
  };
}

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
      const own = await deps.authenticators.of(user.id);
      const wanted = factorOf(body);
      if (wanted.kind !== 'otp' && own.some((one) => one.active && isSame(one, wanted)))
        throw conflict('The authentication method already exists.', 'authentication_method_conflict')();
      if (own.length >= MOST) throw apiError(400, 'The user has too many authentication methods.');
      const [made] = await deps.authenticators.give(user.id, [wanted]);
      return created(made && methodView(made));
    },
  }),
  call({
    method: 'PUT',
    path,
    scopes: [`update:${noun}`],
    summary: 'Replace all authentication methods of a user',
    body: z.array(method).max(MOST),
    handle: async (deps, { params, body }) => {
      const user = await userOf(deps, params.id);
      if ((await passkeysOf(deps.store, user.id)).length > 0)
        throw apiError(403, 'The user has passkeys, which cannot be replaced.');
      const before = (await deps.authenticators.of(user.id)).map(methodView);
      const made = await deps.authenticators.give(user.id, body.map(factorOf), { instead: true });
      const after = made.map(methodView);
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

/** Second factors, and passkeys after them. */
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

/** The calls. */
export const userFactorCalls: Call<UserFactorsDependencies>[] = [...allCalls, ...oneCalls];
