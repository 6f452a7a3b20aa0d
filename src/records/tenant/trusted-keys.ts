// Public keys of a tenant that this one takes the place of. They are published beside ours, so that APIs go on accepting its
// tokens, and nothing is ever signed with them.
// docs/understand/decisions/moving.md#keys-of-the-old-tenant-are-published-and-verify-logout-hints-nothing-else
import { createPublicKey, type JsonWebKey } from 'node:crypto';
import { z } from 'zod';
import type { Frozen, Stored } from '../base/record.ts';

/** `id` is the `kid`. */
export interface TrustedKeyRecord extends Stored {
  jwk: TrustedJwk;
  /** The issuers of the ID tokens that it verifies, beside our own, which is the same where a custom domain stays. */
  issuers: string[];
  /** Where it was read: an address, or the name of a file. */
  source: string;
  /** ISO 8601. */
  added_at: string;
  /** When it ends, ISO 8601; judged whenever it is used. */
  until: string;
}

/** The most keys of a set: the hosted service has two, and some after rotations. */
export const MAX_TRUSTED_KEYS = 20;

const PRIVATE = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k', 'priv'];
/** Bits of a modulus. A larger one would cost whoever verifies by it. */
const RSA_BITS = { min: 2048, max: 8192 };

const CURVES: Readonly<Record<string, string>> = { 'P-256': 'ES256', 'P-384': 'ES384', 'P-521': 'ES512' };
const RSA_ALGS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'];

const base64url = z.string().regex(/^[\w-]{1,2048}$/, 'is not base64url');
const common = {
  kid: z.string().regex(/^[\x21-\x7e]{1,255}$/, 'is no key id'),
  use: z.literal('sig').optional(),
  key_ops: z.array(z.literal('verify')).optional(),
};

const jwkSchema = z
  .discriminatedUnion('kty', [
    z.object({
      ...common,
      kty: z.literal('RSA'),
      n: base64url,
      e: base64url,
      alg: z.enum(RSA_ALGS).default('RS256'),
    }),
    z.object({
      ...common,
      kty: z.literal('EC'),
      crv: z.enum(['P-256', 'P-384', 'P-521']),
      x: base64url,
      y: base64url,
      alg: z.string().optional(),
    }),
  ])
  .transform(({ use: _1, key_ops: _2, ...jwk }, context) => {
    const fault = keyFault(jwk);
    if (fault === undefined) return { ...jwk, alg: jwk.alg ?? algOf(jwk), use: 'sig' as const };
    context.addIssue({ code: 'custom', message: fault });
    return z.NEVER;
  });

export type TrustedJwk = z.output<typeof jwkSchema>;

/** A key set (RFC 7517 §5) of public keys. A set with a private or symmetric key is refused as a whole. */
export const trustedKeySetSchema = z
  .looseObject({ keys: z.array(z.looseObject({})).min(1).max(MAX_TRUSTED_KEYS) })
  .superRefine(({ keys }, context) => {
    for (const [index, key] of keys.entries()) {
      const found = PRIVATE.find((name) => name in key);
      const message = `has the private member ${found}: nobody but the old tenant may have it`;
      if (found !== undefined) context.addIssue({ code: 'custom', message, path: ['keys', index] });
    }
  })
  .transform(({ keys }) => ({ keys }))
  .pipe(z.object({ keys: z.array(jwkSchema) }))
  .refine(({ keys }) => new Set(keys.map(({ kid }) => kid)).size === keys.length, 'two keys have one kid');

type ReadJwk = { kty: 'RSA'; alg?: string } | { kty: 'EC'; crv: string; alg?: string | undefined };

const algOf = (jwk: ReadJwk) => (jwk.kty === 'EC' ? (CURVES[jwk.crv] ?? '') : 'RS256');

/** Returns why a key is refused; undefined if it is not. */
function keyFault(jwk: ReadJwk): string | undefined {
  if (jwk.kty === 'EC' && jwk.alg !== undefined && jwk.alg !== algOf(jwk))
    return `is a key of ${jwk.crv}, and not of ${jwk.alg}`;
  try {
    const { asymmetricKeyDetails: details } = createPublicKey({ key: jwk as JsonWebKey, format: 'jwk' });
    if (jwk.kty === 'EC') return undefined;
    const { modulusLength = 0, publicExponent = 0n } = details ?? {};
    if (modulusLength < RSA_BITS.min || modulusLength > RSA_BITS.max)
      return `has ${modulusLength} bits: ${RSA_BITS.min} to ${RSA_BITS.max} are accepted`;
    return publicExponent < 3n || publicExponent % 2n === 0n ? 'has an exponent that no key has' : undefined;
  } catch {
    return 'is no public key';
  }
}

/** @param now epoch milliseconds, of the time of day. */
export function isTrusted({ until }: Pick<Frozen<TrustedKeyRecord>, 'until'>, now: number): boolean {
  return now < Date.parse(until);
}
