// Renders pages: Liquid templates of views/pages with escaped output, in the user's language and the tenant's colours,
// with headers against framing, caching and foreign scripts.
import { join } from 'node:path';
import type { Context } from 'koa';
import { Liquid } from 'liquidjs';
import type { Logger } from 'pino';
import { z } from 'zod';
import type { AuthError } from '../http/errors.ts';
import { pagePolicy } from '../http/headers.ts';
import { languagesOf } from '../http/languages.ts';
import type { Frozen } from '../records/record.ts';
import type { Random } from '../runtime/random.ts';
import { type Assets, readAssets } from './assets.ts';
import { fontCss, themeCss } from './colors.ts';
import { type CustomTexts, withCustomTexts } from './custom-texts.ts';
import { describeTenant, imagesOf } from './described.ts';
import { chooseLocale, type Locale, readLocales } from './locales.ts';
import { inTemplate, isFramed, type Settings, type TemplateModel, templateModel } from './page-template.ts';
import { fontOf, logoOf, type OwnColors, type Theme, themeLook } from './theme.ts';

export interface PageOptions {
  status?: number;
  /** Where the page's form may lead besides our origin: the application's callback. */
  formAction?: string | readonly string[] | undefined;
  /** Whose name, logo and colours the page has in place of the tenant's. */
  organization?: Frozen<BrandedOrganization> | undefined;
  /** Addresses that the page frames. */
  frames?: readonly string[];
  /** The request's `ui_locales` (OIDC Core §3.1.2.1): tags, space separated, best first. */
  uiLocales?: string | undefined;
}

/** How an organization looks. */
interface BrandedOrganization {
  name: string;
  display_name?: string | undefined;
  branding?: unknown;
}

export interface Views {
  /** Answers with views/pages/`<template>`.liquid. @throws Error when the template or a message is missing. */
  page(ctx: Context, template: string, model: object, options?: PageOptions): Promise<void>;
  /** Answers with the error page for people. */
  error(ctx: Context, error: AuthError, options?: Pick<PageOptions, 'uiLocales'>): Promise<void>;
  /** The locale that a page answers the request in. @param uiLocales as in {@link PageOptions}. */
  locale(ctx: Context, uiLocales?: string): Locale;
  assets: Assets;
}

interface ViewsDependencies {
  /** The `views` directory. */
  directory: string;
  random: Random;
  settings(): Settings;
  look(): { texts: CustomTexts; template: string | undefined; theme?: Theme | undefined };
  log?: Pick<Logger, 'warn'>;
}

/** Reads templates, locales and assets once. */
export function createViews({ directory, random, settings, look, log }: ViewsDependencies): Views {
  const assets = readAssets(join(directory, 'assets'));
  const locales = readLocales(join(directory, 'locales'));
  const liquid = createLiquid(directory, assets);

  const localeOf: Views['locale'] = (ctx, uiLocales) =>
    chooseLocale(locales, settings().tenant.enabled_locales, languagesOf(ctx, uiLocales));

  const page: Views['page'] = async (
    ctx,
    template,
    model,
    { status = 200, formAction, frames = [], uiLocales, organization } = {},
  ) => {
    const isOurs = isUnbranded(template, model);
    const { texts, template: around, theme } = isOurs ? NO_LOOK : look();
    const brand = isOurs ? unbranded(settings()) : settings();
    const { tenant, branding, own } = branded(themed(brand, theme), organization);
    const company = tenant.friendly_name;
    const locale = withCustomTexts(localeOf(ctx, uiLocales), texts, { template, model, company });
    const nonce = random(16).toString('base64');
    const font = fontCss((theme && fontOf(theme)) ?? (branding.font as { url?: unknown } | undefined)?.url);
    const shown = theme === undefined ? { css: '' } : themeLook(theme, own);
    const isWithinTemplate = around !== undefined && isFramed(template);
    const described = describeTenant(tenant, branding);
    const html: unknown = await liquid.renderFile(template, model, {
      globals: {
        page: describePage(locale, nonce, themeCss(branding.colors) + font.css + shown.css),
        tenant: described,
        locale,
      },
    });
    ctx.status = status;
    const formTargets = [formAction ?? []].flat();
    // The tenant's own template may show whatever it likes.
    const images = isWithinTemplate ? 'any' : [...imagesOf(described, model), ...(shown.image ?? [])];
    setPageHeaders(ctx, template, { nonce, locale, frames, images, font: font.origin, formTargets });
    const mark = random(16).toString('hex');
    const given = () => templateModel({ tenant, branding }, { template, model, organization, locale });
    ctx.body = isWithinTemplate ? framed(around, String(html), { nonce, mark, model: given() }, log) : html;
  };

  return {
    page,
    locale: localeOf,
    assets,
    error: (ctx, error, options = {}) =>
      page(ctx, 'error', describeError(ctx, error), { ...options, status: error.status }),
  };
}

/** A look that is nobody's own. */
const NO_LOOK: ReturnType<ViewsDependencies['look']> = { texts: new Map(), template: undefined };

