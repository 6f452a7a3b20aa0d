// Login at a service provider: the hosted login runs as a delegated login, and its outcome becomes a Response.
// docs/understand/decisions/saml.md#a-saml-login-is-an-authorization-request-of-our-own

import { createPublicKey } from 'node:crypto';
import type { Context } from 'koa';
import type { AssertionChanges } from '../../capabilities/actions/assertion-methods.ts';
import type { OutgoingMessage } from '../../capabilities/saml-messages/bindings.ts';
import { type NameId, nameIdFormatOf } from '../../capabilities/saml-messages/name-id.ts';
import { STATUS } from '../../capabilities/saml-messages/names.ts';
import { newId } from '../../capabilities/saml-messages/saml-message.ts';
import type { ResponseFrame, Status } from '../../capabilities/saml-messages/status-response.ts';
import { badMessage } from '../../capabilities/saml-messages/xml.ts';
import { requestExpired } from '../../engine/authorize/waiting-requests.ts';
import type { CustomClaims } from '../../engine/claims/claims.ts';
import type { Sessions } from '../../engine/session/sessions.ts';
import type { CodeLogin } from '../../engine/token/server-login-codes.ts';
import { rsaCertificate, rsaPrivateKey, rsaPublicKey } from '../../records/connections/samlp.ts';
import type { SamlSessionRecord } from '../../records/state/saml-sessions.ts';
import {
  MFA_POLICY,
  meetsKnownClass,
  needsFactor,
  UNSPECIFIED,
} from '../../records/users/authentication-classes.ts';
import { type Clock, epochSeconds } from '../../runtime/clock.ts';
import type { Random } from '../../runtime/secrets.ts';
import type { Store } from '../../store/contract.ts';
import type { Config } from '../../tenant/config.ts';
import { primaryIdentity } from '../../users/changes.ts';
import { isUnattended } from '../../users/login.ts';
import type { Users } from '../../users/users.ts';
import type { ServerLoginOutcome, ServerLogins } from '../flow/server-logins.ts';
import { type Attribute, attributesOf, nameIdOf } from './attributes.ts';
import type { IdentityProvider } from './identity-provider.ts';
import type { LoginRequest } from './request.ts';
import { type Assertion, failureResponse, loginResponse } from './response.ts';
import { audienceOf, isOwnName } from './saml-audience.ts';
import type { ServiceProvider } from './service-provider.ts';
import { samlSessions } from './service-provider-sessions.ts';

// Applies what actions set for a response, within what the application's configuration allows.

/** Settings that actions may have set. */
type Settings = { [S in keyof AssertionChanges['settings']]?: AssertionChanges['settings'][S] | undefined };

/**
 * @returns undefined when the options cannot be used: an audience that may be another application's, a URL that is not
 *   among its assertion consumer URLs, a certificate that is not that of the key, two different keys to encrypt for, or
 *   a certificate that its request was not verified with.
 */
async function withSettings(
  config: Config,
  sp: ServiceProvider,
  { settings }: Pick<AssertionChanges, 'settings'>,
  { isRequested }: { isRequested: boolean },
): Promise<ServiceProvider | undefined> {
  const { cert, key, signingCert, encryptionCert, encryptionPublicKey, ...options } = settings;
  const { audience, recipient, destination } = options;
  const isRegistered = [recipient, destination].every((one) => one === undefined || sp.acsUrls.includes(one));
  if (!isRegistered) return undefined;
  if (audience !== undefined && audience !== sp.audience && !(await isOwnName(config, sp, audience)))
    return undefined;
  // The request was read before the action ran. It counts as signed with the key if the application's own
  // configuration has demanded that.
  const isVerified = signingCert === undefined || !isRequested || isVerifiedWith(sp, signingCert);
  const signing = signingKeyOf({ cert, key });
  const encryption = encryptionKeyOf({ encryptionCert, encryptionPublicKey });
  if (!isVerified || signing === 'unusable' || encryption === 'unusable') return undefined;
  return { ...sp, ...options, ...signing, ...encryption };
}

function isVerifiedWith({ verifier }: ServiceProvider, signingCert: string): boolean {
  const key = rsaPublicKey(signingCert);
  return verifier?.publicKeys.some((one) => one.equals(key)) === true;
}

function signingKeyOf({
  cert,
  key,
}: Pick<Settings, 'cert' | 'key'>): Pick<ServiceProvider, 'signingKey'> | 'unusable' {
  if (cert === undefined && key === undefined) return {};
  if (cert === undefined || key === undefined) return 'unusable';
  const privateKey = rsaPrivateKey(key);
  if (!createPublicKey(privateKey).equals(rsaPublicKey(cert))) return 'unusable';
  return { signingKey: { certificate: rsaCertificate(cert), privateKey } };
}

