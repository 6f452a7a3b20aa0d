// The sections of the tenant file about the second factor, in the deploy tool's vocabulary.
import { createECDH } from 'node:crypto';
import { z } from 'zod';

/** Factors that can be switched on, in the order of the hosted service's list; `duo` is known by name, and always off. */
export const GUARDIAN_FACTORS = [
  'push-notification',
  'sms',
  'email',
  'duo',
  'otp',
  'webauthn-roaming',
  'webauthn-platform',
  'recovery-code',
] as const;

export type GuardianFactor = (typeof GUARDIAN_FACTORS)[number];

export const guardianFactorsSchema = z
  .array(
    z.looseObject({
      name: z.enum(GUARDIAN_FACTORS),
      enabled: z.boolean().default(false),
    }),
  )
  .default([]);

const policy = z.enum(['all-applications', 'confidence-score', 'never']);

/** The deploy tool writes `{ policies: [] }`; a bare list is understood, too. None of them: never. */
export const guardianPoliciesSchema = z
  .union([
    z.array(policy),
    z.looseObject({ policies: z.array(policy).default([]) }).transform(({ policies }) => policies),
  ])
  .default([]);

/** VAPID keys (RFC 8292) as the usual tools write them: base64url, the public one the uncompressed point. */
export const webPushSchema = z
  .looseObject({
    subject: z.string().regex(/^(mailto:|https:)/, 'must be a mailto: or https: address'),
    public_key: z.string().regex(/^[\w-]{87}$/, 'must be 65 bytes in base64url'),
    private_key: z.string().regex(/^[\w-]{43}$/, 'must be 32 bytes in base64url'),
  })
  .refine(isKeyPair, { path: ['private_key'], message: 'must be the key of public_key, on the curve P-256' })
  .optional();

function isKeyPair({ public_key, private_key }: { public_key: string; private_key: string }): boolean {
  const key = createECDH('prime256v1');
  try {
    key.setPrivateKey(Buffer.from(private_key, 'base64url'));
  } catch {
    return false;
  }
  return key.getPublicKey().equals(Buffer.from(public_key, 'base64url'));
}
