// Request objects: the parameters of an authorization request as a JWT that its client has signed (RFC 9101, OpenID
// Connect Core §6.1).
import type { ParsedUrlQuery } from 'node:querystring';
import { type JWTPayload, errors as joseErrors, type ProtectedHeaderParameters } from 'jose';
import { jwtHeader, unverifiedClaims, verifyJwt } from '../../capabilities/signing/verify-jwt.ts';
import { AuthError } from '../../http/errors.ts';
import { CREDENTIAL_ALGORITHMS } from '../../records/client-credentials.ts';
import { expiryOf, publicKeyOf } from '../../records/client-keys.ts';
import type { Client } from '../../records/collections.ts';
import { profileOf } from '../../records/compliance-levels.ts';

/** Seconds that the client's clock may be ahead or behind (FAPI 2.0 Security Profile §5.3.2.1). */
const CLOCK_TOLERANCE_SECONDS = 10;
/**
 * The longest lifetime of an object of a client with a compliance level, and its greatest age, seconds (FAPI 1.0
 * Advanced §5.2.2).
 */
const MAX_LIFETIME_SECONDS = 3600;

/** Claims about the object itself (RFC 7519 §4.1); all others are parameters of the request. */
const OWN_CLAIMS = new Set(['iss', 'aud', 'exp', 'nbf', 'iat', 'jti', 'sub']);
/** Parameters that an object must not contain (RFC 9101 §4). */
const FORBIDDEN = ['request', 'request_uri'];
/** Parameters that are JSON themselves: in an object their value is the JSON, not a string of it. */
const JSON_PARAMETERS = ['claims', 'authorization_details'];
const TYPES = ['oauth-authz-req+jwt', undefined];

/** A request object that was verified. */
export interface RequestObject {
  parameters: ParsedUrlQuery;
  /** Its id, if it has one. */
  jti: string | undefined;
  /** Epoch seconds. */
  expiresAt: number | undefined;
}

type Credential = NonNullable<Client['signed_request_object']>['credentials'][number];

/** Returns the keys of a client's request objects that have not expired. @param now epoch milliseconds. */
export function requestObjectKeys(client: Client, now: number): readonly Credential[] {
  return (client.signed_request_object?.credentials ?? []).filter((key) => expiryOf(key) > now);
}

/**
 * Verifies a client's request object and returns its parameters.
 * @param now epoch milliseconds.
 * @throws AuthError `invalid_request_object` (RFC 9101 §7).
 */
export async function readRequestObject(
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
  for (const key of candidateKeys(object, requestObjectKeys(client, now))) {
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
function candidateKeys(object: string, keys: readonly Credential[]): readonly Credential[] {
  let header: ProtectedHeaderParameters;
  try {
    header = jwtHeader(object, TYPES);
  } catch (thrown) {
    if (!(thrown instanceof joseErrors.JOSEError)) throw thrown;
    throw invalid(thrown.message);
  }
  const { alg = '', kid } = header;
  if (!CREDENTIAL_ALGORITHMS.some((one) => one === alg)) throw invalid('its alg is not supported');
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

const RESPONSE_PARAMETERS = ['redirect_uri', 'response_mode', 'response_type', 'state'] as const;

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
      RESPONSE_PARAMETERS.flatMap((name) => {
        const value = claims[name];
        return typeof value === 'string' ? [[name, value]] : [];
      }),
    );
  } catch (thrown) {
    if (thrown instanceof joseErrors.JOSEError) return {};
    throw thrown;
  }
}