function encryptionKeyOf({
  encryptionCert,
  encryptionPublicKey,
}: Pick<Settings, 'encryptionCert' | 'encryptionPublicKey'>):
  | Partial<Pick<ServiceProvider, 'encryptionKey'>>
  | 'unusable' {
  const [first, ...others] = [encryptionCert, encryptionPublicKey].flatMap((text) =>
    text === undefined ? [] : [rsaPublicKey(text)],
  );
  if (first === undefined) return {};
  return others.every((one) => one.equals(first)) ? { encryptionKey: first } : 'unusable';
}

/** Returns the attributes with those that actions set, and without those that they removed. */
function withAttributes(
  attributes: readonly Attribute[],
  assertion: AssertionChanges | undefined,
): Attribute[] {
  const overrides = assertion?.attributes ?? {};
  const others = attributes.filter(({ name }) => !Object.hasOwn(overrides, name));
  const added = Object.entries(overrides).flatMap(([name, value]): Attribute[] => {
    const values = value === null ? [] : [value].flat();
    return values.length === 0 ? [] : [{ name, values, nameIdValue: values[0] }];
  });
  return [...others, ...added];
}

// Authentication contexts (SAML AuthnContext §3.4) as far as the login's methods (RFC 8176) prove them.

/** Returns the `acr_values` of the login: a second factor when every requested context needs one. */
export function acrValues({ classRefs: requested = [] }: LoginRequest): string | undefined {
  return requested.length > 0 && requested.every(needsFactor) ? MFA_POLICY : undefined;
}

// docs/understand/decisions/saml.md#requestedauthncontext-is-honoured
/**
 * Returns the context to state for a login.
 * @param requested acceptable contexts; undefined for any.
 * @param amr the login's methods.
 * @param configured the application's own; a context that is unknown here is stated because its administrator
 *   configured it.
 * @returns undefined when no acceptable context was met.
 */
function statedContext(
  requested: readonly string[] | undefined,
  amr: readonly string[],
  configured: string,
): string | undefined {
  const isMet = (one: string) => meetsKnownClass(one, amr) ?? one === configured;
  if (requested === undefined) return isMet(configured) ? configured : UNSPECIFIED;
  return requested.find(isMet);
}

export interface SamlDependencies {
  store: Store;
  config: Config;
  users: Users;
  customClaims: CustomClaims;
  samlLogins: ServerLogins;
  sessions: Sessions;
  idp: IdentityProvider;
  clock: Clock;
  /** Dates messages. */
  wallClock: Clock;
  random: Random;
}

/** Query parameters that are passed on to the hosted login. */
const FORWARDED = ['connection', 'organization', 'login_hint', 'login_ticket', 'ui_locales'];

/** @returns the URL to redirect to. */
export function beginLogin(
  { samlLogins, wallClock }: SamlDependencies,
  ctx: Context,
  sp: ServiceProvider,
  request: LoginRequest,
): Promise<string> {
  const forwarded = FORWARDED.map((name) => [name, ctx.query[name]] as const).filter(
    (entry): entry is [string, string] => typeof entry[1] === 'string',
  );
  const prompt = request.isPassive ? 'none' : request.forceAuthn ? 'login' : undefined;
  return samlLogins.start(ctx, {
    clientId: sp.clientId,
    params: {
      // An opaque NameID would only confuse users in the login field.
      login_hint: request.subject?.includes('@') === true ? request.subject : undefined,
      ...Object.fromEntries(forwarded),
      prompt,
      // Passive and forced: an existing session must not answer (Core §3.4.1).
      max_age: request.isPassive && request.forceAuthn ? '0' : undefined,
      acr_values: acrValues(request),
    },
    data: { ...({ request, begunAt: epochSeconds(wallClock) } satisfies PendingLogin) },
  });
}

/** Stored with the delegated login. */
interface PendingLogin {
  request: LoginRequest;
  /** Epoch seconds. */
  begunAt: number;
}

/** @throws AuthError 400 when the assertion consumer URL is no longer the application's. */
export async function answerLogin(
  deps: SamlDependencies,
  sp: ServiceProvider,
  { data, login }: ServerLoginOutcome,
): Promise<OutgoingMessage> {
  // {@link beginLogin} has stored this data.
  const { request, begunAt } = data as unknown as PendingLogin;
  if (!sp.acsUrls.includes(request.acsUrl)) {
    throw badMessage('The address of the response is not allowed any more.');
  }
  const changes = 'error' in login ? undefined : login.assertion;
  const isRequested = request.id !== undefined;
  const provider = changes === undefined ? sp : await withSettings(deps.config, sp, changes, { isRequested });
  const frame = await frameOf(deps, provider ?? sp, request);
  const markup = await (provider === undefined
    ? failure(deps, sp, frame, { code: STATUS.responder, detail: STATUS.requestDenied })
    : responseOf(deps, provider, frame, { request, begunAt, login }));
  const relayState = changes?.settings.relayState ?? request.relayState;
  return { kind: 'response', markup, relayState, location: request.acsUrl };
}

