// Token exchange (RFC 8693) for tokens that we have issued: an application exchanges a token for another one of the
// same user, for the same API, with the same scopes or fewer; or an API, for one with which it calls another API on
// behalf of that user.
// docs/understand/decisions/tokens.md#a-token-of-ours-can-be-exchanged-only-for-less
// docs/understand/decisions/tokens.md#an-api-acts-for-a-user-at-another-api-by-a-grant-of-its-own
import type { JWTPayload } from 'jose';
import type { Context } from 'koa';
import type { KoaContextWithOIDC } from 'oidc-provider';
import { AuthError } from '../../http/errors.ts';
import { scopeValues } from '../../records/clients/apis.ts';
import { authenticationMethod } from '../../records/clients/client-authentication.ts';
import type { Client } from '../../records/collections.ts';
import { ON_BEHALF_OF } from '../../records/tenant/exchange-profile-schema.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Config } from '../../tenant/config.ts';
import type { Login } from '../../users/login.ts';
import type { User } from '../../users/user.ts';
import type { Users } from '../../users/users.ts';
import type { Organizations } from '../admission/admission.ts';
import { admissionError } from '../admission/admission.ts';
import { exchangeEvents, invalidTokenError, transferOf } from '../admission/exchange-context.ts';
import { completedRequest } from '../admission/second-factor.ts';
import { engineEvents } from '../base/engine-declaration.ts';
import { OIDC_SCOPES, toAudience, toResource } from '../base/request-extensions.ts';
import {
  grantOfToken,
  isTokenEnded,
  type PublishedKeys,
  readOwnToken,
  sessionOfToken,
} from '../base/signed-tokens.ts';
import { type CheckPossession, confirmationOf } from '../binding/proof-of-possession.ts';
import { TOKEN_EXCHANGE } from '../client/applications.ts';
import { transferAudience } from '../session/session-transfer.ts';
import type { Sessions } from '../session/sessions.ts';
import type { IdTokenReaders } from './sent-id-tokens.ts';
import type { GrantAnswer, GrantedLogin, GrantRequest } from './tokens.ts';

/** RFC 8693 §3. */
const TYPE = 'urn:ietf:params:oauth:token-type:';
export const ID_TOKEN = `${TYPE}id_token`;
export const ACCESS_TOKEN = `${TYPE}access_token`;

export interface ExchangeDependencies {
  issuer: string;
  keys: PublishedKeys;
  config: Config;
  users: Users;
  /** The clock that `exp` of tokens is compared with. */
  wallClock: Clock;
  readIdTokenSubject: IdTokenReaders['readIdTokenSubject'];
  /** @see Sessions.isOpen */
  isOpen(sid: string): Promise<boolean>;
  /** @see Sessions.grantOf */
  grantOf: Sessions['grantOf'];
  /** @see Organizations.isMember */
  isMember: Organizations['isMember'];
  checkPossession: CheckPossession;
}

/** A verified token: its user, and what it may be exchanged for. */
interface Subject {
  userId: string;
  /** The API; undefined for an ID token. */
  audience: string | undefined;
  scopes: readonly string[];
  amr: readonly string[];
  organization: string | undefined;
  /** The connection of the login, where it is known. */
  connection?: string | undefined;
  claims: JWTPayload;
}

/** What a subject token is exchanged for. */
interface Exchange {
  scope: string;
  /** The API, as a resource indicator. */
  resource: string | undefined;
  act: Actor | undefined;
}

/** An `act` claim (RFC 8693 §4.1). */
type Actor = Readonly<Record<string, unknown>>;

/**
 * Exchanges a token.
 * @returns undefined for a subject token of another type, and for an application without the grant.
 * @throws AuthError 400 `invalid_request` for a token that is not valid or not the application's, `invalid_target`
 *   and `invalid_scope` for an API or a scope that the token does not have, 403 `unauthorized_client` for a public
 *   client and `access_denied` for an API that it has no grant for, 401 as {@link CheckPossession} does.
 */
export type ExchangeToken = (request: GrantRequest) => Promise<GrantedLogin | GrantAnswer | undefined>;

