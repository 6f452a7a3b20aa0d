// The authentication methods of a user, by that user: listed, begun, confirmed, renamed and removed. The My Account API
// and the account page use these functions. A method that was begun is confirmed once, by the login that began it.
import type { Context } from 'koa';
import { sendMethodNotice } from '../../capabilities/delivery/method-notice.ts';
import {
  creationOptions,
  readRegistration,
  verifyRegistration,
} from '../../capabilities/webauthn/ceremonies.ts';
import {
  type RelyingParty,
  relyingPartyFor,
  serverRelyingParty,
} from '../../capabilities/webauthn/relying-party.ts';
import { requestContextOf } from '../../engine/login/login-event.ts';
import { AuthError } from '../../http/errors.ts';
import type { Frozen } from '../../records/base/record.ts';
import type { Connection } from '../../records/collections.ts';
import { DATABASE } from '../../records/connections/connections.ts';
import { changesPasswords, databaseOptions, passkeyOptions } from '../../records/database-options.ts';
import { LEFT_BEHIND } from '../../records/users/authenticators.ts';
import type { PasskeyRecord } from '../../records/users/passkeys.ts';
import { type MethodType, methodTypeOf, SECOND_FACTORS } from '../../records/users/second-factors.ts';
import type { Store } from '../../store/contract.ts';
import { deleteWith } from '../../store/delete-with.ts';
import { type Identity, originalUserId } from '../../users/changes.ts';
import { FRESH_SECONDS } from '../../users/login.ts';
import { publishedPolicy } from '../../users/password-policy.ts';
import type { User } from '../../users/user.ts';
import {
  openReset,
  type ResetDependencies,
  type ResetRefusal,
  resetPassword,
} from '../connections/database/mailed-links/reset.ts';
import { mainIdentifier } from '../connections/database/mailed-links/ticket-link.ts';
import {
  deletePasskey,
  MAX_PASSKEYS,
  passkeyRegistration,
  storePasskey,
} from '../connections/passkeys/passkeys.ts';
import { passkeyEvents } from '../connections/passkeys/passkeys-declaration.ts';
import { beginSession, takeSession } from '../connections/passkeys/passkeys-session.ts';
import type { Authenticator, FactorChanges } from '../factors/authenticators.ts';
import { accountNameOf, enroll } from '../factors/enroll.ts';
import type { Factor, FactorDependencies, StartedEnrollment } from '../factors/factor.ts';
import { factorEvents } from '../factors/factors-declaration.ts';
import { activeAuthenticators, enabledFactors } from '../factors/policy.ts';
import { prepareRecoveryCode, recoveryCodeId, saveRecoveryCode } from '../factors/recovery/codes.ts';
import { authenticatorName } from './aaguids.ts';
import { accountEvents } from './account-declaration.ts';
import { invalidField } from './account-errors.ts';
import {
  type Actor,
  claimantOf,
  factorRequestOf,
  isStillValid,
  requireFactor,
  requireLoginFor,
} from './actor.ts';
import {
  authenticatorView,
  type MethodView,
  PASSKEY_PREFIX,
  PASSWORD_PREFIX,
  passkeyView,
  passwordId,
  passwordView,
} from './views.ts';

export interface MethodDependencies extends FactorDependencies, ResetDependencies {
  config: FactorDependencies['config'];
  users: FactorDependencies['users'];
  store: Store;
  factorChanges: FactorChanges;
}

/** The id of a passkey that is not created yet. */
export const NEW_PASSKEY = `${PASSKEY_PREFIX}new`;

/**
 * Lists a user's authentication methods: passwords, passkeys, then active second factors.
 * @throws AuthError 401 `insufficient_user_authentication` when the login lacks the second factor.
 */
