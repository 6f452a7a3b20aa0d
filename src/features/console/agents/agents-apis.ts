// /console/agents/apis: what third-party applications get of each API, and the form to change it.
import type { Context } from 'koa';
import { z } from 'zod';
import { AuthError } from '../../../http/errors.ts';
import { formFields } from '../../../http/server/body.ts';
import type { RouteDeclarations } from '../../../http/server/router.ts';
import { THIRD_PARTIES } from '../../../records/clients/apis.ts';
import { callApi } from '../api-calls.ts';
import { listAll } from '../applications/list-all.ts';
import { type ConsoleSession, consoleForm, consolePage, redirectAfterForm } from '../console-page.ts';
import type { FormFault } from '../form-fault.ts';
import { fieldsBelow, refusalOf, refusalOptions } from '../forms.ts';
import { declareConsolePage, renderConsole } from '../render.ts';
import { AGENTS, type AgentsDependencies, type AgentsTab, agentsTabs, TAB_SCOPES } from './agents-shown.ts';

const PATH = `${AGENTS}/apis`;

/** Which applications get tokens of an API for users. */
const POLICIES = ['allow_all', 'require_client_grant', 'deny_all'] as const;

// As the Management API answers.
const apiAnswer = z.object({
  id: z.string(),
  identifier: z.string(),
  name: z.string().optional(),
  is_system: z.boolean().optional(),
  scopes: z.array(z.object({ value: z.string(), description: z.string().nullish() })).default([]),
  subject_type_authorization: z
    .looseObject({ user: z.looseObject({ policy: z.enum(POLICIES) }).optional() })
    .nullish(),
});
const grantAnswer = z.object({
  id: z.string(),
  audience: z.string(),
  scope: z.array(z.string()).default([]),
  allow_all_scopes: z.boolean().optional(),
  subject_type: z.string().optional(),
});

export interface ApiAccess {
  id: string;
  name: string;
  identifier: string;
  policy: (typeof POLICIES)[number];
  /**
   * Whether third-party applications get tokens of it: none (`closed`), those with a grant of their own (`own`), or all
   * (`open`).
   */
  state: 'closed' | 'own' | 'open';
  /** Its scopes; `isOpen`: whether all third-party applications have it. */
  scopes: { value: string; description: string; isOpen: boolean }[];
  openCount: number;
  /** The grant of all third-party applications, which may be for something else than users. */
  grant: { id: string; isForUsers: boolean } | undefined;
  /** All of its `subject_type_authorization`. */
  authorization: Record<string, unknown>;
}

/** Returns the APIs of the tenant. Those of the server itself are never open to third parties. */
async function apiAccesses(
  deps: AgentsDependencies,
  ctx: Context,
  session: ConsoleSession,
): Promise<ApiAccess[]> {
  const [apis, grants] = await Promise.all([
    listAll(deps, ctx, session, 'GET /resource-servers'),
    listAll(deps, ctx, session, 'GET /client-grants', { default_for: THIRD_PARTIES }),
  ]);
  const known = grants.map((grant) => grantAnswer.parse(grant));
  return apis
    .map((api) => apiAnswer.parse(api))
    .filter(({ is_system: isSystem }) => isSystem !== true)
    .map((api) =>
      accessOf(
        api,
        known.find(({ audience }) => audience === api.identifier),
      ),
    );
}

function accessOf(
  { id, identifier, name = identifier, scopes, subject_type_authorization }: z.output<typeof apiAnswer>,
  grant: z.output<typeof grantAnswer> | undefined,
): ApiAccess {
  const policy = subject_type_authorization?.user?.policy ?? 'allow_all';
  const isForUsers = grant?.subject_type === 'user';
  const isOpen = (scope: string) =>
    isForUsers && (grant.allow_all_scopes === true || grant.scope.includes(scope));
  const shownScopes = scopes.map(({ value, description }) => ({
    value,
    description: description ?? '',
    isOpen: isOpen(value),
  }));
  return {
    id,
    name,
    identifier,
    policy,
    state: policy === 'deny_all' ? 'closed' : isForUsers ? 'open' : 'own',
    scopes: shownScopes,
    openCount: shownScopes.filter((scope) => scope.isOpen).length,
    grant: grant && { id: grant.id, isForUsers },
    authorization: subject_type_authorization ?? {},
  };
}

/** What all third-party applications can get: the APIs, and the connections that log users in to them. */
export interface Opened {
  apis: ApiAccess[];
  connections: string[];
}

export async function openedToAll(
  deps: AgentsDependencies,
  ctx: Context,
  session: ConsoleSession,
): Promise<Opened> {
  const [apis, connections] = await Promise.all([
    apiAccesses(deps, ctx, session),
    listAll(deps, ctx, session, 'GET /connections'),
  ]);
  return {
    apis: apis.filter(({ state }) => state === 'open'),
    connections: connections
      .filter(({ is_domain_connection: isForAll }) => isForAll === true)
      .map(({ display_name, name }) => String(display_name ?? name)),
  };
}

const CHANGE = [
  ...TAB_SCOPES.apis,
  'update:resource_servers',
  'create:client_grants',
  'update:client_grants',
  'delete:client_grants',
];

