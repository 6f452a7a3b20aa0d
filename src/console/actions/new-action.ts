// Creating and deleting an action.
import type { Context } from 'koa';
import { formFields } from '../../http/body-fields.ts';
import type { RouteDeclarations } from '../../http/routes.ts';
import { ask } from '../ask.ts';
import { type FormFault, faultModel, faultOf } from '../form-fault.ts';
import { type AtConsole, back, consoleForm, consolePage } from '../page.ts';
import { renderConsole } from '../render.ts';
import { isBound } from './action.ts';
import { RUNNING, templateOf } from './templates.ts';
import { ACTIONS, type ActionsDependencies, actionOf, actionPath, isRunning, triggerOf } from './view.ts';

const NEW = `${ACTIONS}/new` as const;
const REMOVAL = `${ACTIONS}/:id/delete` as const;
const CREATE = ['read:actions', 'create:actions'];
const REMOVE = ['read:actions', 'delete:actions'];

export const newActionRoutes: RouteDeclarations<ActionsDependencies> = {
  [`GET ${NEW}`]: consolePage<ActionsDependencies>('actions', { scopes: CREATE }, (deps, ctx, here) => {
    const { trigger } = ctx.query;
    return showForm(deps, ctx, here, { trigger: typeof trigger === 'string' ? trigger : '' });
  }),
  [`POST ${NEW}`]: consoleForm<ActionsDependencies>(
    'actions',
    { scopes: CREATE, isDangerous: false },
    create,
  ),
  [`GET ${REMOVAL}`]: consolePage<ActionsDependencies>('actions', { scopes: REMOVE }, (deps, ctx, here) =>
    showRemoval(deps, ctx, here),
  ),
  [`POST ${REMOVAL}`]: consoleForm<ActionsDependencies>(
    'actions',
    { scopes: REMOVE, isDangerous: true },
    remove,
  ),
};

async function showForm(
  deps: ActionsDependencies,
  ctx: Context,
  here: AtConsole,
  values: { name?: string; trigger: string },
  fault?: FormFault,
): Promise<void> {
  await renderConsole(deps, ctx, here, {
    template: 'console/actions-new',
    section: 'actions',
    title: 't:console.actions.new.title',
    model: {
      actionsPath: ACTIONS,
      triggers: RUNNING.map((id) => ({ id, template: templateOf(id) })),
      values,
      ...faultModel(fault),
    },
    status: fault?.status ?? 200,
  });
}

async function create(deps: ActionsDependencies, ctx: Context, here: AtConsole): Promise<void> {
  const { name, trigger } = formFields(ctx, 'name', 'trigger');
  const values = { name, trigger };
  if (!isRunning(trigger))
    return showForm(deps, ctx, here, values, {
      status: 400,
      key: 'console.actions.new.noTrigger',
      field: 'trigger',
    });
  const body = {
    name: name.trim(),
    supported_triggers: [{ id: trigger, version: trigger === 'post-login' ? 'v3' : 'v2' }],
    code: templateOf(trigger),
  };
  let made: { id: string };
  try {
    made = (await ask(deps, ctx, here, 'POST /actions/actions', { body })).body as { id: string };
  } catch (thrown) {
    const fault = faultOf(thrown);
    return showForm(deps, ctx, here, values, fault.status === 409 ? { ...fault, field: 'name' } : fault);
  }
  back(ctx, actionPath(made.id), 'console.actions.said.made');
}

async function showRemoval(
  deps: ActionsDependencies,
  ctx: Context,
  here: AtConsole,
  fault?: FormFault,
): Promise<void> {
  const action = await actionOf(deps, ctx, here);
  await renderConsole(deps, ctx, here, {
    template: 'console/actions-delete',
    section: 'actions',
    title: { text: action.name },
    model: {
      actionsPath: ACTIONS,
      path: actionPath(action.id),
      action: {
        name: action.name,
        trigger: triggerOf(action),
        isBound: await isBound(deps, ctx, here, action),
      },
      ...faultModel(fault),
    },
    status: fault?.status ?? 200,
  });
}

async function remove(deps: ActionsDependencies, ctx: Context, here: AtConsole): Promise<void> {
  const { id } = await actionOf(deps, ctx, here);
  const { unbind } = formFields(ctx, 'unbind');
  // The removal page has explained the effect on the bindings, and the administrator has ticked the box.
  const query = unbind === 'yes' ? { force: 'true' } : {};
  try {
    await ask(deps, ctx, here, 'DELETE /actions/actions/:id', { params: { id }, query });
  } catch (thrown) {
    return showRemoval(deps, ctx, here, faultOf(thrown));
  }
  back(ctx, ACTIONS, 'console.said.deleted');
}
