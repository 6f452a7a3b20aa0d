// Renders the HTML of a page: its Liquid template with escaped output, in a language, with the branding of the tenant
// or an organization.
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { Liquid } from 'liquidjs';
import { z } from 'zod';
import type { Frozen } from '../../records/base/record.ts';
import type { TenantRecord } from '../../records/tenant/tenant.ts';
import type { Random } from '../../runtime/secrets.ts';
import { FALLBACK } from '../../tenant/languages.ts';
import { type ReportingLiquid, TemplateFault } from '../liquid/liquid.ts';
import type { Assets } from './assets.ts';
import { fontCss, themeCss } from './colors.ts';
import { type CustomTexts, withCustomTexts } from './custom-texts.ts';
import type { Locale, MessageValues } from './locales.ts';
import { inTemplate, isFramed, type PageTemplate, type Settings, templateModel } from './page-template.ts';
import { fontOf, logoOf, type OrganizationColors, type Theme, themeLook } from './theme.ts';

export interface BrandedOrganization {
  name: string;
  display_name?: string | undefined;
  branding?: unknown;
}

export interface Look {
  texts: CustomTexts;
  template: string | undefined;
  theme?: Theme | undefined;
}

/** The languages that a reader can choose on a page. */
export interface LanguageMenu {
  /** Path and query of the page, to which the choice leads back. */
  back: string;
  languages: readonly { tag: string; name: string; isShown: boolean }[];
}

interface Rendering {
  settings: Settings;
  look: Look;
  organization?: Frozen<BrandedOrganization> | undefined;
  locale: Locale;
  menu?: LanguageMenu | undefined;
}

interface Rendered {
  html: string;
  nonce: string;
  images: readonly string[] | 'any';
  /** The origin of its font, when it is not ours. */
  font: string | undefined;
}

interface RendererDependencies {
  directory: string;
  assets: Assets;
  random: Random;
  liquid: ReportingLiquid;
}

/** @throws Error when the template or a message is missing. */
type Render = (template: string, model: object, rendering: Rendering) => Promise<Rendered>;

/** Creates the renderer. Each template is read when it is first needed. */
export function createRenderer({ directory, assets, random, liquid }: RendererDependencies): Render {
  const own = createLiquid(directory, assets);
  return async (template, model, { settings, look, organization, locale: baseLocale, menu }) => {
    const { texts, template: pageTemplate, theme } = look;
    const { tenant, branding, colors } = withOrganizationBranding(
      withThemeLogo(settings, theme),
      organization,
    );
    const locale = withCustomTexts(baseLocale, texts, { template, model, company: tenant.friendly_name });
    const nonce = random(16).toString('base64');
    const font = fontCss((theme && fontOf(theme)) ?? (branding.font as { url?: unknown } | undefined)?.url);
    const themeStyle = theme === undefined ? { css: '' } : themeLook(theme, colors);
    const isWithinTemplate = pageTemplate !== undefined && isFramed(template);
    const tenantLayout = describeTenant(tenant, branding);
    const rendered: unknown = await own.renderFile(template, model, {
      globals: {
        page: { ...describePage(locale, nonce, themeCss(branding.colors) + font.css + themeStyle.css), menu },
        tenant: tenantLayout,
        locale,
      } satisfies Globals,
    });
    const html = withLanguages(String(rendered));
    const mark = random(16).toString('hex');
    const variables = () => templateModel({ tenant, branding }, { template, model, organization, locale });
    return {
      html: isWithinTemplate
        ? await inPageTemplate(liquid, html, {
            source: pageTemplate,
            variables: variables(),
            nonce,
            mark,
          })
        : html,
      nonce,
      // The tenant's own template may contain any image.
      images: isWithinTemplate ? 'any' : [...imagesOf(tenantLayout, model), ...(themeStyle.image ?? [])],
      font: font.origin,
    };
  };
}

/** What templates read everywhere, under these names. */
export interface Globals {
  page: {
    /** RFC 5646. */
    locale: string;
    direction: Locale['direction'];
    /** Of the content security policy. */
    nonce: string;
    /** CSS. */
    theme: string;
    menu: LanguageMenu | undefined;
  };
  tenant: TenantLayout;
  locale: Locale;
}

function describePage(
  { tag, direction }: Locale,
  nonce: string,
  theme: string,
): Omit<Globals['page'], 'menu'> {
  return { locale: tag, direction, nonce, theme };
}

