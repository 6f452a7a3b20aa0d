// Renders messages from the tenant's own templates, or ours, in the recipient's language.
import { join } from 'node:path';
import { Liquid } from 'liquidjs';
import type { Languages } from '../../http/languages.ts';
import type { Frozen } from '../../records/record.ts';
import type { TenantRecord } from '../../records/tenant.ts';
import type { ReportingLiquid } from '../liquid/liquid.ts';
import { chooseLocale, type Locale } from '../pages/locales.ts';
import { emailModel, lifetimeOf, settingsOf } from './email-model.ts';
import type { EmailKind, MessageKind, Notice, SmsKind, TemplateSettings } from './messages.ts';
import {
  type DraftFaults,
  type DraftTemplate,
  draftRenderer,
  emailTemplate,
  type RenderTenantTemplate,
  smsTemplate,
  storedTemplate,
  type TenantTemplate,
  tenantRenderer,
} from './tenant-template.ts';
import type { OutgoingEmail, OutgoingSms } from './transport.ts';
import { variablesOf } from './variables.ts';

interface TemplatesOptions {
  /** The `views` directory. */
  directory: string;
  /** By language tag. */
  locales: ReadonlyMap<string, Locale>;
  baseUrl: string;
  settings(): Frozen<TenantRecord>;
  /** Returns the default sender. */
  mailFrom(): string;
  /** Renders the tenant's own templates. */
  liquid: ReportingLiquid;
}

export interface Templates {
  render(kind: MessageKind, notice: Notice): Promise<OutgoingEmail | OutgoingSms>;
  /** Renders a message with a draft of a template. Parts that could not be rendered are ours, and `faults` says why. */
  draft(kind: MessageKind, notice: Notice, template: DraftTemplate): Promise<Draft>;
  settings(kind: EmailKind): TemplateSettings;
}

/** A message that was rendered with a draft. */
export interface Draft {
  message: OutgoingEmail | OutgoingSms;
  faults: DraftFaults;
}

/** Makes the templates of a tenant. Our own templates are read once. */
export function createTemplates(options: TemplatesOptions): Templates {
  const { directory, locales, settings, mailFrom, liquid } = options;
  const html = builtInLiquid(join(directory, 'email'), 'escape');
  const plain = builtInLiquid(join(directory, 'email'));
  const renderPart = tenantRenderer(liquid);
  const text = smsRenderer(options);

  const email = async (
    kind: EmailKind,
    notice: Notice,
    { template, renderPart }: TemplateSource,
  ): Promise<OutgoingEmail> => {
    const tenant = settings();
    const locale = localeOf(locales, tenant, notice.languages);
    const model = emailModel(
      kind,
      notice,
      tenant,
      locale,
      lifetimeOf(kind, notice, storedTemplate(tenant, kind)),
    );
    const variables = variablesOf(tenant, notice, { locale: locale.tag });
    const [from, subject, body] = await Promise.all([
      renderPart(template, 'from', template.from, variables),
      renderPart(template, 'subject', template.subject, variables),
      renderPart(template, 'body', template.body, variables),
    ]);
    return {
      channel: 'email',
      to: notice.to,
      from: oneLine(from ?? mailFrom()),
      subject: oneLine(subject ?? model.subject),
      html: body ?? String(await html.renderFile('html', model)),
      text: String(await plain.renderFile('text', model)),
      ...(notice.code === undefined ? {} : { code: notice.code }),
      ...(notice.url === undefined ? {} : { link: notice.url }),
      source: { kind, notice, locale: locale.tag },
    };
  };

  const render = (kind: MessageKind, notice: Notice, source: TemplateSource) =>
    kind === 'passwordless_sms' || kind === 'mfa_sms'
      ? text(kind, notice, source)
      : email(kind, notice, source);
  const tenantTemplate = (kind: MessageKind, notice: Notice): TenantTemplate => {
    if (kind === 'passwordless_sms' || kind === 'mfa_sms') return smsTemplate(settings(), kind, notice);
    return emailTemplate(settings(), kind, notice);
  };
  return {
    render: (kind, notice) => render(kind, notice, { template: tenantTemplate(kind, notice), renderPart }),
    draft: async (kind, notice, template) => {
      const faults: DraftFaults = {};
      const source = { template: { name: 'draft', ...template }, renderPart: draftRenderer(liquid, faults) };
      return { message: await render(kind, notice, source), faults };
    },
    settings: (kind) => settingsOf(kind, storedTemplate(settings(), kind)),
  };
}

/** Returns a function that renders SMS messages. */
function smsRenderer({ directory, locales, settings, baseUrl }: TemplatesOptions) {
  const sms = builtInLiquid(join(directory, 'sms'));
  return async (
    kind: SmsKind,
    notice: Notice,
    { template, renderPart }: TemplateSource,
  ): Promise<OutgoingSms> => {
    const tenant = settings();
    const locale = localeOf(locales, tenant, notice.languages);
    const { code = '' } = notice;
    const name = notice.application?.name ?? tenant.tenant.friendly_name;
    const lead = locale.text(`sms.${kind}`, { code, application: name });
    const all = variablesOf(tenant, notice, { locale: locale.tag });
    const variables = kind === 'mfa_sms' ? { ...all, tenant: tenantOf(tenant) } : all;
    const rendered = await renderPart(template, 'text', template.body, variables);
    // A message without its code is of no use.
    const body = kind === 'mfa_sms' && rendered?.includes(code) !== true ? undefined : rendered;
    const { from } = template;
    return {
      channel: 'sms',
      to: notice.to,
      text:
        body ?? String(await sms.renderFile('message', { lead, code, host: new URL(baseUrl).host })).trim(),
      code,
      source: { kind, notice, locale: locale.tag },
      ...(from === undefined ? {} : { from }),
    };
  };
}

/**
 * `tenant` in templates of second factors is an object, as in the hosted service; in those of e-mails it is the name.
 */
function tenantOf({ tenant: { friendly_name } }: Frozen<TenantRecord>) {
  return { friendly_name, friendlyName: friendly_name, name: friendly_name };
}

/** The tenant's own template, and the function that renders it. */
interface TemplateSource {
  template: TenantTemplate;
  renderPart: RenderTenantTemplate;
}

function builtInLiquid(root: string, outputEscape?: 'escape'): Liquid {
  return new Liquid({
    root,
    extname: '.liquid',
    ownPropertyOnly: true,
    jsTruthy: true,
    cache: true,
    ...(outputEscape === undefined ? {} : { outputEscape }),
  });
}

function localeOf(
  locales: ReadonlyMap<string, Locale>,
  { tenant }: Frozen<TenantRecord>,
  languages: Languages = [],
): Locale {
  return chooseLocale(locales, tenant.enabled_locales, languages);
}

const MAX_LINE_LENGTH = 300;

/** Puts a header's value on one line, against header injection. */
function oneLine(text: string): string {
  return text
    .replace(/[\p{Cc}\u2028\u2029]+/gu, ' ')
    .trim()
    .slice(0, MAX_LINE_LENGTH);
}
