// Actions as returned by the Management API, with the members that the pages read, and functions that fetch them.
import type { Context } from 'koa';
import { TRIGGER_ENTRIES, type Trigger } from '../../../records/tenant/actions.ts';
import { type ApiCallDependencies, callApi } from '../api-calls.ts';
import type { ConsolePageDependencies, ConsoleSession } from '../console-page.ts';

export interface ActionsDependencies extends ConsolePageDependencies, ApiCallDependencies {}

export const ACTIONS = '/console/actions';

interface Dependency {
  name: string;
  version?: string;
}

export interface ModuleReferenceAnswer {
  module_id?: string;
  module_name?: string;
  module_version_id?: string;
  module_version_number?: number;
}

export interface VersionAnswer {
  id?: string;
  number?: number;
  code?: string;
  dependencies?: Dependency[];
  modules?: ModuleReferenceAnswer[];
  created_at?: string;
  deployed?: boolean;
}

export interface ActionAnswer extends VersionAnswer {
  id: string;
  name: string;
  supported_triggers?: { id: string; version?: string }[];
  secrets?: { name: string }[];
  runtime?: string;
  all_changes_deployed?: boolean;
  deployed_version?: VersionAnswer;
  updated_at?: string;
}

export interface BindingAnswer {
  id: string;
  display_name: string;
  action: { id: string; name: string };
  on_error?: 'continue';
}

export function actionPath(id: string, below = ''): string {
  const path = `${ACTIONS}/${encodeURIComponent(id)}`;
  return below === '' || below === 'code' ? path : `${path}/${below}`;
}

export const triggerOf = ({ supported_triggers }: ActionAnswer): string => supported_triggers?.[0]?.id ?? '';

/** Reports whether actions of a trigger run on this server. */
export const isSupportedTrigger = (trigger: string): trigger is Trigger =>
  Object.hasOwn(TRIGGER_ENTRIES, trigger);

/**
 * Reports whether an action is deployed; a draft never runs. An action of a tenant file has `deployed` when its code
 * is deployed as it stands.
 */
export const isDeployed = ({ deployed_version, deployed }: ActionAnswer): boolean =>
  deployed_version !== undefined || deployed === true;

export const deployedVersion = (action: ActionAnswer): VersionAnswer | undefined =>
  action.deployed === true ? action : action.deployed_version;

/** Returns the action of the request's path. @throws AuthError 404 */
export async function actionOf(
  deps: ActionsDependencies,
  ctx: Context,
  session: ConsoleSession,
): Promise<ActionAnswer> {
  const params = { id: idOf(ctx) };
  return (await callApi(deps, ctx, session, 'GET /actions/actions/:id', { params })).body as ActionAnswer;
}

const idOf = (ctx: Context): string => (ctx.params as Record<string, string>).id ?? '';

/** The maximum number of items fetched for a page. */
const PAGE_SIZE = '100';

/** Returns the actions of the tenant, at most {@link PAGE_SIZE}. @throws AuthError as the Management API answers. */
export async function allActions(
  deps: ActionsDependencies,
  ctx: Context,
  session: ConsoleSession,
): Promise<ActionAnswer[]> {
  const answer = await callApi(deps, ctx, session, 'GET /actions/actions', {
    query: { per_page: PAGE_SIZE },
  });
  return (answer.body as { actions: ActionAnswer[] }).actions;
}

/** Returns the bindings of a trigger, in order. */
export async function bindingsOf(
  deps: ActionsDependencies,
  ctx: Context,
  session: ConsoleSession,
  triggerId: string,
): Promise<BindingAnswer[]> {
  const input = { params: { triggerId }, query: { per_page: PAGE_SIZE } };
  const answer = await callApi(deps, ctx, session, 'GET /actions/triggers/:triggerId/bindings', input);
  return (answer.body as { bindings: BindingAnswer[] }).bindings;
}

/** Formats dependencies as lines of a form: `name@version`. */
export const formatDependencies = (dependencies: readonly Dependency[] = []): string =>
  dependencies.map(({ name, version }) => (version ? `${name}@${version}` : name)).join('\n');

/** Parses lines of `name@version`, which may also be separated by commas. */
export function parseDependencies(text: string): Dependency[] {
  return text
    .split(/[\n,]/)
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .map((line) => {
      // The last `@` separates the version: the name of a scoped package begins with one, too.
      const at = line.lastIndexOf('@');
      return at > 0 ? { name: line.slice(0, at), version: line.slice(at + 1) } : { name: line };
    });
}
