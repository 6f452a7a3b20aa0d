// The authentication methods of a user.

import { z } from 'zod';
import { credentialView } from '../../../../capabilities/webauthn/credential-view.ts';
import { emailSchema, normalizeEmail } from '../../../../records/base/email.ts';
import type { Frozen } from '../../../../records/base/record.ts';
import type { AuthenticatorRecord } from '../../../../records/users/authenticators.ts';
import type { PasskeyRecord } from '../../../../records/users/passkeys.ts';
import { type FactorKind, secondFactorOf } from '../../../../records/users/second-factors.ts';
import { withoutEnd } from '../../../../runtime/without-end.ts';
import type { Store } from '../../../../store/contract.ts';
import type { Users } from '../../../../users/users.ts';
import { notFound } from '../../resource.ts';
import { userOf } from './user-calls.ts';
import { passkeyOf, passkeyView } from './user-passkeys-calls.ts';

type Authenticator = Frozen<AuthenticatorRecord>;

interface NewFactor {
  kind: FactorKind;
  fields: Pick<AuthenticatorRecord, 'phone_number' | 'email' | 'secret' | 'name'>;
}

/** The second factors of users. */
interface UserFactors {
  of(userId: string): Promise<Authenticator[]>;
  get(id: string): Promise<Authenticator | undefined>;
  addConfirmed(
    userId: string,
    factors: readonly NewFactor[],
    options?: { replaces?: boolean; check?(existing: readonly Authenticator[]): void },
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

/** Highest number of authentication methods of a user, the same as for enrolment by the user. */
export const MAX_AUTHENTICATION_METHODS = 20;

const noMethod = notFound('The authentication method does not exist.', 'inexistent_authentication_method');

/** Returns an authenticator as the API shows it, without its secret. */
export function methodView(one: Authenticator): object {
  return {
    id: one.id,
    type: secondFactorOf(one.kind)?.managed ?? one.kind,
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

export const name = z.string().min(1).max(20).optional();

export const preferred = z.enum(['sms']).optional();

export const method = z.discriminatedUnion('type', [
  z.strictObject({
    type: z.literal('phone'),
    phone_number: z.string().regex(/^\+[0-9]{1,15}$/, 'must match ^\\+[0-9]{1,15}$'),
    preferred_authentication_method: preferred,
    name,
  }),
  z.strictObject({ type: z.literal('email'), email: emailSchema, name }),
  z.strictObject({
    type: z.literal('totp'),
    // Base32 (RFC 4648 §6) of at least 80 bits, as authenticator apps expect.
    totp_secret: z
      .string()
      .max(256)
      .regex(/^[A-Z2-7]{16,}=*$/i, 'must be base32'),
    name,
  }),
]);

type Method = z.output<typeof method>;

/**
 * Returns the factor that a body describes, as it is stored: e-mail addresses normalized, secrets in upper case
 * without padding.
 */
export function factorOf(body: Method): NewFactor {
  const named = body.name === undefined ? {} : { name: body.name };
  if (body.type === 'phone') return { kind: 'sms', fields: { ...named, phone_number: body.phone_number } };
  if (body.type === 'email') {
    const email = normalizeEmail(body.email) ?? body.email;
    return { kind: 'email', fields: { ...named, email } };
  }
  const secret = withoutEnd(body.totp_secret.toUpperCase(), '=');
  return { kind: 'otp', fields: { ...named, secret } };
}

/** Whether an authenticator is of the same kind as a new factor, with the same phone number or e-mail address. */
export function isSame(one: Authenticator, { kind, fields }: NewFactor): boolean {
  return one.kind === kind && one.phone_number === fields.phone_number && one.email === fields.email;
}

interface UserMethod {
  view: object;
  /** @returns the renamed method as the API shows it. */
  rename(name: string | undefined): Promise<object>;
  remove(): Promise<unknown>;
}

/** @throws AuthError 404, also for a method of another user */
export async function methodOf(
  deps: UserFactorsDependencies,
  params: Readonly<Record<string, string>>,
): Promise<UserMethod> {
  const user = await userOf(deps, params.id);
  const id = params.method_id ?? '';
  const passkey = await passkeyOf(deps.store, user.id, id);
  if (passkey !== undefined) return passkeyMethod(deps, passkey);
  const found = await deps.authenticators.get(id);
  if (found === undefined || found.user_id !== user.id) throw noMethod();
  return {
    view: methodView(found),
    rename: async (newName) => {
      const after = await deps.authenticators.update(id, (current) => ({
        ...current,
        ...(newName === undefined ? {} : { name: newName }),
      }));
      return methodView(after ?? found);
    },
    remove: () => deps.authenticators.remove(id),
  };
}

function passkeyMethod({ store }: UserFactorsDependencies, passkey: Frozen<PasskeyRecord>): UserMethod {
  const passkeys = store.collection('passkeys');
  return {
    view: passkeyView(passkey),
    rename: async (newName) => {
      const named = newName === undefined ? {} : { name: newName };
      return passkeyView(
        (await passkeys.update(passkey.id, (current) => ({ ...current, ...named }))) ?? passkey,
      );
    },
    remove: async () => {
      await passkeys.delete(passkey.id);
    },
  };
}
