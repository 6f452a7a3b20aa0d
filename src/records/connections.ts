// Connections in the tenant file: databases, and all others.
import { z } from 'zod';

export const passwordPolicySchema = z.enum(['none', 'low', 'fair', 'good', 'excellent']);

export const databaseOptionsSchema = z.looseObject({
  passwordPolicy: passwordPolicySchema.default('good'),
  password_complexity_options: z
    .looseObject({ min_length: z.number().int().min(1).max(128).optional() })
    .optional(),
  password_history: z
    .looseObject({
      enable: z.boolean().default(false),
      size: z.number().int().min(0).max(24).default(5),
    })
    .optional(),
  password_dictionary: z
    .looseObject({ enable: z.boolean().default(false), dictionary: z.array(z.string()).default([]) })
    .optional(),
  password_no_personal_info: z.looseObject({ enable: z.boolean().default(false) }).optional(),
  requires_username: z.boolean().default(false),
  validation: z
    .looseObject({
      username: z
        .looseObject({
          min: z.number().int().min(1).max(128).default(1),
          max: z.number().int().min(1).max(128).default(15),
        })
        .refine(({ min, max }) => min <= max, { path: ['min'], message: 'must not be above max' })
        .optional(),
    })
    .optional(),
  disable_signup: z.boolean().default(false),
  brute_force_protection: z.boolean().default(true),
});

const connectionFields = {
  id: z.string().optional(),
  name: z
    .string()
    .max(128)
    .regex(/^[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?$/, 'alphanumerics and dashes, alphanumeric at both ends'),
  display_name: z.string().optional(),
  /** client_ids, or names of applications in the tenant file (resolved when it is applied). */
  enabled_clients: z.array(z.string()).default([]),
  realms: z.array(z.string()).optional(),
  is_domain_connection: z.boolean().default(false),
};

export const databaseSchema = z.looseObject({
  ...connectionFields,
  strategy: z.literal('auth0').default('auth0'),
  options: databaseOptionsSchema.prefault({}),
});

/** The options of an `email` or `sms` connection; `totp` is the hosted service's name, nothing of RFC 6238 is meant. */
export const passwordlessOptionsSchema = z.looseObject({
  totp: z
    .looseObject({
      /** Seconds that a code or link is good. */
      time_step: z.number().int().min(30).max(86_400).default(180),
      /** Digits of a code. */
      length: z.number().int().min(4).max(12).default(6),
    })
    .prefault({}),
  disable_signup: z.boolean().default(false),
});

const OPTIONS: Readonly<Record<string, z.ZodType>> = {
  email: passwordlessOptionsSchema,
  sms: passwordlessOptionsSchema,
};

/** A connection that is no database. Its options are kept as they are written, and checked by its strategy's schema. */
export const connectionSchema = z
  .looseObject({
    ...connectionFields,
    strategy: z.string().min(1),
    options: z.record(z.string(), z.unknown()).default({}),
  })
  .superRefine(({ strategy, options }, context) => {
    const schema = Object.hasOwn(OPTIONS, strategy) ? OPTIONS[strategy] : undefined;
    for (const { path, message } of schema?.safeParse(options).error?.issues ?? []) {
      context.addIssue({ code: 'custom', path: ['options', ...path], message });
    }
  });