function responseOf(
  deps: SamlDependencies,
  sp: ServiceProvider,
  frame: ResponseFrame,
  { request, begunAt, login }: PendingLogin & Pick<ServerLoginOutcome, 'login'>,
): string | Promise<string> {
  if ('error' in login) return failure(deps, sp, frame, statusOf(login));
  const stale = staleness(request, login, begunAt);
  return stale === undefined ? success(deps, sp, frame, request, login) : failure(deps, sp, frame, stale);
}

// docs/understand/decisions/saml.md#forceauthn-is-checked-at-the-end-of-the-login
/**
 * Enforces ForceAuthn (Core §3.4.1). The parameters that request a new login pass through the browser, where the
 * user can remove them.
 */
function staleness(
  { forceAuthn, isPassive }: LoginRequest,
  login: CodeLogin,
  begunAt: number,
): Status | undefined {
  if (!forceAuthn || (login.authTime >= begunAt && !isUnattended(login))) return undefined;
  return { code: STATUS.responder, detail: isPassive ? STATUS.noPassive : STATUS.authnFailed };
}

/** Returns the message that rejects a request without a login. */
export async function refuse(
  deps: SamlDependencies,
  sp: ServiceProvider,
  request: LoginRequest,
  status: Status,
): Promise<OutgoingMessage> {
  const markup = await failure(deps, sp, await frameOf(deps, sp, request), status);
  return { kind: 'response', markup, relayState: request.relayState, location: request.acsUrl };
}

async function frameOf(
  { idp, wallClock }: SamlDependencies,
  sp: ServiceProvider,
  request: LoginRequest,
): Promise<ResponseFrame> {
  return {
    issuer: sp.issuer ?? (await idp.entityId(sp.clientId)),
    now: epochSeconds(wallClock),
    inResponseTo: request.id,
    destination: sp.destination ?? request.acsUrl,
  };
}

function failure(deps: SamlDependencies, sp: ServiceProvider, frame: ResponseFrame, status: Status) {
  return failureResponse(frame, status, deps.idp.signer(sp), deps.random);
}

const STATUS_DETAILS: Record<string, string> = {
  login_required: STATUS.noPassive,
  interaction_required: STATUS.noPassive,
  account_selection_required: STATUS.noPassive,
  consent_required: STATUS.noPassive,
  access_denied: STATUS.requestDenied,
  unauthorized: STATUS.authnFailed,
};

function statusOf({ error, description }: { error: string; description: string }): Status {
  const detail = STATUS_DETAILS[error];
  return {
    code: STATUS.responder,
    ...(detail === undefined ? {} : { detail }),
    ...(description === '' ? {} : { message: description }),
  };
}

async function success(
  deps: SamlDependencies,
  sp: ServiceProvider,
  frame: ResponseFrame,
  request: LoginRequest,
  login: CodeLogin,
): Promise<string> {
  const existing = await samlSessions(deps.store).find(sp.clientId, login.sessionUid);
  const transient = existing?.name_id.transient ?? newId(deps.random);
  const content = await assertionContent(deps, sp, frame, { request, login, transient });
  if ('failure' in content) return failure(deps, sp, frame, content.failure);
  // docs/understand/decisions/saml.md#a-sessionindex-is-random-and-differs-for-each-application
  const sessionIndex = existing?.id ?? newId(deps.random);
  const issuer = request.issuer ?? existing?.issuer;
  const isSaved = await saveSession(deps, sp, login, {
    id: sessionIndex,
    name_id: { ...content.nameId, transient },
    ...(issuer === undefined ? {} : { issuer }),
  });
  // Another tab was first: use the session that it stored.
  if (!isSaved) return success(deps, sp, frame, request, login);
  await checkStillOpen(deps, login);
  const recipient = sp.recipient ?? request.acsUrl;
  return loginResponse(
    frame,
    { ...content, recipient, sessionIndex, authTime: login.authTime },
    sp,
    deps.idp.signer(sp),
    deps.random,
  );
}

/**
 * Fails the login if its session ended before its service provider was stored, because that service provider was
 * then not logged out.
 * @throws AuthError 400
 */
