// The signature algorithms of tokens (RFC 7518 §3.1, RFC 8037 §3.1).

// docs/understand/decisions/clients-keys.md#each-algorithm-has-its-own-set-of-keys
/** The algorithms of the tenant's keys; each has its own set of keys. In the order in which they are published. */
export const SIGNING_ALGS = ['RS256', 'RS512', 'PS256', 'ES256', 'EdDSA'] as const;

export type SigningAlg = (typeof SIGNING_ALGS)[number];

/** All algorithms, with those that use a secret shared with the client or API. */
export const TOKEN_ALGS = [...SIGNING_ALGS, 'HS256'] as const;

export type TokenAlg = (typeof TOKEN_ALGS)[number];

export function isSigningAlg(alg: unknown): alg is SigningAlg {
  return SIGNING_ALGS.some((known) => known === alg);
}
