// The routes of connections.

import type { Context } from 'koa';
import { AuthError } from '../../../http/errors.ts';
import { bodyTexts, formFields } from '../../../http/server/body.ts';
import type { RouteDeclarations } from '../../../http/server/router.ts';
import { CONSOLE_CLIENT } from '../../../records/users/administrators.ts';
import { sha256 } from '../../../runtime/secrets.ts';
import type { UpstreamRedirect } from '../../connections/redirect.ts';
import { LOGIN_ELSEWHERE_PAGE } from '../../connections/upstream/redirect-to-provider.ts';
import { callApi } from '../api-calls.ts';
import { consoleForm, consolePage, LONG_TEXTS, redirectAfterForm } from '../console-page.ts';
import type { ConsoleSession } from '../console-session.ts';
import { type FormFault, faultIn } from '../form-fault.ts';
import { refusalOf, refusalOptions } from '../forms.ts';
import { pageNumber, queryText } from '../query.ts';
import { declareConsolePage, type FaultyField, renderConsole } from '../render.ts';
import { type FilledFields, faultyOption, filledFields, withEntered } from './console-connection-options.ts';
import { usedOf } from './console-connection-scripts.ts';
import { remove, saveSettings, showRemoval, showSettings } from './console-connections-settings.ts';
import { isKnown, type Kind, kindOf, kindsByGroup, missingOptionsOf, titleOf } from './kinds.ts';
import { showScript, submitScript } from './script-page.ts';
import {
  CHANGE,
  type ConnectionFrame,
  type ConnectionsDependencies,
  connectionAt,
  DISPLAY_NAME,
  enteredOptions,
  headOf,
  PATH,
  READ,
  recordOf,
  SECTION,
  type ShownConnection,
  TRY_RESULT,
} from './shared.ts';
import type { Step } from './steps.ts';
import { finishTry, startTry, tryMethodOf, tryPassword } from './try.ts';

// The pages of "Try connection".

/** Returns a hash that stands for the administrator's session, which one browser has. */
const sessionHash = ({ token }: ConsoleSession) => sha256(`trial ${token}`);

async function showTry(deps: ConnectionsDependencies, ctx: Context, session: ConsoleSession): Promise<void> {
  await showPage(deps, ctx, session, await connectionAt(deps, ctx, session));
}

/** Begins a login at the provider, or checks an identifier and a password. */
async function tryConnection(
  deps: ConnectionsDependencies,
  ctx: Context,
  session: ConsoleSession,
): Promise<void> {
  const shown = await connectionAt(deps, ctx, session);
  const connection = await recordOf(deps, shown);
  const method = tryMethodOf(connection);
  if (method.kind === 'redirect') {
    const owner = { userId: session.administrator.userId, session: sessionHash(session) };
    const started = await startTry(deps, owner, { connection, strategy: method.strategy });
    if (started.redirect === undefined)
      return showPage(deps, ctx, session, shown, { ...started, isRight: false });
    return showRedirect(deps, ctx, session, shown, { ...started, redirect: started.redirect });
  }
  if (method.kind === 'none')
    throw new AuthError(400, 'invalid_request', 'This connection cannot be tried here.');
  const { identifier, password } = formFields(ctx, 'identifier', 'password');
  await deps.limitLogin(ctx, connection, identifier);
  const passwordTry = {
    connection,
    strategy: method.strategy,
    identifier,
    password,
    caller: { ip: ctx.ip },
    clientId: CONSOLE_CLIENT,
  };
  await showPage(deps, ctx, session, shown, await tryPassword(deps, passwordTry));
}

/** Shows the outcome after the browser has returned from the provider. */
async function showTryResult(
  deps: ConnectionsDependencies,
  ctx: Context,
  session: ConsoleSession,
): Promise<void> {
  const { ticket } = ctx.query;
  const answer =
    typeof ticket === 'string' ? await deps.testLogins.take(ticket, sessionHash(session)) : undefined;
  if (answer === undefined)
    throw new AuthError(400, 'invalid_request', 'This try is over. Begin another one.', {
      extra: { reason: 'request_expired' },
    });
  const params = { id: answer.connectionId };
  const shown = (await callApi(deps, ctx, session, 'GET /connections/:id', { params }))
    .body as ShownConnection;
  const steps = await finishTry(deps, answer, await recordOf(deps, shown));
  await showPage(deps, ctx, session, shown, { steps, isRight: steps.at(-1)?.kind === 'profile' });
}

/**
 * Shows a link to the provider. It is not a redirect, because forms of the console's pages may not lead elsewhere. A
 * provider that needs a form gets a page of its own.
 */
