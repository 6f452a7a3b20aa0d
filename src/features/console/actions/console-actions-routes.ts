// The pages of actions.

import { diffArrays } from 'diff';
import type { Context } from 'koa';
import { type FormattedTime, timesOf } from '../../../capabilities/pages/times.ts';
import { AuthError } from '../../../http/errors.ts';
import { formFields } from '../../../http/server/body.ts';
import type { RouteDeclarations } from '../../../http/server/router.ts';
import type { Trigger } from '../../../records/tenant/actions.ts';
import { callApi } from '../api-calls.ts';
import { type ConsoleSession, consoleForm, consolePage, redirectAfterForm } from '../console-page.ts';
import { type FaultModel, type FormFault, faultModel, faultOf } from '../form-fault.ts';
import { stampOf } from '../json-text.ts';
import { declareConsolePage, renderConsole } from '../render.ts';
import { type ActionTab, declareActionTab, isBound, tabForm, tabPage } from './action.ts';
import { codeRoutes } from './code.ts';
import { SUPPORTED_TRIGGERS, templateOf } from './console-action-templates.ts';
import { runRoutes } from './runs.ts';
import {
  ACTIONS,
  type ActionAnswer,
  type ActionsDependencies,
  actionOf,
  actionPath,
  allActions,
  type BindingAnswer,
  bindingsOf,
  deployedVersion,
  formatDependencies,
  isDeployed,
  isSupportedTrigger,
  triggerOf,
  type VersionAnswer,
} from './view.ts';

// Creating and deleting an action.

const NEW = `${ACTIONS}/new` as const;
const REMOVAL = `${ACTIONS}/:id/delete` as const;
const CREATE = ['read:actions', 'create:actions'];
const REMOVE = ['read:actions', 'delete:actions'];

