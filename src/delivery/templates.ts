// Renders messages from the tenant's own templates, or ours, in the person's language.
import { join } from 'node:path';
import { Liquid } from 'liquidjs';
import type { Logger } from 'pino';
import type { Languages } from '../http/languages.ts';
import { chooseLocale, type Locale } from '../pages/locales.ts';
import type { Frozen } from '../records/record.ts';
import type { TenantRecord } from '../records/tenant.ts';
import { emailModel, lifetimeOf, settingsOf } from './email-model.ts';
import type { EmailKind, MessageKind, Notice, SmsKind, TemplateSettings } from './messages.ts';
import {
  type DraftFaults,
  type DraftTemplate,
  draftRenderer,
  type OwnTemplate,
  ownOf,
  ownTemplate,
  type RenderOwn,
  smsTemplate,
  tenantRenderer,
} from './own-template.ts';
import type { OutgoingEmail, OutgoingSms } from './transport.ts';
import { variablesOf } from './variables.ts';

interface TemplatesOptions {
  /** The `views` directory. */
  directory: string;
  /** By tag. */
  locales: ReadonlyMap<string, Locale>;
  baseUrl: string;
  settings(): Frozen<TenantRecord>;
  /** Default sender. */
  mailFrom(): string;
  log: Logger;
}

export interface Templates {
  render(kind: MessageKind, notice: Notice): Promise<OutgoingEmail | OutgoingSms>;
  /**
   * A message as it would be with another template of the tenant's, and why parts of that could not be rendered: they are
   * ours then.
   */
  draft(kind: MessageKind, notice: Notice, template: DraftTemplate): Promise<Draft>;
  settings(kind: EmailKind): TemplateSettings;
}

/** A message by a template that is not kept yet. */
export interface Draft {
  message: OutgoingEmail | OutgoingSms;
  faults: DraftFaults;
}

/** The templates of a tenant; our own are read once. */
export function createTemplates(options: TemplatesOptions): Templates {
  const { directory, locales, settings, mailFrom, log } = options;
  const html = ourLiquid(join(directory, 'email'), 'escape');
  const plain = ourLiquid(join(directory, 'email'));
  const tryOwn = tenantRenderer(log);
  const text = smsRenderer(options);

  const email = async (
    kind: EmailKind,
    notice: Notice,
    { template, tryOwn }: Own,
  ): Promise<OutgoingEmail> => {
    const tenant = settings();
    const locale = localeOf(locales, tenant, notice.languages);
    const model = emailModel(kind, notice, tenant, locale, lifetimeOf(kind, notice, ownOf(tenant, kind)));
    const variables = variablesOf(tenant, notice, { locale: locale.tag });
    const [from, subject, body] = await Promise.all([
      tryOwn(template, 'from', template.from, variables),
      tryOwn(template, 'subject', template.subject, variables),
      tryOwn(template, 'body', template.body, variables),
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
      about: { kind, notice, locale: locale.tag },
    };
  };

  const render = (kind: MessageKind, notice: Notice, own: Own) =>
    kind === 'passwordless_sms' || kind === 'mfa_sms' ? text(kind, notice, own) : email(kind, notice, own);
  const kept = (kind: MessageKind, notice: Notice): OwnTemplate => {
    if (kind === 'passwordless_sms' || kind === 'mfa_sms') return smsTemplate(settings(), kind, notice);
    return ownTemplate(settings(), kind, notice);
  };
  return {
    render: (kind, notice) => render(kind, notice, { template: kept(kind, notice), tryOwn }),
    draft: async (kind, notice, template) => {
      const faults: DraftFaults = {};
      const own = { template: { name: 'draft', ...template }, tryOwn: draftRenderer(faults) };
      return { message: await render(kind, notice, own), faults };
    },
    settings: (kind) => settingsOf(kind, ownOf(settings(), kind)),
  };
}

/** Renders SMS messages. */
function smsRenderer({ directory, locales, settings, baseUrl }: TemplatesOptions) {
  const sms = ourLiquid(join(directory, 'sms'));
  return async (kind: SmsKind, notice: Notice, { template, tryOwn }: Own): Promise<OutgoingSms> => {
    const tenant = settings();
    const locale = localeOf(locales, tenant, notice.languages);
    const { code = '' } = notice;
    const name = notice.application?.name ?? tenant.tenant.friendly_name;
    const lead = locale.text(`sms.${kind}`, { code, application: name });
    const all = variablesOf(tenant, notice, { locale: locale.tag });
    const variables = kind === 'mfa_sms' ? { ...all, tenant: tenantOf(tenant) } : all;
    const own = await tryOwn(template, 'text', template.body, variables);
    // Without its code a message is of no use to anybody.
    const body = kind === 'mfa_sms' && own?.includes(code) !== true ? undefined : own;
    const { from } = template;
    return {
      channel: 'sms',
      to: notice.to,
      text:
        body ?? String(await sms.renderFile('message', { lead, code, host: new URL(baseUrl).host })).trim(),
      code,
      about: { kind, notice, locale: locale.tag },
      ...(from === undefined ? {} : { from }),
    };
  };
}

/** `tenant` in templates of second factors, as the hosted service has it: not a name, as in those of e-mails. */
function tenantOf({ tenant: { friendly_name } }: Frozen<TenantRecord>) {
  return { friendly_name, friendlyName: friendly_name, name: friendly_name };
}

/** The tenant's own template, and what renders it. */
interface Own {
  template: OwnTemplate;
  tryOwn: RenderOwn;
}

function ourLiquid(root: string, outputEscape?: 'escape'): Liquid {
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

const LONGEST_LINE = 300;

/** A header's value on one line, against header injection. */
function oneLine(text: string): string {
  return text
    .replace(/[\p{Cc}\u2028\u2029]+/gu, ' ')
    .trim()
    .slice(0, LONGEST_LINE);
}
