// Reads the parameters of an authorization request, whichever way they came: in the query or a form, in a request
// object (RFC 9101), or pushed before (RFC 9126). The result is the same, so that every check applies to all of
// them.
// docs/understand/decisions/authorize.md#gatehouse-unpacks-pushed-and-signed-requests-before-the-engine-sees-them
import type { ParsedUrlQuery } from 'node:querystring';
import { type JWTPayload, errors as joseErrors, type ProtectedHeaderParameters } from 'jose';
import type { Context } from 'koa';
import { jwtHeader, unverifiedClaims, verifyJwt } from '../../capabilities/signing/verify-jwt.ts';
import { AuthError } from '../../http/errors.ts';
import { CREDENTIAL_ALGORITHMS } from '../../records/clients/client-credentials.ts';
import { expiryOf, isNameOnly, publicKeyOf } from '../../records/clients/client-keys.ts';
import { profileOf } from '../../records/clients/compliance-levels.ts';
import { isSelfRegistered } from '../../records/clients/third-parties.ts';
import type { Client } from '../../records/collections.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Store } from '../../store/contract.ts';
import type { Config } from '../../tenant/config.ts';
import { OBJECT_REUSED, recordObjectUse } from '../base/request-replay.ts';
import { requestFault, strictRequestFault } from '../client/applications.ts';
import type { ClientDocuments } from '../client/client-documents.ts';
import type { ServerLoginCallbacks } from '../client/server-login-callbacks.ts';
import { INVALID_REQUEST_URI, isPushedUri, type PushedRequests } from './pushed-requests.ts';
import { uidOfState } from './restarted-request.ts';
import { hasBrowserSecret } from './waiting-requests.ts';

/** A request whose parameters are known. */
export interface ReceivedRequest {
  parameters: ParsedUrlQuery;
  /**
   * Why the request is refused, when the application gets the error. The parameters then only say where to send it.
   */
  refused?: { error: string; description: string };
  /** The key of a pushed request in the store. */
  pushed?: string;
  /** Whether the parameters came in a request object. */
  isSigned?: true;
  /** The request object, where its use has not been recorded yet. */
  unrecorded?: RequestObject;
}

interface Dependencies {
  issuer: string;
  config: Pick<Config, 'client' | 'settings'>;
  store: Store;
  /** The clock that dates in JWTs are compared with. */
  wallClock: Clock;
  serverLoginCallbacks: Pick<ServerLoginCallbacks, 'has'>;
  pushedRequests: Pick<PushedRequests, 'claim'>;
  documents: Pick<ClientDocuments, 'requestAt'>;
}

export interface RequestReader {
  /**
   * Reads those of a request to the authorization endpoint.
   * @param browser the hash of the secret that the request has in its browser.
   * @throws AuthError 400 `invalid_request_uri`, shown on a page, because the redirect URI is not known.
   */
  authorization(ctx: Context, received: ParsedUrlQuery, browser: string): Promise<ReceivedRequest>;
  /**
   * Reads those of a pushed request. The endpoint records the use of a request object only when it stores the
   * request, because a client that is asked for a nonce sends the same object again (RFC 9449 §8).
   * @param clientId the client that the sender authenticates as.
   */
  pushed(clientId: string, received: ParsedUrlQuery): Promise<ReceivedRequest>;
}

const PUSH_REQUIRED = 'Pushed Authorization Request must be used';
const OBJECT_REQUIRED = 'Request Object must be used by this client';

