// How tokens are encrypted for their receivers (RFC 7516), with public keys of APIs and applications.
// docs/understand/decisions/clients-keys.md#token-encryption-uses-rsa-oaep-with-sha-256-or-stronger
import { z } from 'zod';
import { publicKeyFault } from './client-keys.ts';

/** The algorithms for the content key (RFC 7518 §4.3), without RSA1_5 and without RSA-OAEP with SHA-1. */
export const ENCRYPTION_ALGS = ['RSA-OAEP-256', 'RSA-OAEP-384', 'RSA-OAEP-512'] as const;

/** The algorithms for the content (RFC 7518 §5). */
export const CONTENT_ENCRYPTION = ['A256GCM', 'A128CBC-HS256'] as const;

/** A public RSA key of at least 2048 bits, as PEM. */
const encryptionKey = z
  .looseObject({
    name: z.string().optional(),
    alg: z.enum(ENCRYPTION_ALGS).default('RSA-OAEP-256'),
    /** The `kid` in the header of tokens. */
    kid: z.string().min(1).max(255).optional(),
    pem: z.string(),
  })
  .superRefine((key, context) => {
    const fault = publicKeyFault({ alg: key.alg, pem: key.pem });
    if (fault !== undefined) context.addIssue({ code: 'custom', ...fault });
  });

/** `token_encryption` of an API: its access tokens are JWEs that contain the signed JWT. */
export const tokenEncryption = z.looseObject({
  format: z.literal('compact-nested-jwe'),
  encryption_key: encryptionKey,
});

/** `encryption_key` of an application, as the vendor names it. */
export const applicationKey = z.looseObject({
  /** A public key as PEM. */
  pub: z.string().nullish(),
  /** Alternatively, a certificate. */
  cert: z.string().nullish(),
});

/** An application whose ID tokens (OpenID Connect Registration 1.0 §2) and responses (JARM §3) may be encrypted. */
interface Encrypted {
  readonly id_token_encrypted_response_alg?: string | undefined;
  readonly authorization_encrypted_response_alg?: string | undefined;
  readonly encryption_key?:
    | { readonly pub?: string | null | undefined; readonly cert?: string | null | undefined }
    | null
    | undefined;
}

export function encryptionPem({ encryption_key: key }: Encrypted): string | undefined {
  return key?.pub ?? key?.cert ?? undefined;
}

const WANTED = ['id_token_encrypted_response_alg', 'authorization_encrypted_response_alg'] as const;

/** Returns why an application's tokens could not be encrypted as it is configured; undefined if they can. */
export function encryptionFault(client: Encrypted): { path: string[]; message: string } | undefined {
  const member = WANTED.find((name) => client[name] !== undefined);
  const alg = member && client[member];
  if (alg === undefined) return undefined;
  const pem = encryptionPem(client);
  if (pem === undefined) {
    return { path: ['encryption_key'], message: `required with ${member}: pub, a PEM` };
  }
  const fault = publicKeyFault({ alg, pem });
  return fault && { ...fault, path: ['encryption_key', client.encryption_key?.pub == null ? 'cert' : 'pub'] };
}
