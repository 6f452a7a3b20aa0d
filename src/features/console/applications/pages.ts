// The pages of applications: the list, and the quickstart, connections and APIs of one.
import type { Context } from 'koa';
import { formFields } from '../../../http/body-fields.ts';
import { callApi, callOf } from '../api-calls.ts';
import { type ConsoleSession, redirectAfterForm } from '../page.ts';
import { pageNumber, queryText } from '../query.ts';
import { renderConsole } from '../render.ts';
import { findPage, PER_PAGE } from '../resources/find.ts';
import { hasUsers } from './kinds.ts';
import { listAll } from './list-all.ts';
import {
  APPLICATIONS,
  type Application,
  type ApplicationsDependencies,
  addressOf,
  applicationAt,
  applicationOf,
  renderApplication,
} from './model.ts';
import { snippetsOf } from './snippets.ts';

const LIST = 'GET /clients';

/** Shows the list of applications, or those that contain a text. */
export async function showApplications(
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
    template: 'console/applications-list',
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

/** Shows programs that log users in to an application, filled in with its values. */
export async function showQuickstart(
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
  const callback = callbacks[0] ?? 'http://localhost:3000';
  const afterLogout = allowed_logout_urls[0] ?? URL.parse(callback)?.origin ?? callback;
  const domain = new URL(issuer).host;
  await renderApplication(deps, ctx, session, application, {
    tab: '',
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

/** Shows the connections of the tenant, each with a switch. */
export async function showConnections(
  deps: ApplicationsDependencies,
  ctx: Context,
  session: ConsoleSession,
): Promise<void> {
  const application = await applicationAt(deps, ctx, session);
  const connections = await listAll(deps, ctx, session, 'GET /connections');
  await renderApplication(deps, ctx, session, application, {
    tab: 'connections',
    model: {
      maySwitch: session.can('update:connections'),
      connections: connections.map(({ id, name, display_name, strategy, enabled_clients }) => ({
        id,
        name: display_name ?? name,
        strategy,
        isOn: Array.isArray(enabled_clients) && enabled_clients.includes(application.client_id),
      })),
    },
  });
}

/** Enables or disables a connection for an application. */
export async function switchConnection(
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

/**
 * Shows the APIs of the tenant, each with a switch: whether the application may get tokens for it by client
 * credentials.
 */
export async function showApis(
  deps: ApplicationsDependencies,
  ctx: Context,
  session: ConsoleSession,
): Promise<void> {
  const application = await applicationAt(deps, ctx, session);
  const [apis, grants] = await Promise.all([
    listAll(deps, ctx, session, 'GET /resource-servers'),
    machineGrants(deps, ctx, session, application),
  ]);
  await renderApplication(deps, ctx, session, application, {
    tab: 'apis',
    model: {
      maySwitch: session.can('create:client_grants') && session.can('delete:client_grants'),
      hasGrantType: application.grant_types.includes('client_credentials'),
      apis: apis.map(({ identifier, name, scopes }) => {
        const grant = grants.find(({ audience }) => audience === identifier);
        const all = Array.isArray(scopes) ? scopes.length : 0;
        const grantedCount = Array.isArray(grant?.scope) ? grant.scope.length : 0;
        return {
          identifier,
          name: name ?? identifier,
          all,
          given: grantedCount,
          isOn: grant !== undefined,
          grant: grant && `/console/change/client-grants/${encodeURIComponent(String(grant.id))}`,
        };
      }),
    },
  });
}

/** Returns the client grants that an application may use for itself. */
const machineGrants = (
  deps: ApplicationsDependencies,
  ctx: Context,
  session: ConsoleSession,
  { client_id }: Application,
) => listAll(deps, ctx, session, 'GET /client-grants', { client_id, subject_type: 'client' });

/** Allows an application to get tokens for an API with all its scopes, or withdraws that. */
export async function switchApi(
  deps: ApplicationsDependencies,
  ctx: Context,
  session: ConsoleSession,
): Promise<void> {
  const application = await applicationAt(deps, ctx, session);
  const { client_id } = application;
  const { api, on } = formFields(ctx, 'api', 'on');
  const grants = await machineGrants(deps, ctx, session, application);
  const grant = grants.find(({ audience }) => audience === api);
  if (on === 'true' && grant === undefined) {
    const apis = await listAll(deps, ctx, session, 'GET /resource-servers');
    const scopes = apis.find(({ identifier }) => identifier === api)?.scopes;
    const scope = (Array.isArray(scopes) ? scopes : []).map(({ value }) => value);
    await callApi(deps, ctx, session, 'POST /client-grants', { body: { client_id, audience: api, scope } });
  }
  if (on !== 'true' && grant !== undefined)
    await callApi(deps, ctx, session, 'DELETE /client-grants/:id', { params: { id: String(grant.id) } });
  redirectAfterForm(ctx, addressOf(application, 'apis'), 'console.said.saved');
}
