// The sections of the tenant file about multi-factor authentication, as the deploy tool writes them.
import { createECDH } from 'node:crypto';
import { z } from 'zod';

/** The factors, in the order of the hosted service. `duo` is accepted and always off. */
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

/** Whether a security key must check its PIN or fingerprint, may, or should not (WebAuthn Level 3 §5.8.6). */
export const USER_VERIFICATIONS = ['required', 'preferred', 'discouraged'] as const;

/** The name of the settings of security keys among those of the factors. */
export const ROAMING_SETTINGS = 'webauthn-roaming/settings';

const roamingSettings = z.looseObject({
  [ROAMING_SETTINGS]: z.looseObject({ userVerification: z.enum(USER_VERIFICATIONS) }),
});

/** Returns how the tenant wants security keys to verify their users; undefined if it does not say. */
export function roamingVerification(
  guardianSettings: unknown,
): (typeof USER_VERIFICATIONS)[number] | undefined {
  return roamingSettings.safeParse(guardianSettings).data?.[ROAMING_SETTINGS].userVerification;
}

/** The messages with codes, as the deploy tool writes them. It knows those of `sms` only. */
export const guardianFactorTemplatesSchema = z
  .array(
    z.looseObject({
      name: z.enum(['sms']),
      enrollment_message: z.string().nullish(),
      verification_message: z.string().nullish(),
    }),
  )
  .optional();

/** The name of the messages among the settings of factors, where the Management API keeps them. */
const SMS_TEMPLATES = 'sms/templates';

/** Returns the stored settings of factors with these messages. */
export function withFactorTemplates(
  settings: unknown,
  templates: z.output<typeof guardianFactorTemplatesSchema> = [],
): unknown {
  if (templates.length === 0) return settings;
  const messages = templates.map(({ name: _sms, ...rest }) => [SMS_TEMPLATES, rest]);
  return { ...Object(settings), ...Object.fromEntries(messages) };
}

/** Returns the sections of a tenant file for stored settings of factors: the messages have one of their own. */
export function guardianSections(settings: unknown): Record<string, unknown> {
  if (settings === undefined) return {};
  const { [SMS_TEMPLATES]: messages, ...guardianSettings } = settings as Readonly<Record<string, unknown>>;
  if (messages === undefined) return { guardianSettings };
  return { guardianSettings, guardianFactorTemplates: [{ name: 'sms', ...Object(messages) }] };
}

const policy = z.enum(['all-applications', 'confidence-score', 'never']);

/** The deploy tool writes `{ policies: [] }`; a bare list is accepted too. An empty list means never. */
export const guardianPoliciesSchema = z
  .union([
    z.array(policy),
    z.looseObject({ policies: z.array(policy).default([]) }).transform(({ policies }) => policies),
  ])
  .default([]);

/** VAPID keys (RFC 8292) in base64url, as common tools write them; the public key is an uncompressed point. */
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

/** What is said of a tenant that offers codes by a call. */
export const NO_VOICE = 'codes are not spoken in a call: they are sent as text';

/** The kinds of messages that codes by phone may come in. */
export const phoneMessageTypesSchema = z.looseObject({ message_types: z.array(z.string()).optional() });

export const isSpoken = (messageTypes: unknown): boolean =>
  Array.isArray(messageTypes) && messageTypes.includes('voice');
