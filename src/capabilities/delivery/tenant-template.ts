// The tenant's own templates of messages: where they are stored, and how they are rendered.

import type { Frozen } from '../../records/base/record.ts';
import type { EmailTemplate } from '../../records/tenant/delivery.ts';
import type { PhoneTemplate, PhoneTemplateType } from '../../records/tenant/phone-templates.ts';
import type { TenantRecord } from '../../records/tenant/tenant.ts';
import { type ReportingLiquid, TemplateFault, type TenantLiquid } from '../liquid/liquid.ts';
import type { EmailKind, Notice, SmsKind } from './delivery-messages.ts';

/** A template that is not stored. Missing parts are replaced by ours. */
export interface DraftTemplate {
  from?: string | undefined;
  subject?: string | undefined;
  body?: string | undefined;
}

type Part = 'from' | 'subject' | 'body' | 'text';

/** Why parts of a draft could not be rendered. */
export type DraftFaults = Partial<Record<Part, string>>;

export interface TenantTemplate extends DraftTemplate {
  /** Names the template in the log. */
  name: string;
  /** Whether it is one for messages to phones, whatever sends them. */
  isOfPhones?: true;
}

/** Renders a part of the tenant's own template; undefined when it has none or it fails. */
export type RenderTenantTemplate = (
  template: TenantTemplate,
  part: Part,
  source: string | undefined,
  variables: object,
) => Promise<string | undefined>;

/** Returns a function that renders the tenant's templates, and reports broken ones. */
export function tenantRenderer(liquid: ReportingLiquid): RenderTenantTemplate {
  return partRenderer(liquid, ({ name }, part, source, { message: fault }) =>
    liquid.report({ name: `${name} (${part})`, source, fault }),
  );
}

/** @param faults receives the faults of its parts. */
export function draftRenderer(liquid: TenantLiquid, faults: DraftFaults): RenderTenantTemplate {
  return partRenderer(liquid, (_template, part, _source, { message }) => {
    faults[part] = message;
  });
}

function partRenderer(
  liquid: TenantLiquid,
  failed: (template: TenantTemplate, part: Part, source: string, fault: TemplateFault) => void,
): RenderTenantTemplate {
  return async (template, part, source, variables) => {
    if (source === undefined || source.trim() === '') return undefined;
    try {
      return await liquid.render({ kind: part === 'body' ? 'html' : 'text', source, variables });
    } catch (thrown) {
      if (!(thrown instanceof TemplateFault)) throw thrown;
      failed(template, part, source, thrown);
      return undefined;
    }
  };
}

/** The settings of phone factors that contain templates, by the newer and the older name. */
const FACTOR_TEMPLATES = ['phone/templates', 'sms/templates'];

/** The tenant's settings, and its templates of messages to phones by type. */
interface SmsTemplates {
  settings: Frozen<TenantRecord>;
  phoneTemplates: ReadonlyMap<string, PhoneTemplate>;
}

// docs/understand/decisions/passwordless-messages.md#phone-templates-come-after-those-of-factors-and-connections
/**
 * Returns the tenant's template of an SMS: that of messages to phones, of its connection, or of the settings of second factors.
 */
export function smsTemplate(all: SmsTemplates, kind: SmsKind, notice: Notice): TenantTemplate {
  const { phoneTemplate: tried, isEnrollment } = notice;
  if (tried !== undefined) return phoneTemplate(all, tried) ?? { name: tried };
  const type: PhoneTemplateType = isEnrollment === true ? 'otp_enroll' : 'otp_verify';
  const ofPhones = all.phoneTemplates.get(type)?.isDisabled === true ? undefined : phoneTemplate(all, type);
  const own = factorOrConnectionTemplate(all.settings, kind, notice);
  if (ofPhones === undefined) return own;
  const isConsolidated = all.settings.tenant.phone_consolidated_experience === true;
  const isFirst = ofPhones.body !== undefined && (isConsolidated || own.body === undefined);
  const [first, second] = isFirst ? [ofPhones, own] : [own, ofPhones];
  return { ...first, from: first.from ?? second.from };
}

function phoneTemplate({ phoneTemplates }: SmsTemplates, type: string): TenantTemplate | undefined {
  const template = phoneTemplates.get(type);
  if (template === undefined) return undefined;
  return { name: `phone ${type}`, body: template.text, from: template.from, isOfPhones: true };
}

function factorOrConnectionTemplate(
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
  return tenant.emailTemplates.find(({ template }) => template === kind);
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