export async function listMethods(deps: MethodDependencies, actor: Actor): Promise<MethodView[]> {
  await requireFactor(deps, actor);
  const { user } = actor;
  const [passwords, passkeys, factors] = await Promise.all([
    passwordsOf(deps, user),
    passkeysOf(deps, user.id),
    deps.authenticators.of(user.id),
  ]);
  return [
    ...passwords.map((identity) => passwordView(user, identity)),
    ...passkeys.map((one) => passkeyView(one)),
    ...factors.filter(isOfUser).map(authenticatorView),
  ];
}

/** Whether an authenticator is the user's to see and remove: not the mark of one that is elsewhere (left-factors.ts). */
const isOfUser = ({ active, kind }: Authenticator) => active && kind !== LEFT_BEHIND;

/** Returns the user's database identities whose password is stored here. */
async function passwordsOf({ users }: MethodDependencies, user: User): Promise<Identity[]> {
  const identities = (await users.identitiesOf(user.id)).filter(({ provider }) => provider === DATABASE);
  const has = await Promise.all(identities.map((identity) => users.hasPassword(originalUserId(identity))));
  return identities.filter((_, index) => has[index]);
}

export function passkeysOf(
  { store }: Pick<MethodDependencies, 'store'>,
  userId: string,
): Promise<Frozen<PasskeyRecord>[]> {
  return store.collection('passkeys').findBy('user', userId);
}

/** @throws AuthError 404 if the user has none with that id; 401 as {@link listMethods}. */
export async function getMethod(deps: MethodDependencies, actor: Actor, id: string): Promise<MethodView> {
  await requireFactor(deps, actor);
  return (await methodOf(deps, actor, id)).view;
}

/**
 * @throws AuthError 404 if the user has none with that id; 400 for a password, which has no name; 401 as {@link
 *   requireLoginFor}.
 */
export async function renameMethod(
  deps: MethodDependencies,
  actor: Actor,
  id: string,
  name: string,
): Promise<MethodView> {
  await requireLoginFor(deps, actor, 'method_name');
  const { rename } = await methodOf(deps, actor, id);
  if (rename === undefined) throw new AuthError(400, 'invalid_request', 'This method has no name.');
  const renamed = await rename(name);
  if (renamed === undefined) throw noMethod();
  return renamed;
}

/**
 * Removes an authentication method, and tells the user by mail.
 * @throws AuthError 404 if the user has none with that id; 400 for a password; 401 when the login is not fresh.
 */
export async function removeMethod(deps: MethodDependencies, actor: Actor, id: string): Promise<void> {
  await requireLoginFor(deps, actor, 'factor');
  const { view, remove } = await methodOf(deps, actor, id);
  if (remove === undefined)
    throw new AuthError(400, 'invalid_request', 'This method cannot be removed by its user.');
  if (!(await remove())) throw noMethod();
  const { user, clientId, ip } = actor;
  const type = view.type === 'passkey' ? accountEvents.passkey_removed : factorEvents.gd_unenroll;
  deps.events.record({ type, user_id: user.id, client_id: clientId, ip });
  await notifyOfMethod(deps, actor, 'method_removed', view.type);
}

/** One of the user's authentication methods, with what the user may do with it. */
interface AccountMethod {
  view: MethodView;
  /** @returns undefined when it was removed meanwhile. */
  rename?(name: string): Promise<MethodView | undefined>;
  /** @returns false when it was removed already. */
  remove?(): Promise<boolean>;
}

/** Returns the same error for an unknown id and for another user's. */
export function noMethod(): AuthError {
  return new AuthError(404, 'not_found', 'There is no such authentication method.');
}

async function methodOf(deps: MethodDependencies, actor: Actor, id: string): Promise<AccountMethod> {
  const { user } = actor;
  if (id.startsWith(PASSKEY_PREFIX)) return passkeyOf(deps, actor, id.slice(PASSKEY_PREFIX.length));
  const password = (await passwordsOf(deps, user)).find((identity) => passwordId(identity.id) === id);
  if (password !== undefined) return { view: passwordView(user, password) };
  const found = await deps.authenticators.get(id);
  if (found === undefined || found.user_id !== user.id || !isOfUser(found)) throw noMethod();
  return {
    view: authenticatorView(found),
    rename: async (name) => {
      const renamed = await deps.authenticators.update(id, (current) => ({ ...current, name }));
      return renamed && authenticatorView(renamed);
    },
    remove: () => deps.authenticators.remove(id, actor.login.id, [deps.users.stillWrite(user)]),
  };
}