const newActionRoutes: RouteDeclarations<ActionsDependencies> = {
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

interface ActionsNewModel extends FaultModel {
  actionsPath: string;
  triggers: {
    id: Trigger;
    template: string;
  }[];
  values: { name?: string; trigger: string };
}

export const ACTIONS_NEW_PAGE = declareConsolePage<ActionsNewModel>('console/actions-new');

async function showForm(
  deps: ActionsDependencies,
  ctx: Context,
  session: ConsoleSession,
  values: { name?: string; trigger: string },
  fault?: FormFault,
): Promise<void> {
  await renderConsole(deps, ctx, session, {
    page: ACTIONS_NEW_PAGE,
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

interface ActionsDeleteModel extends FaultModel {
  actionsPath: string;
  path: string;
  action: { name: string; trigger: string; isBound: boolean };
}

export const ACTIONS_DELETE_PAGE = declareConsolePage<ActionsDeleteModel>('console/actions-delete');

async function showRemoval(
  deps: ActionsDependencies,
  ctx: Context,
  session: ConsoleSession,
  fault?: FormFault,
): Promise<void> {
  const action = await actionOf(deps, ctx, session);
  await renderConsole(deps, ctx, session, {
    page: ACTIONS_DELETE_PAGE,
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

// /console/actions: the actions of each trigger in their order, and those that are not bound.

const listRoutes: RouteDeclarations<ActionsDependencies> = {
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

/** What the list shows of an action. */
interface ShownAction {
  id: string;
  name: string;
  url: string;
  trigger: string;
  isDeployed: boolean;
  /** Whether the draft differs from the deployed version. */
  isChanged: boolean;
  version: number | undefined;
}

/** An action in the order of its trigger: by id and name alone if it is not among those that were read. */
type ShownBinding = (ShownAction | Pick<ShownAction, 'id' | 'name'>) & {
  mayFail: boolean;
  isFirst: boolean;
  isLast: boolean;
};

interface ActionsListModel extends FaultModel {
  actionsPath: string;
  triggers: { id: string; bound: ShownBinding[]; free: ShownAction[]; stamp: string }[];
  others: ShownAction[];
  hasNone: boolean;
  mayCreate: boolean;
  mayOrder: boolean;
}

export const ACTIONS_LIST_PAGE = declareConsolePage<ActionsListModel>('console/actions-list');

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
    page: ACTIONS_LIST_PAGE,
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

function rowOf(action: ActionAnswer): ShownAction {
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

// Changes which actions are bound to a trigger, and their order.

type Change = 'bind' | 'unbind' | 'up' | 'down' | 'stop' | 'continue';
const CHANGES: readonly Change[] = ['bind', 'unbind', 'up', 'down', 'stop', 'continue'];

/** Returns a stamp of the bindings, from which a form detects that they have changed since it was opened. */
function stampOfBindings(bindings: readonly BindingAnswer[]): string {
  return stampOf(bindings.map(({ action, on_error }) => [action.id, on_error ?? 'stop']));
}

interface Binding {
  actionId: string;
  display_name?: string;
  on_error: 'stop' | 'continue';
}

/** Returns the body of the request that makes the change; undefined when it changes nothing. */
function changedBindings(
  before: readonly BindingAnswer[],
  actionId: string,
  change: Change,
): { bindings: object[] } | undefined {
  const bindings: Binding[] = before.map(({ action, display_name, on_error }) => ({
    actionId: action.id,
    display_name,
    on_error: on_error ?? 'stop',
  }));
  const index = bindings.findIndex((one) => one.actionId === actionId);
  const after = withChange(bindings, index, actionId, change);
  if (after === undefined) return undefined;
  return {
    bindings: after.map(({ actionId: value, display_name, on_error }) => ({
      ref: { type: 'action_id', value },
      ...(display_name !== undefined && { display_name }),
      ...(on_error === 'continue' && { on_error }),
    })),
  };
}

function withChange(
  bindings: readonly Binding[],
  index: number,
  actionId: string,
  change: Change,
): Binding[] | undefined {
  const one = bindings[index];
  if (change === 'bind') return one === undefined ? [...bindings, { actionId, on_error: 'stop' }] : undefined;
  if (one === undefined) return undefined;
  const others = bindings.filter((_, other) => other !== index);
  switch (change) {
    case 'unbind':
      return others;
    case 'up':
    case 'down': {
      const to = change === 'up' ? index - 1 : index + 1;
      if (to < 0 || to >= bindings.length) return undefined;
      return [...others.slice(0, to), one, ...others.slice(to)];
    }
    default:
      return bindings.map((each, other) => (other === index ? { ...each, on_error: change } : each));
  }
}

// Deploying an action, and its deployed versions.

/** Returns a version as one text: its packages and modules as comment lines, then its code. */
function textOf({ code = '', dependencies = [], modules = [] }: VersionAnswer): string {
  const needs = [
    ...formatDependencies(dependencies).split('\n'),
    ...modules.map((one) => `actions:${one.module_name ?? one.module_id}@${one.module_version_number ?? ''}`),
  ].filter((line) => line !== '');
  return [...needs.map((line) => `// needs ${line}`), code].join('\n');
}

export type ActionsDiff = ReturnType<typeof changes>;

/** Returns the changed lines between two versions, with context; empty when nothing changed. */
const changes = (before: VersionAnswer | undefined, after: VersionAnswer) => {
  const lines = lineDiff(before === undefined ? '' : textOf(before), textOf(after));
  return lines.every(({ kind }) => kind === 'same') ? [] : withContext(lines);
};

export const ACTIONS_DEPLOY_PAGE = declareActionTab<{ diff: ActionsDiff }>('console/actions-deploy');

const DEPLOY: ActionTab<{ diff: ActionsDiff }> = {
  tab: 'deploy',
  page: ACTIONS_DEPLOY_PAGE,
  scopes: ['read:actions'],
  model: async (_deps, _ctx, _here, { action }) => ({ diff: changes(deployedVersion(action), action) }),
};

async function versionsOf(
  deps: ActionsDependencies,
  ctx: Context,
  session: ConsoleSession,
  { id }: ActionAnswer,
) {
  const input = { params: { id }, query: { per_page: '100' } };
  const answer = await callApi(deps, ctx, session, 'GET /actions/actions/:id/versions', input);
  return (answer.body as { versions: (VersionAnswer & { id: string })[] }).versions;
}

interface VersionsModel {
  versions: {
    id: string;
    number: number | undefined;
    at: FormattedTime | undefined;
    isDeployed: boolean;
    isChosen: boolean;
  }[];
  /** One of them, with its differences from the deployed one. */
  chosen?: {
    id: string;
    number: number | undefined;
    isDeployed: boolean;
    code: string;
    diff: ActionsDiff;
  };
}

export const ACTIONS_VERSIONS_PAGE = declareActionTab<VersionsModel>('console/actions-versions');

const VERSIONS: ActionTab<VersionsModel> = {
  tab: 'versions',
  page: ACTIONS_VERSIONS_PAGE,
  scopes: ['read:actions'],
  model: async (deps, ctx, session, { action }) => {
    const versions = await versionsOf(deps, ctx, session, action);
    const time = timesOf(deps, ctx);
    const chosen = versions.find(({ id }) => id === ctx.query.version);
    return {
      versions: versions.map(({ id, number, created_at, deployed }) => ({
        id,
        number,
        at: time(created_at),
        isDeployed: deployed === true,
        isChosen: id === chosen?.id,
      })),
      // The differences between this version and the deployed one.
      ...(chosen !== undefined && {
        chosen: {
          id: chosen.id,
          number: chosen.number,
          isDeployed: chosen.deployed === true,
          code: chosen.code ?? '',
          diff: changes(deployedVersion(action), chosen),
        },
      }),
    };
  },
};

const PATH = '/console/actions/:id';
const RULES = { scopes: ['create:actions'], isDangerous: true };

const versionRoutes: RouteDeclarations<ActionsDependencies> = {
  [`GET ${PATH}/deploy`]: tabPage(DEPLOY),
  [`POST ${PATH}/deploy`]: tabForm(DEPLOY, RULES, async (deps, ctx, session, { id }) => {
    await callApi(deps, ctx, session, 'POST /actions/actions/:id/deploy', { params: { id } });
    return { notice: 'console.actions.said.deployed' };
  }),
  [`GET ${PATH}/versions`]: tabPage(VERSIONS),
  [`POST ${PATH}/versions`]: tabForm(VERSIONS, RULES, async (deps, ctx, session, { id }) => {
    const { version, draft } = formFields(ctx, 'version', 'draft');
    const params = { id, version };
    const body = { update_draft: draft === 'yes' };
    await callApi(deps, ctx, session, 'POST /actions/actions/:id/versions/:version/deploy', { params, body });
    return { notice: 'console.actions.said.rolledBack' };
  }),
};

export const actionsRoutes: RouteDeclarations<ActionsDependencies> = {
  ...listRoutes,
  ...newActionRoutes,
  ...codeRoutes,
  ...versionRoutes,
  ...runRoutes,
};

// Compares two texts line by line.

/** A line of the first text, of the second, or of both. */
interface DiffLine {
  kind: 'same' | 'removed' | 'added';
  text: string;
  /** Line numbers in the first and the second text, from 1. */
  before?: number;
  after?: number;
}

/** How many lines may differ. Beyond it all count as removed and added, because the time grows with its square. */
const MAX_EDITS = 500;

/** Returns the lines of two texts, each marked as the same, removed or added. */
function lineDiff(before: string, after: string): DiffLine[] {
  const [left, right] = [before.split('\n'), after.split('\n')];
  const parts = diffArrays(left, right, { maxEditLength: MAX_EDITS }) ?? [
    { value: left, removed: true, added: false },
    { value: right, removed: false, added: true },
  ];
  const line = { before: 0, after: 0 };
  return parts.flatMap(({ value, removed, added }) =>
    value.map((text): DiffLine => {
      const kind = removed ? 'removed' : added ? 'added' : 'same';
      return {
        kind,
        text,
        ...(!added && { before: ++line.before }),
        ...(!removed && { after: ++line.after }),
      };
    }),
  );
}

interface Gap {
  kind: 'gap';
}

/** Keeps the changed lines with a few lines around each; a gap stands for lines left out. */
function withContext(lines: readonly DiffLine[], around = 3): (DiffLine | Gap)[] {
  const isNear = lines.map(() => false);
  for (const [index, { kind }] of lines.entries()) {
    if (kind === 'same') continue;
    for (let at = Math.max(0, index - around); at <= Math.min(lines.length - 1, index + around); at++)
      isNear[at] = true;
  }
  return lines.flatMap((line, index): (DiffLine | Gap)[] => {
    if (isNear[index]) return [line];
    return index === 0 || isNear[index - 1] === true ? [{ kind: 'gap' }] : [];
  });
}
