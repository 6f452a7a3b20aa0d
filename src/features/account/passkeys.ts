// Adds a passkey for a logged-in user: begun, then verified once by the login that began it.

import {
  creationOptions,
  readRegistration,
  verifyRegistration,
} from '../../capabilities/webauthn/ceremonies.ts';
import {
  ownRelyingParty,
  type RelyingParty,
  relyingPartyFor,
} from '../../capabilities/webauthn/relying-party.ts';
import { AuthError } from '../../http/errors.ts';
import { passkeyOptions } from '../../records/database-options.ts';
import type { Identity } from '../../users/changes.ts';
import {
  deletePasskey,
  MAX_PASSKEYS,
  passkeyRegistration,
  storePasskey,
} from '../connections/passkeys/passkeys.ts';
import { beginSession, takeSession } from '../connections/passkeys/session.ts';
import { accountNameOf } from '../factors/enroll.ts';
import { authenticatorName } from './aaguids.ts';
import { type Actor, isStillValid, requireLoginFor } from './actor.ts';
import { unknownSession } from './enrollments.ts';
import { invalidField } from './errors.ts';
import { notifyOfMethod } from './method-notices.ts';
import { type MethodDependencies, noMethod, passkeysOf } from './methods.ts';
import { type MethodView, PASSKEY_PREFIX, passkeyView } from './views.ts';

/** The id in the path of a passkey that is not created yet. */
export const NEW_PASSKEY = `${PASSKEY_PREFIX}new`;

/** The identity that a passkey or password is for; by default the first one that fits. */
export interface IdentitySelection {
  connection?: string | undefined;
  identity_user_id?: string | undefined;
}

/** An enrolment that was begun. */
interface StartedPasskey {
  authSession: string;
  /** For `navigator.credentials.create` (WebAuthn Level 3 §5.1.10). */
  options: object;
}

/**
 * Begins to create a passkey.
 * @throws AuthError 401 when the login is not fresh; 400 when no connection of the user has passkeys, or the user
 *   has too many.
 */
export async function startPasskey(
  deps: MethodDependencies,
  actor: Actor,
  selection: IdentitySelection,
): Promise<StartedPasskey> {
  await requireLoginFor(deps, actor, 'passkey');
  const { user, clientId, login, origin } = actor;
  const connection = await connectionFor(deps, user.id, selection);
  const existing = await passkeysOf(deps, user.id);
  if (existing.length >= MAX_PASSKEYS)
    throw invalidField('type', 'There are too many passkeys: one must be removed.');
  const owner = { userId: user.id, login: login.id };
  const { authSession, challenge } = await beginSession(deps, { clientId, connection, at: origin, owner });
  const registration = passkeyRegistration(challenge, user.id, accountNameOf(user), existing);
  return {
    authSession,
    options: creationOptions(await relyingPartyOf(deps, clientId, origin), registration),
  };
}

/** Returns whether an identity is the one that was asked for. */
export function isIdentity(
  { connection, provider, upstream_id: id }: Pick<Identity, 'connection' | 'provider' | 'upstream_id'>,
  { connection: selectedConnection, identity_user_id: selectedId }: IdentitySelection,
): boolean {
  if (selectedConnection !== undefined && selectedConnection !== connection) return false;
  return selectedId === undefined || [id, `${provider}|${id}`].includes(selectedId);
}

/** Returns the name of the connection that the passkey is for. @throws AuthError 400 */
async function connectionFor(
  { users, config }: MethodDependencies,
  userId: string,
  selection: IdentitySelection,
): Promise<string> {
  for (const identity of await users.identitiesOf(userId)) {
    if (!isIdentity(identity, selection)) continue;
    const { connection: name } = identity;
    const connection = await config.connection(name);
    if (connection !== undefined && passkeyOptions(connection) !== undefined) return name;
  }
  throw invalidField('connection', 'Passkeys are not enabled for a connection of this user.');
}

/** Returns the relying party: that of the application, or of our own pages, which have no application's origins. */
async function relyingPartyOf(
  deps: MethodDependencies,
  clientId: string,
  origin: string | undefined,
): Promise<RelyingParty> {
  const client = await deps.config.client(clientId);
  return client === undefined ? ownRelyingParty(deps, origin) : relyingPartyFor(deps, client, origin);
}

/**
 * Stores a passkey that the authenticator has created. Of several concurrent calls one succeeds.
 * @param response the result of `navigator.credentials.create` in the format of `toJSON`, as JSON.
 * @throws AuthError 401 as {@link requireLoginFor}; 400 `invalid_grant` when the answer is invalid or the
 *   `auth_session` is unknown, used, expired or another login's.
 */
export async function verifyPasskey(
  deps: MethodDependencies,
  actor: Actor,
  { authSession, response }: { authSession: string; response: string },
): Promise<MethodView> {
  await requireLoginFor(deps, actor, 'completion');
  const { user, clientId, userAgent, login } = actor;
  const ended = await takeSession(deps, authSession, clientId);
  const owner = ended?.session.owner;
  if (ended === undefined || owner?.userId !== user.id || owner.login !== login.id) throw unknownSession();
  const registrationResponse = readRegistration(response);
  if (registrationResponse === undefined) throw invalidPasskey();
  const registration = passkeyRegistration(ended.challenge, user.id, accountNameOf(user));
  const party = await relyingPartyOf(deps, clientId, ended.session.at);
  const credential = await verifyRegistration(party, registrationResponse, registration);
  if (credential === undefined) throw invalidPasskey();
  const { connection } = ended.session;
  await connectionFor(deps, user.id, { connection });
  const name = authenticatorName(credential.aaguid);
  const isStored = await deps.factorChanges.apply(user.id, login.id, () =>
    storePasskey(deps, credential, { user_id: user.id, connection, userAgent, registration, party, name }, [
      deps.users.stillWrite(user),
    ]),
  );
  if (!isStored) throw invalidPasskey();
  // What ended the login in the meantime did not find this passkey.
  if (!(await isStillValid(deps, actor))) {
    await deletePasskey(deps, credential);
    throw unknownSession();
  }
  deps.events.record({
    type: 'passkey_enrolled',
    user_id: user.id,
    connection,
    client_id: clientId,
    ip: actor.ip,
  });
  await notifyOfMethod(deps, actor, 'method_added', 'passkey');
  const stored = (await passkeysOf(deps, user.id)).find(
    (one) => one.credential_id === credential.credential_id,
  );
  if (stored === undefined) throw noMethod();
  return passkeyView(stored, party.id);
}

function invalidPasskey(): AuthError {
  return new AuthError(400, 'invalid_grant', 'The passkey is not good.');
}
