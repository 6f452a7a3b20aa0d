// Renders pages: Liquid templates of views/pages with escaped output, in the user's language and the tenant's colours,
// with headers against framing, caching and foreign scripts.
import { join } from 'node:path';
import type { Context } from 'koa';
import type { Logger } from 'pino';
import type { AuthError } from '../http/errors.ts';
import { pagePolicy } from '../http/headers.ts';
import { languagesOf } from '../http/languages.ts';
import type { Frozen } from '../records/record.ts';
import type { Random } from '../runtime/random.ts';
import { type Assets, readAssets } from './assets.ts';
import { chooseLocale, type Locale, readLocales } from './locales.ts';
import type { Settings } from './page-template.ts';
import { asPreview, type Scheme, setPreviewHeaders } from './preview.ts';
import { type BrandedOrganization, createRenderer, type Look } from './render.ts';

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

export interface Views {
  /** Answers with views/pages/`<template>`.liquid. @throws Error when the template or a message is missing. */
  page(ctx: Context, template: string, model: object, options?: PageOptions): Promise<void>;
  /** Answers with the error page for people. */
  error(ctx: Context, error: AuthError, options?: Pick<PageOptions, 'uiLocales'>): Promise<void>;
  /**
   * Answers with a page as it would be with another look: it runs nothing, sends nothing, and is framed by pages of its own
   * origin alone.
   */
  preview(ctx: Context, template: string, model: object, options: PreviewOptions): Promise<void>;
  /** The locale that a page answers the request in. @param uiLocales as in {@link PageOptions}. */
  locale(ctx: Context, uiLocales?: string): Locale;
  /** All of them, by tag. */
  locales: ReadonlyMap<string, Locale>;
  assets: Assets;
}

/** How a preview looks, in place of what is in force. */
interface PreviewOptions {
  settings: Settings;
  look: Look;
  /** The tag of a locale, enabled or not. */
  locale: string;
  scheme: Scheme;
}

interface ViewsDependencies {
  /** The `views` directory. */
  directory: string;
  random: Random;
  settings(): Settings;
  look(): Look;
  log?: Pick<Logger, 'warn'>;
}

/** Reads templates, locales and assets once. */
export function createViews({ directory, random, settings, look: ownLook, log }: ViewsDependencies): Views {
  const assets = readAssets(join(directory, 'assets'));
  const locales = readLocales(join(directory, 'locales'));
  const render = createRenderer({ directory, assets, random, log });

  const localeOf: Views['locale'] = (ctx, uiLocales) =>
    chooseLocale(locales, settings().tenant.enabled_locales, languagesOf(ctx, uiLocales));

  const page: Views['page'] = async (
    ctx,
    template,
    model,
    { status = 200, formAction, frames = [], uiLocales, organization } = {},
  ) => {
    const locale = localeOf(ctx, uiLocales);
    const isOfConsole = isUnbranded(template, model);
    const look = isOfConsole ? unbranded(settings()) : { settings: settings(), look: ownLook() };
    const { html, ...policy } = await render(template, model, { ...look, organization, locale });
    ctx.status = status;
    const formTargets = [formAction ?? []].flat();
    setPageHeaders(ctx, template, { ...policy, locale, frames, formTargets, isOfConsole });
    ctx.body = html;
  };

  const preview: Views['preview'] = async (ctx, template, model, { scheme, locale: tag, ...given }) => {
    const locale = locales.get(tag) ?? localeOf(ctx);
    const { html, ...policy } = await render(template, model, { ...given, locale });
    ctx.status = 200;
    setPreviewHeaders(ctx, policy);
    ctx.body = asPreview(html, { scheme, assets });
  };

  return {
    page,
    preview,
    locale: localeOf,
    locales,
    assets,
    error: (ctx, error, options = {}) =>
      page(ctx, 'error', describeError(ctx, error), { ...options, status: error.status }),
  };
}

/**
 * Whether a page is for administrators: those of the console, and the login to it. Who may change the tenant's pages must
 * not change what administrators type their passwords into.
 */
function isUnbranded(template: string, model: { client?: { isConsole?: boolean } }): boolean {
  return template.startsWith('console/') || model.client?.isConsole === true;
}

/** A look that is nobody's own. */
function unbranded({ tenant }: Settings): Pick<PreviewOptions, 'settings' | 'look'> {
  return {
    settings: { tenant: { ...tenant, picture_url: undefined }, branding: { colors: {} } },
    look: { texts: new Map(), template: undefined },
  };
}

function setPageHeaders(
  ctx: Context,
  template: string,
  {
    locale,
    isOfConsole,
    ...policy
  }: {
    locale: Locale;
    isOfConsole: boolean;
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
  // console, or the login to it, has a hold on it: scripts of the tenant's pages are of the same origin.
  ctx.set('Cross-Origin-Opener-Policy', isDevelopment || isOfConsole ? 'same-origin' : 'unsafe-none');
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
    home: ctx.state.home,
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
