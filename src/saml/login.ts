// Logging in to a service provider: the request goes to the hosted login as one of our own, and what comes
// of it goes back as a Response.
import type { Context } from 'koa';
import type { InternalLogin, InternalOutcome, InternalRequests } from '../engine/internal-requests.ts';
import { type Clock, epochSeconds, type Random } from '../http/runtime.ts';
import type { SamlSessionRecord } from '../store/collections.ts';
import type { Store } from '../store/contract.ts';
import type { Directory } from '../tenant/directory.ts';
import type { Users } from '../users/users.ts';
import { attributesOf, type NameId, nameIdOf } from './attributes.ts';
import { audienceOf, isOwnName } from './audience.ts';
import type { Outgoing } from './bindings.ts';
import { acrValues, statedContext } from './context.ts';
import { newId } from './message.ts';
import { NAME_ID, STATUS } from './names.ts';
import type { IdentityProvider } from './provider.ts';
import type { LoginRequest } from './request.ts';
import { failureResponse, type Login, loginResponse, type ResponseFrame, type Status } from './response.ts';
import { samlSessions } from './sessions.ts';
import type { ServiceProvider } from './settings.ts';

export interface SamlDependencies {
  store: Store;
  directory: Directory;
  users: Users;
  internalRequests: InternalRequests;
  idp: IdentityProvider;
  clock: Clock;
  /** What messages are dated by. */
  wallClock: Clock;
  random: Random;
}

/** Parameters of the query that the hosted login is told (wire-details 5.1). */
const FORWARDED = ['connection', 'organization', 'login_hint', 'ui_locales'];

/** @returns the address at which the login begins. */
export function beginLogin(
  { internalRequests }: SamlDependencies,
  ctx: Context,
  provider: ServiceProvider,
  request: LoginRequest,
): Promise<string> {
  const forwarded = FORWARDED.map((name) => [name, ctx.query[name]] as const).filter(
    (entry): entry is [string, string] => typeof entry[1] === 'string',
  );
  const prompt = request.isPassive ? 'none' : request.forceAuthn ? 'login' : undefined;
  return internalRequests.begin(ctx, {
    clientId: provider.clientId,
    params: {
      // A name that is none to people would only be in their way.
      login_hint: request.subject?.includes('@') === true ? request.subject : undefined,
      ...Object.fromEntries(forwarded),
      prompt,
      // With `none` there is no asking again: a session that exists is then not enough (Core §3.4.1).
      max_age: request.isPassive && request.forceAuthn ? '0' : undefined,
      acr_values: acrValues(request),
    },
    data: { request },
  });
}

/** What the service provider is told at the end of a login. */
export async function answerLogin(
  deps: SamlDependencies,
  provider: ServiceProvider,
  { data, login }: InternalOutcome,
): Promise<Outgoing> {
  const request = data.request as LoginRequest;
  const frame = await frameOf(deps, provider, request);
  const markup =
    'error' in login
      ? failure(deps, provider, frame, statusOf(login))
      : await success(deps, provider, frame, request, login);
  return { kind: 'response', markup, relayState: request.relayState, location: request.acsUrl };
}

/** An answer without a login: what is asked for cannot be had. */
export async function refuse(
  deps: SamlDependencies,
  provider: ServiceProvider,
  request: LoginRequest,
  status: Status,
): Promise<Outgoing> {
  const markup = failure(deps, provider, await frameOf(deps, provider, request), status);
  return { kind: 'response', markup, relayState: request.relayState, location: request.acsUrl };
}

async function frameOf(
  { idp, wallClock }: SamlDependencies,
  provider: ServiceProvider,
  request: LoginRequest,
): Promise<ResponseFrame> {
  return {
    issuer: await idp.entityId(provider.clientId),
    now: epochSeconds(wallClock),
    inResponseTo: request.id,
    destination: provider.destination ?? request.acsUrl,
  };
}

function failure(deps: SamlDependencies, provider: ServiceProvider, frame: ResponseFrame, status: Status) {
  return failureResponse(frame, status, deps.idp.signer(provider), deps.random);
}

const DETAIL: Record<string, string> = {
  login_required: STATUS.noPassive,
  interaction_required: STATUS.noPassive,
  account_selection_required: STATUS.noPassive,
  consent_required: STATUS.noPassive,
  access_denied: STATUS.requestDenied,
  unauthorized: STATUS.authnFailed,
};

