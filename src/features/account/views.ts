// Authentication methods as the My Account API shows them.
import { z } from 'zod';
import { credentialView } from '../../capabilities/webauthn/credential-view.ts';
import type { Frozen } from '../../records/base/record.ts';
import type { WebAuthnCredential } from '../../records/base/webauthn.ts';
import type { PasskeyRecord } from '../../records/users/passkeys.ts';
import { METHOD_TYPES, methodTypeOf } from '../../records/users/second-factors.ts';
import type { Identity } from '../../users/changes.ts';
import type { User } from '../../users/user.ts';
import type { Authenticator } from '../factors/authenticators.ts';
import { authenticatorName } from './aaguids.ts';

export const PASSKEY_PREFIX = 'passkey|';
export const PASSWORD_PREFIX = 'password|';

export const methodAnswer = z.looseObject({
  id: z.string(),
  type: z.enum(METHOD_TYPES),
  created_at: z.iso.datetime(),
  usage: z.array(z.enum(['primary', 'secondary'])),
  name: z.string().optional(),
  last_auth_at: z.iso.datetime().optional(),
});

export type MethodView = z.output<typeof methodAnswer>;

/** Returns the view of a second factor, without its secrets. */
export function authenticatorView(one: Authenticator): MethodView {
  return {
    id: one.id,
    type: methodTypeOf(one.kind),
    confirmed: one.active,
    usage: ['secondary'],
    ...(one.name !== undefined && { name: one.name }),
    ...(one.phone_number !== undefined && {
      phone_number: one.phone_number,
      preferred_authentication_method: 'sms',
    }),
    ...(one.email !== undefined && { email: one.email }),
    ...(one.webauthn !== undefined && keyView(one.webauthn)),
    created_at: one.created_at,
    ...(one.last_used_at !== undefined && { last_auth_at: one.last_used_at }),
  };
}

// docs/understand/decisions/second-factors.md#key_backed_up-is-returned-beside-the-documented-credential_backed_up
/** Adds `key_backed_up`, the name under which mobile SDKs read whether a credential is backed up. */
function keyView(one: Frozen<WebAuthnCredential>) {
  return { ...credentialView(one), key_backed_up: one.backed_up };
}

/** Returns the view of a passkey. Without a name of its own it has that of its authenticator. */
export function passkeyView(one: Frozen<PasskeyRecord>): MethodView {
  const name = one.name ?? authenticatorName(one.aaguid);
  return {
    id: `${PASSKEY_PREFIX}${one.id}`,
    type: 'passkey',
    confirmed: true,
    usage: ['primary'],
    ...(name !== undefined && { name }),
    ...keyView(one),
    identity_user_id: one.user_id,
    user_handle: one.user_handle,
    user_agent: one.user_agent,
    relying_party_id: one.relying_party_id,
    created_at: one.created_at,
    ...(one.last_used_at !== undefined && { last_auth_at: one.last_used_at }),
  };
}

export function passwordView(user: User, { id, upstream_id, provider }: Identity): MethodView {
  return {
    id: passwordId(id),
    type: 'password',
    usage: ['primary'],
    identity_user_id: `${provider}|${upstream_id}`,
    created_at: user.created_at,
    ...(user.last_password_reset !== undefined && { last_password_reset: user.last_password_reset }),
  };
}

/** @param identityId the id of its identity. */
export const passwordId = (identityId: string) => `${PASSWORD_PREFIX}${identityId}`;