async function showRedirect(
  deps: ConnectionsDependencies,
  ctx: Context,
  session: ConsoleSession,
  shown: ShownConnection,
  { steps, redirect }: { steps: readonly Step[]; redirect: UpstreamRedirect },
): Promise<void> {
  if ('url' in redirect)
    return showPage(deps, ctx, session, shown, { steps, isRight: false, goUrl: redirect.url });
  const { action, fields } = redirect;
  const model = { action, fields: Object.entries(fields), client: { name: session.administrator.name } };
  await deps.views.page(ctx, LOGIN_ELSEWHERE_PAGE, model, { formsLeave: true });
}

type ShownStep = ReturnType<typeof shownStep>;

interface ConnectionsTryModel extends ConnectionFrame {
  by: 'form' | 'none' | 'redirect';
  action: string;
  steps: readonly ShownStep[] | undefined;
  isRight: boolean | undefined;
  goUrl: string | undefined;
}

export const CONNECTIONS_TRY_PAGE = declareConsolePage<ConnectionsTryModel>('console/connections-try');

async function showPage(
  deps: ConnectionsDependencies,
  ctx: Context,
  session: ConsoleSession,
  connection: ShownConnection,
  outcome?: { steps: readonly Step[]; isRight: boolean; goUrl?: string },
): Promise<void> {
  const head = headOf(session, connection, 'try');
  await renderConsole(deps, ctx, session, {
    page: CONNECTIONS_TRY_PAGE,
    title: { text: head.connection.title },
    model: {
      ...head,
      by: tryMethodOf(connection).kind,
      action: `${head.connection.path}/try`,
      steps: outcome?.steps.map(shownStep),
      isRight: outcome?.isRight,
      goUrl: /^https?:/i.test(outcome?.goUrl ?? '') ? outcome?.goUrl : undefined,
    },
  });
}

/** Returns a step with rounded times, and with the limits of a script. */
function shownStep(step: Step) {
  if (step.kind === 'request') return { ...step, ms: Math.round(step.ms) };
  return step.kind === 'script' ? { ...step, used: usedOf(step.used) } : step;
}

// Creating a connection: first the strategy is chosen, then the options are entered.

const NAME: FaultyField = { id: 'name', label: 't:console.connections.name' };

interface ConnectionsKindsModel {
  groups: { group: string; kinds: Kind[] }[];
}

export const CONNECTIONS_KINDS_PAGE = declareConsolePage<ConnectionsKindsModel>('console/connections-kinds');

async function showKinds(
  deps: ConnectionsDependencies,
  ctx: Context,
  session: ConsoleSession,
): Promise<void> {
  await renderConsole(deps, ctx, session, {
    page: CONNECTIONS_KINDS_PAGE,
    title: 't:console.connections.new',
    model: { groups: kindsByGroup() },
  });
}

async function showNew(deps: ConnectionsDependencies, ctx: Context, session: ConsoleSession): Promise<void> {
  await showForm(deps, ctx, session, { name: '', display_name: '' });
}

async function create(deps: ConnectionsDependencies, ctx: Context, session: ConsoleSession): Promise<void> {
  const strategy = strategyAt(ctx);
  const { name = '', display_name = '' } = bodyTexts(ctx);
  const entered = enteredOptions(ctx);
  const { options, faults } = withEntered(strategy, {}, entered);
  const formState = { name, display_name, entered, faults };
  const [parseFault] = Object.values(faults);
  if (parseFault !== undefined) return showForm(deps, ctx, session, { ...formState, fault: parseFault });
  const body = {
    name: name.trim(),
    strategy,
    options,
    ...(display_name.trim() !== '' && { display_name: display_name.trim() }),
  };
  try {
    const created = await callApi(deps, ctx, session, 'POST /connections', { body });
    redirectAfterForm(ctx, `${PATH}/${(created.body as ShownConnection).id}`, 'console.said.created');
  } catch (thrown) {
    await showForm(deps, ctx, session, { ...formState, fault: refusalOf(thrown) });
  }
}

interface Form {
  name: string;
  display_name: string;
  entered?: Record<string, string>;
  /** Faults of options that cannot be parsed, by name. */
  faults?: Record<string, FormFault>;
  fault?: FormFault;
}

interface ConnectionsNewModel {
  kind: Kind;
  action: string;
  values: { name: string; display_name: string };
  faults: { name?: FormFault; display_name?: FormFault };
  fields: FilledFields;
}

export const CONNECTIONS_NEW_PAGE = declareConsolePage<ConnectionsNewModel>('console/connections-new');

