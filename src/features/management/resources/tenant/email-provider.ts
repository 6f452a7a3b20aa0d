// `/emails/provider`: the provider that sends the tenant's e-mail.
import { z } from 'zod';
import { hiddenNames } from '../../../../records/base/members.ts';
import {
  emailProviderSchema,
  hiddenCredentials,
  MAIL_PROVIDERS,
  mailProviderOf,
} from '../../../../records/tenant/delivery.ts';
import { type Call, callsWith, created, noContent, ok } from '../../call.ts';
import { apiError } from '../../management-errors.ts';
import { fieldsQuery, selectFields } from '../../management-fields.ts';
import { conflict, merged, notFound } from '../../resource.ts';
import { type SectionDependencies, section } from '../../section.ts';

const call = callsWith<SectionDependencies>();

const object = z.record(z.string(), z.unknown());
/** The hosted service's names, and ours. */
const NAMES = new Set([
  ...['mailgun', 'mandrill', 'sendgrid', 'resend', 'ses', 'sparkpost', 'smtp', 'azure_cs', 'ms365', 'custom'],
  ...MAIL_PROVIDERS.map(({ name }) => name),
]);

const providerMembers = {
  enabled: z.boolean().optional(),
  // Terraform's provider sends an empty text for no address.
  default_from_address: z
    .string()
    .max(255)
    .nullish()
    .transform((address) => (address === '' ? null : address)),
  credentials: object,
  settings: object.nullish(),
};
const providerBody = z.strictObject({ ...providerMembers, name: z.enum([...NAMES]) });

const noProvider = notFound('There is not a configured email provider', 'inexistent_email_provider');

const part = section('emailProvider', emailProviderSchema.optional());
const path = '/emails/provider';
// Responses have credentials, without their secrets, for the caller who set them and for one who asks for the member
// by name.
const view = (provider: object, fields?: string): object => {
  const includesCredentials = (fields ?? '').split(',').includes('credentials');
  const { credentials, ...rest } = provider as Provider;
  // The record's schema adds a default port, which only SMTP has.
  const isShown = (name: string) =>
    !hiddenCredentials.has(name) && (rest.name === 'smtp' || name !== 'smtp_port');
  return includesCredentials ? { ...rest, credentials: members(credentials, isShown) } : rest;
};

function members(
  value: object | undefined,
  isIncluded: (name: string) => boolean,
): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(value ?? {}).filter(([name]) => isIncluded(name)));
}

type Provider = { name?: string; credentials?: Readonly<Record<string, unknown>> };

// docs/understand/decisions/management-api.md#a-stored-secret-that-a-change-leaves-out-is-kept-except-a-mail-servers-password
/**
 * Secrets that the new credentials leave out are kept, because no response contains them; but none is sent to another address than it was set for.
 * @throws AuthError 400 for another address, such as that of a mail server, without the secret.
 */
function changed(before: Provider, changes: Provider): object {
  const after = merged(before, changes as Record<string, unknown>) as Provider;
  if (changes.credentials === undefined || after.name !== before.name) return after;
  const keptSecrets = members(before.credentials, (name) => hiddenCredentials.has(name));
  const { sentTo, members: own } = mailProviderOf(after.name);
  const isSentElsewhere =
    sentTo !== undefined && changes.credentials[sentTo] !== before.credentials?.[sentTo];
  const missing = hiddenNames([own]).find(
    (name) => keptSecrets[name] !== undefined && changes.credentials?.[name] === undefined,
  );
  if (isSentElsewhere && missing !== undefined) {
    const message = `Payload validation error: 'Missing required property: ${missing}' on property credentials.`;
    throw apiError(400, `${message} Another ${sentTo} needs it again.`, 'invalid_body');
  }
  return { ...after, credentials: { ...keptSecrets, ...changes.credentials } };
}

export const emailProviderCalls: Call<SectionDependencies>[] = [
  call({
    method: 'GET',
    path,
    scopes: ['read:email_provider'],
    summary: 'Get the e-mail provider',
    query: z.strictObject(fieldsQuery),
    handle: async (deps, { query }) => {
      const provider = await part.read(deps);
      if (provider === undefined) throw noProvider();
      return ok(selectFields(view(provider, query.fields), query));
    },
  }),
  call({
    method: 'POST',
    path,
    scopes: ['create:email_provider'],
    summary: 'Configure the e-mail provider',
    body: providerBody,
    handle: async (deps, { body }) => {
      const { after } = await part.change(deps, (current) => {
        if (current !== undefined) throw conflict('Email provider is already configured.')();
        return merged({}, body);
      });
      return created(view(after ?? {}, 'credentials'));
    },
  }),
  call({
    method: 'PATCH',
    path,
    scopes: ['update:email_provider'],
    summary: 'Update the e-mail provider',
    body: providerBody.partial(),
    handle: async (deps, { body }) => {
      const { before, after } = await part.change(deps, (current) => {
        if (current === undefined) throw noProvider();
        return changed(structuredClone(current) as Provider, body as Provider);
      });
      return ok(view(after ?? {}, 'credentials'), { before: view(before ?? {}), after: view(after ?? {}) });
    },
  }),
  call({
    method: 'DELETE',
    path,
    scopes: ['delete:email_provider'],
    summary: 'Delete the e-mail provider',
    handle: async (deps) => {
      await part.change(deps, () => undefined);
      return noContent();
    },
  }),
];
