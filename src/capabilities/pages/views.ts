// Answers with pages: Liquid templates of views/pages with escaped output, in the user's language and the tenant's
// branding, with headers against framing, caching and foreign scripts.
import { join } from 'node:path';
import type { Context } from 'koa';
import type { AuthError } from '../../http/errors.ts';
import { languageNames, languagesOf } from '../../http/languages.ts';
import { pagePolicy, previewPolicy } from '../../http/server/application.ts';
import type { Frozen } from '../../records/base/record.ts';
import { isSelfRegistered } from '../../records/clients/third-parties.ts';
import type { Client } from '../../records/collections.ts';
import { CONSOLE_CLIENT } from '../../records/users/administrators.ts';
import type { Random } from '../../runtime/secrets.ts';
import { enabledLocales } from '../../tenant/languages.ts';
import type { ReportingLiquid } from '../liquid/liquid.ts';
import { type Assets, readAssets } from './assets.ts';
import { chooseLocale, type Locale, readLocales } from './locales.ts';
import type { Settings } from './page-template.ts';
import { type BrandedOrganization, createRenderer, type LanguageMenu, type Look } from './render.ts';

declare const READ: unique symbol;

/**
 * A page: a template, and the type of what it reads. A handler whose model lacks a member of it does not compile, and a
 * member that the template reads and the type lacks fails test/http/page-models.test.ts.
 */
export interface Page<in Model> {
  /** The path of its template below views/pages. */
  readonly template: string;
  /** Never there: it only carries the type. */
  readonly [READ]: (model: Model) => void;
}

/** What the layout of all pages reads. */
export interface LayoutModel {
  /** The application that the page is shown for; its logo stands beside the tenant's. */
  client?: ShownClient | undefined;
}

/** Declares a page. @param template the path of its template below views/pages. */
export const declarePage = <Model = unknown>(template: string) => ({ template }) as Page<Model & LayoutModel>;

declare const OWN: unique symbol;

/** A page inside a frame: its handler gives the members that are its own, and the frame's renderer adds those of the frame. */
export interface FramedPage<in Own, in Frame> extends Page<Own & Frame & LayoutModel> {
  /** Never there: it only carries the type. */
  readonly [OWN]: (own: Own) => void;
}

/** Declares a page inside a frame. */
export const declareFramedPage = <Own, Frame>(template: string) => ({ template }) as FramedPage<Own, Frame>;

/** A page and its model, which were put together where the type of the model is known. */
export interface PageWithModel {
  page: Page<LayoutModel>;
  model: LayoutModel;
}

/** Puts a page and its model together, for lists of pages whose models differ. */
export const pageWith = <M extends LayoutModel>(page: Page<M>, model: NoInfer<M>): PageWithModel => ({
  page: page as unknown as Page<LayoutModel>,
  model,
});

/** Says that something was done, and that the page can be closed. */
export const DONE_PAGE = declarePage<{
  /** The prefix of the message keys. */
  done: string;
}>('account/done');

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
  /** Answers with a page. @throws Error when its template or a message is missing. */
  page<M extends LayoutModel>(
    ctx: Context,
    page: Page<M>,
    model: NoInfer<M>,
    options?: PageOptions,
  ): Promise<void>;
  error(ctx: Context, error: AuthError, options?: Pick<PageOptions, 'uiLocales'>): Promise<void>;
  /**
   * Answers with a page in another look. It cannot run scripts or send forms, and only pages of its own origin can
   * frame it.
   */
  preview(ctx: Context, sample: PageWithModel, options: PreviewOptions): Promise<void>;
  /** @param uiLocales as in {@link PageOptions}. */
  locale(ctx: Context, uiLocales?: string): Locale;
  locales: ReadonlyMap<string, Locale>;
  assets: Assets;
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

  /** The names of the languages of a list, which take long to find. */
  const names = new WeakMap<readonly string[], ReadonlyMap<string, string>>();
  // docs/understand/decisions/login-pages.md#a-menu-of-languages-is-shown-on-pages-that-can-be-loaded-again
  const menuOf = (ctx: Context, { tag: shown }: Locale): LanguageMenu | undefined => {
    const { language_menu: isWanted } = settings().tenant;
    const enabled = enabledLocales(settings().tenant);
    if (isWanted !== true || ctx.method !== 'GET' || enabled.length < 2) return undefined;
    const named = names.get(enabled) ?? languageNames(enabled);
    names.set(enabled, named);
    return {
      back: ctx.url,
      languages: [...named].map(([tag, name]) => ({ tag, name, isShown: tag === shown })),
    };
  };

  const show: Views['page'] = async (
    ctx,
    { template },
    model,
    { status = 200, formsLeave = false, frames = [], uiLocales, organization } = {},
  ) => {
    const locale = localeOf(ctx, uiLocales);
    const isOfConsole = isUnbranded(template, model);
    const look = isOfConsole ? unbranded(settings()) : { settings: settings(), look: tenantLook() };
    const menu = hasMenu(template) ? menuOf(ctx, locale) : undefined;
    const { html, ...policy } = await render(template, model, { ...look, organization, locale, menu });
    ctx.status = status;
    setPageHeaders(ctx, template, { ...policy, locale, frames, formsLeave, isOfConsole });
    ctx.body = html;
  };

  const preview: Views['preview'] = async (
    ctx,
    { page: { template }, model },
    { scheme, locale: tag, ...given },
  ) => {
    const locale = locales.get(tag) ?? localeOf(ctx);
    const { html, ...policy } = await render(template, model, { ...given, locale });
    ctx.status = 200;
    setPreviewHeaders(ctx, policy);
    ctx.body = asPreview(html, { scheme, assets });
  };

  return {
    page: show,
    preview,
    locale: localeOf,
    locales,
    assets,
    liquid,
    error: (ctx, error, options = {}) =>
      show(ctx, ERROR_PAGE, describeError(ctx, error), { ...options, status: error.status }),
  };
}

/**
 * Reports whether a page is for administrators: a page of the console, or of the login to it. The tenant's branding
 * is not applied there, so that those who may change it cannot change the page on which administrators type their
 * passwords.
 */
function isUnbranded(template: string, { client }: LayoutModel): boolean {
  return template.startsWith('console/') || client?.isConsole === true;
}

/** Reports whether a page may have the menu of languages: a page for users. */
const hasMenu = (template: string): boolean => !/^(?:console|development|saml)\//.test(template);

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

interface ErrorModel {
  /** Selects the advice to the reader. */
  kind: string;
  error: string;
  description: string;
  requestId: string;
  /** Where the reader can go on. */
  home: string | undefined;
}

export const ERROR_PAGE = declarePage<ErrorModel>('error');

function describeError(ctx: Context, { status, error, error_description, extra }: AuthError): ErrorModel {
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
  logo?: string | undefined;
  /** Whether it is the console, whose login pages do not show the tenant's branding. */
  isConsole?: true;
}

// docs/understand/decisions/authorize.md#a-strict-third-party-application-is-shown-to-each-user
/** Returns what pages show. The logo of an application that registered itself is not: its host would see who looks at it. */
export function shownClient(
  client: Pick<Client, 'client_id' | 'name'> &
    Partial<Pick<Client, 'logo_uri' | 'external_metadata_type' | 'external_metadata_created_by'>>,
): ShownClient {
  const logo = isSelfRegistered(client) ? undefined : client.logo_uri;
  return {
    name: client.name,
    ...(logo !== undefined && { logo }),
    ...(client.client_id === CONSOLE_CLIENT && { isConsole: true }),
  };
}