/**
 * Whether a page is for administrators: those of the console, and the login to it. Who may change the tenant's pages must
 * not change what administrators type their passwords into.
 */
function isUnbranded(template: string, model: { client?: { isConsole?: boolean } }): boolean {
  return template.startsWith('console/') || model.client?.isConsole === true;
}

function unbranded({ tenant }: Settings): Settings {
  return { tenant: { ...tenant, picture_url: undefined }, branding: { colors: {} } };
}

function describePage({ tag, direction }: Locale, nonce: string, theme: string) {
  return { locale: tag, direction, nonce, theme };
}

/** Our page within the tenant's; alone where that one fails, so that people can still log in. */
function framed(
  around: string,
  html: string,
  { model, nonce, mark }: { model: TemplateModel; nonce: string; mark: string },
  log: ViewsDependencies['log'],
): string {
  try {
    return inTemplate(around, html, model, nonce, mark) ?? html;
  } catch (thrown) {
    log?.warn({ err: thrown }, 'the page template failed: the page is shown without it');
    return html;
  }
}

const organizationBranding = z.object({
  logo_url: z.string().optional().catch(undefined),
  colors: z
    .object({ primary: z.string().optional(), page_background: z.string().optional() })
    .optional()
    .catch(undefined),
});

/** With the theme's own logo, where it has one. */
function themed(look: Settings, theme: Theme | undefined): Settings {
  const logo = theme && logoOf(theme);
  return logo === undefined ? look : { ...look, branding: { ...look.branding, logo_url: logo } };
}

/** The tenant's look, or an organization's where it has its own; `own` is what no theme of the tenant changes. */
function branded(look: Settings, organization: PageOptions['organization']): Settings & { own: OwnColors } {
  if (organization === undefined) return { ...look, own: {} };
  const own = organizationBranding.safeParse(organization.branding);
  const { logo_url: logo, colors } = own.success ? own.data : {};
  const { tenant, branding } = look;
  return {
    tenant: { ...tenant, friendly_name: organization.display_name ?? organization.name },
    branding: {
      ...branding,
      ...(logo !== undefined && { logo_url: logo }),
      colors: { ...branding.colors, ...defined(colors) },
    } as Settings['branding'],
    own: { primary: colors?.primary, page: colors?.page_background },
  };
}

function defined(colors: object = {}): object {
  return Object.fromEntries(Object.entries(colors).filter(([, value]) => value !== undefined));
}

function createLiquid(directory: string, assets: Assets): Liquid {
  const liquid = new Liquid({
    root: join(directory, 'pages'),
    partials: join(directory, 'partials'),
    layouts: join(directory, 'partials'),
    extname: '.liquid',
    outputEscape: 'escape',
    strictFilters: true,
    ownPropertyOnly: true,
    jsTruthy: true,
    cache: true,
  });
  liquid.registerFilter('asset', (name: string) => assets.path(name));
  // {{ 'login.lead' | t: client: client.name }}
  liquid.registerFilter('t', function (key: string, ...values: [string, unknown][]): string {
    const { locale } = this.context.globals as { locale: Locale };
    return locale.text(key, Object.fromEntries(values));
  });
  return liquid;
}

function setPageHeaders(
  ctx: Context,
  template: string,
  {
    locale,
    ...policy
  }: {
    locale: Locale;
    nonce: string;
    formTargets: readonly string[];
    frames: readonly string[];
    images: readonly string[] | 'any';
    font: string | undefined;
  },
): void {
  const isDevelopment = template.startsWith('development/');
  // Pages with scripts that call our own endpoints.
  const isConsole = template.startsWith('console/');
  const connects = isDevelopment || isConsole || template === 'authenticator' || template.startsWith('mfa/');
  ctx.set('Content-Type', 'text/html; charset=utf-8');
  ctx.set('Content-Language', locale.tag);
  ctx.set('Cache-Control', 'no-store');
  ctx.set('Content-Security-Policy', pagePolicy({ ...policy, connects }));
  // A login in an application's popup must keep its opener until the end (response_mode web_message). No page that opens the
  // console has a hold on it.
  ctx.set('Cross-Origin-Opener-Policy', isDevelopment || isConsole ? 'same-origin' : 'unsafe-none');
  // With no-referrer browsers would post our own forms with `Origin: null` (Fetch §3.2).
  ctx.set('Referrer-Policy', 'same-origin');
}

/** The error page's model; `kind` chooses the advice. */
function describeError(ctx: Context, { status, error, error_description, extra }: AuthError): object {
  return {
    kind: errorKind(status, error, extra.reason),
    error,
    description: error_description,
    requestId: ctx.state.requestId,
  };
}

function errorKind(status: number, error: string, reason: unknown): string {
  if (reason === 'form_expired' || reason === 'request_expired') return 'expired';
  // A pushed request is used once and soon (RFC 9126 §2.2): people come back to it by their history.
  if (error === 'invalid_request_uri') return 'expired';
  if (reason === 'link_expired') return 'link';
  if (status === 404) return 'missing';
  if (status === 429) return 'busy';
  return status >= 500 ? 'server' : 'application';
}
