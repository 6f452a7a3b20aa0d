// Actions as the Management API answers them, as far as pages read it, and how they are asked for.
import type { Context } from 'koa';
import { TRIGGER_ENTRIES, type Trigger } from '../../records/actions.ts';
import { type AskDependencies, ask } from '../ask.ts';
import type { AtConsole, ConsolePageDependencies } from '../page.ts';

export interface ActionsDependencies extends ConsolePageDependencies, AskDependencies {}

export const ACTIONS = '/console/actions';

interface Named {
  name: string;
  version?: string;
}

export interface ModuleReferenceAnswer {
  module_id?: string;
  module_name?: string;
  module_version_id?: string;
  module_version_number?: number;
}

/** What is deployed of an action, or was. */
export interface VersionAnswer {
  id?: string;
  number?: number;
  code?: string;
  dependencies?: Named[];
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

/** The path of an action's page, or of what is below it. */
export function actionPath(id: string, below = ''): string {
  const path = `${ACTIONS}/${encodeURIComponent(id)}`;
  return below === '' || below === 'code' ? path : `${path}/${below}`;
}

/** The trigger that an action is of. */
export const triggerOf = ({ supported_triggers }: ActionAnswer): string => supported_triggers?.[0]?.id ?? '';

/** Whether actions of a trigger run here. */
export const isRunning = (trigger: string): trigger is Trigger => Object.hasOwn(TRIGGER_ENTRIES, trigger);

/** Whether an action is deployed: a draft runs nowhere. A tenant file says `deployed` of what is as it stands. */
export const isDeployed = ({ deployed_version, deployed }: ActionAnswer): boolean =>
  deployed_version !== undefined || deployed === true;

/** What of an action is in force. */
export const inForce = (action: ActionAnswer): VersionAnswer | undefined =>
  action.deployed === true ? action : action.deployed_version;

/** The action of a path. @throws AuthError 404 */
export async function actionOf(
  deps: ActionsDependencies,
  ctx: Context,
  here: AtConsole,
): Promise<ActionAnswer> {
  const params = { id: idOf(ctx) };
  return (await ask(deps, ctx, here, 'GET /actions/actions/:id', { params })).body as ActionAnswer;
}

/** The id of the action of a path. */
const idOf = (ctx: Context): string => (ctx.params as Record<string, string>).id ?? '';

/** How many a page shows of any kind. */
const MOST = '100';

/** The actions of the tenant, at most {@link MOST}. @throws AuthError as the Management API answers. */
export async function allActions(
  deps: ActionsDependencies,
  ctx: Context,
  here: AtConsole,
): Promise<ActionAnswer[]> {
  const answer = await ask(deps, ctx, here, 'GET /actions/actions', { query: { per_page: MOST } });
  return (answer.body as { actions: ActionAnswer[] }).actions;
}

/** What is bound to a trigger, in order. */
export async function bindingsOf(
  deps: ActionsDependencies,
  ctx: Context,
  here: AtConsole,
  triggerId: string,
): Promise<BindingAnswer[]> {
  const asked = { params: { triggerId }, query: { per_page: MOST } };
  const answer = await ask(deps, ctx, here, 'GET /actions/triggers/:triggerId/bindings', asked);
  return (answer.body as { bindings: BindingAnswer[] }).bindings;
}

/** Dependencies as lines of a form: `name@version`. */
export const writtenDependencies = (dependencies: readonly Named[] = []): string =>
  dependencies.map(({ name, version }) => (version ? `${name}@${version}` : name)).join('\n');

/** The dependencies of such lines. */
export function readDependencies(text: string): Named[] {
  return text
    .split(/[\n,]/)
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .map((line) => {
      // A scope begins with `@`, too.
      const at = line.lastIndexOf('@');
      return at > 0 ? { name: line.slice(0, at), version: line.slice(at + 1) } : { name: line };
    });
}