async function passkeyOf(
  deps: MethodDependencies,
  { user, login }: Actor,
  id: string,
): Promise<AccountMethod> {
  const passkeys = deps.store.collection('passkeys');
  const found = await passkeys.get(id);
  if (found === undefined || found.user_id !== user.id) throw noMethod();
  return {
    view: passkeyView(found),
    rename: async (name) => {
      const renamed = await passkeys.update(id, (current) => ({ ...current, name }));
      return renamed && passkeyView(renamed);
    },
    remove: () =>
      deps.factorChanges.apply(user.id, login.id, () =>
        deleteWith(deps.store, 'passkeys', id, [deps.users.stillWrite(user)]),
      ),
  };
}

/** A method to add, and the identity that a passkey or password is for: by default the first one that fits. */
interface NewMethod extends IdentitySelection {
  type: MethodType;
  /** The address or number that codes are sent to, if they are. */
  address?: string | undefined;
}

interface IdentitySelection {
  connection?: string | undefined;
  identity_user_id?: string | undefined;
}

/** A method that was begun, with what its type needs to be confirmed. */
interface BegunMethod {
  id: string;
  authSession: string;
  /** The password policy of the connection. */
  policy?: object | undefined;
  /** For `navigator.credentials.create` (WebAuthn Level 3 §5.1.10). */
  options?: object | undefined;
  /** The URI of the QR code, for an authenticator app or a device. */
  barcodeUri?: string | undefined;
  /** The secret of an authenticator app, to be typed. */
  secret?: string | undefined;
  /** With the first authenticator, or when a recovery code was asked for. */
  recoveryCode?: string | undefined;
}

/**
 * Begins to add a method: a passkey, a second factor, or a new password.
 * @throws AuthError 401 when the login is not fresh; 400 when the method is off, cannot be added here or is one too many,
 *   or the address is invalid; 429; 503 when a code cannot be sent.
 */
export function beginMethod(
  deps: MethodDependencies,
  actor: Actor,
  { type, address, ...selection }: NewMethod,
): Promise<BegunMethod> {
  if (type === 'password') return beginPassword(deps, actor, selection);
  if (type === 'passkey') return beginPasskey(deps, actor, selection);
  return beginFactor(deps, actor, type, address);
}

interface MethodProof {
  id: string;
  authSession: string;
  /** A code as it was typed. */
  code?: string | undefined;
  /** The result of `navigator.credentials.create` in the format of `toJSON`, as JSON. */
  response?: string | undefined;
  password?: string | undefined;
}

/**
 * Confirms a method that was begun, by its first use. Of several concurrent calls one succeeds.
 * @throws AuthError 401 as {@link requireLoginFor}; 400 `invalid_grant` when the proof is wrong or the `auth_session` is
 *   unknown, used, expired or another login's; 400 when the password is not allowed, after which the `auth_session`
 *   stays valid; 400 `authorization_pending` while a device has not answered; 429; 503.
 */
export async function confirmMethod(
  deps: MethodDependencies,
  ctx: Context,
  actor: Actor,
  proof: MethodProof,
): Promise<MethodView> {
  const { id, authSession, response, password } = proof;
  if (id.startsWith(PASSWORD_PREFIX)) {
    if (password === undefined) throw invalidField('new_password', 'Required');
    return setPassword(deps, ctx, actor, { id, authSession, password });
  }
  if (id !== NEW_PASSKEY) return confirmFactor(deps, actor, proof);
  if (response === undefined) throw invalidField('authn_response', 'Required');
  return confirmPasskey(deps, actor, { authSession, response });
}