async function showForm(
  deps: ConnectionsDependencies,
  ctx: Context,
  session: ConsoleSession,
  { name, display_name, entered, faults, fault }: Form,
): Promise<void> {
  const strategy = strategyAt(ctx);
  const { has } = deps.views.locale(ctx);
  const fields = filledFields(strategy, {}, { entered, faults, fault });
  // A conflict can only concern the name.
  const nameFault = fault?.status === 409 ? fault : faultIn(fault, 'name');
  const displayNameFault = faultIn(fault, 'display_name');
  const faultyName = nameFault ? NAME : displayNameFault && DISPLAY_NAME;
  await renderConsole(deps, ctx, session, {
    page: CONNECTIONS_NEW_PAGE,
    title: 't:console.connections.new',
    ...refusalOptions(fault, faultyName ?? faultyOption(fields, has)),
    model: {
      kind: kindOf(strategy),
      action: `${PATH}/new/${strategy}`,
      values: { name, display_name },
      faults: {
        ...(nameFault && { name: nameFault }),
        ...(displayNameFault && { display_name: displayNameFault }),
      },
      fields,
    },
  });
}

/** Returns the strategy of the request's path. @throws AuthError 404 */
function strategyAt(ctx: Context): string {
  const strategy = String(ctx.params.strategy);
  if (!isKnown(strategy)) throw new AuthError(404, 'not_found', 'Not Found');
  return strategy;
}

// The applications of a connection, as switches.

interface Application {
  client_id: string;
  name: string;
}

const PER_PAGE = 50;

interface ConnectionsApplicationsModel extends ConnectionFrame {
  number: number;
  applications: { client_id: string; name: string; isEnabled: boolean }[];
  previousUrl: string | undefined;
  nextUrl: string | undefined;
}

export const CONNECTIONS_APPLICATIONS_PAGE = declareConsolePage<ConnectionsApplicationsModel>(
  'console/connections-applications',
);

async function showApplications(
  deps: ConnectionsDependencies,
  ctx: Context,
  session: ConsoleSession,
): Promise<void> {
  const connection = await connectionAt(deps, ctx, session);
  const page = pageNumber(queryText(ctx, 'page'));
  const query = {
    fields: 'client_id,name',
    is_global: 'false',
    per_page: String(PER_PAGE),
    page: String(page),
    include_totals: 'true',
  };
  const { body } = await callApi(deps, ctx, session, 'GET /clients', { query });
  const { clients, total } = body as { clients: Application[]; total: number };
  const head = headOf(session, connection, 'applications');
  const pageUrl = (number: number) => `${head.connection.path}/applications?page=${number}`;
  await renderConsole(deps, ctx, session, {
    page: CONNECTIONS_APPLICATIONS_PAGE,
    title: { text: head.connection.title },
    model: {
      ...head,
      // Not named `page`: in every template that is the page itself, with its nonce and language.
      number: page,
      applications: clients.map((one) => ({
        ...one,
        isEnabled: connection.enabled_clients.includes(one.client_id),
      })),
      previousUrl: page > 0 ? pageUrl(page - 1) : undefined,
      nextUrl: (page + 1) * PER_PAGE < total ? pageUrl(page + 1) : undefined,
    },
  });
}

/** Changes the applications whose switch differs from the state that the form was shown with. */
async function saveApplications(
  deps: ConnectionsDependencies,
  ctx: Context,
  session: ConsoleSession,
): Promise<void> {
  const texts = bodyTexts(ctx);
  const body = Object.entries(texts).flatMap(([name, before]) => {
    const id = name.startsWith('was.') ? name.slice('was.'.length) : undefined;
    const status = id !== undefined && texts[`application.${id}`] === 'true';
    return id === undefined || status === (before === 'true') ? [] : [{ client_id: id, status }];
  });
  const id = String(ctx.params.id);
  if (body.length > 0)
    await callApi(deps, ctx, session, 'PATCH /connections/:id/clients', { params: { id }, body });
  const page = pageNumber(texts.page ?? '');
  redirectAfterForm(
    ctx,
    `${PATH}/${encodeURIComponent(id)}/applications${page > 0 ? `?page=${page}` : ''}`,
    'console.said.saved',
  );
}

// The list of connections, by strategy.

const PAGE_SIZE = '500';

interface ConnectionsListModel {
  groups: {
    kind: Kind;
    connections: {
      path: string;
      name: string;
      title: string;
      lacking: string[];
      applications: number;
      isUsed: boolean;
    }[];
  }[];
  isEmpty: boolean;
  q: string;
  nextUrl: string | undefined;
  mayCreate: boolean;
}

export const CONNECTIONS_LIST_PAGE = declareConsolePage<ConnectionsListModel>('console/connections-list');

