// The tenant's own template around our pages: Liquid with one place for the content of the head and one for the page
// (`/branding/templates/universal-login`).
// docs/understand/decisions/login-pages.md#the-page-template-surrounds-login-second-factors-the-account-and-logout

import type { Frozen } from '../../records/base/record.ts';
import type { TenantRecord } from '../../records/tenant/tenant.ts';
import { TemplateFault, type TenantLiquid } from '../liquid/liquid.ts';
import { HEAD, WIDGET } from '../liquid/liquid-templates.ts';
import { SCREENS } from './custom-texts.ts';
import type { Locale } from './locales.ts';

export type Settings = Frozen<Pick<TenantRecord, 'tenant' | 'branding'>>;

/** The variables of such a template, as in the hosted service. */
export interface TemplateModel {
  branding: { logo_url: string; colors: { primary: string; page_background: string } };
  tenant: { friendly_name: string };
  application: { name: string };
  organization?: { id?: string; name: string; display_name?: string } | undefined;
  prompt: { name: string; screen: { name: string } };
  locale: string;
}

/** Returns what is wrong with a template, trying it with a sample page; undefined for a good one. */
export async function templateFault(
  liquid: Pick<TenantLiquid, 'render'>,
  source: string,
): Promise<string | undefined> {
  const places = [HEAD, WIDGET].map((place) => source.split(place).length - 1);
  if (places.some((count) => count !== 1))
    return 'The template must hold {%- auth0:head -%} and {%- auth0:widget -%}, each once.';
  try {
    const html = '<html><head></head><body></body></html>';
    const around = { source, variables: SAMPLE, nonce: 'nonce', mark: '0'.repeat(32) };
    const rendered = await inTemplate(liquid, html, around);
    return rendered === undefined ? 'The places for head and widget must not depend on anything.' : undefined;
  } catch (thrown) {
    if (!(thrown instanceof TemplateFault)) throw thrown;
    return `The template cannot be rendered: ${thrown.message}`;
  }
}

const SAMPLE: TemplateModel = {
  branding: { logo_url: '', colors: { primary: '#000000', page_background: '#ffffff' } },
  tenant: { friendly_name: '' },
  application: { name: '' },
  prompt: { name: 'login', screen: { name: 'login' } },
  locale: 'en',
};

export interface PageTemplate {
  source: string;
  variables: TemplateModel;
  /** The nonce of the page's content security policy. */
  nonce: string;
  /** An unguessable text that marks the two places until the page is put there. */
  mark: string;
}

/**
 * @param html the complete page of ours.
 * @returns undefined when one of the places is missing from the rendered template.
 * @throws TemplateFault for a template that cannot be rendered.
 */
export async function inTemplate(
  liquid: Pick<TenantLiquid, 'render'>,
  html: string,
  around: PageTemplate,
): Promise<string | undefined> {
  const rendered = await liquid.render({ kind: 'page', ...around });
  const [head, widget] = [`head-${around.mark}`, `widget-${around.mark}`];
  if (rendered.split(head).length !== 2 || rendered.split(widget).length !== 2) return undefined;
  return rendered.replace(head, () => between(html, 'head')).replace(widget, () => between(html, 'body'));
}

/** Returns the content of an element that occurs once in our layout. */
function between(html: string, element: 'head' | 'body'): string {
  const start = html.indexOf('>', html.indexOf(`<${element}`)) + 1;
  return html.slice(start, html.lastIndexOf(`</${element}>`));
}

const FRAMED_PAGES = /^(login|mfa|passwordless|account|logout)\//;

/** Reports whether a page is shown inside the tenant's template. @param template its path below views/pages. */
export const isFramed = (template: string): boolean => FRAMED_PAGES.test(template);

/** @param settings those of the tenant, with an organization's in their place where it has its own. */
export function templateModel(
  { tenant, branding }: Settings,
  page: {
    organization?: Frozen<{ name: string; display_name?: string | undefined }> | undefined;
    template: string;
    model: { client?: { name?: string } };
    locale: Locale;
  },
): TemplateModel {
  const { template, model, organization, locale } = page;
  const [place = ''] = Object.values(SCREENS[template] ?? {});
  const [prompt = template.split('/')[0] ?? '', screen = ''] = place.split('/');
  const { primary = '', page_background: background = '' } = branding.colors ?? {};
  const page_background = typeof background === 'string' ? background : background.start;
  return {
    branding: { logo_url: branding.logo_url ?? '', colors: { primary, page_background } },
    tenant: { friendly_name: tenant.friendly_name },
    application: { name: model.client?.name ?? '' },
    organization: organization && {
      name: organization.name,
      ...(organization.display_name !== undefined && { display_name: organization.display_name }),
    },
    prompt: { name: place === '' ? (template.split('/')[0] ?? '') : prompt, screen: { name: screen } },
    locale: locale.tag,
  };
}
