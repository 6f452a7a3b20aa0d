// The credentials of an application in the tenant file.
import { z } from 'zod';
import { certificateCredential, credentialMembers, subjectCredential } from './client-certificates.ts';
import { publicKeyFault } from './client-keys.ts';

/** What an application signs assertions and request objects with: neither `none` nor a shared secret. */
export const CREDENTIAL_ALGORITHMS = ['RS256', 'RS384', 'PS256', 'PS384', 'ES256', 'ES384', 'EdDSA'] as const;

/** A public key of `private_key_jwt`; kept as it was written. */
export const credentialSchema = z
  .looseObject({
    ...credentialMembers,
    credential_type: z.literal('public_key').optional(),
    /** What the header of an assertion names it by; without it, headers name none. */
    kid: z.string().optional(),
    alg: z.enum(CREDENTIAL_ALGORITHMS).default('RS256'),
    /** PEM (SPKI) public key, or a certificate. */
    pem: z.string().optional(),
    /** Or the public key as a JWK. */
    jwk: z.record(z.string(), z.unknown()).optional(),
  })
  .superRefine((credential, context) => {
    const fault = publicKeyFault(credential);
    if (fault !== undefined) context.addIssue({ code: 'custom', ...fault });
  });

/** Of any method, told by its type. */
export const waitingCredential = z
  .looseObject({ credential_type: z.string().optional() })
  .transform((one, context) => {
    const schemas = { x509_cert: certificateCredential, cert_subject_dn: subjectCredential };
    const type = one.credential_type as keyof typeof schemas;
    const read = (Object.hasOwn(schemas, type) ? schemas[type] : credentialSchema).safeParse(one);
    if (read.success) return read.data;
    for (const { path, message } of read.error.issues) context.addIssue({ code: 'custom', path, message });
    return z.NEVER;
  });

/** Credentials of a method that are good at once: the one in use, and the next. */
export const MOST_LIVE = 2;
