// The tenant's own templates of messages: where they are stored, and how they are rendered.
import type { Logger } from 'pino';
import type { EmailTemplate } from '../records/delivery.ts';
import type { Frozen } from '../records/record.ts';
import type { TenantRecord } from '../records/tenant.ts';
import { createTenantLiquid } from './liquid.ts';
import type { EmailKind, Notice, SmsKind } from './messages.ts';

/** A template that is not stored. Missing parts are replaced by ours. */
export interface DraftTemplate {
  from?: string | undefined;
  subject?: string | undefined;
  body?: string | undefined;
}

type Part = 'from' | 'subject' | 'body' | 'text';

/** Why parts of a draft could not be rendered. */
export type DraftFaults = Partial<Record<Part, string>>;

/** A template of the tenant. */
export interface TenantTemplate extends DraftTemplate {
  /** Names the template in the log. */
  name: string;
}

/** Renders a part of the tenant's own template; undefined when it has none or it fails. */
export type RenderTenantTemplate = (
  template: TenantTemplate,
  part: Part,
  source: string | undefined,
  variables: object,
) => Promise<string | undefined>;

/** Returns a function that renders the tenant's templates, and logs each broken one once. */
export function tenantRenderer(log: Logger): RenderTenantTemplate {
  const liquid = createTenantLiquid();
  const broken = new Set<string>();
  return async ({ name }, part, source, variables) => {
    if (source === undefined || source.trim() === '') return undefined;
    try {
      return await liquid.render(part === 'body' ? 'html' : 'text', source, variables);
    } catch (error) {
      // Logged once, not for every message.
      const key = `${name}\n${part}\n${source}`;
      if (!broken.has(key))
        log.error({ template: name, part, err: error }, 'a template is broken: ours is used');
      broken.add(key);
      return undefined;
    }
  };
}

/** Returns a function that renders a draft. @param faults receives the faults of its parts. */
export function draftRenderer(faults: DraftFaults): RenderTenantTemplate {
  const liquid = createTenantLiquid();
  return async (_template, part, source, variables) => {
    if (source === undefined || source.trim() === '') return undefined;
    try {
      return await liquid.render(part === 'body' ? 'html' : 'text', source, variables);
    } catch (thrown) {
      const [first = ''] = (thrown instanceof Error ? thrown.message : String(thrown)).split('\n');
      faults[part] = first;
      return undefined;
    }
  };
}

/** The settings of phone factors that contain templates, by the newer and the older name. */
const FACTOR_TEMPLATES = ['phone/templates', 'sms/templates'];

/** Returns the tenant's template of an SMS: from its connection, or from the settings of second factors. */
export function smsTemplate(
  { guardianSettings }: Frozen<TenantRecord>,
  kind: SmsKind,
  { connection, isEnrollment }: Notice,
): TenantTemplate {
  if (kind === 'mfa_sms') {
    const settings = (guardianSettings ?? {}) as Record<string, Record<string, unknown> | undefined>;
    const name = FACTOR_TEMPLATES.find((one) => settings[one] !== undefined) ?? '';
    const templates = settings[name] ?? {};
    const member = isEnrollment === true ? 'enrollment_message' : 'verification_message';
    return { name: `guardian ${name}`, body: textOf(templates[member]) };
  }
  const { template, from } = connection?.options ?? {};
  return { name: `connection ${connection?.name ?? ''}`, body: textOf(template), from: textOf(from) };
}

/** Returns the tenant's template of a kind, if any. */
export function storedTemplate(
  tenant: Frozen<TenantRecord>,
  kind: EmailKind,
): Frozen<EmailTemplate> | undefined {
  // An administrator who may change mail templates must not be able to divert invitations of other administrators.
  if (kind === 'administrator_invitation') return undefined;
  return tenant.emailTemplates?.find(({ template }) => template === kind);
}

/** Returns the tenant's template of an e-mail: from its connection, or from the tenant's list. */
export function emailTemplate(
  tenant: Frozen<TenantRecord>,
  kind: EmailKind,
  { connection }: Notice,
): TenantTemplate {
  if (kind !== 'passwordless_email') return { name: kind, ...storedTemplate(tenant, kind) };
  const { email } = (connection?.options ?? {}) as { email?: Record<string, unknown> };
  return {
    name: `connection ${connection?.name ?? ''}`,
    from: textOf(email?.from),
    subject: textOf(email?.subject),
    body: textOf(email?.body),
  };
}

const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined;