/** Returns the same error for every unusable `auth_session`. */
export function unknownSession(): AuthError {
  return new AuthError(400, 'invalid_grant', 'Invalid or expired auth_session.');
}

/** Tells the user by mail that a method was added or removed, in case somebody else did it. */
async function notifyOfMethod(
  deps: Pick<FactorDependencies, 'config' | 'messages' | 'rateLimits'>,
  { user, clientId, ip, languages }: Actor,
  kind: 'method_added' | 'method_removed',
  method: MethodType,
): Promise<void> {
  const application = await deps.config.client(clientId);
  await sendMethodNotice(deps, kind, { application, user, languages, ip, method });
}

// Passkeys.

async function beginPasskey(
  deps: MethodDependencies,
  actor: Actor,
  selection: IdentitySelection,
): Promise<BegunMethod> {
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
    id: NEW_PASSKEY,
    authSession,
    options: creationOptions(await relyingPartyOf(deps, clientId, origin), registration),
  };
}

function isIdentity(
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
  return client === undefined ? serverRelyingParty(deps, origin) : relyingPartyFor(deps, client, origin);
}

async function confirmPasskey(
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
    type: passkeyEvents.passkey_enrolled,
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
  return passkeyView(stored);
}

function invalidPasskey(): AuthError {
  return new AuthError(400, 'invalid_grant', 'The passkey is not good.');
}

// Passwords. As with every new password, all sessions of the user end, including the present one.

const PASSWORD_PURPOSE = 'account_password';

/** The login that may set the password, and the identity that it is for. */
interface StoredPasswordChange {
  login: string;
  clientId: string;
  identityId: string;
}

async function beginPassword(
  deps: MethodDependencies,
  actor: Actor,
  selection: IdentitySelection,
): Promise<BegunMethod> {
  await requireLoginFor(deps, actor, 'password');
  const { user, clientId, login } = actor;
  const { identity, connection } = await identityFor(deps, actor, selection);
  const { id: identityId } = identity;
  const change: StoredPasswordChange = { login: login.id, clientId, identityId };
  const { secret } = await deps.challenges.issueTicket({
    purpose: PASSWORD_PURPOSE,
    // One for each login. The next one replaces it.
    subject: `${user.id}\n${login.id}`,
    userId: user.id,
    ttlSeconds: FRESH_SECONDS,
    data: {
      ...mainIdentifier(identity),
      connection: connection.name,
      clientId,
      credentialVersion: login.credentialVersion,
      ticket: { includeEmail: false, marksVerified: false },
      kept: change,
    },
  });
  return {
    id: passwordId(identityId),
    authSession: secret,
    policy: publishedPolicy(databaseOptions(connection)),
  };
}

async function identityFor(
  deps: MethodDependencies,
  { user }: Actor,
  selection: IdentitySelection,
): Promise<{ identity: Identity; connection: Connection }> {
  for (const identity of await passwordsOf(deps, user)) {
    const connection = isIdentity(identity, selection)
      ? await deps.config.connection(identity.connection)
      : undefined;
    if (connection !== undefined && changesPasswords(connection)) return { identity, connection };
  }
  throw invalidField('connection', 'There is no password of this user that can be changed here.');
}

async function setPassword(
  deps: MethodDependencies,
  ctx: Context,
  actor: Actor,
  { id, authSession, password }: { id: string; authSession: string; password: string },
): Promise<MethodView> {
  await requireLoginFor(deps, actor, 'completion');
  const { user, clientId, login, languages } = actor;
  const open = await openReset(deps, authSession, PASSWORD_PURPOSE);
  const change = open?.verifiedChallenge.data.kept as StoredPasswordChange | undefined;
  if (open === undefined || change === undefined || open.user.id !== user.id) throw unknownSession();
  if (change.login !== login.id || change.clientId !== clientId || passwordId(change.identityId) !== id)
    throw unknownSession();
  const facts = { caller: { ip: ctx.ip }, languages, asker: requestContextOf(ctx, clientId) };
  // docs/understand/decisions/console-account.md#a-new-password-by-the-my-account-api-is-a-change-by-a-user-who-has-just-logged-in-not-a-reset
  const reset = { ticket: authSession, purpose: PASSWORD_PURPOSE, password, by: user, ...facts };
  const refusal = await resetPassword(deps, open, reset);
  if (refusal !== undefined) throw refusalError(refusal);
  const [now, identities] = await Promise.all([deps.users.get(user.id), deps.users.identitiesOf(user.id)]);
  const identity = identities.find((one) => one.id === change.identityId);
  if (now === undefined || identity === undefined) throw unknownSession();
  return passwordView(now, identity);
}

