// The public signing keys: the key set, and verification of our own tokens. Imported once per key set.
import { createHash } from 'node:crypto';
import { createLocalJWKSet, type JSONWebKeySet, type JWTVerifyGetKey } from 'jose';
import { type Config, derived } from '../../tenant/config.ts';
import type { SigningKey } from '../../tenant/snapshot.ts';

export interface PublishedKeys {
  /** The public key set, as `/.well-known/jwks.json` gives it (RFC 7517). */
  keySet(): JSONWebKeySet;
  /** Finds the key of one of our tokens: current, next or previous. */
  find: JWTVerifyGetKey;
}

/** Makes the published keys of a tenant, which are always up to date. */
export function publishedKeys(config: Config): PublishedKeys {
  const keySet = derived(config.signingKeys, publicKeySet);
  const finder = derived(keySet, createLocalJWKSet);
  return { keySet, find: (header, token) => finder()(header, token) };
}

function publicKeySet(keys: readonly SigningKey[]): JSONWebKeySet {
  const all = keys.map(({ id, jwk, x5c }) => ({
    kty: jwk.kty,
    use: 'sig',
    // Verifiers, including ours, use a key only for its own algorithm (RFC 8725 §3.1).
    alg: jwk.alg,
    kid: id,
    ...publicMembers(jwk),
    x5c,
    x5t: thumbprint(x5c[0] ?? ''),
  }));
  return { keys: all } as JSONWebKeySet;
}

/** Returns the public members of a key (RFC 7518 §6.2.1 and §6.3.1, RFC 8037 §2). */
function publicMembers({ kty, n, e, crv, x, y }: SigningKey['jwk']): object {
  if (kty === 'RSA') return { n, e };
  return kty === 'EC' ? { crv, x, y } : { crv, x };
}

/** Returns the SHA-1 of a certificate, base64url, as RFC 7515 §4.1.7 defines `x5t`. */
function thumbprint(certificate: string): string {
  return createHash('sha1').update(Buffer.from(certificate, 'base64')).digest('base64url');
}
