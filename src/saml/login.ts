// Logging in to a service provider: the request goes to the hosted login as one of our own, and what comes
// of it goes back as a Response.
import type { Context } from 'koa';
import { requestExpired } from '../engine/interaction.ts';
import type { InternalLogin, InternalOutcome, InternalRequests } from '../engine/internal-requests.ts';
import type { Sessions } from '../engine/sessions.ts';
import type { SamlSessionRecord } from '../records/saml-sessions.ts';
import { type Clock, epochSeconds } from '../runtime/clock.ts';
import type { Random } from '../runtime/random.ts';
import type { Store } from '../store/contract.ts';
import type { Config } from '../tenant/config.ts';
import type { Users } from '../users/users.ts';
import { contentOf } from './assertion.ts';
import type { Outgoing } from './bindings.ts';
import { acrValues } from './context.ts';
import type { IdentityProvider } from './identity-provider.ts';
import { newId } from './message.ts';
import { STATUS } from './names.ts';
import type { LoginRequest } from './request.ts';
import { failureResponse, loginResponse, type ResponseFrame, type Status } from './response.ts';
import type { ServiceProvider } from './service-provider.ts';
import { samlSessions } from './sessions.ts';
import { badMessage } from './xml.ts';

export interface SamlDependencies {
  store: Store;
  config: Config;
  users: Users;
  internalRequests: InternalRequests;
  sessions: Sessions;
  idp: IdentityProvider;
  clock: Clock;
  /** What messages are dated by. */
  wallClock: Clock;
  random: Random;
}

/** Parameters of the query that the hosted login is told. */
const FORWARDED = ['connection', 'organization', 'login_hint', 'ui_locales'];

/** @returns the address at which the login begins. */
export function beginLogin(
  { internalRequests, wallClock }: SamlDependencies,
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
    data: { ...({ request, begunAt: epochSeconds(wallClock) } satisfies Waiting) },
  });
}

/** What waits for the user with the login. */
interface Waiting {
  request: LoginRequest;
  /** Epoch seconds. */
  begunAt: number;
}

/**
 * What the service provider is told at the end of a login.
 * @throws AuthError 400 when the address of the answer is not the application's any more.
 */
export async function answerLogin(
  deps: SamlDependencies,
  provider: ServiceProvider,
  { data, login }: InternalOutcome,
): Promise<Outgoing> {
  const { request, begunAt } = data as unknown as Waiting;
  if (!provider.acsUrls.includes(request.acsUrl)) {
    throw badMessage('The address of the response is not allowed any more.');
  }
  const frame = await frameOf(deps, provider, request);
  const markup = await outcomeOf(deps, provider, frame, { request, begunAt, login });
  return { kind: 'response', markup, relayState: request.relayState, location: request.acsUrl };
}

function outcomeOf(
  deps: SamlDependencies,
  provider: ServiceProvider,
  frame: ResponseFrame,
  { request, begunAt, login }: Waiting & Pick<InternalOutcome, 'login'>,
): string | Promise<string> {
  if ('error' in login) return failure(deps, provider, frame, statusOf(login));
  const stale = staleness(request, login, begunAt);
  return stale === undefined
    ? success(deps, provider, frame, request, login)
    : failure(deps, provider, frame, stale);
}

/**
 * ForceAuthn is ours to see to (Core §3.4.1). The parameters that ask for a new login pass through the browser,
 * whose user can leave them out.
 */
function staleness(
  { forceAuthn, isPassive }: LoginRequest,
  { authTime }: InternalLogin,
  begunAt: number,
): Status | undefined {
  if (!forceAuthn || authTime >= begunAt) return undefined;
  return { code: STATUS.responder, detail: isPassive ? STATUS.noPassive : STATUS.authnFailed };
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
  const said = await contentOf(deps, provider, frame, { request, login, transient });
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
  await checkStillOpen(deps, login);
  const recipient = provider.recipient ?? request.acsUrl;
  return loginResponse(
    frame,
    { ...said, recipient, sessionIndex, authTime: login.authTime },
    provider,
    deps.idp.signer(provider),
    deps.random,
  );
}

/**
 * A session that ended while its login was noted told nobody of it: then there is no login.
 * @throws AuthError 400
 */
async function checkStillOpen({ store, sessions }: SamlDependencies, login: InternalLogin): Promise<void> {
  if (await sessions.isOpen(login.sessionUid)) return;
  await samlSessions(store).takeAll(login.sessionUid);
  throw requestExpired();
}

function noteSession(
  { store, config }: SamlDependencies,
  { clientId }: ServiceProvider,
  login: InternalLogin,
  known: Pick<SamlSessionRecord, 'id' | 'issuer' | 'name_id'>,
): Promise<boolean> {
  const hours = config.settings().tenant.session_lifetime;
  return samlSessions(store).note({
    ...known,
    client_id: clientId,
    session_uid: login.sessionUid,
    user_id: login.userId,
    expiresAt: Math.ceil(login.authTime + hours * 3600),
  });
}
