// `/email-templates`: the tenant's e-mail templates.
import { z } from 'zod';
import { emailTemplateSchema } from '../../../../records/tenant/delivery.ts';
import { type Call, callsWith, ok } from '../../call.ts';
import { apiError } from '../../management-errors.ts';
import { conflict, merged, notFound } from '../../resource.ts';
import { type SectionDependencies, section } from '../../section.ts';

const call = callsWith<SectionDependencies>();

/** The names of the templates, as at the hosted service. */
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
    handle: async (deps, { params, body }) => {
      const template = known(params.templateName);
      const { before, after } = await part.change(deps, (current = []) => {
        const old = current.find((one) => one.template === template);
        if (old === undefined) throw noTemplate();
        const base = method === 'PUT' ? {} : old;
        return current.map((one) => (one === old ? { ...merged(base, body), template } : one));
      });
      return ok(
        after.find((one) => one.template === template),
        { before: before?.find((one) => one.template === template), after: { template, ...body } },
      );
    },
  });

export const emailTemplateCalls: Call<SectionDependencies>[] = [
  call({
    method: 'POST',
    path: '/email-templates',
    scopes: ['create:email_templates'],
    summary: 'Create an e-mail template',
    body: templateBody,
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