/** Returns our page inside the tenant's template, or alone when that fails, so that people can still log in. */
async function inPageTemplate(liquid: ReportingLiquid, html: string, around: PageTemplate): Promise<string> {
  try {
    return (await inTemplate(liquid, html, around)) ?? html;
  } catch (thrown) {
    if (!(thrown instanceof TemplateFault)) throw thrown;
    liquid.report({ name: 'page', source: around.source, fault: thrown.message });
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

/** Returns the settings with the logo of the theme, if it has one. */
function withThemeLogo(look: Settings, theme: Theme | undefined): Settings {
  const logo = theme && logoOf(theme);
  return logo === undefined ? look : { ...look, branding: { ...look.branding, logo_url: logo } };
}

/** `colors` holds the colours that the tenant's theme does not replace. */
function withOrganizationBranding(
  look: Settings,
  organization: Rendering['organization'],
): Settings & { colors: OrganizationColors } {
  if (organization === undefined) return { ...look, colors: {} };
  const parsed = organizationBranding.safeParse(organization.branding);
  const { logo_url: logo, colors } = parsed.success ? parsed.data : {};
  const { tenant, branding } = look;
  return {
    tenant: { ...tenant, friendly_name: organization.display_name ?? organization.name },
    branding: {
      ...branding,
      ...(logo !== undefined && { logo_url: logo }),
      colors: { ...branding.colors, ...defined(colors) },
    } as Settings['branding'],
    colors: { primary: colors?.primary, page: colors?.page_background },
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
    return pageText(locale, key, Object.fromEntries(values));
  });
  // {{ '{seconds}' | inSeconds }}: `{seconds} sec` in the language of the page.
  liquid.registerFilter('inSeconds', function (number: string): string {
    const { locale } = this.context.globals as { locale: Locale };
    return inSeconds(locale.tag, number);
  });
  // {{ 'Roles' | worded: 'console.title.' }}: the message `console.title.Roles`, or the text itself where there is
  // none.
  liquid.registerFilter('worded', function (text: string, prefix: string): string {
    const { locale } = this.context.globals as { locale: Locale };
    return locale.has(`${prefix}${text}`) ? pageText(locale, `${prefix}${text}`) : text;
  });
  return liquid;
}

/** Returns a number of seconds with their unit. Browsers would have the units of the languages that they speak alone: not of Armenian. */
function inSeconds(tag: string, number: string): string {
  const unit = { style: 'unit', unit: 'second', unitDisplay: 'short' } as const;
  const parts = new Intl.NumberFormat([tag, FALLBACK], unit).formatToParts(30);
  return parts.map(({ type, value }) => (type === 'integer' ? number : value)).join('');
}

// Marks the messages that are English because the language of the page lacks them, so that a screen reader pronounces
// them so (WCAG 2.2 §3.1.2).

/** Not known outside of this process, because texts of strangers stand on the same pages and may contain any character. */
const MARK = randomUUID();
const START = `[${MARK}`;
const END = `${MARK}]`;

/** Returns a message for a page: between marks if it is not in the language of the locale. */
export function pageText(locale: Locale, key: string, values?: MessageValues): string {
  const text = locale.text(key, values);
  return locale.isTranslated(key) ? text : `${START}${text}${END}`;
}

/** Elements that contain text alone. */
const TEXT_ONLY = new Set(['title', 'option', 'textarea', 'script', 'style']);

/** Where a page goes on: whether within a tag, and the element of {@link TEXT_ONLY}. */
interface Place {
  isTag: boolean;
  element?: string | undefined;
}

/** Returns the place at the end of a part of a page that begins at a place. */
function placeAfter(html: string, { isTag, element }: Place): Place {
  for (let at = 0; ; at++) {
    const next = isTag ? '>' : element === undefined ? '<' : `</${element}`;
    at = html.indexOf(next, at);
    if (at === -1) return { isTag, element };
    if (!isTag) {
      const [name = ''] = element === undefined ? (/^[a-z]+/.exec(html.slice(at + 1, at + 10)) ?? []) : [];
      element = TEXT_ONLY.has(name) ? name : undefined;
    }
    isTag = !isTag;
  }
}

/** Returns a page with the language of the marked messages where an element may stand, without the marks. */
function withLanguages(html: string): string {
  const [first = '', ...marked] = html.split(START);
  let place = placeAfter(first, { isTag: false });
  const parts = marked.map((part) => {
    const end = part.indexOf(END);
    const isElement = !place.isTag && place.element === undefined && end !== -1;
    place = placeAfter(part, place);
    return isElement
      ? `<span lang="${FALLBACK}" dir="ltr">${part.slice(0, end)}</span>${part.slice(end + END.length)}`
      : part;
  });
  return [first, ...parts].join('').replaceAll(END, '');
}

// Selects what the layout shows of the tenant, and which images a page contains.

interface TenantLayout {
  name: string;
  logo: string | undefined;
  favicon: string | undefined;
  terms: string | undefined;
  privacy: string | undefined;
  support: string | undefined;
}

/** The parts of models that may contain images. */
interface WithLogos {
  client?: { logo?: string };
  connections?: readonly { logo?: string }[];
  others?: readonly { logo?: string }[];
}

function imagesOf(
  { logo, favicon }: TenantLayout,
  { client, connections = [], others = [] }: WithLogos,
): string[] {
  const logos = [logo, favicon, ...[client ?? {}, ...connections, ...others].map((one) => one.logo)];
  return logos.filter((address) => address !== undefined);
}

/** Returns the tenant's data for the layout, without addresses of other kinds than expected. */
function describeTenant(
  tenant: Frozen<TenantRecord>['tenant'],
  branding: Frozen<TenantRecord>['branding'],
): TenantLayout {
  return {
    name: tenant.friendly_name,
    logo: addressOf(IMAGE, branding.logo_url ?? tenant.picture_url),
    favicon: addressOf(IMAGE, branding.favicon_url),
    terms: addressOf(LINK, branding.terms_url),
    privacy: addressOf(LINK, branding.privacy_url),
    support: addressOf(LINK, tenant.support_url),
  };
}

const LINK = /^https?:/i;
const IMAGE = /^(https?:|data:image\/)/i;

/** Returns the address if it is of that kind; undefined for `javascript:` and the like. */
function addressOf(kind: RegExp, address: string | undefined): string | undefined {
  return address !== undefined && kind.test(address) ? address : undefined;
}
