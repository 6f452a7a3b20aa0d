// The only place that reads signed JWTs (RFC 7519 §7.2). Each reader says which algorithms and which types it takes (RFC 8725
// §3.1, §3.11), and no reader takes a JWT with critical extensions, because none is supported here (RFC 7515 §4.1.11). The
// library would take `b64` (RFC 7797), which has no place in JWTs (§7 there).
// docs/understand/decisions/tokens.md#signed-jwts-are-read-in-one-place
import {
  type CryptoKey,
  compactVerify,
  decodeJwt,
  decodeProtectedHeader,
  errors,
  type JWTPayload,
  type JWTVerifyGetKey,
  type JWTVerifyOptions,
  type JWTVerifyResult,
  jwtVerify,
  type KeyObject,
  type ProtectedHeaderParameters,
} from 'jose';

/**
 * The values of `typ` that a reader takes, in lower case and without `application/`. Undefined stands for all that name no
 * kind of JWT, such as none and `JWT`.
 */
export type JwtTypes = readonly (string | undefined)[];

interface HeaderRules {
  algorithms: readonly string[];
  types: JwtTypes;
}

type JwtRules = HeaderRules & Omit<JWTVerifyOptions, 'algorithms' | 'crit' | 'typ'>;

/** A key, or what finds it by the header. */
type Key = CryptoKey | KeyObject | Uint8Array | JWTVerifyGetKey;

/**
 * Verifies a JWT: its header as {@link jwtHeader} does, its signature, its dates, and the claims that the rules name.
 * @throws JOSEError when it is not valid.
 */
export async function verifyJwt(
  token: string,
  key: Key,
  { algorithms, types, ...rules }: JwtRules,
): Promise<JWTVerifyResult> {
  jwtHeader(token, types);
  const options = { ...rules, algorithms: [...algorithms] };
  // Two calls, because the library declares them apart.
  return typeof key === 'function' ? jwtVerify(token, key, options) : jwtVerify(token, key, options);
}

/** Verifies a JWT without its claims, which may have expired. @throws JOSEError when it is not valid. */
export async function verifySignature(
  token: string,
  key: Key,
  { algorithms, types }: HeaderRules,
): Promise<void> {
  jwtHeader(token, types);
  const options = { algorithms: [...algorithms] };
  await (typeof key === 'function' ? compactVerify(token, key, options) : compactVerify(token, key, options));
}

/**
 * Returns the header of a JWT whose type a reader takes. It is not verified.
 * @throws JOSEError for no JWT, another type, or critical extensions.
 */
export function jwtHeader(token: string, types: JwtTypes): ProtectedHeaderParameters {
  const header = headerOf(token);
  // Also an empty or malformed list: it "MUST be understood".
  if (header.crit !== undefined) throw new errors.JOSENotSupported('critical extensions are not supported');
  if (!isOfType(header.typ, types)) throw new errors.JWTInvalid('it is another kind of JWT');
  return header;
}

function headerOf(token: string): ProtectedHeaderParameters {
  try {
    return decodeProtectedHeader(token);
  } catch (cause) {
    throw new errors.JWTInvalid('it is no JWT', { cause });
  }
}

function isOfType(typ: unknown, types: JwtTypes): boolean {
  if (typ !== undefined && typeof typ !== 'string') return false;
  const name = typ?.toLowerCase().replace(/^application\//, '');
  // The names of kinds end in +jwt (RFC 8725 §3.11).
  const isUntyped = name === undefined || !name.includes('+');
  return types.includes(name) || (isUntyped && types.includes(undefined));
}

/** Returns the claims of a JWT that is not verified, for what is decided before, such as the key. @throws JOSEError for no JWT. */
export function unverifiedClaims(token: string): JWTPayload {
  return decodeJwt(token);
}
