// Routes of the application pages that have a design of their own.

import type { Context } from 'koa';
import type { Snippet } from '../../../capabilities/quickstarts/snippet.ts';
import { type Kind, snippetsOf } from '../../../capabilities/quickstarts/snippets.ts';
import { AuthError } from '../../../http/errors.ts';
import { formFields } from '../../../http/server/body.ts';
import type { RouteDeclarations } from '../../../http/server/router.ts';
import { firstAddress } from '../../../records/clients/allowed-urls.ts';
import { callApi, callOf } from '../api-calls.ts';
import { type ConsoleSession, consoleForm, consolePage, redirectAfterForm } from '../console-page.ts';
import { type FormFault, faultIn } from '../form-fault.ts';
import { refusalOf, refusalOptions } from '../forms.ts';
import { pageNumber, queryText } from '../query.ts';
import { declareConsolePage, type FaultyField, renderConsole } from '../render.ts';
import { findPage, PER_PAGE } from '../resources/find.ts';
import { hasUsers, KINDS, newApplication } from './kinds.ts';
import { listAll } from './list-all.ts';
import {
  APPLICATIONS,
  type Application,
  type ApplicationsDependencies,
  addressOf,
  applicationAt,
  applicationOf,
  declareApplicationPage,
  renderApplication,
} from './model.ts';
import { TRY_CALLBACK } from './try-logins.ts';
import { showTry, showTryResult, startTry, type TryDependencies } from './try-page.ts';

// The pages of applications: the list, and the quickstart, connections and APIs of one.

const LIST = 'GET /clients';

interface ApplicationsListModel {
  text: string;
  mayCreate: boolean;
  applications: (Application & { href: string })[];
  first: number;
  last: number;
  total: number | undefined;
  previous: string | undefined;
  next: string | undefined;
}

export const APPLICATIONS_LIST_PAGE = declareConsolePage<ApplicationsListModel>('console/applications-list');

async function showApplications(
  deps: ApplicationsDependencies,
  ctx: Context,
  session: ConsoleSession,
): Promise<void> {
  const param = (name: string) => queryText(ctx, name);
  const text = param('text').slice(0, 200);
  const page = Math.max(pageNumber(param('page')) - 1, 0);
  const request = {
    filters: { is_global: 'false' },
    text,
    sort: '',
    isDescending: false,
    page,
    from: undefined,
  };
  const found = await findPage(
    callOf(LIST),
    request,
    async (query) => (await callApi(deps, ctx, session, LIST, { query })).body,
  );
  const address = (number: number) =>
    `${APPLICATIONS}?${new URLSearchParams({ ...(text && { text }), page: String(number) })}`;
  await renderConsole(deps, ctx, session, {
    page: APPLICATIONS_LIST_PAGE,
    section: 'applications',
    title: 't:console.nav.applications',
    model: {
      text,
      mayCreate: session.can('create:clients'),
      applications: found.items
        .map(applicationOf)
        .map((application) => ({ ...application, href: addressOf(application) })),
      first: page * PER_PAGE + 1,
      last: page * PER_PAGE + found.items.length,
      total: found.total,
      previous: page > 0 ? address(page) : undefined,
      next: found.hasMore ? address(page + 2) : undefined,
    },
  });
}

interface ApplicationsQuickstartModel {
  domain: string;
  issuer: string;
  hasCallback: boolean;
  hasSecret: boolean;
  snippets: Snippet[];
}

export const APPLICATIONS_QUICKSTART_PAGE = declareApplicationPage<ApplicationsQuickstartModel>(
  'console/applications-quickstart',
);

