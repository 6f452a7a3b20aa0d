// /console/agents/applications/:id: one third-party application: where its answers go, who has allowed it what, and its end.
import type { Context } from 'koa';
import { type FormattedTime, timesOf } from '../../../capabilities/pages/times.ts';
import { AuthError } from '../../../http/errors.ts';
import { formFields } from '../../../http/server/body.ts';
import type { RouteDeclarations } from '../../../http/server/router.ts';
import type { Frozen } from '../../../records/base/record.ts';
import {
  isClientUrl,
  isStrangerId,
  type RegistrationRecord,
} from '../../../records/clients/registrations.ts';
import type { Client } from '../../../records/collections.ts';
import { CONSOLE_CLIENT } from '../../../records/users/administrators.ts';
import type { Clock } from '../../../runtime/clock.ts';
import { managementEvents } from '../../management/management-declaration.ts';
import { callApi } from '../api-calls.ts';
import { CONSOLE } from '../console-callbacks.ts';
import { type ConsoleSession, consoleForm, consolePage, redirectAfterForm } from '../console-page.ts';
import { hrefOf, readFilter } from '../log/console-log-filter.ts';
import { queryText } from '../query.ts';
import { declareConsolePage, renderConsole } from '../render.ts';
import {
  AGENTS,
  type AgentsDependencies,
  agentPath,
  type ShownAgent,
  shownAgent,
  TAB_SCOPES,
} from './agents-shown.ts';

export interface AgentDependencies extends AgentsDependencies {
  wallClock: Clock;
}

const PATH = `${AGENTS}/applications/:id`;
const LOG = `${CONSOLE}/log`;
const PER_PAGE = 25;
/** Kept with the API and for all of them. Alone, it says nothing of who the user is. */
const OFFLINE = 'offline_access';

const form = (
  scopes: readonly string[],
  isDangerous: boolean,
  handle: (
    deps: AgentDependencies,
    ctx: Context,
    session: ConsoleSession,
    clientId: string,
  ) => Promise<string>,
) =>
  consoleForm<AgentDependencies>(
    'agents',
    { scopes: ['read:clients', ...scopes], isDangerous },
    async (deps, ctx, session) => {
      const { client } = await applicationAt(deps, ctx);
      const notice = await handle(deps, ctx, session, client.client_id);
      const isThere = notice !== REMOVED;
      redirectAfterForm(ctx, isThere ? agentPath(client.client_id) : AGENTS, notice);
    },
  );

const REMOVED = 'console.said.deleted';

export const agentRoutes: RouteDeclarations<AgentDependencies> = {
  [`GET ${PATH}` as const]: consolePage<AgentDependencies>(
    'agents',
    { scopes: TAB_SCOPES.applications },
    showAgent,
  ),
  [`POST ${PATH}/block` as const]: form(['update:clients'], false, (...given) => setBlocked(true, ...given)),
  [`POST ${PATH}/unblock` as const]: form(['update:clients'], true, (...given) =>
    setBlocked(false, ...given),
  ),
  [`POST ${PATH}/remove` as const]: form(['delete:clients'], true, async (deps, ctx, session, id) => {
    await callApi(deps, ctx, session, 'DELETE /clients/:id', { params: { id } });
    return REMOVED;
  }),
  [`POST ${PATH}/end` as const]: form(
    ['read:grants', 'delete:grants'],
    false,
    async (deps, ctx, session, client_id) => {
      const { user: user_id } = formFields(ctx, 'user');
      const query = { user_id, client_id, per_page: '100' };
      const { body } = await callApi(deps, ctx, session, 'GET /grants', { query });
      for (const { id } of body as { id: string }[])
        await callApi(deps, ctx, session, 'DELETE /grants/:id', { params: { id } });
      return 'console.users.said.withdrawn';
    },
  ),
};

type Found = { client: Client; registration?: Frozen<RegistrationRecord> };

/** Returns the third-party application of the request's path, blocked ones included. @throws AuthError 404 */
async function applicationAt({ store, config }: AgentDependencies, ctx: Context): Promise<Found> {
  const id = String(ctx.params.id);
  if (isStrangerId(id)) {
    const registration = await store.collection('registrations').get(id);
    if (registration !== undefined) return { client: registration.client as Client, registration };
  }
  const client = await config.client(id);
  if (client?.is_first_party !== false)
    throw new AuthError(404, 'not_found', 'There is no such third-party application.');
  return { client };
}

