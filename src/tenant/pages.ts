// Customized pages of a tenant file: which one an application gets, and warnings about unsupported ones.
import type { Frozen } from '../records/base/record.ts';
import type { ClientRecord, TenantFile, TenantRecord } from '../records/tenant/tenant.ts';
import { type Finding, findingsOf } from './findings.ts';

/** Replaced by the page's configuration, base64 of JSON (docs/reference/wire/legacy-pages.md). */
export const CONFIG_PLACEHOLDER = '@@config@@';

/**
 * Returns the HTML of the customized login page for an application: its own, or else the tenant's.
 * @returns undefined when there is none or it is switched off.
 */
export function customLoginPage(
  { pages = [] }: Frozen<Pick<TenantRecord, 'pages'>>,
  client: Frozen<Pick<ClientRecord, 'custom_login_page' | 'custom_login_page_on'>>,
): string | undefined {
  if (client.custom_login_page_on === false) return undefined;
  const page = pages.find(({ name, enabled }) => name === 'login' && enabled !== false);
  return [client.custom_login_page, page?.html].find((html) => html !== undefined && html.trim() !== '');
}

/** Returns a finding for each unsupported setting of customized pages. */
export function pageFindings({ pages = [], clients }: TenantFile): Finding[] {
  return [
    ...pages.flatMap(({ name, html, enabled, url }, index): Finding[] => {
      const at = `pages[${index}]`;
      if (enabled === false) return [];
      if (name === 'login') return findingsOf('unusable', htmlWarnings(`${at}.html`, html));
      // Without a page there is nothing that is not shown, unless errors lead to another address.
      if (html.trim() === '' && String(url ?? '') === '') return [];
      const says = `${name} is not built in: ours is shown`;
      const several = 'pages are not built in: ours are shown';
      return [{ rank: 'unusable', at, says, several, item: name }];
    }),
    ...clients.flatMap(({ custom_login_page: html, custom_login_page_on: on }, index) =>
      html === undefined || on === false
        ? []
        : findingsOf('unusable', htmlWarnings(`clients[${index}].custom_login_page`, html)),
    ),
  ];
}

const INLINE_HANDLER = /<[a-z][^<>]*\s(on[a-z]+)\s*=/i;

function htmlWarnings(at: string, html: string): string[] {
  if (html.trim() === '') return [`${at} is empty: our own page is shown`];
  const handler = INLINE_HANDLER.exec(html)?.[1];
  return [
    ...(html.includes(CONFIG_PLACEHOLDER)
      ? []
      : [`${at} has no ${CONFIG_PLACEHOLDER}: it cannot know which login it is for`]),
    ...(handler === undefined
      ? []
      : [`${at} has an inline ${handler}=, which the page's policy does not run: use addEventListener`]),
  ];
}
