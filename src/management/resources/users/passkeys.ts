// Passkeys of a user among their `authentication-methods`.
import type { PasskeyRecord } from '../../../records/passkeys.ts';
import type { Frozen } from '../../../records/record.ts';
import type { Store } from '../../../store/contract.ts';
import { credentialView } from '../../../webauthn/credential-view.ts';

type Passkey = Frozen<PasskeyRecord>;

const PREFIX = 'passkey|';

/** A passkey as it is answered. */
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

/** All passkeys of a user. */
export function passkeysOf(store: Store, userId: string): Promise<Passkey[]> {
  return store.collection('passkeys').findBy('user', userId);
}

/** A user's passkey by the id that {@link passkeyView} tells; undefined for one of another user. */
export async function passkeyOf(store: Store, userId: string, id: string): Promise<Passkey | undefined> {
  if (!id.startsWith(PREFIX)) return undefined;
  const found = await store.collection('passkeys').get(id.slice(PREFIX.length));
  return found?.user_id === userId ? found : undefined;
}

/** Ends the passkeys of a user that were made by a connection. @param connection its name. */
export async function endPasskeysBy(store: Store, userId: string, connection: string): Promise<void> {
  for (const passkey of await passkeysOf(store, userId))
    if (passkey.connection === connection) await store.collection('passkeys').delete(passkey.id);
}
