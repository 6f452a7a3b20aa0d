// The credentials of an application in the tenant file.
import { z } from 'zod';
import { certificateCredential, credentialMembers, subjectCredential } from './client-certificates.ts';
import { isNameOnly, publicKeyFault } from './client-keys.ts';

/** The algorithms for assertions and request objects: neither `none` nor one with a shared secret. */
export const CREDENTIAL_ALGORITHMS = ['RS256', 'RS384', 'PS256', 'PS384', 'ES256', 'ES384', 'EdDSA'] as const;

/** A public key of `private_key_jwt`; unknown members are kept. */
export const credentialSchema = z
  .looseObject({
    ...credentialMembers,
    credential_type: z.literal('public_key').optional(),
    /** The key id that the header of an assertion names; without it, the header must name none. */
    kid: z.string().optional(),
    alg: z.enum(CREDENTIAL_ALGORITHMS).default('RS256'),
    /** A public key (SPKI) or a certificate, as PEM. */
    pem: z.string().optional(),
    /** Alternatively, the public key as a JWK. */
    jwk: z.record(z.string(), z.unknown()).optional(),
  })
  .superRefine((credential, context) => {
    const fault = isNameOnly(credential) ? undefined : publicKeyFault(credential);
    if (fault !== undefined) context.addIssue({ code: 'custom', ...fault });
  });

export const waitingCredential = z
  .looseObject({ credential_type: z.string().optional() })
  .transform((one, context) => {
    const schemas = { x509_cert: certificateCredential, cert_subject_dn: subjectCredential };
    const type = one.credential_type as keyof typeof schemas;
    const result = (Object.hasOwn(schemas, type) ? schemas[type] : credentialSchema).safeParse(one);
    if (result.success) return result.data;
    for (const { path, message } of result.error.issues) context.addIssue({ code: 'custom', path, message });
    return z.NEVER;
  });

/** The credentials of a method: up to two are valid at once, the present one and the next. */
export const MAX_ACTIVE_KEYS = 2;