export function requestReader(deps: Dependencies): RequestReader {
  const { config, serverLoginCallbacks, pushedRequests, documents } = deps;
  return {
    authorization: async (ctx, received, browser) => {
      const clientId = typeof received.client_id === 'string' ? received.client_id : '';
      const client = await config.client(clientId);
      // The engine refuses an unknown client. A request that is restarted was read before.
      if (client === undefined || uidOfState(received.state) !== undefined) return { parameters: received };
      const { request, request_uri: uri } = received;
      if (isPushedUri(uri) && request === undefined) {
        const brings = (hash: string) => hasBrowserSecret(ctx, hash);
        const claimed = await pushedRequests.claim(uri, { clientId, hasSecret: brings, browser });
        if (claimed === undefined) throw new AuthError(400, 'invalid_request_uri', INVALID_REQUEST_URI);
        // Parameters beside `request_uri` do not count (RFC 9101 §6.3, RFC 9126 §4).
        const parameters = { ...claimed.params, client_id: clientId };
        const { pushed, isSigned } = claimed;
        // The setting of the application may have changed since the request was pushed.
        if (!isSigned && mustSign(client))
          return refusedRequest(parameters, 'invalid_request', OBJECT_REQUIRED);
        return checkCompliance(client, { parameters, pushed, ...(isSigned && { isSigned }) }, true);
      }
      if (isPushedUri(uri))
        return refusedRequest(received, 'invalid_request', 'request and request_uri exclude each other');
      const isOwn =
        typeof received.redirect_uri === 'string' && serverLoginCallbacks.has(received.redirect_uri);
      if (isOwn && request === undefined) return { parameters: received };
      if (mustPush(config, client)) return refusedRequest(received, 'invalid_request', PUSH_REQUIRED);
      const brought = await withReferenced(documents, ctx, { client, received });
      if ('refused' in brought) return brought;
      const { parameters } = brought;
      // One that is not registered: the engine refuses it.
      if (parameters.request_uri !== undefined) return checkCompliance(client, { parameters }, false);
      const read = checkCompliance(client, await withObject(deps, client, parameters), false);
      return profileOf(client) === undefined ? read : refuseReusedObject(deps, client, read);
    },
    pushed: async (clientId, received) => {
      const client = await config.client(clientId);
      if (received.request_uri !== undefined)
        return refusedRequest(received, 'invalid_request', 'request_uri must not be pushed');
      if (client === undefined) return { parameters: received };
      return checkCompliance(client, await withObject(deps, client, received), true);
    },
  };
}

// docs/understand/decisions/authorize.md#a-request_uri-of-an-application-is-read-where-it-has-registered-it
/** Returns the request with the object at its `request_uri` in place of that, if its application has registered it. */
async function withReferenced(
  documents: Dependencies['documents'],
  ctx: Context,
  { client, received }: { client: Client; received: ParsedUrlQuery },
): Promise<ReceivedRequest> {
  const { request_uri: uri, ...beside } = received;
  if (typeof uri !== 'string' || beside.request !== undefined) return { parameters: received };
  try {
    const request = await documents.requestAt(ctx, client.client_id, uri);
    return { parameters: request === undefined ? received : { ...beside, request } };
  } catch (thrown) {
    if (!(thrown instanceof AuthError) || thrown.status !== 400) throw thrown;
    return refusedRequest(received, thrown.error, thrown.error_description);
  }
}

/** Returns the request, refused if its object was used before. */
async function refuseReusedObject(
  { store }: Dependencies,
  client: Client,
  read: ReceivedRequest,
): Promise<ReceivedRequest> {
  const { unrecorded, parameters } = read;
  const isFirst = unrecorded === undefined || (await recordObjectUse(store, client.client_id, unrecorded));
  return isFirst ? read : refusedRequest(parameters, 'invalid_request_object', OBJECT_REUSED);
}

/**
 * Returns the request, refused if it breaks the rules of third-party applications, or those of its application's compliance
 * level (`applications.ts`).
 */
function checkCompliance(client: Client, request: ReceivedRequest, isPushed: boolean): ReceivedRequest {
  const { parameters, isSigned = false } = request;
  if (request.refused !== undefined) return request;
  const refusal = strictRequestFault(client, parameters);
  if (refusal !== undefined) return refusedRequest(parameters, refusal.error, refusal.description);
  const fault = requestFault(client, { parameters, isPushed, isSigned });
  return fault === undefined ? request : refusedRequest(parameters, 'invalid_request', fault);
}

function mustSign({ signed_request_object: object }: Client): boolean {
  return object?.required === true;
}