const REASONS: Partial<Record<ResetRefusal['reason'], string>> = {
  'weak-password': 'The password is too weak.',
  'common-password': 'The password is too common.',
  'personal-password': 'The password contains personal information.',
  'used-password': 'The password was used before.',
};

function refusalError({ reason }: ResetRefusal): AuthError {
  if (reason === 'expired') return unknownSession();
  if (reason === 'not-changed')
    return new AuthError(503, 'temporarily_unavailable', 'The password could not be changed. Begin again.');
  return invalidField('new_password', REASONS[reason] ?? 'The password cannot be used.');
}

// Second factors.

const FACTOR_PURPOSE = 'account_enrollment';
const ENROLLMENT_SECONDS = 600;

/** What is stored with an `auth_session`. */
interface StoredEnrollment {
  /** The login that began the enrolment. */
  login: string;
  clientId: string;
  /** The id of the authenticator that was begun. */
  id: string;
  type: MethodType;
  oobCode?: string;
  /** The hash of a new recovery code. */
  codeHash?: string;
}

/** Returns the second factors that are on, by their published types. */
export function factorsOf(deps: Pick<MethodDependencies, 'config' | 'factors'>): Map<MethodType, Factor> {
  return new Map(enabledFactors(deps).map((factor) => [methodTypeOf(factor.kind), factor]));
}

async function beginFactor(
  deps: MethodDependencies,
  actor: Actor,
  type: MethodType,
  address: string | undefined,
): Promise<BegunMethod> {
  await requireLoginFor(deps, actor, 'factor');
  const factor = factorsOf(deps).get(type);
  if (factor === undefined) throw notOffered(type);
  if (factor.recovers === true) return startRecoveryCode(deps, actor, type);
  const { requestedAs = [], creationOptions } = factor.enroll ?? {};
  if (requestedAs.length === 0 && creationOptions === undefined) throw notOffered(type);
  const request = factorRequestOf(actor);
  const started: StartedEnrollment = await enroll(deps, request, { factor, address });
  const { authenticator, barcodeUri, secret, recoveryCode } = started;
  const context = { authenticatorId: authenticator.id, login: actor.login.id, at: actor.origin };
  const creation = await creationOptions?.(deps, request, context);
  const { oobCode } = creation ?? started;
  const enrollment = { id: authenticator.id, type, ...(oobCode !== undefined && { oobCode }) };
  const authSession = await storeEnrollment(deps, actor, enrollment);
  return { ...enrollment, authSession, barcodeUri, secret, recoveryCode, options: creation?.options };
}

function notOffered(type: MethodType): AuthError {
  return invalidField('type', `The factor ${type} is not enabled.`);
}

/** Makes a recovery code for a user with a second factor. It replaces the user's present one when it is verified. */
async function startRecoveryCode(
  deps: MethodDependencies,
  actor: Actor,
  type: MethodType,
): Promise<BegunMethod> {
  if ((await activeAuthenticators(deps, actor.user)).length === 0)
    throw invalidField('type', 'A recovery code takes a factor that it recovers.');
  const { code, codeHash } = prepareRecoveryCode(deps.random);
  const enrollment = { id: `${SECOND_FACTORS['recovery-code'].prefix}|new`, type, codeHash };
  return { ...enrollment, authSession: await storeEnrollment(deps, actor, enrollment), recoveryCode: code };
}