export function tokenExchange(deps: ExchangeDependencies): ExchangeToken {
  return async ({ clientId, params, ip, ctx }) => {
    const { subject_token_type: type = '', subject_token: token = '' } = params;
    if (type !== ID_TOKEN && type !== ACCESS_TOKEN) return undefined;
    // A session may only be transferred for a token that an action has checked: the action says who acts for the
    // user.
    if (transferAudience.of(ctx) !== undefined)
      throw new AuthError(
        400,
        'invalid_request',
        'A session is handed over for a token that an action judges.',
      );
    const client = await deps.config.client(clientId);
    const isOnBehalf =
      type === ACCESS_TOKEN && client !== undefined && isForOtherApi(client, params.resource);
    if (isOnBehalf) exchangeEvents.set(ctx, ON_BEHALF_EVENTS);
    // An application that may use this grant only for native social logins does not have it in `grant_types`.
    else if (client?.grant_types?.includes(TOKEN_EXCHANGE) !== true) return undefined;
    checkRequest(client, params.requested_token_type);
    if (isOnBehalf) checkActor(client, params);
    const subject = await subjectOf(deps, clientId, type, token);
    const { userId } = subject;
    const confirmation = confirmationOf(subject.claims);
    // An API cannot have the key of its caller, whose proof it has checked itself.
    if (confirmation !== undefined && partyOf(subject.claims) === clientId)
      await deps.checkPossession(ctx, token, { clientId, cnf: confirmation });
    const { organization } = subject;
    // Before the connection could make the user a member again.
    if (organization !== undefined && !(await deps.isMember(organization, userId))) throw invalidTokenError();
    const { scope, resource, act } = isOnBehalf
      ? await onBehalfOf(deps, client, params, subject)
      : await narrowed(deps, clientId, params, subject);
    const login: Login = {
      userId,
      connection: subject.connection ?? '',
      amr: subject.amr,
      presence: 'absent',
      authTime: Number(subject.claims.auth_time ?? subject.claims.iat),
      ip,
      credentialVersion: subject.credentialVersion,
    };
    return {
      login,
      completes: completedRequest(TOKEN_EXCHANGE, login, { scope, resource, organization }),
      // An API that calls another one for each of its calls is not a login each time.
      ...(isOnBehalf && { isRecorded: true }),
      exchangeLimits: {
        endsAt: Number(subject.claims.exp),
        sessionId: sessionOfToken(subject.claims),
        grantId: grantOfToken(subject.claims),
        act,
        isBound: confirmation !== undefined,
        hasEnded: () => hasEnded(deps, subject),
      },
      extra: { issued_token_type: ACCESS_TOKEN },
    };
  };
}

/** Returns the exchange for a token of the same API with the same scopes or fewer. @throws AuthError as {@link ExchangeToken} */
async function narrowed(
  deps: ExchangeDependencies,
  clientId: string,
  params: GrantRequest['params'],
  subject: Subject,
): Promise<Exchange> {
  const act = await actorOf(deps, clientId, params, subject);
  const scope = scopeOf(subject, params.scope);
  return { act, scope, resource: resourceOf(deps, subject, params.resource) };
}

// On behalf of: an API calls another API for the user whose token it has received. What it may do there is decided by the
// client grant of its application and by the user's permissions; scopes of one API say nothing about another.

const ON_BEHALF_EVENTS = {
  success: engineEvents.success_on_behalf_of_token_exchange,
  failure: engineEvents.failed_on_behalf_of_token_exchange,
};

/** Whether the application of an API asks for a token of another one. @param resource the requested resource indicator. */
function isForOtherApi(
  { app_type: type, resource_server_identifier: own }: Client,
  resource: string | undefined,
): boolean {
  if (type !== 'resource_server' || typeof own !== 'string' || resource === undefined) return false;
  return toResource(own) !== resource;
}

