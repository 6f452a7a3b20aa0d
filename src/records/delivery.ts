// The sections of the tenant file about messages, in the deploy tool's vocabulary.
import { z } from 'zod';

// docs/decisions/passwordless-messages.md#mail-is-sent-by-smtp-only
/** Only SMTP is built in; all providers that the deploy tool supports have an SMTP endpoint. */
export const emailProviderSchema = z.looseObject({
  name: z.string().default('smtp'),
  enabled: z.boolean().default(true),
  default_from_address: z
    .string()
    .regex(/^[^\r\n]*[^\s@<>]@[^\s@<>]+>?$/, 'must be an e-mail address, with or without a name')
    .optional(),
  credentials: z
    .looseObject({
      smtp_host: z
        .string()
        .regex(/^[A-Za-z0-9._:-]+$/, 'must be a host name or an address, without smtp:// and port')
        .optional(),
      smtp_port: z.number().int().min(1).max(65_535).default(587),
      smtp_user: z.string().optional(),
      smtp_pass: z.string().optional(),
    })
    .optional(),
});

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