/** Shows programs that log users in to an application, filled in with its values. */
async function showQuickstart(
  deps: ApplicationsDependencies,
  ctx: Context,
  session: ConsoleSession,
): Promise<void> {
  const application = await applicationAt(deps, ctx, session);
  const { kind, callbacks, allowed_logout_urls, client_id: clientId } = application;
  const { issuer } = deps;
  const grants = session.can('read:client_grants')
    ? await listAll(deps, ctx, session, 'GET /client-grants', { client_id: clientId })
    : [];
  const [audience] = grants.map((grant) => String(grant.audience));
  const callback = firstAddress(callbacks) ?? 'http://localhost:3000';
  const afterLogout = firstAddress(allowed_logout_urls) ?? URL.parse(callback)?.origin ?? callback;
  const domain = new URL(issuer).host;
  await renderApplication(deps, ctx, session, application, {
    tab: '',
    page: APPLICATIONS_QUICKSTART_PAGE,
    model: {
      domain,
      issuer,
      hasCallback: callbacks.length > 0 || !hasUsers(kind),
      hasSecret: application.token_endpoint_auth_method !== 'none',
      snippets: snippetsOf(kind, {
        domain,
        issuer,
        clientId,
        callback,
        afterLogout,
        audience: hasUsers(kind) ? undefined : audience,
      }),
    },
  });
}

interface ApplicationsConnectionsModel {
  maySwitch: boolean;
  connections: { id: string; name: string; strategy: string; isOn: boolean }[];
}

export const APPLICATIONS_CONNECTIONS_PAGE = declareApplicationPage<ApplicationsConnectionsModel>(
  'console/applications-connections',
);

async function showConnections(
  deps: ApplicationsDependencies,
  ctx: Context,
  session: ConsoleSession,
): Promise<void> {
  const application = await applicationAt(deps, ctx, session);
  const connections = await listAll(deps, ctx, session, 'GET /connections');
  await renderApplication(deps, ctx, session, application, {
    tab: 'connections',
    page: APPLICATIONS_CONNECTIONS_PAGE,
    model: {
      maySwitch: session.can('update:connections'),
      connections: connections.map(({ id, name, display_name, strategy, enabled_clients }) => ({
        id: String(id),
        name: String(display_name ?? name),
        strategy: String(strategy),
        isOn: Array.isArray(enabled_clients) && enabled_clients.includes(application.client_id),
      })),
    },
  });
}

async function switchConnection(
  deps: ApplicationsDependencies,
  ctx: Context,
  session: ConsoleSession,
): Promise<void> {
  const application = await applicationAt(deps, ctx, session);
  const { connection: id, on } = formFields(ctx, 'connection', 'on');
  const body = [{ client_id: application.client_id, status: on === 'true' }];
  await callApi(deps, ctx, session, 'PATCH /connections/:id/clients', { params: { id }, body });
  redirectAfterForm(ctx, addressOf(application, 'connections'), 'console.said.saved');
}

/** For whom an application gets tokens by a client grant: for itself, or for users. */
type Subject = 'client' | 'user';

interface ApplicationsApisModel {
  maySwitch: boolean;
  /** For whom a switch lets it get tokens. */
  subject: Subject;
  /** Whether it can get tokens for itself. */
  hasGrantType: boolean;
  apis: {
    identifier: string;
    name: string;
    /** The number of its scopes, and of those that were given. */
    all: number;
    given: number;
    isOn: boolean;
    /** For whom its grant is, if not as the switch would make it. */
    otherSubject?: string | undefined;
    /** Where the grant is changed. */
    grant: string | undefined;
  }[];
}

export const APPLICATIONS_APIS_PAGE =
  declareApplicationPage<ApplicationsApisModel>('console/applications-apis');

/**
 * Returns for whom an application of its kind needs a grant: one that is an API, for the users whose tokens it exchanges; one of
 * third parties, for its users; others for themselves.
 */
function subjectOf({ kind, is_first_party: isOurs }: Application): Subject {
  return kind === 'resource_server' || (!isOurs && hasUsers(kind)) ? 'user' : 'client';
}