/** Refuses an application that may not act for users, and a request that names somebody else who does. @throws AuthError */
function checkActor({ token_exchange: exchange }: Client, params: GrantRequest['params']): void {
  if (exchange?.allow_any_profile_of_type?.includes(ON_BEHALF_OF) !== true)
    throw new AuthError(
      403,
      'unauthorized_client',
      'On-behalf-of token exchange is not enabled for this client.',
    );
  if (params.actor_token !== undefined || params.actor_token_type !== undefined)
    throw new AuthError(400, 'invalid_request', 'The actor is the client that authenticates.');
}

/** Returns the exchange for a token of another API. @throws AuthError as {@link ExchangeToken} */
async function onBehalfOf(
  { config }: ExchangeDependencies,
  { client_id: clientId, resource_server_identifier: own }: Client,
  { resource = '', scope: requested }: GrantRequest['params'],
  { audience, scopes, claims }: Subject,
): Promise<Exchange> {
  const party = partyOf(claims);
  const target = toAudience(resource);
  const [from, api, grant] = await Promise.all([
    config.resourceServer(audience ?? ''),
    config.resourceServer(target),
    config.clientGrant(clientId, target),
  ]);
  // Somebody who acts for the user must not change how the user logs in, or administer the tenant.
  if (api === undefined || api.is_system === true)
    throw new AuthError(400, 'invalid_target', 'No token for this API is issued on behalf of a user.');
  // Not a token for another API that the client itself was given: only what an API receives is the user's call of it. And
  // one that does not name its grant was issued before the API had an application: nobody could end it.
  const isReceived = audience === own && from !== undefined && from.is_system !== true;
  if (!isReceived || party === undefined || !grantOfToken(claims)) throw invalidTokenError();
  if (grant?.subject_type !== 'user')
    throw new AuthError(
      403,
      'access_denied',
      `Client is not authorized to access "${target}". You need to create a "client-grant" associated to this API.`,
    );
  const granted = api.scopes
    .map(({ value }) => value)
    .filter((scope) => grant.allow_all_scopes === true || grant.scope.includes(scope));
  const ofUser = OIDC_SCOPES.filter((scope) => scope !== 'offline_access' && scopes.includes(scope));
  const scope = requested
    ? scopeValues(requested).filter((one) => [...granted, ...ofUser].includes(one))
    : granted;
  const act = chainOf({ sub: clientId, act: claims.act ?? { sub: party } });
  // An API that the chain has passed knows how little it was allowed there. It would get more by the grant of whom it has called.
  const passed = await Promise.all(actorsOf(act).map(({ sub }) => config.client(String(sub))));
  if (passed.some((actor) => actor !== undefined && isOfApi(actor, target)))
    throw new AuthError(400, 'invalid_target', 'The chain of actors has passed this API already.');
  return { scope: scope.join(' '), resource, act };
}

/** The most actors of a chain, as at the hosted service. */
const MAX_ACTORS = 5;

/** Returns an `act` claim. @throws AuthError 400 `invalid_request` if its chain is too long. */
function chainOf(act: Actor): Actor {
  if (actorsOf(act).length <= MAX_ACTORS) return act;
  throw new AuthError(
    400,
    'invalid_request',
    `Delegation chain (\`act\` claim) depth exceeds the maximum allowed limit of ${MAX_ACTORS - 1}`,
  );
}

/** Returns the actors of an `act` claim, the one that acts first. */
function actorsOf(act: Actor): Actor[] {
  const actors: Actor[] = [];
  for (let one: unknown = act; typeof one === 'object' && one !== null; one = (one as Actor).act)
    actors.push(one as Actor);
  return actors;
}

/**
 * Checks the application and the requested token type.
 * @throws AuthError 403 for a public client, and 400 for another type than an access token.
 */
function checkRequest(client: Client, requested: string | undefined): void {
  if (authenticationMethod(client) === 'none')
    throw new AuthError(
      403,
      'unauthorized_client',
      `Grant type '${TOKEN_EXCHANGE}' not allowed for the client.`,
    );
  if (requested !== undefined && requested !== ACCESS_TOKEN)
    throw new AuthError(400, 'invalid_request', 'The requested_token_type is not supported.');
}