function mustPush(config: Pick<Config, 'settings'>, client: Client): boolean {
  const { flags } = config.settings().tenant;
  return (
    client.require_pushed_authorization_requests === true ||
    flags.require_pushed_authorization_requests === true
  );
}

async function withObject(
  deps: Dependencies,
  client: Client,
  received: ParsedUrlQuery,
): Promise<ReceivedRequest> {
  const { request } = received;
  const { wallClock, issuer } = deps;
  const now = wallClock();
  const isRequired = mustSign(client);
  if (request === undefined && isRequired)
    return refusedRequest(received, 'invalid_request', OBJECT_REQUIRED);
  // Without keys of the client the object cannot be verified: the engine refuses the request.
  const mayBe = typeof request === 'string' && (isRequired || requestObjectKeys(client, now).length > 0);
  if (!mayBe) return { parameters: received };
  try {
    const object = await readRequestObject(request, client, { issuer, now });
    // Parameters outside of the object do not count (RFC 9101 §6.3).
    const parameters = { ...object.parameters, client_id: client.client_id };
    return { parameters, isSigned: true, unrecorded: object };
  } catch (thrown) {
    if (!(thrown instanceof AuthError)) throw thrown;
    return refusedRequest(received, thrown.error, thrown.error_description);
  }
}

// With `organization`, which a redirect URI may depend on.
const RESPONSE_PARAMETERS = [
  ...['client_id', 'redirect_uri', 'organization', 'response_mode', 'response_type', 'state', 'owp'],
];

/**
 * Returns a refused request, with only the parameters that say where to send the error.
 * @param received its parameters, or those beside its object.
 */
export function refusedRequest(
  received: ParsedUrlQuery,
  error: string,
  description: string,
): ReceivedRequest {
  const where = Object.entries(received).filter(([name]) => RESPONSE_PARAMETERS.includes(name));
  return {
    parameters: { ...Object.fromEntries(where), ...responseParameters(received.request) },
    refused: { error, description },
  };
}

// Request objects: the parameters of an authorization request as a JWT that its client has signed (RFC 9101, OpenID
// Connect Core §6.1).

/** Seconds that the client's clock may be ahead or behind (FAPI 2.0 Security Profile §5.3.2.1). */
const CLOCK_TOLERANCE_SECONDS = 10;
/**
 * The longest lifetime of an object of a client with a compliance level, and its greatest age, seconds (FAPI 1.0
 * Advanced §5.2.2).
 */
const MAX_LIFETIME_SECONDS = 3600;

// docs/understand/decisions/authorize.md#a-request-object-must-have-iss-aud-and-client_id
/** Claims about the object itself (RFC 7519 §4.1); all others are parameters of the request. */
const OWN_CLAIMS = new Set(['iss', 'aud', 'exp', 'nbf', 'iat', 'jti', 'sub']);
/** Parameters that an object must not contain (RFC 9101 §4). */
const FORBIDDEN = ['request', 'request_uri'];
/** Parameters that are JSON themselves: in an object their value is the JSON, not a string of it. */
const JSON_PARAMETERS = ['claims', 'authorization_details'];
const TYPES = ['oauth-authz-req+jwt', undefined];

/** A request object that was verified. */
interface RequestObject {
  parameters: ParsedUrlQuery;
  /** Its id, if it has one. */
  jti: string | undefined;
  /** Epoch seconds. */
  expiresAt: number | undefined;
}

type Credential = NonNullable<Client['signed_request_object']>['credentials'][number];

/** Returns the keys of a client's request objects that have not expired. @param now epoch milliseconds. */
function requestObjectKeys(client: Client, now: number): readonly Credential[] {
  const { signed_request_object: object, client_authentication_methods: methods } = client;
  // An application that registers itself has one key set for all that it signs (OpenID Connect Registration 1.0 §2, `jwks`).
  const registered = isSelfRegistered(client) ? methods?.private_key_jwt?.credentials : undefined;
  const keys = object?.credentials ?? registered ?? [];
  return keys.filter((key) => expiryOf(key) > now && !isNameOnly(key));
}

