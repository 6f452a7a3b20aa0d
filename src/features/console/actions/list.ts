// /console/actions: the actions of each trigger in their order, and those that are not bound.
import type { Context } from 'koa';
import { formFields } from '../../../http/body-fields.ts';
import { AuthError } from '../../../http/errors.ts';
import type { RouteDeclarations } from '../../../http/routes.ts';
import { callApi } from '../api-calls.ts';
import { type FormFault, faultModel, faultOf } from '../form-fault.ts';
import { type ConsoleSession, consoleForm, consolePage, redirectAfterForm } from '../page.ts';
import { renderConsole } from '../render.ts';
import { CHANGES, changedBindings, stampOfBindings } from './order.ts';
import { SUPPORTED_TRIGGERS } from './templates.ts';
import {
  ACTIONS,
  type ActionAnswer,
  type ActionsDependencies,
  actionPath,
  allActions,
  bindingsOf,
  isDeployed,
  isSupportedTrigger,
  triggerOf,
} from './view.ts';

export const listRoutes: RouteDeclarations<ActionsDependencies> = {
  [`GET ${ACTIONS}`]: consolePage<ActionsDependencies>(
    'actions',
    { scopes: ['read:actions'] },
    (deps, ctx, session) => showList(deps, ctx, session),
  ),
  // Counted as dangerous: bound actions decide who can log in.
  [`POST ${ACTIONS}/order`]: consoleForm<ActionsDependencies>(
    'actions',
    { scopes: ['read:actions', 'update:actions'], isDangerous: true },
    changeOrder,
  ),
};

async function showList(
  deps: ActionsDependencies,
  ctx: Context,
  session: ConsoleSession,
  fault?: FormFault,
): Promise<void> {
  const actions = await allActions(deps, ctx, session);
  const triggers = await Promise.all(
    SUPPORTED_TRIGGERS.map((trigger) => triggerView(deps, ctx, session, trigger, actions)),
  );
  await renderConsole(deps, ctx, session, {
    template: 'console/actions-list',
    section: 'actions',
    title: 't:console.actions.title',
    model: {
      actionsPath: ACTIONS,
      triggers,
      others: actions.filter((one) => !isSupportedTrigger(triggerOf(one))).map(rowOf),
      hasNone: actions.length === 0,
      mayCreate: session.can('create:actions'),
      mayOrder: session.can('update:actions'),
      ...faultModel(fault),
    },
    status: fault?.status ?? 200,
  });
}

async function triggerView(
  deps: ActionsDependencies,
  ctx: Context,
  session: ConsoleSession,
  trigger: string,
  all: readonly ActionAnswer[],
) {
  const bindings = await bindingsOf(deps, ctx, session, trigger);
  const actionsById = new Map(all.map((one) => [one.id, one]));
  const bound = bindings.map(({ action, on_error }, index) => ({
    ...(actionsById.has(action.id)
      ? rowOf(actionsById.get(action.id) as ActionAnswer)
      : { id: action.id, name: action.name }),
    mayFail: on_error === 'continue',
    isFirst: index === 0,
    isLast: index === bindings.length - 1,
  }));
  const free = all.filter(
    (one) => triggerOf(one) === trigger && !bindings.some(({ action }) => action.id === one.id),
  );
  return { id: trigger, bound, free: free.map(rowOf), stamp: stampOfBindings(bindings) };
}

/** Returns an action as a row of a list. */
function rowOf(action: ActionAnswer) {
  return {
    id: action.id,
    name: action.name,
    url: actionPath(action.id),
    trigger: triggerOf(action),
    isDeployed: isDeployed(action),
    isChanged: isDeployed(action) && action.deployed !== true && action.all_changes_deployed !== true,
    version: action.deployed_version?.number,
  };
}

async function changeOrder(deps: ActionsDependencies, ctx: Context, session: ConsoleSession): Promise<void> {
  const {
    trigger,
    action,
    change: requestedChange,
    stamp,
  } = formFields(ctx, 'trigger', 'action', 'change', 'stamp');
  const change = CHANGES.find((one) => one === requestedChange);
  if (!isSupportedTrigger(trigger) || change === undefined)
    throw new AuthError(400, 'invalid_request', 'There is no such trigger, or no such change.');
  const bindings = await bindingsOf(deps, ctx, session, trigger);
  if (stamp !== stampOfBindings(bindings))
    return showList(deps, ctx, session, { status: 409, key: 'console.actions.order.changed' });
  const body = changedBindings(bindings, action, change);
  if (body === undefined) return redirectAfterForm(ctx, ACTIONS);
  try {
    const params = { triggerId: trigger };
    await callApi(deps, ctx, session, 'PATCH /actions/triggers/:triggerId/bindings', { params, body });
  } catch (thrown) {
    return showList(deps, ctx, session, faultOf(thrown));
  }
  redirectAfterForm(ctx, `${ACTIONS}#${trigger}`, undefined);
}
