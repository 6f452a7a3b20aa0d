// The tenant's own templates of messages: where they are, and what renders them.
import type { Logger } from 'pino';
import type { EmailTemplate } from '../records/delivery.ts';
import type { Frozen } from '../records/record.ts';
import type { TenantRecord } from '../records/tenant.ts';
import { createTenantLiquid } from './liquid.ts';
import type { EmailKind, Notice, SmsKind } from './messages.ts';

/** A template that is not kept yet; what it leaves out is ours. */
export interface DraftTemplate {
  from?: string | undefined;
  subject?: string | undefined;
  body?: string | undefined;
}

type Part = 'from' | 'subject' | 'body' | 'text';

/** Why parts of a draft could not be rendered. */
export type DraftFaults = Partial<Record<Part, string>>;

/** A template of the tenant's. */
export interface OwnTemplate extends DraftTemplate {
  /** Names it in the log. */
  name: string;
}

/** Renders a part of the tenant's own template; undefined when it has none or it fails. */
export type RenderOwn = (
  template: OwnTemplate,
  part: Part,
  source: string | undefined,
  variables: object,
) => Promise<string | undefined>;

/** Renders what the tenant has; what is broken is said once. */
export function tenantRenderer(log: Logger): RenderOwn {
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

/** Renders what is not kept yet. @param faults are noted there. */
export function draftRenderer(faults: DraftFaults): RenderOwn {
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

/** The settings of a second factor by phone that have its templates: by the newer name, and by the older one. */
const FACTOR_TEMPLATES = ['phone/templates', 'sms/templates'];

/** Where an SMS of a kind has a template: in its connection, or in the settings of second factors. */
export function smsTemplate(
  { guardianSettings }: Frozen<TenantRecord>,
  kind: SmsKind,
  { connection, isEnrollment }: Notice,
): OwnTemplate {
  if (kind === 'mfa_sms') {
    const settings = (guardianSettings ?? {}) as Record<string, Record<string, unknown> | undefined>;
    const name = FACTOR_TEMPLATES.find((one) => settings[one] !== undefined) ?? '';
    const own = settings[name] ?? {};
    const member = isEnrollment === true ? 'enrollment_message' : 'verification_message';
    return { name: `guardian ${name}`, body: textOf(own[member]) };
  }
  const { template, from } = connection?.options ?? {};
  return { name: `connection ${connection?.name ?? ''}`, body: textOf(template), from: textOf(from) };
}

/** The tenant's template of a kind. */
export function ownOf(tenant: Frozen<TenantRecord>, kind: EmailKind): Frozen<EmailTemplate> | undefined {
  // Who may change the tenant's mails must not be able to read along what makes others administrators.
  if (kind === 'administrator_invitation') return undefined;
  return tenant.emailTemplates?.find(({ template }) => template === kind);
}

/** Where an e-mail of a kind has a template: in its connection, or in the tenant's list. */
export function ownTemplate(
  tenant: Frozen<TenantRecord>,
  kind: EmailKind,
  { connection }: Notice,
): OwnTemplate {
  if (kind !== 'passwordless_email') return { name: kind, ...ownOf(tenant, kind) };
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