/** Shows the APIs of the tenant, each with a switch: whether the application may get tokens for it. */
async function showApis(
  deps: ApplicationsDependencies,
  ctx: Context,
  session: ConsoleSession,
): Promise<void> {
  const application = await applicationAt(deps, ctx, session);
  const subject = subjectOf(application);
  const [apis, grants] = await Promise.all([
    listAll(deps, ctx, session, 'GET /resource-servers'),
    grantsTo(deps, ctx, session, application),
  ]);
  await renderApplication(deps, ctx, session, application, {
    tab: 'apis',
    page: APPLICATIONS_APIS_PAGE,
    model: {
      maySwitch: session.can('create:client_grants') && session.can('delete:client_grants'),
      subject,
      hasGrantType: application.grant_types.includes('client_credentials'),
      apis: apis.map(({ identifier, name, scopes }) => {
        const grant = grants.find(({ audience }) => audience === identifier);
        const all = Array.isArray(scopes) ? scopes.length : 0;
        const grantedCount = Array.isArray(grant?.scope) ? grant.scope.length : 0;
        const isOther = grant !== undefined && grant.subject_type !== subject;
        return {
          identifier: String(identifier),
          name: String(name ?? identifier),
          all,
          given: grant?.allow_all_scopes === true ? all : grantedCount,
          isOn: grant !== undefined,
          ...(isOther && { otherSubject: String(grant.subject_type) }),
          grant: grant && `/console/change/client-grants/${encodeURIComponent(String(grant.id))}`,
        };
      }),
    },
  });
}

/** Returns the client grants of an application; it has one for an API, whoever that is for. */
const grantsTo = (
  deps: ApplicationsDependencies,
  ctx: Context,
  session: ConsoleSession,
  { client_id }: Application,
) => listAll(deps, ctx, session, 'GET /client-grants', { client_id });

/** Allows an application to get tokens for an API with all its scopes, or withdraws that. */
async function switchApi(
  deps: ApplicationsDependencies,
  ctx: Context,
  session: ConsoleSession,
): Promise<void> {
  const application = await applicationAt(deps, ctx, session);
  const { client_id } = application;
  const { api, on } = formFields(ctx, 'api', 'on');
  const grants = await grantsTo(deps, ctx, session, application);
  const grant = grants.find(({ audience }) => audience === api);
  if (on === 'true' && grant === undefined) {
    const apis = await listAll(deps, ctx, session, 'GET /resource-servers');
    const scopes = apis.find(({ identifier }) => identifier === api)?.scopes;
    const scope = (Array.isArray(scopes) ? scopes : []).map(({ value }) => value);
    const subject_type = subjectOf(application);
    await callApi(deps, ctx, session, 'POST /client-grants', {
      body: { client_id, audience: api, scope, subject_type },
    });
  }
  if (on !== 'true' && grant !== undefined)
    await callApi(deps, ctx, session, 'DELETE /client-grants/:id', { params: { id: String(grant.id) } });
  redirectAfterForm(ctx, addressOf(application, 'apis'), 'console.said.saved');
}

// Creating an application.

const NAME: FaultyField = { id: 'name', label: 't:console.applications.name' };
const CALLBACK: FaultyField = { id: 'callback', label: 't:console.applications.callback' };

interface EnteredApplication {
  name: string;
  callback: string;
}

interface ApplicationsNewModel {
  kinds: readonly Kind[];
  values: EnteredApplication;
  faults: { name?: FormFault; callback?: FormFault };
}

export const APPLICATIONS_NEW_PAGE = declareConsolePage<ApplicationsNewModel>('console/applications-new');

/** @param fault what was wrong with the entered values. */
async function showKinds(
  deps: ApplicationsDependencies,
  ctx: Context,
  session: ConsoleSession,
  { entered, fault }: { entered?: EnteredApplication; fault?: FormFault } = {},
): Promise<void> {
  const { text } = deps.views.locale(ctx);
  const nameFault = faultIn(fault, 'name');
  const callbackFault = faultIn(fault, 'callbacks') && {
    status: 400,
    key: 'console.applications.callbackFault',
  };
  const faulty = nameFault ? NAME : callbackFault && CALLBACK;
  await renderConsole(deps, ctx, session, {
    page: APPLICATIONS_NEW_PAGE,
    section: 'applications',
    title: 't:console.applications.new',
    model: {
      kinds: KINDS,
      values: entered ?? { name: text('console.applications.usualName'), callback: 'http://localhost:3000' },
      faults: { ...(nameFault && { name: nameFault }), ...(callbackFault && { callback: callbackFault }) },
    },
    ...refusalOptions(fault, faulty),
  });
}