async function setBlocked(
  isBlocked: boolean,
  deps: AgentDependencies,
  ctx: Context,
  session: ConsoleSession,
  clientId: string,
): Promise<string> {
  const at = new Date(deps.wallClock()).toISOString();
  const after = await deps.store.collection('registrations').update(clientId, (current) => {
    const { blocked_at: before, ...registration } = current;
    if (!isBlocked) return registration;
    const { expiresAt: _, ...document } = registration;
    return { ...(isClientUrl(clientId) ? document : registration), blocked_at: before ?? at };
  });
  if (after === undefined)
    throw new AuthError(404, 'not_found', 'There is no such application that registered itself.');
  deps.events.record({
    type: managementEvents.sapi,
    description: `${isBlocked ? 'Block' : 'Unblock'} an application that registered itself`,
    client_id: CONSOLE_CLIENT,
    user_id: session.administrator.userId,
    user_name: session.administrator.email,
    ip: ctx.ip,
    details: { request: { channel: 'console', client_id: clientId } },
  });
  return `console.agents.said.${isBlocked ? 'blocked' : 'unblocked'}`;
}

interface AgentModel {
  agentsPath: string;
  path: string;
  agent: ShownAgent;
  callbacks: readonly string[];
  /** Of one that registered itself. */
  registered?: { at: FormattedTime; until: FormattedTime | undefined };
  isStrict: boolean;
  hasSecret: boolean;
  consents: {
    user: string;
    name: string;
    path: string | undefined;
    /** Without an audience: what it knows of the user. */
    apis: { audience: string | undefined; scopes: string }[];
  }[];
  next: string | undefined;
  isFirstPage: boolean;
  rights: { block: boolean; remove: boolean; end: boolean };
  settings: string;
  /** Its events in the log, and those in which it acted for a user, for those who may see it. */
  log: { own: string; acted: string } | undefined;
}

export const AGENT_PAGE = declareConsolePage<AgentModel>('console/agent');

async function showAgent(deps: AgentDependencies, ctx: Context, session: ConsoleSession): Promise<void> {
  const { client, registration } = await applicationAt(deps, ctx);
  const time = timesOf(deps, ctx);
  // A use is written at most once a day, so that an hour would be a wrong one.
  const day = timesOf(deps, ctx, 'day');
  const agent = await shownAgent(deps.store, client, {
    isBlocked: registration?.blocked_at !== undefined,
    used: day(registration?.last_used_at),
  });
  const after = queryText(ctx, 'after');
  const { records, next } = await deps.store.collection('consents').list({
    where: { index: 'client', equals: client.client_id },
    limit: PER_PAGE,
    ...(after !== '' && { after: `${after}\n${client.client_id}` }),
  });
  const last = records.at(-1);
  const until = registration?.expiresAt;
  await renderConsole(deps, ctx, session, {
    page: AGENT_PAGE,
    title: { text: agent.name },
    model: {
      agentsPath: AGENTS,
      path: agent.path,
      agent,
      callbacks: client.callbacks,
      ...(registration && {
        registered: {
          at: time(registration.created_at),
          until: day(until === undefined ? undefined : until * 1000),
        },
      }),
      isStrict: client.third_party_security_mode !== 'permissive',
      hasSecret: client.token_endpoint_auth_method !== 'none',
      consents: await Promise.all(records.map((consent) => shownConsent(deps, session, consent))),
      next:
        next !== undefined && last !== undefined
          ? `${agent.path}?${new URLSearchParams({ after: last.user_id })}`
          : undefined,
      isFirstPage: after === '',
      rights: {
        block: registration !== undefined && session.can('update:clients'),
        remove: session.can('delete:clients'),
        end: session.can('delete:grants'),
      },
      settings: `${CONSOLE}/resources/clients/${encodeURIComponent(client.client_id)}`,
      log: session.can('read:logs')
        ? {
            own: hrefOf(LOG, readFilter({ client: client.client_id })),
            acted: hrefOf(LOG, readFilter({ actor: client.client_id })),
          }
        : undefined,
    },
  });
}

async function shownConsent(
  { store, management }: AgentDependencies,
  session: ConsoleSession,
  { user_id: user, scopes }: { user_id: string; scopes: Readonly<Record<string, readonly string[]>> },
): Promise<AgentModel['consents'][number]> {
  const mayReadUsers = session.can('read:users');
  const found = mayReadUsers ? await store.collection('users').get(user) : undefined;
  const isKeptAtApi = Object.entries(scopes).some(([key, values]) => key !== '' && values.includes(OFFLINE));
  return {
    user,
    name: found?.email ?? user,
    path: found && `${CONSOLE}/users/${encodeURIComponent(user)}`,
    apis: Object.entries(scopes)
      .filter(([key, values]) => key !== '' || !(isKeptAtApi && values.every((scope) => scope === OFFLINE)))
      .map(([key, values]) => ({
        audience: key === '' ? undefined : (management.audienceOf(key) ?? key),
        scopes: values.join(' '),
      })),
  };
}
