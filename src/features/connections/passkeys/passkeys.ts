// Stores, removes, and verifies the passkeys of users.

import {
  type AssertionAnswer,
  isNextCount,
  type Registration,
  verifyAssertion,
} from '../../../capabilities/webauthn/ceremonies.ts';
import type { RelyingParty } from '../../../capabilities/webauthn/relying-party.ts';
import type { Frozen } from '../../../records/base/record.ts';
import type { WebAuthnCredential } from '../../../records/base/webauthn.ts';
import type { PasskeyRecord } from '../../../records/users/passkeys.ts';
import type { Clock } from '../../../runtime/clock.ts';
import { sha256 } from '../../../runtime/secrets.ts';
import { type Store, UniqueKeyError, updateWithResult, type Write } from '../../../store/contract.ts';
import { writeInTurn } from '../../../store/write-in-turn.ts';
import type { User } from '../../../users/user.ts';
import type { Users } from '../../../users/users.ts';

export interface PasskeyDependencies {
  store: Store;
  users: Pick<Users, 'get' | 'credentialVersion'>;
  /** The time of day, milliseconds. */
  wallClock: Clock;
}

/** User verification is always required: it is what makes a passkey two factors. */
export const PASSKEY_VERIFICATION = 'required';

const recordId = (credentialId: string) => sha256(`passkey\n${credentialId}`);

/**
 * @param account id of the account. The user handle is a hash of it, so that it reveals nothing about the person
 *   (WebAuthn Level 3 §14.6.1).
 * @param name that authenticators show.
 * @param exclude credentials of authenticators that must not be registered again.
 */
export function passkeyRegistration(
  challenge: string,
  account: string,
  name: string,
  exclude: Registration['exclude'] = [],
): Registration {
  const user = { handle: sha256(`passkey of\n${account}`), name };
  return { challenge, user, exclude, discoverable: true, userVerification: PASSKEY_VERIFICATION };
}

interface PasskeyOwner extends Pick<PasskeyRecord, 'user_id' | 'connection'> {
  userAgent: string;
  registration: Registration;
  party: Pick<RelyingParty, 'id'>;
  /** The initial name of the passkey. */
  name?: string | undefined;
}

/** Characters of a `User-Agent` that are stored; those of browsers are shorter. */
const MAX_USER_AGENT_LENGTH = 500;

/** How many passkeys a user may have. */
export const MAX_PASSKEYS = 20;

/** Returns the write that stores a verified passkey; it throws UniqueKeyError if the credential is already registered. */
export function passkeyWrite(
  { wallClock }: Pick<PasskeyDependencies, 'wallClock'>,
  credential: WebAuthnCredential,
  { user_id, connection, userAgent, registration, party, name }: PasskeyOwner,
): Write {
  const insert = {
    ...credential,
    id: recordId(credential.credential_id),
    user_id,
    relying_party_id: party.id,
    user_handle: registration.user.handle,
    connection,
    ...(name !== undefined && { name }),
    user_agent: userAgent.slice(0, MAX_USER_AGENT_LENGTH),
    created_at: new Date(wallClock()).toISOString(),
  };
  return { collection: 'passkeys', insert };
}

/** Returns whether an error means that the credential of a {@link passkeyWrite} is already registered. */
export function isRegistered(thrown: unknown): boolean {
  return thrown instanceof UniqueKeyError && thrown.collection === 'passkeys';
}

/**
 * @param also written in the same batch, before.
 * @returns false if the credential is already registered, or the user has too many.
 */
export async function storePasskey(
  deps: Pick<PasskeyDependencies, 'store' | 'wallClock'>,
  credential: WebAuthnCredential,
  owner: PasskeyOwner,
  also: readonly Write[] = [],
): Promise<boolean> {
  const { user_id } = owner;
  const write = passkeyWrite(deps, credential, owner);
  try {
    return await writeInTurn(deps.store, `passkeys of ${user_id}`, async () => {
      const owned = await deps.store.collection('passkeys').findBy('user', user_id);
      return owned.length >= MAX_PASSKEYS ? undefined : [...also, write];
    });
  } catch (thrown) {
    if (isRegistered(thrown)) return false;
    throw thrown;
  }
}

export async function deletePasskey(
  { store }: Pick<PasskeyDependencies, 'store'>,
  { credential_id }: Pick<WebAuthnCredential, 'credential_id'>,
): Promise<void> {
  await store.collection('passkeys').delete(recordId(credential_id));
}

/**
 * Verifies an assertion, and stores its signature counter. If one assertion of an authenticator with a counter is used several
 * times at once, one use succeeds.
 * @returns the user, the passkey, and the credential version; undefined if the assertion is not valid.
 */
export async function verifyPasskey(
  deps: PasskeyDependencies,
  party: RelyingParty,
  assertion: AssertionAnswer,
  challenge: string,
): Promise<{ user: User; passkey: Frozen<PasskeyRecord>; credentialVersion: number } | undefined> {
  const passkeys = deps.store.collection('passkeys');
  const found = await passkeys.get(recordId(assertion.id));
  if (found === undefined) return undefined;
  // The user is identified by the credential alone, so the user handle must match (WebAuthn Level 3 §7.2, step 6).
  if (assertion.response.userHandle !== found.user_handle) return undefined;
  // The version is read before the assertion is verified: a password that is set meanwhile ends the login.
  const [user, credentialVersion] = await Promise.all([
    deps.users.get(found.user_id),
    deps.users.credentialVersion(found.user_id),
  ]);
  const result = await verifyAssertion(party, assertion, found, {
    challenge,
    userVerification: PASSKEY_VERIFICATION,
  });
  if (user === undefined || result?.isUserVerified !== true) return undefined;
  const last_used_at = new Date(deps.wallClock()).toISOString();
  const { signCount: sign_count, backedUp: backed_up } = result;
  const isNext = await updateWithResult(passkeys, found.id, (current) =>
    isNextCount(current.sign_count, sign_count)
      ? { result: true, next: { ...current, sign_count, backed_up, last_used_at } }
      : { result: false },
  );
  return isNext ? { user, passkey: found, credentialVersion } : undefined;
}
