// Creating and deleting an action.
import type { Context } from 'koa';
import { formFields } from '../../../http/body-fields.ts';
import type { RouteDeclarations } from '../../../http/routes.ts';
import { callApi } from '../api-calls.ts';
import { type FormFault, faultModel, faultOf } from '../form-fault.ts';
import { type ConsoleSession, consoleForm, consolePage, redirectAfterForm } from '../page.ts';
import { renderConsole } from '../render.ts';
import { isBound } from './action.ts';
import { SUPPORTED_TRIGGERS, templateOf } from './templates.ts';
import {
  ACTIONS,
  type ActionsDependencies,
  actionOf,
  actionPath,
  isSupportedTrigger,
  triggerOf,
} from './view.ts';

const NEW = `${ACTIONS}/new` as const;
const REMOVAL = `${ACTIONS}/:id/delete` as const;
const CREATE = ['read:actions', 'create:actions'];
const REMOVE = ['read:actions', 'delete:actions'];

export const newActionRoutes: RouteDeclarations<ActionsDependencies> = {
  [`GET ${NEW}`]: consolePage<ActionsDependencies>('actions', { scopes: CREATE }, (deps, ctx, session) => {
    const { trigger } = ctx.query;
    return showForm(deps, ctx, session, { trigger: typeof trigger === 'string' ? trigger : '' });
  }),
  [`POST ${NEW}`]: consoleForm<ActionsDependencies>(
    'actions',
    { scopes: CREATE, isDangerous: false },
    create,
  ),
  [`GET ${REMOVAL}`]: consolePage<ActionsDependencies>('actions', { scopes: REMOVE }, (deps, ctx, session) =>
    showRemoval(deps, ctx, session),
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
  session: ConsoleSession,
  values: { name?: string; trigger: string },
  fault?: FormFault,
): Promise<void> {
  await renderConsole(deps, ctx, session, {
    template: 'console/actions-new',
    section: 'actions',
    title: 't:console.actions.new.title',
    model: {
      actionsPath: ACTIONS,
      triggers: SUPPORTED_TRIGGERS.map((id) => ({ id, template: templateOf(id) })),
      values,
      ...faultModel(fault),
    },
    status: fault?.status ?? 200,
  });
}

async function create(deps: ActionsDependencies, ctx: Context, session: ConsoleSession): Promise<void> {
  const { name, trigger } = formFields(ctx, 'name', 'trigger');
  const values = { name, trigger };
  if (!isSupportedTrigger(trigger))
    return showForm(deps, ctx, session, values, {
      status: 400,
      key: 'console.actions.new.noTrigger',
      field: 'trigger',
    });
  const body = {
    name: name.trim(),
    supported_triggers: [{ id: trigger, version: trigger === 'post-login' ? 'v3' : 'v2' }],
    code: templateOf(trigger),
  };
  let created: { id: string };
  try {
    created = (await callApi(deps, ctx, session, 'POST /actions/actions', { body })).body as { id: string };
  } catch (thrown) {
    const fault = faultOf(thrown);
    return showForm(deps, ctx, session, values, fault.status === 409 ? { ...fault, field: 'name' } : fault);
  }
  redirectAfterForm(ctx, actionPath(created.id), 'console.actions.said.made');
}

async function showRemoval(
  deps: ActionsDependencies,
  ctx: Context,
  session: ConsoleSession,
  fault?: FormFault,
): Promise<void> {
  const action = await actionOf(deps, ctx, session);
  await renderConsole(deps, ctx, session, {
    template: 'console/actions-delete',
    section: 'actions',
    title: { text: action.name },
    model: {
      actionsPath: ACTIONS,
      path: actionPath(action.id),
      action: {
        name: action.name,
        trigger: triggerOf(action),
        isBound: await isBound(deps, ctx, session, action),
      },
      ...faultModel(fault),
    },
    status: fault?.status ?? 200,
  });
}

async function remove(deps: ActionsDependencies, ctx: Context, session: ConsoleSession): Promise<void> {
  const { id } = await actionOf(deps, ctx, session);
  const { unbind } = formFields(ctx, 'unbind');
  // The removal page has explained the effect on the bindings, and the administrator has ticked the box.
  const query = unbind === 'yes' ? { force: 'true' } : {};
  try {
    await callApi(deps, ctx, session, 'DELETE /actions/actions/:id', { params: { id }, query });
  } catch (thrown) {
    return showRemoval(deps, ctx, session, faultOf(thrown));
  }
  redirectAfterForm(ctx, ACTIONS, 'console.said.deleted');
}
