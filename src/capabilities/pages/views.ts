// Answers with pages: Liquid templates of views/pages with escaped output, in the user's language and the tenant's
// branding, with headers against framing, caching and foreign scripts.
import { join } from 'node:path';
import type { Context } from 'koa';
import { pagePolicy, previewPolicy } from '../../http/application.ts';
import type { AuthError } from '../../http/errors.ts';
import { languagesOf } from '../../http/languages.ts';
import { CONSOLE_CLIENT } from '../../records/administrators.ts';
import type { Client } from '../../records/collections.ts';
import type { Frozen } from '../../records/record.ts';
import type { Random } from '../../runtime/secrets.ts';
import { enabledLocales } from '../../tenant/languages.ts';
import type { ReportingLiquid } from '../liquid/liquid.ts';
import { type Assets, readAssets } from './assets.ts';
import { chooseLocale, type Locale, readLocales } from './locales.ts';
import type { Settings } from './page-template.ts';
import { type BrandedOrganization, createRenderer, type Look } from './render.ts';

export interface PageOptions {
  status?: number;
  /** Whether a form of the page may lead to an application or a provider. Default: only to this server. */
  formsLeave?: boolean;
  /** An organization whose name, logo and colours replace the tenant's. */
  organization?: Frozen<BrandedOrganization> | undefined;
  /** Addresses that the page frames. */
  frames?: readonly string[];
  /** The request's `ui_locales` (OIDC Core §3.1.2.1): tags separated by spaces, best first. */
  uiLocales?: string | undefined;
}

export interface Views {
  /** Answers with views/pages/`<template>`.liquid. @throws Error when the template or a message is missing. */
  page(ctx: Context, template: string, model: object, options?: PageOptions): Promise<void>;
  /** Answers with the error page. */
  error(ctx: Context, error: AuthError, options?: Pick<PageOptions, 'uiLocales'>): Promise<void>;
  /**
   * Answers with a page in another look. It cannot run scripts or send forms, and only pages of its own origin can
   * frame it.
   */
  preview(ctx: Context, template: string, model: object, options: PreviewOptions): Promise<void>;
  /** Returns the locale in which a page answers the request. @param uiLocales as in {@link PageOptions}. */
  locale(ctx: Context, uiLocales?: string): Locale;
  /** All locales by tag. */
  locales: ReadonlyMap<string, Locale>;
  assets: Assets;
  /** Renders the tenant's own templates. */
  liquid: ReportingLiquid;
}

/** The look of a preview, in place of the tenant's current one. */
interface PreviewOptions {
  settings: Settings;
  look: Look;
  /** The tag of a locale, whether the tenant has enabled it or not. */
  locale: string;
  scheme: Scheme;
}

interface ViewsDependencies {
  /** The `views` directory. */
  directory: string;
  random: Random;
  settings(): Settings;
  look(): Look;
  liquid: ReportingLiquid;
}

/** Creates the views: reads the assets now, templates and messages when they are first needed. */
export function createViews({
  directory,
  random,
  settings,
  look: tenantLook,
  liquid,
}: ViewsDependencies): Views {
  const assets = readAssets(join(directory, 'assets'));
  const locales = readLocales(join(directory, 'locales'));
  const render = createRenderer({ directory, assets, random, liquid });

  const localeOf: Views['locale'] = (ctx, uiLocales) =>
    chooseLocale(locales, enabledLocales(settings().tenant), languagesOf(ctx, uiLocales));

  const page: Views['page'] = async (
    ctx,
    template,
    model,
    { status = 200, formsLeave = false, frames = [], uiLocales, organization } = {},
  ) => {
    const locale = localeOf(ctx, uiLocales);
    const isOfConsole = isUnbranded(template, model);
    const look = isOfConsole ? unbranded(settings()) : { settings: settings(), look: tenantLook() };
    const { html, ...policy } = await render(template, model, { ...look, organization, locale });
    ctx.status = status;
    setPageHeaders(ctx, template, { ...policy, locale, frames, formsLeave, isOfConsole });
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
    liquid,
    error: (ctx, error, options = {}) =>
      page(ctx, 'error', describeError(ctx, error), { ...options, status: error.status }),
  };
}

/**
 * Reports whether a page is for administrators: a page of the console, or of the login to it. The tenant's branding
 * is not applied there, so that those who may change it cannot change the page on which administrators type their
 * passwords.
 */
function isUnbranded(template: string, model: { client?: { isConsole?: boolean } }): boolean {
  return template.startsWith('console/') || model.client?.isConsole === true;
}

