// The public signing keys: the key set, and verification of our own tokens. Imported once per key set.
import { createHash } from 'node:crypto';
import { createLocalJWKSet, type JSONWebKeySet, type JWTVerifyGetKey } from 'jose';
import { type Config, derived, type SigningKey } from '../tenant/config.ts';

export interface PublishedKeys {
  /** The public key set, as `/.well-known/jwks.json` gives it (RFC 7517). */
  keySet(): JSONWebKeySet;
  /** Finds the key of one of our tokens: current, next or previous. */
  find: JWTVerifyGetKey;
}

/** The published keys of a tenant, always up to date. */
export function publishedKeys(config: Config): PublishedKeys {
  const keySet = derived(config.signingKeys, publicKeySet);
  const finder = derived(keySet, createLocalJWKSet);
  return { keySet, find: (header, token) => finder()(header, token) };
}

function publicKeySet(keys: readonly SigningKey[]): JSONWebKeySet {
  const all = keys.map(({ id, jwk, x5c }) => ({
    kty: jwk.kty,
    use: 'sig',
    alg: 'RS256',
    kid: id,
    n: jwk.n,
    e: jwk.e,
    x5c,
    x5t: thumbprint(x5c[0] ?? ''),
  }));
  return { keys: all } as unknown as JSONWebKeySet;
}

/** SHA-1 of the certificate, base64url, as RFC 7515 §4.1.7 defines `x5t`. */
function thumbprint(certificate: string): string {
  return createHash('sha1').update(Buffer.from(certificate, 'base64')).digest('base64url');
}
