// Renders messages from the tenant's own templates, or ours, in the recipient's language.
import { join } from 'node:path';
import { Liquid } from 'liquidjs';
import type { Languages } from '../../http/languages.ts';
import type { Frozen } from '../../records/base/record.ts';
import { firstAddress } from '../../records/clients/allowed-urls.ts';
import { isRedirectProtected, isSelfRegistered } from '../../records/clients/third-parties.ts';
import { type EmailTemplate, MAX_RESET_SECONDS } from '../../records/tenant/delivery.ts';
import type { TenantRecord } from '../../records/tenant/tenant.ts';
import type { Config } from '../../tenant/config.ts';
import { enabledLocales } from '../../tenant/languages.ts';
import type { ReportingLiquid } from '../liquid/liquid.ts';
import { type MailColors, mailColors } from '../pages/colors.ts';
import { chooseLocale, type Locale } from '../pages/locales.ts';
import type {
  EmailKind,
  MessageDetail,
  MessageKind,
  Notice,
  SmsKind,
  TemplateSettings,
} from './delivery-messages.ts';
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

interface TemplatesOptions {
  directory: string;
  /** By language tag. */
  locales: ReadonlyMap<string, Locale>;
  baseUrl: string;
  settings(): Frozen<TenantRecord>;
  phoneTemplates: Config['phoneTemplates'];
  /** Returns the default sender. */
  mailFrom(): string;
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
    const locale = localeOf(locales, tenant, notice);
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

