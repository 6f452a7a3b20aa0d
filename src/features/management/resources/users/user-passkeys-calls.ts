// Passkeys of a user, as `authentication-methods`.

import { credentialView } from '../../../../capabilities/webauthn/credential-view.ts';
import type { Frozen } from '../../../../records/base/record.ts';
import type { PasskeyRecord } from '../../../../records/users/passkeys.ts';
import type { Store } from '../../../../store/contract.ts';

type Passkey = Frozen<PasskeyRecord>;

const PREFIX = 'passkey|';

export function passkeyView(one: Passkey): object {
  return {
    id: `${PREFIX}${one.id}`,
    type: 'passkey',
    confirmed: true,
    ...(one.name === undefined ? {} : { name: one.name }),
    ...credentialView(one),
    identity_user_id: one.user_id,
    user_agent: one.user_agent,
    created_at: one.created_at,
    enrolled_at: one.created_at,
    ...(one.last_used_at === undefined ? {} : { last_auth_at: one.last_used_at }),
  };
}

export function passkeysOf(store: Store, userId: string): Promise<Passkey[]> {
  return store.collection('passkeys').findBy('user', userId);
}

/** Returns a user's passkey by the id in {@link passkeyView}; undefined if it belongs to another user. */
export async function passkeyOf(store: Store, userId: string, id: string): Promise<Passkey | undefined> {
  if (!id.startsWith(PREFIX)) return undefined;
  const found = await store.collection('passkeys').get(id.slice(PREFIX.length));
  return found?.user_id === userId ? found : undefined;
}

/** @param connection its name. */
export async function deletePasskeysOf(store: Store, userId: string, connection: string): Promise<void> {
  for (const passkey of await passkeysOf(store, userId))
    if (passkey.connection === connection) await store.collection('passkeys').delete(passkey.id);
}