/**
 * Verifies a subject token and returns what it says.
 * @throws AuthError 400 `invalid_request` when it is not valid, or was not issued to the application.
 */
export async function subjectOf(
  deps: ExchangeDependencies,
  clientId: string,
  type: string,
  token: string,
): Promise<Subject & { credentialVersion: number }> {
  const found =
    type === ID_TOKEN
      ? await subjectOfIdToken(deps, clientId, token)
      : await subjectOfAccessToken(deps, clientId, token);
  if (found === undefined) throw invalidTokenError();
  // Read before the token is judged, so that a password that is set meanwhile has another one.
  const credentialVersion = await deps.users.credentialVersion(found.userId);
  if (await hasEnded(deps, found)) throw invalidTokenError();
  return { ...found, credentialVersion };
}

/** Whether a verified token has ended although it has not expired, by its user as they are now. */
async function hasEnded(
  deps: ExchangeDependencies,
  { userId, claims }: Pick<Subject, 'userId' | 'claims'>,
): Promise<boolean> {
  const user = await deps.users.get(userId);
  return user === undefined || isTokenEnded(deps, user, claims);
}

/** Verifies an ID token: it was issued to the application itself, and its session has not ended. */
async function subjectOfIdToken(
  deps: ExchangeDependencies,
  clientId: string,
  token: string,
): Promise<Subject | undefined> {
  const subject = await deps.readIdTokenSubject(token);
  if (subject === undefined || subject.client.client_id !== clientId) return undefined;
  const { claims, user } = subject;
  const amr = Array.isArray(claims.amr) ? claims.amr.map(String) : [];
  const organization = typeof claims.org_id === 'string' ? claims.org_id : undefined;
  const scopes = OIDC_SCOPES.filter((scope) => scope !== 'offline_access');
  return { userId: user.id, audience: undefined, scopes, amr, organization, claims };
}

/** Verifies a user's access token for an API: it was issued to the application, or the application is that API. */
async function subjectOfAccessToken(
  { issuer, keys, config, wallClock, grantOf }: ExchangeDependencies,
  clientId: string,
  token: string,
): Promise<Subject | undefined> {
  const claims = await readOwnToken({ issuer, keys, clock: wallClock }, token);
  if (claims === undefined || claims.gty === 'client-credentials') return undefined;
  const authorizedParty = partyOf(claims);
  const audience = [claims.aud ?? []].flat().find((one) => one !== `${issuer}userinfo`);
  if (authorizedParty === undefined || audience === undefined || claims.sub === undefined) return undefined;
  const client = await config.client(clientId);
  if ((await config.resourceServer(audience)) === undefined || client === undefined) return undefined;
  // Tokens of an application end when the application is deleted.
  if ((await config.client(authorizedParty)) === undefined) return undefined;
  if (authorizedParty !== clientId && !isOfApi(client, audience)) return undefined;
  const organization = typeof claims.org_id === 'string' ? claims.org_id : undefined;
  const scopes = String(claims.scope ?? '').split(' ');
  const grant = grantOfToken(claims);
  const { amr = [], connection } = (grant === undefined ? undefined : await grantOf(grant)) ?? {};
  return { userId: claims.sub, audience, scopes, amr, organization, connection, claims };
}

/** Returns the client that a token was issued to (RFC 9068 §2.2: `client_id`; by default `azp`). */
function partyOf({ azp, client_id }: JWTPayload): string | undefined {
  const party = azp ?? client_id;
  return typeof party === 'string' ? party : undefined;
}

function isOfApi({ app_type, resource_server_identifier }: Client, audience: string): boolean {
  return app_type === 'resource_server' && resource_server_identifier === audience;
}

/**
 * Returns the `act` claim (RFC 8693 §4.1) for an actor token, which has to be issued to the application itself. An
 * actor that the subject token already names is nested in it.
 */