/**
 * Verifies a client's request object and returns its parameters.
 * @param now epoch milliseconds.
 * @throws AuthError `invalid_request_object` (RFC 9101 §7).
 */
async function readRequestObject(
  object: string,
  client: Client,
  { issuer, now }: { issuer: string; now: number },
): Promise<RequestObject> {
  const claims = await verifyObject(object, client, { issuer, now });
  // The `client_id` of the object has to be that of the request (RFC 9101 §5), as which a client that pushes one
  // authenticates.
  if (claims.client_id !== client.client_id) throw invalid('its client_id is not that of the request');
  // A client assertion must not be accepted as a request, nor a request as an assertion (RFC 9101 §10.8).
  if (claims.sub === client.client_id) throw invalid('sub must not be the client_id');
  if (FORBIDDEN.some((name) => claims[name] !== undefined)) {
    throw invalid('it must not contain request or request_uri');
  }
  if (profileOf(client) !== undefined) checkLifetime(claims, now / 1000);
  return objectOf(claims);
}

/** Required claims of a signed authentication request (CIBA Core §7.1.1), beside `iss` and `aud`. */
const SIGNED_CLAIMS = ['exp', 'iat', 'nbf', 'jti'] as const;

/**
 * Verifies a signed authentication request (CIBA Core §7.1.1), which names its client only as `iss`. An object for
 * the authorization endpoint, recognized by its redirect URI or response type, is refused.
 * @throws AuthError `invalid_request_object`.
 */
export async function readBackchannelObject(
  object: string,
  client: Client,
  { issuer, now }: { issuer: string; now: number },
): Promise<RequestObject> {
  const claims = await verifyObject(object, client, { issuer, now });
  if (claims.sub === client.client_id) throw invalid('sub must not be the client_id');
  const missing = SIGNED_CLAIMS.find((name) => claims[name] === undefined);
  if (missing !== undefined) throw invalid(`${missing} is required`);
  if (claims.response_type !== undefined || claims.redirect_uri !== undefined)
    throw invalid('it is for the authorization endpoint');
  if (FORBIDDEN.some((name) => claims[name] !== undefined))
    throw invalid('it must not contain request or request_uri');
  checkLifetime(claims, now / 1000);
  return objectOf(claims);
}

function objectOf(claims: JWTPayload): RequestObject {
  return {
    parameters: parametersOf(claims),
    jti: typeof claims.jti === 'string' ? claims.jti : undefined,
    expiresAt: claims.exp,
  };
}

async function verifyObject(
  object: string,
  client: Client,
  { issuer, now }: { issuer: string; now: number },
): Promise<JWTPayload> {
  let failure: unknown;
  for (const key of candidateKeys(object, client, requestObjectKeys(client, now))) {
    try {
      const { payload } = await verifyJwt(object, publicKeyOf(key), {
        algorithms: [key.alg],
        types: TYPES,
        issuer: client.client_id,
        audience: [issuer, issuer.replace(/\/$/, '')],
        currentDate: new Date(now),
        clockTolerance: CLOCK_TOLERANCE_SECONDS,
      });
      return payload;
    } catch (thrown) {
      failure = thrown;
      if (!(thrown instanceof joseErrors.JWSSignatureVerificationFailed)) break;
    }
  }
  if (failure instanceof joseErrors.JWTClaimValidationFailed || failure instanceof joseErrors.JWTExpired) {
    // Without quotes, which an `error_description` cannot have (RFC 6749 §5.2).
    throw invalid(failure.message.replaceAll('"', ''));
  }
  throw invalid('its signature could not be verified');
}

