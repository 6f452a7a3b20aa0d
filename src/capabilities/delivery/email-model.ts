// The values that the template of an e-mail is filled with.

import { type EmailTemplate, MAX_RESET_SECONDS } from '../../records/delivery.ts';
import type { Frozen } from '../../records/record.ts';
import type { TenantRecord } from '../../records/tenant.ts';
import { mailColors } from '../pages/colors.ts';
import type { Locale } from '../pages/locales.ts';
import type { EmailKind, Notice, TemplateSettings } from './messages.ts';

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
export function settingsOf(kind: EmailKind, template: Frozen<EmailTemplate> | undefined): TemplateSettings {
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
export function lifetimeOf(
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
export function emailModel(
  kind: EmailKind,
  { code, url, application, organization, inviter, method, change, address, to }: Notice,
  { tenant, branding }: Frozen<TenantRecord>,
  locale: Locale,
  lifetime: number,
) {
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