async function actorOf(
  deps: ExchangeDependencies,
  clientId: string,
  { actor_token: token, actor_token_type: type }: GrantRequest['params'],
  { claims }: Subject,
): Promise<Actor | undefined> {
  const before = claims.act === undefined ? {} : { act: claims.act };
  if (token === undefined && type === undefined) return claims.act as Actor | undefined;
  if (token === undefined || (type !== ID_TOKEN && type !== ACCESS_TOKEN))
    throw invalidTokenError('actor_token');
  const actor =
    type === ID_TOKEN
      ? await subjectOfIdToken(deps, clientId, token)
      : await subjectOfAccessToken(deps, clientId, token);
  const user = actor && (await deps.users.get(actor.userId));
  if (user === undefined || user.blocked === true || (await isTokenEnded(deps, user, actor?.claims ?? {})))
    throw invalidTokenError('actor_token');
  // The token already names an actor, who would be lost if its user were taken for the actor. A token that is bound to
  // a key needs a proof of it, which this request has for the subject token alone.
  if (actor?.claims.act !== undefined || actor?.claims.cnf !== undefined)
    throw invalidTokenError('actor_token');
  return chainOf({ sub: user.id, ...before });
}

/** Returns the scopes that were asked for, or all of the token's. Never `offline_access`: nobody has logged in. */
function scopeOf({ scopes }: Subject, requested: string | undefined): string {
  const available = scopes.filter((scope) => scope !== '' && scope !== 'offline_access');
  if (!requested) return available.join(' ');
  const scopesRequested = scopeValues(requested);
  const refused = scopesRequested.filter((scope) => !available.includes(scope));
  if (refused.length === 0) return scopesRequested.join(' ');
  throw new AuthError(400, 'invalid_scope', `The subject_token lacks scopes: ${refused.join(' ')}`);
}

/**
 * Returns the API of the new token, which is that of the subject token.
 * @param requested a resource indicator.
 * @throws AuthError 400 `invalid_target` for another API.
 */
function resourceOf(
  { config }: ExchangeDependencies,
  { audience }: Subject,
  requested: string | undefined,
): string | undefined {
  const available = audience === undefined ? undefined : toResource(audience);
  // An ID token is for no API, and is not exchanged for a token of the tenant's default one either.
  const isDefault = available === undefined && config.settings().tenant.default_audience !== undefined;
  if (!isDefault && (requested === undefined || requested === available)) return available;
  throw new AuthError(400, 'invalid_target', 'The subject_token is not for this API.');
}

// Verifies subject tokens (RFC 8693 §2.1): tokens of ours for whose user an application asks for something else.
// They are not used up.

const REFRESH_TOKEN = 'urn:ietf:params:oauth:token-type:refresh_token';

/** The subject token of a token request, and the application that sends it. */
interface SubjectToken {
  ctx: Context;
  clientId: string;
  /** The token type (RFC 8693 §3), of an access or a refresh token. */
  type: string;
  token: string;
}

/** The user of a subject token. */
export interface TokenUser {
  user: User;
  /**
   * Judges the token again, after a wait for others: it may have been revoked, and the user been blocked.
   * @throws AuthError 400 `invalid_grant`
   */
  requireStill(): Promise<void>;
}

/**
 * Returns the user of a refresh token of the application, or of an access token that was issued to it or is for its
 * API.
 * @throws AuthError 400 `invalid_request` for another type, `invalid_grant` for a token that is not valid or whose
 *   user is not admitted; 401 as {@link CheckPossession} does.
 */
export type ReadSubjectToken = (presented: SubjectToken) => Promise<TokenUser>;

export function subjectTokenReader(deps: ExchangeDependencies): ReadSubjectToken {
  const judged = async (subject: TokenSubject | undefined): Promise<User> => {
    const user = subject && (await deps.users.get(subject.userId));
    if (user === undefined || admissionError(user) !== undefined) throw invalidToken();
    const { organization, connection } = subject ?? {};
    // A token for an organization is valid only while its user is a member.
    if (organization !== undefined && !(await deps.isMember(organization, user.id, connection)))
      throw invalidToken();
    return user;
  };
  return async (presented) => {
    const subject = await subjectFrom(deps, presented);
    const user = await judged(subject);
    return {
      user,
      // Without the proof of possession, which a request sends once.
      requireStill: async () => {
        if ((await subject?.hasEnded()) !== false) throw invalidToken();
        await judged(subject);
      },
    };
  };
}