/** Returns the keys that an object may be signed with: of its algorithm, and of its `kid` where both have one. */
function candidateKeys(
  object: string,
  { request_object_signing_alg: registered }: Client,
  keys: readonly Credential[],
): readonly Credential[] {
  let header: ProtectedHeaderParameters;
  try {
    header = jwtHeader(object, TYPES);
  } catch (thrown) {
    if (!(thrown instanceof joseErrors.JOSEError)) throw thrown;
    throw invalid(thrown.message);
  }
  const { alg = '', kid } = header;
  if (!CREDENTIAL_ALGORITHMS.some((one) => one === alg)) throw invalid('its alg is not supported');
  // OpenID Connect Registration 1.0 §2.
  if (registered !== undefined && alg !== registered) throw invalid('its alg is not the registered one');
  return keys.filter((key) => {
    const keyId = key.kid ?? key.jwk?.kid;
    return key.alg === alg && (kid === undefined || keyId === undefined || keyId === kid);
  });
}

/** @param now epoch seconds. */
function checkLifetime({ exp, nbf }: JWTPayload, now: number): void {
  if (exp === undefined || nbf === undefined) throw invalid('exp and nbf are required');
  if (exp - nbf > MAX_LIFETIME_SECONDS) throw invalid('it is good for too long');
  if (now - nbf > MAX_LIFETIME_SECONDS) throw invalid('it is too old');
}

function parametersOf(claims: JWTPayload): ParsedUrlQuery {
  return Object.fromEntries(
    Object.entries(claims)
      .filter(([name, value]) => !OWN_CLAIMS.has(name) && value !== null)
      .map(([name, value]) => [name, parameterOf(name, value)]),
  );
}

function parameterOf(name: string, value: unknown): string | string[] {
  if (typeof value === 'string') return value;
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  if (JSON_PARAMETERS.includes(name)) return JSON.stringify(value);
  // Like a parameter that is sent several times.
  if (Array.isArray(value) && value.every((one) => typeof one === 'string')) return value;
  throw invalid(`its ${name.slice(0, 100)} is no text`);
}

function invalid(reason: string): AuthError {
  return new AuthError(400, 'invalid_request_object', `The request object is invalid: ${reason}`);
}

const ANSWERED_AT = ['redirect_uri', 'organization', 'response_mode', 'response_type', 'state'] as const;

/**
 * Returns the parameters in a request object that say where to answer; they take precedence over the query's
 * (OpenID Connect Core §6.1). They are not verified, because only the refusal of an object uses them, and the
 * redirect_uri must be registered anyway.
 * @param object the `request` parameter.
 * @returns empty when it cannot be read, for instance when encrypted.
 */
export function responseParameters(object: unknown): Record<string, string> {
  if (typeof object !== 'string') return {};
  try {
    const claims = unverifiedClaims(object);
    return Object.fromEntries(
      ANSWERED_AT.flatMap((name) => {
        const value = claims[name];
        return typeof value === 'string' ? [[name, value]] : [];
      }),
    );
  } catch (thrown) {
    if (thrown instanceof joseErrors.JOSEError) return {};
    throw thrown;
  }
}

// Size limits of authorization requests, which anybody can send and which are stored until the user has logged in.
// docs/understand/decisions/authorize.md#waiting-authorization-requests-are-limited-in-size-and-number

/** The most characters of a parameter; `state` is returned in a URL, whose length is limited. */
const MAX_LENGTH = 4_096;
/** The most characters of a parameter that is a JWT or JSON. */
const MAX_TOKEN_LENGTH = 8_192;
const TOKENS = ['id_token_hint', 'request', 'authorization_details'];
/** The most characters of all names and values. */
const MAX_TOTAL_LENGTH = 10_240;

/**
 * Checks the size of a request.
 * @throws AuthError 400 `invalid_request` when the request or one of its parameters is too long.
 */
export function checkRequestSize(query: ParsedUrlQuery): void {
  let total = 0;
  for (const [name, value] of Object.entries(query)) {
    const length = [value ?? ''].flat().reduce((sum, one) => sum + one.length, 0);
    total += name.length + length;
    if (length <= (TOKENS.includes(name) ? MAX_TOKEN_LENGTH : MAX_LENGTH)) continue;
    throw new AuthError(400, 'invalid_request', `The parameter ${name.slice(0, 100)} is too long.`);
  }
  if (total > MAX_TOTAL_LENGTH) throw new AuthError(400, 'invalid_request', 'The request is too long.');
}