async function checkStillOpen({ store, sessions }: SamlDependencies, login: CodeLogin): Promise<void> {
  if (await sessions.isOpen(login.sessionUid)) return;
  await samlSessions(store).takeAll(login.sessionUid);
  throw requestExpired();
}

function saveSession(
  { store, config }: SamlDependencies,
  { clientId }: ServiceProvider,
  login: CodeLogin,
  fields: Pick<SamlSessionRecord, 'id' | 'issuer' | 'name_id'>,
): Promise<boolean> {
  const hours = config.settings().tenant.session_lifetime;
  return samlSessions(store).save({
    ...fields,
    client_id: clientId,
    session_uid: login.sessionUid,
    user_id: login.userId,
    expiresAt: Math.ceil(login.authTime + hours * 3600),
  });
}

// The content of an assertion: subject, attributes, audience and authentication context.

interface ContentDependencies {
  config: Config;
  users: Users;
  customClaims: CustomClaims;
}

type AssertionContent = Pick<Assertion, 'nameId' | 'attributes' | 'context' | 'audience'>;

const refusal = (detail: string, message?: string): { failure: Status } => ({
  failure: { code: STATUS.responder, detail, ...(message === undefined ? {} : { message }) },
});

/**
 * Returns the content of an assertion that meets the request, or the status that says why there is none.
 * @param sp the service provider, with what actions set for this response.
 * @param issuer our entity ID, which issues the response.
 * @param transient the session's transient NameID.
 */
async function assertionContent(
  { users, config, customClaims }: ContentDependencies,
  sp: ServiceProvider,
  { issuer: entityId }: ResponseFrame,
  { request, login, transient }: { request: LoginRequest; login: CodeLogin; transient: string },
): Promise<AssertionContent | { failure: Status }> {
  const user = await users.get(login.userId);
  if (user === undefined) return refusal(STATUS.unknownPrincipal);
  // Checked again: the configuration may have changed while the user logged in.
  const audience = await audienceOf(config, sp, request.issuer, entityId);
  if (audience === undefined) return refusal(STATUS.requestDenied);
  const context = statedContext(request.classRefs, login.amr, sp.authnContextClassRef);
  if (context === undefined) return refusal(STATUS.noAuthnContext);
  const identity = sp.mapIdentities ? primaryIdentity(await users.identitiesOf(user.id)) : undefined;
  const declared = await customClaims.list({ to: 'saml', clientId: sp.clientId, userId: user.id });
  const userAttributes = attributesOf(user, identity, sp, {
    vendorHost: config.settings().vendor_host,
    declared,
  });
  const attributes = withAttributes(userAttributes, login.assertion);
  if (isTooLarge(attributes)) {
    return refusal(STATUS.requestDenied, 'The user has too many attributes for an assertion.');
  }
  const unqualified = nameIdOf(user, attributes, sp, request.nameIdFormat, transient);
  if (unqualified === undefined)
    return refusal(STATUS.invalidNameIdPolicy, nameIdFormatOf(request.nameIdFormat)?.lack);
  const nameId = await qualifyNameId(config, sp, unqualified, request, audience);
  if (nameId === undefined) return refusal(STATUS.invalidNameIdPolicy);
  const isRequestedSubject = request.subject === undefined || request.subject === nameId.value;
  return isRequestedSubject ? { nameId, attributes, context, audience } : refusal(STATUS.unknownPrincipal);
}

/**
 * What an assertion may contain: as much as our own reader takes, and so little that it is signed in some 50
 * milliseconds. Users may write what becomes an attribute themselves, such as a list in their metadata.
 */
const MAX_VALUES = 2_000;
/** Characters of all names and values. */
const MAX_LENGTH = 200_000;

function isTooLarge(attributes: readonly Attribute[]): boolean {
  const count = attributes.reduce((sum, { values }) => sum + values.length, 0);
  if (count > MAX_VALUES) return true;
  const lengthOf = ({ name, values }: Attribute) =>
    values.reduce<number>((sum, value) => sum + String(value).length, name.length);
  return attributes.reduce((sum, one) => sum + lengthOf(one), 0) > MAX_LENGTH;
}

/** Adds the SPNameQualifier of the request, unless it is another service provider's (Core §3.4.1.1). */
async function qualifyNameId(
  config: Config,
  sp: ServiceProvider,
  nameId: NameId,
  { spNameQualifier: qualifier, issuer }: LoginRequest,
  audience: string,
): Promise<NameId | undefined> {
  if (qualifier === undefined || qualifier === '') return nameId;
  const isOwn = qualifier === audience || (qualifier === issuer && (await isOwnName(config, sp, qualifier)));
  return isOwn ? { ...nameId, spNameQualifier: qualifier } : undefined;
}
