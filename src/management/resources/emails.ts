// Messages: `/emails/provider`, `/email-templates`.
import { z } from 'zod';
import { emailProviderSchema, emailTemplateSchema } from '../../records/delivery.ts';
import { type Call, callsWith, created, noContent, ok } from '../call.ts';
import { apiError } from '../errors.ts';
import { fieldsQuery, selectFields } from '../fields.ts';
import { conflict, merged, notFound } from '../resource.ts';
import { type SectionDependencies, section } from '../section.ts';

const call = callsWith<SectionDependencies>();

const object = z.record(z.string(), z.unknown());
const PROVIDERS = [
  'mailgun',
  'mandrill',
  'sendgrid',
  'resend',
  'ses',
  'sparkpost',
  'smtp',
  'azure_cs',
  'ms365',
  'custom',
] as const;

const providerMembers = {
  enabled: z.boolean().optional(),
  default_from_address: z.string().max(255).nullish(),
  credentials: object,
  settings: object.nullish(),
};
const providerBody = z.strictObject({ ...providerMembers, name: z.enum(PROVIDERS) });

const noProvider = notFound('There is not a configured email provider', 'inexistent_email_provider');

function providerCalls(): Call<SectionDependencies>[] {
  const part = section('emailProvider', emailProviderSchema.optional());
  const path = '/emails/provider';
  // Credentials are answered to those alone who ask for them by name.
  const view = (provider: object, fields?: string): object => {
    const isAsked = (fields ?? '').split(',').includes('credentials');
    const { credentials, ...rest } = provider as { credentials?: unknown };
    return isAsked ? { ...rest, credentials } : rest;
  };
  return [
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
        return created(view(after ?? {}));
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
          return merged(structuredClone(current) as object, body);
        });
        return ok(view(after ?? {}), { before: view(before ?? {}), after: view(after ?? {}) });
      },
    }),
    call({
      method: 'DELETE',
      path,
      scopes: ['delete:email_provider'],
      summary: 'Delete the e-mail provider',
      handle: async (deps) => {
        await part.change(deps, (current) => {
          if (current === undefined) throw noProvider();
          return undefined;
        });
        return noContent();
      },
    }),
  ];
}

/** The templates there are, by the hosted service's names. */
const TEMPLATES = [
  'verify_email',
  'verify_email_by_code',
  'reset_email',
  'reset_email_by_code',
  'welcome_email',
  'blocked_account',
  'stolen_credentials',
  'enrollment_email',
  'mfa_oob_code',
  'change_password',
  'password_reset',
  'user_invitation',
  'async_approval',
] as const;

const templateMembers = {
  body: z.string().max(1_000_000).nullable(),
  from: z.string().max(255).nullable(),
  subject: z.string().max(500).nullable(),
  syntax: z.enum(['liquid']).nullable(),
  enabled: z.boolean().nullable(),
  resultUrl: z.string().max(2048).nullish(),
  urlLifetimeInSeconds: z.number().int().positive().nullish(),
  includeEmailInRedirect: z.boolean().nullish(),
};
const templateBody = z.strictObject({ ...templateMembers, template: z.enum(TEMPLATES) });

const noTemplate = notFound('The template does not exist.', 'inexistent_email_template');

function templateCalls(): Call<SectionDependencies>[] {
  const part = section('emailTemplates', z.array(emailTemplateSchema));
  const known = (name: string | undefined) => {
    const template = TEMPLATES.find((one) => one === name);
    if (template === undefined)
      throw apiError(400, 'Path validation error: unknown template on property templateName.', 'invalid_uri');
    return template;
  };
  const change = (method: 'PUT' | 'PATCH') =>
    call({
      method,
      path: '/email-templates/:templateName',
      scopes: ['update:email_templates'],
      summary: `${method === 'PUT' ? 'Replace' : 'Update'} an e-mail template`,
      body: templateBody.partial(),
      largestBody: 1_200_000,
      handle: async (deps, { params, body }) => {
        const template = known(params.templateName);
        const { before, after } = await part.change(deps, (current = []) => {
          const old = current.find((one) => one.template === template);
          if (old === undefined) throw noTemplate();
          const base = method === 'PUT' ? {} : (structuredClone(old) as object);
          return current.map((one) => (one === old ? { ...merged(base, body), template } : one));
        });
        return ok(
          after.find((one) => one.template === template),
          { before: before?.find((one) => one.template === template), after: { template, ...body } },
        );
      },
    });
  return [
    call({
      method: 'POST',
      path: '/email-templates',
      scopes: ['create:email_templates'],
      summary: 'Create an e-mail template',
      body: templateBody,
      largestBody: 1_200_000,
      handle: async (deps, { body }) => {
        const { template } = body;
        const { after } = await part.change(deps, (current = []) => {
          if (current.some((one) => one.template === template))
            throw conflict(`Template (${template}) already exists.`)();
          return [...current, merged({ template }, body)];
        });
        return ok(
          after.find((one) => one.template === template),
          { after: body },
        );
      },
    }),
    call({
      method: 'GET',
      path: '/email-templates/:templateName',
      scopes: ['read:email_templates'],
      summary: 'Get an e-mail template',
      handle: async (deps, { params }) => {
        const template = known(params.templateName);
        const found = (await part.read(deps))?.find((one) => one.template === template);
        if (found === undefined) throw noTemplate();
        return ok(found);
      },
    }),
    change('PATCH'),
    change('PUT'),
  ];
}

/** All calls of messages. */
export const emailCalls: Call<SectionDependencies>[] = [...providerCalls(), ...templateCalls()];