async function storeEnrollment(
  deps: MethodDependencies,
  { user, clientId, login }: Actor,
  started: Omit<StoredEnrollment, 'login' | 'clientId'>,
): Promise<string> {
  const enrollment: StoredEnrollment = { ...started, login: login.id, clientId };
  const { secret } = await deps.challenges.issueTicket({
    purpose: FACTOR_PURPOSE,
    // One enrolment of a type for each login. The next one replaces it.
    subject: `${user.id}\n${login.id}\n${started.type}`,
    userId: user.id,
    ttlSeconds: ENROLLMENT_SECONDS,
    data: { enrollment },
  });
  return secret;
}

async function confirmFactor(
  deps: MethodDependencies,
  actor: Actor,
  { id, authSession, code = '', response }: MethodProof,
): Promise<MethodView> {
  await requireLoginFor(deps, actor, 'completion');
  const enrollment = await enrollmentOf(deps, actor, authSession);
  if (enrollment === undefined || enrollment.id !== id) throw unknownSession();
  const { type, codeHash } = enrollment;
  const authenticatorId =
    codeHash === undefined
      ? await confirmByUse(deps, actor, { ...enrollment, authSession, code, response })
      : await replaceRecoveryCode(deps, actor, authSession, codeHash);
  // The confirmation of any other factor has sent the mail already.
  if (codeHash !== undefined) await notifyOfMethod(deps, actor, 'method_added', type);
  const authenticator = await deps.authenticators.get(authenticatorId);
  if (authenticator === undefined) throw noMethod();
  return authenticatorView(authenticator);
}

async function enrollmentOf(
  { challenges }: MethodDependencies,
  { user, clientId, login }: Actor,
  authSession: string,
): Promise<StoredEnrollment | undefined> {
  const verifiedChallenge = await challenges.peekTicket(FACTOR_PURPOSE, authSession);
  const enrollment = verifiedChallenge?.data.enrollment as StoredEnrollment | undefined;
  const isTheirs =
    verifiedChallenge?.userId === user.id &&
    enrollment?.login === login.id &&
    enrollment.clientId === clientId;
  return isTheirs ? enrollment : undefined;
}

/** @returns its id. */
async function confirmByUse(
  deps: MethodDependencies,
  actor: Actor,
  {
    id,
    type,
    authSession,
    oobCode = '',
    code: typed,
    response,
  }: StoredEnrollment & MethodProof & { code: string },
): Promise<string> {
  const factor = factorsOf(deps).get(type);
  if (factor === undefined) throw notOffered(type);
  const isCreatedInBrowser = factor.enroll?.creationOptions !== undefined;
  if (isCreatedInBrowser && response === undefined) throw invalidField('authn_response', 'Required');
  const code = isCreatedInBrowser ? (response ?? '') : typed;
  const claimant = claimantOf(actor, {
    authenticatorId: id,
    spend: async () => (await deps.challenges.spendTicket(FACTOR_PURPOSE, authSession)) !== undefined,
  });
  const verification = await factor.verify(deps, claimant, { code, oobCode });
  if (verification.ok) return id;
  if (verification.outcome === 'pending' || verification.outcome === 'too-fast')
    throw new AuthError(400, 'authorization_pending', 'The device has not answered yet.');
  throw new AuthError(400, 'invalid_grant', 'The code is wrong, used or too old.');
}

async function replaceRecoveryCode(
  deps: MethodDependencies,
  { user, login }: Actor,
  authSession: string,
  codeHash: string,
): Promise<string> {
  if ((await deps.challenges.spendTicket(FACTOR_PURPOSE, authSession)) === undefined) throw unknownSession();
  const still = [deps.users.stillWrite(user)];
  await deps.factorChanges.apply(user.id, login.id, () => saveRecoveryCode(deps, user.id, codeHash, still));
  return recoveryCodeId(user.id);
}
