// The sections of the tenant file about messages, in the deploy tool's vocabulary.
import { z } from 'zod';
import { hiddenNames, jointShape, secretPaths } from '../base/members.ts';
import { custom } from '../mail-providers/custom.ts';
import type { MailProvider, TenantMail } from '../mail-providers/mail-provider.ts';
import { smtp } from '../mail-providers/smtp.ts';

// docs/understand/decisions/passwordless-messages.md#mail-is-sent-by-smtp-only
/** The providers of mail that are built in. */
export const MAIL_PROVIDERS: readonly MailProvider[] = [smtp, custom];

/** Secrets of the providers that are only stored, for tools, by the hosted service's names. */
const STORED_SECRETS = [
  'api_key',
  'apiKey',
  'secretAccessKey',
  'clientSecret',
  'azure_cs_connection_string',
  'connectionString',
];

const members = MAIL_PROVIDERS.map((one) => one.members);

/** The members of the credentials that are stored encrypted. */
export const mailSecrets: readonly string[] = [...new Set([...secretPaths(members), ...STORED_SECRETS])];

/** The members of the credentials that the Management API does not return. */
export const hiddenCredentials: ReadonlySet<string> = new Set([
  ...hiddenNames(members),
  'api_key',
  'accessKeyId',
  'secretAccessKey',
  'connectionString',
  'connection_string',
  'clientSecret',
]);

/**
 * Returns the provider of a name. For one that is not built in it is SMTP, because all providers that the deploy tool
 * supports have an SMTP endpoint.
 */
export const mailProviderOf = (name: string | undefined): MailProvider =>
  MAIL_PROVIDERS.find((one) => one.name === name) ?? smtp;

export const emailProviderSchema = z.looseObject({
  name: z.string().default('smtp'),
  enabled: z.boolean().default(true),
  default_from_address: z
    .string()
    .regex(/^[^\r\n]*[^\s@<>]@[^\s@<>]+>?$/, 'must be an e-mail address, with or without a name')
    .optional(),
  credentials: z.looseObject(jointShape(members)).optional(),
});

/** Returns the provider of a tenant's mail; undefined if it has none, or one that lacks what it needs. */
export function tenantMail(emailProvider: unknown): TenantMail | undefined {
  const { name, enabled, credentials } = emailProviderSchema.safeParse(emailProvider ?? {}).data ?? {};
  return enabled === true ? mailProviderOf(name).open(credentials) : undefined;
}

/** The maximum lifetime of a link for a password reset in seconds, whatever its template says. */
export const MAX_RESET_SECONDS = 86_400;

/** `urlLifetimeInSeconds` is the lifetime of the link; the default depends on the template. */
export const emailTemplateSchema = z.looseObject({
  template: z.string().min(1),
  enabled: z.boolean().default(true),
  from: z.string().optional(),
  subject: z.string().optional(),
  body: z.string().optional(),
  syntax: z.enum(['liquid', 'html']).optional(),
  resultUrl: z.string().optional(),
  urlLifetimeInSeconds: z.number().int().positive().optional(),
  includeEmailInRedirect: z.boolean().optional(),
});

export type EmailTemplate = z.output<typeof emailTemplateSchema>;