// docs/understand/decisions/console-account.md#a-new-application-of-the-console-is-enabled-for-all-database-connections
/** Creates an application of the chosen kind, and enables the tenant's databases for it. */
async function create(deps: ApplicationsDependencies, ctx: Context, session: ConsoleSession): Promise<void> {
  const { kind: chosen, name, callback } = formFields(ctx, 'kind', 'name', 'callback');
  const kind = KINDS.find((one) => one === chosen);
  if (kind === undefined)
    throw new AuthError(400, 'invalid_request', 'There is no such kind of application.');
  const body = newApplication(kind, name.trim(), hasUsers(kind) && callback !== '' ? callback : undefined);
  let created: unknown;
  try {
    ({ body: created } = await callApi(deps, ctx, session, 'POST /clients', { body }));
  } catch (thrown) {
    return showKinds(deps, ctx, session, { entered: { name, callback }, fault: refusalOf(thrown) });
  }
  const application = applicationOf(created as Record<string, unknown>);
  if (hasUsers(kind)) await enableDatabases(deps, ctx, session, application.client_id);
  redirectAfterForm(ctx, addressOf(application), 'console.said.created');
}

async function enableDatabases(
  deps: ApplicationsDependencies,
  ctx: Context,
  session: ConsoleSession,
  client_id: string,
): Promise<void> {
  if (!session.can('read:connections') || !session.can('update:connections')) return;
  for (const { id } of await listAll(deps, ctx, session, 'GET /connections', { strategy: 'auth0' }))
    await callApi(deps, ctx, session, 'PATCH /connections/:id/clients', {
      params: { id: String(id) },
      body: [{ client_id, status: true }],
    });
}

const SECTION = 'applications';

/** Trying an application uses its secret, so it requires the scope to see the secret. */
const TRY_SCOPES = ['update:clients', 'read:client_keys'];

const page = (scopes: readonly string[], handle: Parameters<typeof consolePage<TryDependencies>>[2]) =>
  consolePage<TryDependencies>(SECTION, { scopes: ['read:clients', ...scopes] }, handle);

const form = (
  scopes: readonly string[],
  handle: Parameters<typeof consoleForm<TryDependencies>>[2],
  { isDangerous = true } = {},
) => consoleForm<TryDependencies>(SECTION, { scopes: ['read:clients', ...scopes], isDangerous }, handle);

// These forms count as dangerous: a new application has users' tokens sent to its callback, connections let users in,
// and an API may be the Management API.
export const applicationsRoutes: RouteDeclarations<TryDependencies> = {
  [`GET ${APPLICATIONS}` as const]: page([], showApplications),
  'GET /console/new-application': page(['create:clients'], (deps, ctx, session) =>
    showKinds(deps, ctx, session),
  ),
  'POST /console/new-application': form(['create:clients'], create),
  [`GET ${APPLICATIONS}/:id` as const]: page([], showQuickstart),
  [`GET ${APPLICATIONS}/:id/connections` as const]: page(['read:connections'], showConnections),
  [`POST ${APPLICATIONS}/:id/connections` as const]: form(['update:connections'], switchConnection),
  [`GET ${APPLICATIONS}/:id/apis` as const]: page(['read:resource_servers', 'read:client_grants'], showApis),
  [`POST ${APPLICATIONS}/:id/apis` as const]: form(
    ['read:resource_servers', 'read:client_grants', 'create:client_grants', 'delete:client_grants'],
    switchApi,
  ),
  [`GET ${APPLICATIONS}/:id/try` as const]: page(TRY_SCOPES, showTry),
  [`POST ${APPLICATIONS}/:id/try` as const]: form(TRY_SCOPES, startTry, { isDangerous: false }),
  [`GET ${TRY_CALLBACK}/:id` as const]: page(TRY_SCOPES, showTryResult),
};