/** Shows a page of connections. `?q=` filters them by a part of a name, `?from=` continues after a page. */
async function showConnections(
  deps: ConnectionsDependencies,
  ctx: Context,
  session: ConsoleSession,
): Promise<void> {
  const { q, from } = ctx.query;
  const search = typeof q === 'string' ? q.trim().toLowerCase() : '';
  const query = { take: PAGE_SIZE, ...(typeof from === 'string' && { from }) };
  const { body } = await callApi(deps, ctx, session, 'GET /connections', { query });
  const { connections, next } = body as { connections: ShownConnection[]; next?: string };
  const found = connections.filter(({ name, display_name = '' }) =>
    `${name} ${display_name}`.toLowerCase().includes(search),
  );
  await renderConsole(deps, ctx, session, {
    page: CONNECTIONS_LIST_PAGE,
    title: 't:console.connections.title',
    model: {
      groups: byStrategy(found),
      isEmpty: connections.length === 0 && search === '',
      q: search,
      nextUrl: next === undefined ? undefined : `${PATH}?from=${encodeURIComponent(next)}`,
      mayCreate: session.can('create:connections'),
    },
  });
}

/** Groups connections by strategy, in the order of their names. */
function byStrategy(all: readonly ShownConnection[]) {
  const strategies = [...new Set(all.map(({ strategy }) => strategy))].sort();
  return strategies.map((strategy) => ({
    kind: kindOf(strategy),
    connections: all
      .filter((one) => one.strategy === strategy)
      .sort((a, b) => (a.name < b.name ? -1 : 1))
      .map((one) => ({
        path: `${PATH}/${one.id}`,
        name: one.name,
        title: titleOf(one),
        lacking: missingOptionsOf(one),
        applications: one.enabled_clients.length,
        isUsed: one.enabled_clients.length > 0 || one.is_domain_connection === true,
      })),
  }));
}

type D = ConnectionsDependencies;

const MAKE = ['create:connections'];
const REMOVE = ['delete:connections'];
const dangerous = (scopes: readonly string[]) => ({ scopes, isDangerous: true });

export const connectionsRoutes: RouteDeclarations<D> = {
  [`GET ${PATH}` as const]: consolePage<D>(SECTION, { scopes: READ }, showConnections),
  [`GET ${PATH}/new` as const]: consolePage<D>(SECTION, { scopes: MAKE }, showKinds),
  [`GET ${PATH}/new/:strategy` as const]: consolePage<D>(SECTION, { scopes: MAKE }, showNew),
  [`POST ${PATH}/new/:strategy` as const]: consoleForm<D>(
    SECTION,
    { ...dangerous(MAKE), bodies: LONG_TEXTS },
    create,
  ),
  // What a trial shows of a provider's users requires the scope to change the connection.
  [`GET ${TRY_RESULT}` as const]: consolePage<D>(SECTION, { scopes: CHANGE }, showTryResult),
  [`GET ${PATH}/:id` as const]: consolePage<D>(SECTION, { scopes: READ }, showSettings),
  // Dangerous: the options say where users log in, and where the connection's secrets are sent.
  [`POST ${PATH}/:id` as const]: consoleForm<D>(
    SECTION,
    { ...dangerous(CHANGE), bodies: LONG_TEXTS },
    saveSettings,
  ),
  [`GET ${PATH}/:id/applications` as const]: consolePage<D>(
    SECTION,
    { scopes: [...READ, 'read:clients'] },
    showApplications,
  ),
  // Dangerous: it decides who can log in to which application.
  [`POST ${PATH}/:id/applications` as const]: consoleForm<D>(SECTION, dangerous(CHANGE), saveApplications),
  [`GET ${PATH}/:id/scripts/:script` as const]: consolePage<D>(SECTION, { scopes: READ }, showScript),
  [`POST ${PATH}/:id/scripts/:script` as const]: consoleForm<D>(
    SECTION,
    // Dangerous: a script that is run can read the connection's secrets and use the network.
    { ...dangerous(CHANGE), bodies: LONG_TEXTS },
    submitScript,
  ),
  [`GET ${PATH}/:id/try` as const]: consolePage<D>(SECTION, { scopes: CHANGE }, showTry),
  [`POST ${PATH}/:id/try` as const]: consoleForm<D>(
    SECTION,
    { scopes: CHANGE, isDangerous: false },
    tryConnection,
  ),
  [`GET ${PATH}/:id/delete` as const]: consolePage<D>(SECTION, { scopes: REMOVE }, showRemoval),
  [`POST ${PATH}/:id/delete` as const]: consoleForm<D>(SECTION, dangerous(REMOVE), remove),
};
