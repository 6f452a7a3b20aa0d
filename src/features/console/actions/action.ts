// The page of one action: its header and tabs.
import type { Context } from 'koa';
import type { RouteDeclaration } from '../../../http/router.ts';
import { type FormFault, faultModel, faultOf } from '../form-fault.ts';
import { type ConsoleSession, consoleForm, consolePage, redirectAfterForm } from '../page.ts';
import { renderConsole } from '../render.ts';
import {
  ACTIONS,
  type ActionAnswer,
  type ActionsDependencies,
  actionOf,
  actionPath,
  bindingsOf,
  isDeployed,
  isSupportedTrigger,
  triggerOf,
} from './view.ts';

/** The tabs in their order; the first one has the address of the page itself. */
const TABS = ['code', 'deploy', 'versions', 'test', 'runs'] as const;
type Tab = (typeof TABS)[number];

/**
 * The maximum length of a form, bytes: code of 100,000 characters, each of which may take nine bytes when
 * URL-encoded.
 */
const MAX_FORM_BYTES = 1_000_000;

/** The data of a tab. After a refused form it includes the fault and the values that were entered. */
interface TabData {
  action: ActionAnswer;
  fault?: FormFault | undefined;
  values?: Readonly<Record<string, string>>;
  /** Further data of the model, from a form that shows its result on the same tab. */
  result?: object;
}

export interface ActionTab {
  tab: Tab;
  /** The scopes that the tab requires; all of them are needed. */
  scopes: readonly string[];
  model(deps: ActionsDependencies, ctx: Context, session: ConsoleSession, shown: TabData): Promise<object>;
}

/** Reports whether an action is bound to its trigger. A bound action runs as soon as it is deployed. */
export async function isBound(
  deps: ActionsDependencies,
  ctx: Context,
  session: ConsoleSession,
  action: ActionAnswer,
): Promise<boolean> {
  const trigger = triggerOf(action);
  if (!isSupportedTrigger(trigger)) return false;
  return (await bindingsOf(deps, ctx, session, trigger)).some((one) => one.action.id === action.id);
}

async function showTab(
  deps: ActionsDependencies,
  ctx: Context,
  session: ConsoleSession,
  { tab, model }: ActionTab,
  shown: TabData,
): Promise<void> {
  const { action, fault, result } = shown;
  const tabModel = await model(deps, ctx, session, shown);
  await renderConsole(deps, ctx, session, {
    template: `console/actions-${tab}`,
    section: 'actions',
    title: { text: action.name },
    model: {
      ...tabModel,
      ...result,
      actionsPath: ACTIONS,
      path: actionPath(action.id),
      tab,
      tabs: TABS.filter((one) => one !== 'test' || session.can('create:actions'))
        .filter((one) => one !== 'runs' || session.can('read:logs'))
        .map((one) => ({ name: one, url: actionPath(action.id, one) })),
      action: {
        id: action.id,
        name: action.name,
        trigger: triggerOf(action),
        isDeployed: isDeployed(action),
        isChanged: action.deployed !== true && action.all_changes_deployed !== true,
        isBound: await isBound(deps, ctx, session, action),
        version: action.deployed_version?.number,
      },
      mayEdit: session.can('update:actions'),
      mayDeploy: session.can('create:actions'),
      mayDelete: session.can('delete:actions'),
      ...faultModel(fault),
    },
    status: fault?.status ?? 200,
  });
}

export function tabPage(tab: ActionTab): RouteDeclaration<ActionsDependencies> {
  return consolePage<ActionsDependencies>('actions', { scopes: tab.scopes }, async (deps, ctx, session) =>
    showTab(deps, ctx, session, tab, { action: await actionOf(deps, ctx, session) }),
  );
}

/** The outcome of a form: a message and where to redirect, a result to show on the tab, or a refusal. */
type FormOutcome =
  | { notice: string; to?: string }
  | { result: object; values: Readonly<Record<string, string>> }
  | { refused: FormFault };

/**
 * Declares a form of a tab. A refusal is shown on the same tab with the values that were entered.
 * @param rules.typed reads the values to show again from the request.
 */
export function tabForm(
  tab: ActionTab,
  rules: { scopes: readonly string[]; isDangerous: boolean; entered?(ctx: Context): Record<string, string> },
  act: (
    deps: ActionsDependencies,
    ctx: Context,
    session: ConsoleSession,
    action: ActionAnswer,
  ) => Promise<FormOutcome>,
): RouteDeclaration<ActionsDependencies> {
  const { scopes, isDangerous, entered } = rules;
  return consoleForm<ActionsDependencies>(
    'actions',
    { scopes: [...tab.scopes, ...scopes], isDangerous, bodies: { maxBytes: MAX_FORM_BYTES } },
    async (deps, ctx, session) => {
      const action = await actionOf(deps, ctx, session);
      let done: FormOutcome;
      try {
        done = await act(deps, ctx, session, action);
      } catch (thrown) {
        done = { refused: faultOf(thrown) };
      }
      if ('notice' in done)
        return redirectAfterForm(ctx, done.to ?? actionPath(action.id, tab.tab), done.notice);
      const values = 'values' in done ? done.values : (entered?.(ctx) ?? {});
      const shown =
        'refused' in done ? { action, fault: done.refused, values } : { action, result: done.result, values };
      await showTab(deps, ctx, session, tab, shown);
    },
  );
}