/** The user and organization of a token, and the connection of its login, where it is known. */
interface TokenSubject {
  userId: string;
  organization?: string | undefined;
  connection?: string | undefined;
  /** Whether the token has ended by now. */
  hasEnded(): Promise<boolean>;
}

async function subjectFrom(
  deps: ExchangeDependencies,
  { ctx, clientId, type, token }: SubjectToken,
): Promise<TokenSubject | undefined> {
  if (type === REFRESH_TOKEN) return subjectOfRefreshToken(deps, ctx, clientId, token);
  if (type !== ACCESS_TOKEN)
    throw new AuthError(400, 'invalid_request', 'The subject_token_type is not supported.');
  const subject = await subjectOf(deps, clientId, type, token);
  const cnf = confirmationOf(subject.claims);
  if (cnf !== undefined) {
    // What it is exchanged for is bound to no key, so that only who has the key of this one gets it.
    if (partyOf(subject.claims) !== clientId) return undefined;
    await deps.checkPossession(ctx, token, { clientId, cnf });
  }
  // Nor can it name the actor, who would be taken for the user.
  return subject.claims.act === undefined
    ? { ...subject, hasEnded: () => hasEnded(deps, subject) }
    : undefined;
}

/**
 * Verifies a refresh token. One that was used before is refused, but its family is not revoked: otherwise a thief
 * could log the user out.
 */
async function subjectOfRefreshToken(
  { checkPossession }: { checkPossession: CheckPossession },
  ctx: Context,
  clientId: string,
  value: string,
): Promise<TokenSubject | undefined> {
  const { provider } = (ctx as KoaContextWithOIDC).oidc;
  const token = value === '' ? undefined : await provider.RefreshToken.find(value);
  if (token === undefined || token.clientId !== clientId || token.isExpired || token.consumed)
    return undefined;
  const grantInForce = async () => {
    const grant = await provider.Grant.find(token.grantId ?? '');
    return grant === undefined || grant.isExpired ? undefined : grant;
  };
  const grant = await grantInForce();
  if (grant === undefined || grant.clientId !== clientId) return undefined;
  if (grant.accountId !== token.accountId) return undefined;
  // A refresh token of a transferred session ends with that session, which is only checked when it is refreshed.
  if (transferOf(grant) !== undefined) return undefined;
  const { jkt, 'x5t#S256': thumbprint } = token;
  if (jkt !== undefined || thumbprint !== undefined)
    await checkPossession(ctx, value, { clientId, cnf: { jkt, 'x5t#S256': thumbprint } });
  const { organization, connection } = grant as { organization?: string; connection?: string };
  return {
    userId: token.accountId,
    organization,
    connection,
    // The token itself may have been replaced by a newer one, which ends nothing.
    hasEnded: async () => (await grantInForce()) === undefined,
  };
}

/** One error for every invalid token, so that it does not tell which check failed. */
function invalidToken(): AuthError {
  return new AuthError(400, 'invalid_grant', 'The subject_token is not good for this client.');
}

// Verifies ID tokens of actors (RFC 8693 §2.1, `actor_token`).

/**
 * Returns the actor that an ID token identifies. It may be issued to any first-party application of the tenant.
 * @returns undefined when the token is not valid, its user is blocked, or it names an actor itself.
 */
export async function actorOfIdToken(
  deps: Pick<IdTokenReaders, 'readIdTokenSubject'> & { users: Pick<Users, 'get'> },
  token: string,
): Promise<User | undefined> {
  const subject = await deps.readIdTokenSubject(token);
  // ID tokens of third-party applications are in hands outside the tenant.
  if (subject === undefined || subject.client.is_first_party === false || subject.claims.act !== undefined)
    return undefined;
  const user = await deps.users.get(subject.user.id);
  return user === undefined || user.blocked === true ? undefined : user;
}