  const render = (kind: MessageKind, { application, ...rest }: Notice, source: TemplateSource) => {
    // What a stranger has called its application is no text for messages of ours, which anybody can have sent.
    const notice =
      application === undefined || isSelfRegistered(application) ? rest : { ...rest, application };
    return kind === 'passwordless_sms' || kind === 'mfa_sms'
      ? text(kind, notice, source)
      : email(kind, notice, source);
  };
  const tenantTemplate = (kind: MessageKind, notice: Notice): TenantTemplate => {
    if (kind === 'passwordless_sms' || kind === 'mfa_sms')
      return smsTemplate({ settings: settings(), phoneTemplates: options.phoneTemplates() }, kind, notice);
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

function smsRenderer({ directory, locales, settings, baseUrl }: TemplatesOptions) {
  const sms = builtInLiquid(join(directory, 'sms'));
  return async (
    kind: SmsKind,
    notice: Notice,
    { template, renderPart }: TemplateSource,
  ): Promise<OutgoingSms> => {
    const tenant = settings();
    const locale = localeOf(locales, tenant, notice);
    const { code = '' } = notice;
    const name = notice.application?.name ?? tenant.tenant.friendly_name;
    const lead = locale.text(`sms.${kind}`, { code, application: name });
    const isOfFactor = kind === 'mfa_sms' || template.isOfPhones === true;
    const variables = {
      ...variablesOf(tenant, notice, { locale: locale.tag }),
      message_type: 'sms',
      ...(isOfFactor && { tenant: tenantOf(tenant) }),
    };
    const model: SmsModel = { lead, code, host: new URL(baseUrl).host };
    const rendered = await renderPart(template, 'text', template.body, variables);
    // A message without its code is of no use, unless it is only tried.
    const needsCode = isOfFactor && notice.phoneTemplate === undefined;
    const body = needsCode && rendered?.includes(code) !== true ? undefined : rendered;
    const { from } = template;
    return {
      channel: 'sms',
      to: notice.to,
      text: body ?? String(await sms.renderFile('message', model)).trim(),
      code,
      source: { kind, notice, locale: locale.tag },
      ...(from === undefined ? {} : { from }),
    };
  };
}

/**
 * `tenant` in templates of second factors, and in those of messages to phones, is an object, as in the hosted service; in those of
 * e-mails it is the name.
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

// docs/understand/decisions/login-pages.md#the-language-of-a-message-is-that-of-its-user
/** Chooses by the user's own language, and then by that of the request, which somebody else may have made. */
function localeOf(
  locales: ReadonlyMap<string, Locale>,
  { tenant }: Frozen<TenantRecord>,
  { locale, user, languages = [] }: Pick<Notice, 'locale' | 'user' | 'languages'>,
): Locale {
  // Providers also send `en_US`.
  const own = (locale ?? user?.locale)?.replaceAll('_', '-');
  const wanted: Languages = own === undefined ? languages : [own, ...languages];
  return chooseLocale(locales, enabledLocales(tenant), wanted);
}

const MAX_LINE_LENGTH = 300;

/** Puts a header's value on one line, against header injection. */
function oneLine(text: string): string {
  return text
    .replace(/[\p{Cc}\u2028\u2029]+/gu, ' ')
    .trim()
    .slice(0, MAX_LINE_LENGTH);
}

// The variables of the tenant's templates, named as in the hosted service.

/** Fields that users may read themselves: not `app_metadata`. */
const USER_FIELDS = [
  'email',
  'email_verified',
  'phone_number',
  'username',
  'name',
  'given_name',
  'family_name',
  'nickname',
  'picture',
  'user_metadata',
] as const;

function variablesOf(
  { tenant }: Frozen<TenantRecord>,
  { to, application, connection, organization, inviter, user, url, code, method, details, languages }: Notice,
  { locale }: { locale: string },
): Record<string, unknown> {
  const isShown = application !== undefined && !isRedirectProtected(application);
  const callback = isShown ? firstAddress(application.callbacks) : undefined;
  const known = Object.fromEntries(USER_FIELDS.map((field) => [field, user?.[field]]));
  return {
    application: {
      name: application?.name ?? tenant.friendly_name,
      clientID: application?.client_id,
      callback_domain: callback === undefined ? undefined : URL.parse(callback)?.origin,
    },
    connection: { name: connection?.name },
    organization:
      organization === undefined
        ? undefined
        : {
            id: organization.id,
            name: organization.name,
            display_name: organization.display_name ?? organization.name,
            metadata: organization.metadata,
          },
    inviter: inviter === undefined ? undefined : { name: inviter.name },
    // A new user has no record yet.
    user: {
      email: to.includes('@') ? to : undefined,
      phone_number: to,
      ...defined(known),
      user_id: user?.id,
    },
    url,
    link: url,
    code,
    password: code,
    otp: code,
    method,
    authorization_details: details,
    send: url === undefined ? 'code' : 'link',
    tenant: tenant.friendly_name,
    friendly_name: tenant.friendly_name,
    support_email: tenant.support_email,
    support_url: tenant.support_url,
    request_language: languages?.[0],
    locale,
  };
}

function defined(all: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
}

// The values that the template of an e-mail is filled with.

/** Default lifetime of links, seconds: five days, as in the hosted service. */
const LINK_SECONDS = 432_000;

/**
 * Shorter lifetimes of links that people wait for, seconds. A reset link gives the account to anybody who finds it in a
 * mailbox.
 */
const LIFETIMES: Partial<Record<EmailKind, number>> = {
  reset_email: 4 * 3600,
  blocked_account: 86_400,
  mfa_oob_code: 300,
};

/**
 * Returns the settings of a template, with defaults for what the tenant has not set.
 * @param template the tenant's own template of that kind; undefined where it has none.
 * @returns lifetimes in seconds; that of a reset link is never more than {@link MAX_RESET_SECONDS}.
 */
function settingsOf(kind: EmailKind, template: Frozen<EmailTemplate> | undefined): TemplateSettings {
  return {
    // The welcome mail is off by default, as in the hosted service.
    enabled: template?.enabled ?? kind !== 'welcome_email',
    urlLifetimeInSeconds: Math.min(
      template?.urlLifetimeInSeconds ?? LIFETIMES[kind] ?? LINK_SECONDS,
      kind === 'reset_email' ? MAX_RESET_SECONDS : Number.POSITIVE_INFINITY,
    ),
    ...(template?.resultUrl === undefined ? {} : { resultUrl: template.resultUrl }),
    includeEmailInRedirect: template?.includeEmailInRedirect ?? true,
  };
}

/** Returns the lifetime of the credential in a message, seconds, for its text. */
function lifetimeOf(
  kind: EmailKind,
  { connection, lifetimeInSeconds }: Notice,
  template: Frozen<EmailTemplate> | undefined,
): number {
  if (lifetimeInSeconds !== undefined) return lifetimeInSeconds;
  if (kind !== 'passwordless_email') return settingsOf(kind, template).urlLifetimeInSeconds;
  const { totp } = (connection?.options ?? {}) as { totp?: { time_step?: number } };
  return totp?.time_step ?? 180;
}

/**
 * Returns the values that the template of an e-mail is filled with: its texts in the recipient's language, its link or
 * code, and the tenant's branding.
 * @param lifetime lifetime of the link or code, seconds.
 */
/** What our templates of e-mails read. A member that they read and this lacks fails test/http/page-models.test.ts. */
export interface EmailModel {
  subject: string;
  preheader: string;
  heading: string;
  lead: string;
  hint: string;
  /** A link, with the text of its button and a hint to paste it. */
  url?: string;
  button?: string;
  pasteHint?: string;
  code?: string;
  details: readonly MessageDetail[];
  /** How long the link or code is valid. */
  validity?: string;
  footer: string;
  /** The tenant's name, and the address of its logo. */
  brand: string;
  logo?: string;
  supportUrl: string | undefined;
  supportEmail: string | undefined;
  locale: Pick<Locale, 'tag' | 'direction'>;
  light: MailColors;
  dark: MailColors;
}

/** What our template of SMS messages reads. */
export interface SmsModel {
  lead: string;
  code: string;
  /** The host that the code is meant for. */
  host: string;
}

function emailModel(
  kind: EmailKind,
  { code, url, application, organization, inviter, method, change, address, details = [], to }: Notice,
  { tenant, branding }: Frozen<TenantRecord>,
  locale: Locale,
  lifetime: number,
): EmailModel {
  const name = application?.name ?? tenant.friendly_name;
  const base = kind === 'passwordless_email' ? `${kind}.${url === undefined ? 'code' : 'link'}` : kind;
  const t = (part: string) =>
    locale.text(`email.${base}.${part}`, {
      application: name,
      tenant: tenant.friendly_name,
      organization: organization?.display_name ?? organization?.name ?? '',
      inviter: inviter?.name ?? '',
      method: method === undefined ? '' : locale.text(`method.${method}`),
      change: change === undefined ? '' : locale.text(`email.account_changed.change.${change}`),
      address: address ?? '',
      to,
    });
  const logo = branding.logo_url ?? tenant.picture_url;
  return {
    subject: t('subject'),
    preheader: t('lead'),
    heading: t('heading'),
    lead: t('lead'),
    hint: t('hint'),
    ...(url === undefined ? {} : { url, button: t('button'), pasteHint: locale.text('email.paste') }),
    ...(code === undefined ? {} : { code }),
    details,
    ...(url === undefined && code === undefined ? {} : { validity: validityText(locale, lifetime) }),
    footer: locale.text('email.footer', { tenant: tenant.friendly_name, to }),
    brand: tenant.friendly_name,
    ...(logo !== undefined && /^https:/i.test(logo) ? { logo } : {}),
    supportUrl: tenant.support_url,
    supportEmail: tenant.support_email,
    locale: { tag: locale.tag, direction: locale.direction },
    ...mailColors(branding.colors),
  };
}

function validityText(locale: Locale, seconds: number): string {
  if (seconds < 2 * 3600) return locale.text('email.minutes', { count: Math.ceil(seconds / 60) });
  if (seconds < 2 * 86_400) return locale.text('email.hours', { count: Math.floor(seconds / 3600) });
  return locale.text('email.days', { count: Math.floor(seconds / 86_400) });
}
