// The page of one action: its header and tabs.

import type { Context } from 'koa';
import type { FramedPage } from '../../../capabilities/pages/views.ts';
import type { RouteDeclaration } from '../../../http/server/router.ts';
import { type ConsoleSession, consoleForm, consolePage, redirectAfterForm } from '../console-page.ts';
import { type FaultModel, type FormFault, faultModel, faultOf } from '../form-fault.ts';
import { type ConsoleFrame, declareConsolePage, renderConsole } from '../render.ts';
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

/** What the head of an action's page reads, and the forms of its tabs. */
export interface ActionFrame extends FaultModel {
  actionsPath: string;
  path: string;
  tab: Tab;
  tabs: { name: Tab; url: string }[];
  action: {
    id: string;
    name: string;
    trigger: string;
    isDeployed: boolean;
    /** Whether the draft differs from the deployed version. */
    isChanged: boolean;
    isBound: boolean;
    version: number | undefined;
  };
  mayEdit: boolean;
  mayDeploy: boolean;
  mayDelete: boolean;
}

/** Declares a tab of an action's page. @param template the path of its template below views/pages. */
export const declareActionTab = <Own>(template: string) => declareConsolePage<Own & ActionFrame>(template);

/** The data of a tab. After a refused form it includes the fault and the values that were entered. */
interface TabData<Result = object> {
  action: ActionAnswer;
  fault?: FormFault | undefined;
  values?: Readonly<Record<string, string>>;
  /** Further data of the model, from a form that shows its result on the same tab. */
  result?: Result;
}

/** @template Own what its template reads beside the head. */
export interface ActionTab<Own> {
  tab: Tab;
  page: FramedPage<Own & ActionFrame, ConsoleFrame>;
  /** The scopes that the tab requires; all of them are needed. */
  scopes: readonly string[];
  model(deps: ActionsDependencies, ctx: Context, session: ConsoleSession, shown: TabData): Promise<Own>;
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

async function showTab<Own extends object>(
  deps: ActionsDependencies,
  ctx: Context,
  session: ConsoleSession,
  { tab, page, model }: ActionTab<Own>,
  shown: TabData<Partial<Own>>,
): Promise<void> {
  const { action, fault, result } = shown;
  const tabModel = await model(deps, ctx, session, shown);
  await renderConsole(deps, ctx, session, {
    page,
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

export function tabPage<Own extends object>(tab: ActionTab<Own>): RouteDeclaration<ActionsDependencies> {
  return consolePage<ActionsDependencies>('actions', { scopes: tab.scopes }, async (deps, ctx, session) =>
    showTab(deps, ctx, session, tab, { action: await actionOf(deps, ctx, session) }),
  );
}

/** The outcome of a form: a message and where to redirect, a result to show on the tab, or a refusal. */
type FormOutcome<Own> =
  | { notice: string; to?: string }
  | { result: Partial<Own>; values: Readonly<Record<string, string>> }
  | { refused: FormFault };

/**
 * Declares a form of a tab. A refusal is shown on the same tab with the values that were entered.
 * @param rules.typed reads the values to show again from the request.
 */
export function tabForm<Own extends object>(
  tab: ActionTab<Own>,
  rules: { scopes: readonly string[]; isDangerous: boolean; entered?(ctx: Context): Record<string, string> },
  act: (
    deps: ActionsDependencies,
    ctx: Context,
    session: ConsoleSession,
    action: ActionAnswer,
  ) => Promise<FormOutcome<Own>>,
): RouteDeclaration<ActionsDependencies> {
  const { scopes, isDangerous, entered } = rules;
  return consoleForm<ActionsDependencies>(
    'actions',
    { scopes: [...tab.scopes, ...scopes], isDangerous, bodies: { maxBytes: MAX_FORM_BYTES } },
    async (deps, ctx, session) => {
      const action = await actionOf(deps, ctx, session);
      let done: FormOutcome<Own>;
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
