// The algorithms that tokens are signed with (RFC 7518 §3.1, RFC 8037 §3.1).

/** By a key of the tenant's; the keys of each are a set of their own. In the order in which they are published. */
export const SIGNING_ALGS = ['RS256', 'RS512', 'PS256', 'ES256', 'EdDSA'] as const;

export type SigningAlg = (typeof SIGNING_ALGS)[number];

/** Those, and by a secret that the application or the API has too. */
export const TOKEN_ALGS = [...SIGNING_ALGS, 'HS256'] as const;

export type TokenAlg = (typeof TOKEN_ALGS)[number];

/** Whether tokens are signed by a key of the tenant's with it. */
export function isSigningAlg(alg: unknown): alg is SigningAlg {
  return SIGNING_ALGS.some((known) => known === alg);
}
