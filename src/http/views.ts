// Pages: Liquid templates in views/pages, escaped by default, in the user's language and the tenant's colours.
import { join } from 'node:path';
import type { Context } from 'koa';
import { Liquid } from 'liquidjs';
import type { Frozen } from '../store/contract.ts';
import type { TenantRecord } from '../tenant/schema.ts';
import { type Assets, readAssets } from './assets.ts';
import { fill, readableOn } from './colors.ts';
import { pagePolicy } from './headers.ts';
import { chooseLocale, directionOf, readLocales, translate } from './locales.ts';
import type { Random } from './runtime.ts';

export interface PageOptions {
  status?: number;
  /** Where the page's forms may lead, beside ourselves: the application's callback. */
  formAction?: string | undefined;
  /** The request's `ui_locales`: language tags, space separated, best first. */
  uiLocales?: string | undefined;
}

export interface Views {
  /** Answers with a page of views/pages. */
  page(ctx: Context, template: string, model: object, options?: PageOptions): Promise<void>;
  assets: Assets;
}

export interface ViewsDependencies {
  /** The `views` directory. */
  directory: string;
  random: Random;
  settings(): Frozen<TenantRecord>;
}

const DEFAULT_PRIMARY = '#3b5bdb';
const DEFAULT_BACKGROUND = '#f4f5fb';
/** The surfaces that colours are read on: views/assets/gatehouse.css has the same two. */
const LIGHT_SURFACE = '#ffffff';
const DARK_SURFACE = '#171a26';

/** Reads the templates, locales and assets once. */
export function createViews({ directory, random, settings }: ViewsDependencies): Views {
  const assets = readAssets(join(directory, 'assets'));
  const locales = readLocales(join(directory, 'locales'));
  const liquid = new Liquid({
    root: join(directory, 'pages'),
    partials: join(directory, 'partials'),
    layouts: join(directory, 'partials'),
    extname: '.liquid',
    outputEscape: 'escape',
    strictFilters: true,
    ownPropertyOnly: true,
    cache: true,
  });
  liquid.registerFilter('asset', (name: string) => assets.path(name));
  liquid.registerFilter('t', function t(key: string, ...values: [string, unknown][]) {
    const locale = this.context.getSync(['page', 'locale']) as string;
    return translate(locales, locale, key, Object.fromEntries(values));
  });
  return {
    assets,
    page: async (ctx, template, model, { status = 200, formAction, uiLocales } = {}) => {
      const { tenant, branding } = settings();
      const preferred = [...(uiLocales ?? '').split(' ').filter(Boolean), ...acceptedLanguages(ctx)];
      const locale = chooseLocale(locales, tenant.enabled_locales, preferred);
      const nonce = random(16).toString('base64');
      ctx.status = status;
      ctx.set('Content-Type', 'text/html; charset=utf-8');
      ctx.set('Cache-Control', 'no-store');
      ctx.set('Content-Language', locale);
      ctx.set(
        'Content-Security-Policy',
        pagePolicy(nonce, formAction === undefined ? [] : [cspSource(formAction)]),
      );
      // An application's popup must still reach its opener when the login ends there.
      ctx.set('Cross-Origin-Opener-Policy', 'unsafe-none');
      ctx.body = await liquid.renderFile(template, {
        ...model,
        page: { locale, direction: directionOf(locale), nonce },
        tenant: {
          name: tenant.friendly_name,
          logo: branding.logo_url ?? tenant.picture_url,
          ...links(branding),
        },
        colors: palette(branding.colors),
      });
    },
  };
}

function acceptedLanguages(ctx: Context): string[] {
  const accepted = ctx.acceptsLanguages();
  return Array.isArray(accepted) ? accepted.filter((tag) => tag !== '*') : [];
}

function links({ terms_url, privacy_url }: Frozen<TenantRecord>['branding']) {
  return { terms: terms_url, privacy: privacy_url };
}

/** A callback's origin, or its scheme where it has one of its own, as a CSP source. */
function cspSource(uri: string): string {
  const { origin, protocol } = new URL(uri);
  return origin === 'null' ? protocol : origin;
}

function palette({
  primary = DEFAULT_PRIMARY,
  page_background: background = DEFAULT_BACKGROUND,
}: {
  primary?: string | undefined;
  page_background?: string | undefined;
}) {
  const { background: button, text } = fill(primary);
  return {
    primary: button,
    onPrimary: text,
    background,
    accent: readableOn(primary, LIGHT_SURFACE),
    accentDark: readableOn(primary, DARK_SURFACE),
    onBackground: readableOn('#4b5168', background),
  };
}