/** Returns settings without branding. */
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
    formsLeave: boolean;
    frames: readonly string[];
    images: readonly string[] | 'any';
    font: string | undefined;
  },
): void {
  const isDevelopment = template.startsWith('development/');
  // Pages whose scripts call our own endpoints.
  const isConsole = template.startsWith('console/');
  const connects = isDevelopment || isConsole || template === 'authenticator' || template.startsWith('mfa/');
  ctx.set('Content-Type', 'text/html; charset=utf-8');
  ctx.set('Content-Language', locale.tag);
  ctx.set('Cache-Control', 'no-store');
  ctx.set('Content-Security-Policy', pagePolicy({ ...policy, connects }));
  // A login in an application's popup must keep its opener until the end (response_mode web_message). Pages of the
  // console and of the login to it must not keep theirs: scripts of the tenant's pages have the same origin and could
  // control the window through it.
  ctx.set('Cross-Origin-Opener-Policy', isDevelopment || isOfConsole ? 'same-origin' : 'unsafe-none');
  // With no-referrer browsers would post our own forms with `Origin: null` (Fetch §3.2).
  ctx.set('Referrer-Policy', 'same-origin');
}

/** Returns the model of the error page; its `kind` selects the advice to the reader. */
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
  // A pushed request can be used once and expires soon (RFC 9126 §2.2); people return to it through their history.
  if (error === 'invalid_request_uri') return 'expired';
  if (reason === 'link_expired') return 'link';
  if (reason === 'network_acl') return 'network';
  if (status === 404) return 'missing';
  if (status === 429) return 'busy';
  return status >= 500 ? 'server' : 'application';
}

// Turns a page into a preview: it looks like the page, but cannot run scripts or send forms.

/** The colour scheme to show, whatever the reader's preference. */
type Scheme = 'light' | 'dark';

/** The parts of a content security policy that depend on the page. */
interface Policy {
  nonce: string;
  images: readonly string[] | 'any';
  font: string | undefined;
}

/**
 * Returns a page in one colour scheme. Its style sheets are inlined, and their media queries for the scheme are
 * decided.
 */
function asPreview(html: string, { scheme, assets }: { scheme: Scheme; assets: Assets }): string {
  const sheets = new Map(assets.names('.css').map((name) => [assets.path(name), name]));
  return (
    html
      .replace(/<link rel="stylesheet" [^<>]*>/g, (link) => {
        const [, , , path = '', , nonce = ''] = link.split('"');
        const name = sheets.get(path);
        return name === undefined ? link : `<style nonce="${nonce}">${assets.content(name)}</style>`;
      })
      // Links are disabled: their targets are not previews and may not be framed.
      .replace(/<a\s[^<>]*>/g, (tag) => tag.replace(/ href="[^"]*"/, ' href="#"'))
      // The pieces that end in a style sheet.
      .split(STYLE_END)
      .map((piece, at, all) => (at < all.length - 1 ? withLastStyle(piece, scheme) : piece))
      .join(STYLE_END)
      .replace('content="light dark"', `content="${scheme}"`)
  );
}

const STYLE_END = '</style>';

/** Returns a piece of a page that ends in a style sheet, with that as {@link inScheme} returns it. */
function withLastStyle(piece: string, scheme: Scheme): string {
  const at = Math.max(0, piece.lastIndexOf('<style'));
  return `${piece.slice(0, at)}${inScheme(piece.slice(at), scheme)}`;
}

/**
 * Returns a style sheet as it applies where the scheme is preferred. `min-width:0` is always true, `max-width:0`
 * never.
 */
function inScheme(css: string, scheme: Scheme): string {
  const isDark = scheme === 'dark' ? '(min-width:0)' : '(max-width:0)';
  const isLight = scheme === 'light' ? '(min-width:0)' : '(max-width:0)';
  return css
    .replaceAll(/\(\s*prefers-color-scheme\s*:\s*dark\s*\)/g, isDark)
    .replaceAll(/\(\s*prefers-color-scheme\s*:\s*light\s*\)/g, isLight)
    .replaceAll(/color-scheme\s*:\s*light dark/g, `color-scheme:${scheme}`);
}

/** Sets the headers of a preview. */
function setPreviewHeaders(ctx: Context, policy: Policy): void {
  ctx.set('Content-Type', 'text/html; charset=utf-8');
  ctx.set('Cache-Control', 'no-store');
  ctx.set('Content-Security-Policy', previewPolicy(policy));
  // For browsers that do not know `frame-ancestors`.
  ctx.set('X-Frame-Options', 'SAMEORIGIN');
}

// The data of a page's application that templates use.

export interface ShownClient {
  name: string;
  logo?: string;
  /** Whether it is the console, whose login pages do not show the tenant's branding. */
  isConsole?: true;
}

/** Returns the data of an application for templates. */
export function shownClient({
  client_id,
  name,
  logo_uri: logo,
}: Pick<Client, 'client_id' | 'name'> & { logo_uri?: string | undefined }): ShownClient {
  return {
    name,
    ...(logo !== undefined && { logo }),
    ...(client_id === CONSOLE_CLIENT && { isConsole: true }),
  };
}