function statusOf({ error, description }: { error: string; description: string }): Status {
  const detail = DETAIL[error];
  return {
    code: STATUS.responder,
    ...(detail === undefined ? {} : { detail }),
    ...(description === '' ? {} : { message: description }),
  };
}

async function success(
  deps: SamlDependencies,
  provider: ServiceProvider,
  frame: ResponseFrame,
  request: LoginRequest,
  login: InternalLogin,
): Promise<string> {
  const before = await samlSessions(deps.store).find(provider.clientId, login.sessionUid);
  const transient = before?.name_id.transient ?? newId(deps.random);
  const said = await sayable(deps, provider, frame, { request, login, transient });
  if ('refused' in said) return failure(deps, provider, frame, said.refused);
  const sessionIndex = before?.id ?? newId(deps.random);
  const issuer = request.issuer ?? before?.issuer;
  const isNoted = await noteSession(deps, provider, login, {
    id: sessionIndex,
    name_id: { ...said.nameId, transient },
    ...(issuer === undefined ? {} : { issuer }),
  });
  // Another tab was first; what it noted is there by now.
  if (!isNoted) return success(deps, provider, frame, request, login);
  const recipient = provider.recipient ?? request.acsUrl;
  return loginResponse(
    frame,
    { ...said, recipient, sessionIndex, authTime: login.authTime },
    provider,
    deps.idp.signer(provider),
    deps.random,
  );
}

type Said = Pick<Login, 'nameId' | 'attributes' | 'context' | 'audience'>;

const refusal = (detail: string, message?: string): { refused: Status } => ({
  refused: { code: STATUS.responder, detail, ...(message === undefined ? {} : { message }) },
});

/** What can be said of a login in the way it was asked for, or the status that says why nothing can. */
async function sayable(
  { users, directory }: SamlDependencies,
  provider: ServiceProvider,
  { issuer: entityId }: ResponseFrame,
  { request, login, transient }: { request: LoginRequest; login: InternalLogin; transient: string },
): Promise<Said | { refused: Status }> {
  const user = await users.get(login.userId);
  if (user === undefined) return refusal(STATUS.unknownPrincipal);
  // Judged again: applications may have been named while the user logged in.
  const audience = await audienceOf(directory, provider, request.issuer, entityId);
  if (audience === undefined) return refusal(STATUS.requestDenied);
  const context = statedContext(request.classRefs, login.amr, provider.authnContextClassRef);
  if (context === undefined) return refusal(STATUS.noAuthnContext);
  const attributes = attributesOf(user, provider, directory.settings().vendor_host);
  const named = nameIdOf(user, attributes, provider, request.nameIdFormat, transient);
  if (named === undefined) {
    const isUnproved = request.nameIdFormat === NAME_ID.email;
    return refusal(
      STATUS.invalidNameIdPolicy,
      isUnproved ? 'The user has no verified e-mail address.' : undefined,
    );
  }
  const nameId = await qualified(directory, provider, named, request, audience);
  if (nameId === undefined) return refusal(STATUS.invalidNameIdPolicy);
  const isMeant = request.subject === undefined || request.subject === nameId.value;
  return isMeant ? { nameId, attributes, context, audience } : refusal(STATUS.unknownPrincipal);
}

/** A name qualified for somebody else is not ours to give (Core §3.4.1.1). */
async function qualified(
  directory: Directory,
  provider: ServiceProvider,
  nameId: NameId,
  { spNameQualifier: qualifier, issuer }: LoginRequest,
  audience: string,
): Promise<NameId | undefined> {
  if (qualifier === undefined || qualifier === '') return nameId;
  const isOwn =
    qualifier === audience || (qualifier === issuer && (await isOwnName(directory, provider, qualifier)));
  return isOwn ? { ...nameId, spNameQualifier: qualifier } : undefined;
}

function noteSession(
  { store, directory }: SamlDependencies,
  { clientId }: ServiceProvider,
  login: InternalLogin,
  known: Pick<SamlSessionRecord, 'id' | 'issuer' | 'name_id'>,
): Promise<boolean> {
  const hours = directory.settings().tenant.session_lifetime;
  return samlSessions(store).note({
    ...known,
    client_id: clientId,
    session_uid: login.sessionUid,
    user_id: login.userId,
    expiresAt: Math.ceil(login.authTime + hours * 3600),
  });
}
