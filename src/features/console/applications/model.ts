// Data and layout that the pages of an application share.

import type { Context } from 'koa';
import type { FramedPage } from '../../../capabilities/pages/views.ts';
import type { Kind } from '../../../capabilities/quickstarts/snippets.ts';
import { URL_LISTS, wildcardsOf } from '../../../records/clients/allowed-urls.ts';
import { type ApiCallDependencies, callApi } from '../api-calls.ts';
import type { ConsolePageDependencies, ConsoleSession } from '../console-page.ts';
import { type ConsoleFrame, declareConsolePage, renderConsole } from '../render.ts';
import { hasUsers, kindOf } from './kinds.ts';

export interface ApplicationsDependencies extends ConsolePageDependencies, ApiCallDependencies {
  /** The issuer, with its final slash. */
  issuer: string;
}

export const APPLICATIONS = '/console/applications';

/** An application as returned by the Management API. */
export interface Application {
  client_id: string;
  name: string;
  kind: Kind;
  callbacks: readonly string[];
  allowed_logout_urls: readonly string[];
  /** The entries of its lists of URLs that have a wildcard. */
  wildcards: readonly string[];
  grant_types: readonly string[];
  token_endpoint_auth_method: string | undefined;
  is_first_party: boolean;
}

/** The pages of an application, in the order of their tabs. */
const TABS = ['', 'connections', 'apis', 'try'] as const;
type Tab = (typeof TABS)[number];

/** Returns the application of the request's path. @throws AuthError 404 */
export async function applicationAt(
  deps: ApplicationsDependencies,
  ctx: Context,
  session: ConsoleSession,
): Promise<Application> {
  const { id = '' } = ctx.params as Record<string, string>;
  const { body } = await callApi(deps, ctx, session, 'GET /clients/:id', { params: { id } });
  return applicationOf(body as Record<string, unknown>);
}

/** Converts an application from the form in which the Management API returns it. */
export function applicationOf(record: Record<string, unknown>): Application {
  const texts = (name: string) => (Array.isArray(record[name]) ? (record[name] as string[]) : []);
  const { client_id, name, app_type, token_endpoint_auth_method: method, is_first_party } = record;
  return {
    client_id: String(client_id),
    name: typeof name === 'string' ? name : String(client_id),
    kind: kindOf(app_type),
    callbacks: texts('callbacks'),
    allowed_logout_urls: texts('allowed_logout_urls'),
    wildcards: wildcardsOf({
      ...Object.fromEntries(URL_LISTS.map((list) => [list, texts(list)])),
      is_first_party: is_first_party !== false,
    }),
    grant_types: texts('grant_types'),
    token_endpoint_auth_method: typeof method === 'string' ? method : undefined,
    is_first_party: is_first_party !== false,
  };
}

export const addressOf = ({ client_id }: Pick<Application, 'client_id'>, tab: Tab = ''): string =>
  `${APPLICATIONS}/${encodeURIComponent(client_id)}${tab === '' ? '' : `/${tab}`}`;

/** What the head of an application's page reads. */
export interface ApplicationFrame {
  application: Application & { address: string };
  /** Where its settings are. */
  settings: string;
  tabs: { href: string; text: string; isCurrent: boolean }[];
}

/** Declares a page of an application. @param template the path of its template below views/pages. */
export const declareApplicationPage = <Own>(template: string) =>
  declareConsolePage<Own & ApplicationFrame>(template);

interface ApplicationPage<Own> {
  tab: Tab;
  page: FramedPage<Own & ApplicationFrame, ConsoleFrame>;
  model: Own;
  status?: number;
}

export async function renderApplication<Own extends object>(
  deps: ApplicationsDependencies,
  ctx: Context,
  session: ConsoleSession,
  application: Application,
  { tab, page, model, status = 200 }: ApplicationPage<Own>,
): Promise<void> {
  const tabs = TABS.filter((one) => one !== 'connections' || hasUsers(application.kind)).filter(
    (one) => one !== 'try' || (session.can('update:clients') && session.can('read:client_keys')),
  );
  await renderConsole(deps, ctx, session, {
    page,
    section: 'applications',
    title: 't:console.nav.applications',
    model: {
      ...model,
      application: { ...application, address: encodeURIComponent(application.client_id) },
      settings: `/console/resources/clients/${encodeURIComponent(application.client_id)}`,
      tabs: tabs.map((one) => ({
        href: addressOf(application, one),
        text: `console.applications.tab.${one === '' ? 'quickstart' : one}`,
        isCurrent: one === tab,
      })),
    },
    status,
  });
}