// docs/understand/decisions/clients-keys.md#a-client-grant-for-all-third-party-applications-counts-where-there-is-none-of-its-own
export const agentsApisRoutes: RouteDeclarations<AgentsDependencies> = {
  [`GET ${PATH}` as const]: consolePage<AgentsDependencies>('agents', { scopes: TAB_SCOPES.apis }, showApis),
  [`GET ${PATH}/:id` as const]: consolePage<AgentsDependencies>(
    'agents',
    { scopes: CHANGE },
    async (deps, ctx, session) => showApi(deps, ctx, session, await apiAt(deps, ctx, session)),
  ),
  // It opens an API to applications that anybody may register.
  [`POST ${PATH}/:id` as const]: consoleForm<AgentsDependencies>(
    'agents',
    { scopes: CHANGE, isDangerous: true },
    saveApi,
  ),
};

interface AgentsApisModel {
  tabs: AgentsTab[];
  apis: (ApiAccess & { path: string })[];
  mayChange: boolean;
}

export const AGENTS_APIS_PAGE = declareConsolePage<AgentsApisModel>('console/agents-apis');

const pathOfApi = (id: string): string => `${PATH}/${encodeURIComponent(id)}`;

async function showApis(deps: AgentsDependencies, ctx: Context, session: ConsoleSession): Promise<void> {
  const apis = await apiAccesses(deps, ctx, session);
  await renderConsole(deps, ctx, session, {
    page: AGENTS_APIS_PAGE,
    title: 't:console.nav.agents',
    model: {
      tabs: agentsTabs(session, 'apis'),
      apis: apis.map((api) => ({ ...api, path: pathOfApi(api.id) })),
      mayChange: CHANGE.every(session.can),
    },
  });
}

interface AgentsApiModel {
  api: ApiAccess;
  path: string;
  apisPath: string;
  policies: { name: string; text: string; isCurrent: boolean }[];
}

export const AGENTS_API_PAGE = declareConsolePage<AgentsApiModel>('console/agents-api');

async function apiAt(deps: AgentsDependencies, ctx: Context, session: ConsoleSession): Promise<ApiAccess> {
  const found = (await apiAccesses(deps, ctx, session)).find(({ id }) => id === ctx.params.id);
  if (found === undefined) throw new AuthError(404, 'not_found', 'There is no such API.');
  return found;
}

async function showApi(
  deps: AgentsDependencies,
  ctx: Context,
  session: ConsoleSession,
  api: ApiAccess,
  fault?: FormFault,
): Promise<void> {
  await renderConsole(deps, ctx, session, {
    page: AGENTS_API_PAGE,
    title: { text: api.name },
    model: {
      api,
      path: pathOfApi(api.id),
      apisPath: PATH,
      policies: POLICIES.map((name) => ({
        name,
        text: `console.agents.policy.${name}`,
        isCurrent: name === api.policy,
      })),
    },
    ...refusalOptions(fault, undefined),
  });
}

async function saveApi(deps: AgentsDependencies, ctx: Context, session: ConsoleSession): Promise<void> {
  const api = await apiAt(deps, ctx, session);
  const { open, ...sent } = formFields(ctx, 'open', 'policy');
  const policy = POLICIES.find((one) => one === sent.policy) ?? api.policy;
  const chosen = new Set(Object.keys(fieldsBelow(ctx, 'scope.')));
  const scope = api.scopes.map(({ value }) => value).filter((value) => chosen.has(value));
  try {
    // What closes comes before what opens: if the second fails, nothing is open that was not meant.
    const setPolicy = () => changePolicy(deps, ctx, session, api, policy);
    if (policy === 'deny_all') await setPolicy();
    await changeGrant(deps, ctx, session, api, open === 'on' ? scope : undefined);
    if (policy !== 'deny_all') await setPolicy();
  } catch (thrown) {
    return showApi(deps, ctx, session, await apiAt(deps, ctx, session), refusalOf(thrown));
  }
  redirectAfterForm(ctx, PATH, 'console.said.saved');
}

async function changePolicy(
  deps: AgentsDependencies,
  ctx: Context,
  session: ConsoleSession,
  api: ApiAccess,
  policy: ApiAccess['policy'],
): Promise<void> {
  if (policy === api.policy) return;
  const body = { subject_type_authorization: { ...api.authorization, user: { policy } } };
  await callApi(deps, ctx, session, 'PATCH /resource-servers/:id', { params: { id: api.id }, body });
}

/** @param scope those of the grant of all third-party applications; undefined for no such grant. */
async function changeGrant(
  deps: AgentsDependencies,
  ctx: Context,
  session: ConsoleSession,
  { grant, identifier, scopes }: ApiAccess,
  scope: readonly string[] | undefined,
): Promise<void> {
  const call = (name: string, input: Parameters<typeof callApi>[4]) =>
    callApi(deps, ctx, session, name, input);
  if (grant?.isForUsers === true && scope !== undefined) {
    if (scopes.every(({ value, isOpen }) => isOpen === scope.includes(value))) return;
    const body = { scope, allow_all_scopes: false };
    await call('PATCH /client-grants/:id', { params: { id: grant.id }, body });
    return;
  }
  // What a grant is for cannot be changed: one for something else is replaced.
  if (grant !== undefined) await call('DELETE /client-grants/:id', { params: { id: grant.id } });
  const body = { default_for: THIRD_PARTIES, audience: identifier, subject_type: 'user', scope };
  if (scope !== undefined) await call('POST /client-grants', { body });
}
