// The editor of an action: its draft, packages, modules and secrets.
import type { Context } from 'koa';
import { bodyObject, bodyTexts, formFields } from '../../../http/server/body.ts';
import type { RouteDeclarations } from '../../../http/server/router.ts';
import { callApi } from '../api-calls.ts';
import type { ConsoleSession } from '../console-page.ts';
import { withoutReturns } from '../forms.ts';
import { stampOf } from '../json-text.ts';
import { type ActionTab, declareActionTab, tabForm, tabPage } from './action.ts';
import {
  type ActionAnswer,
  type ActionsDependencies,
  formatDependencies,
  type ModuleReferenceAnswer,
  parseDependencies,
} from './view.ts';

interface ModuleAnswer {
  id: string;
  name: string;
  latest_version_number?: number;
}

/** Returns a stamp of the draft, from which saving detects that somebody else has saved another draft meanwhile. */
const draftStamp = ({ code = '', dependencies = [], modules = [] }: ActionAnswer): string =>
  stampOf([code, dependencies, modules]);

interface CodeModel {
  code: string;
  /** One a line. */
  dependencies: string;
  stamp: string;
  secrets: { name: string }[];
  modules: {
    id: string;
    name: string;
    /** The numbers of its latest version and of the one that is used. */
    latest: number | undefined;
    used: number | undefined;
    isUsed: boolean;
  }[];
}

export const ACTIONS_CODE_PAGE = declareActionTab<CodeModel>('console/actions-code');

const CODE: ActionTab<CodeModel> = {
  tab: 'code',
  page: ACTIONS_CODE_PAGE,
  scopes: ['read:actions'],
  model: async (deps, ctx, session, { action, values = {} }) => {
    const references = action.modules ?? [];
    const answer = await callApi(deps, ctx, session, 'GET /actions/modules', { query: { per_page: '100' } });
    const modules = (answer.body as { modules: ModuleAnswer[] }).modules;
    return {
      code: values.code ?? action.code ?? '',
      dependencies: values.dependencies ?? formatDependencies(action.dependencies),
      stamp: values.stamp ?? draftStamp(action),
      secrets: action.secrets ?? [],
      modules: modules.map(({ id, name, latest_version_number: latest }) => {
        const reference = references.find((one) => one.module_id === id);
        return { id, name, latest, used: reference?.module_version_number, isUsed: reference !== undefined };
      }),
    };
  },
};

const PATH = '/console/actions/:id';
const EDIT = { scopes: ['update:actions'], isDangerous: false };
const enteredDraft = (ctx: Context) => {
  const { code = '', dependencies = '', stamp = '' } = bodyTexts(ctx);
  return { code: withoutReturns(code), dependencies: withoutReturns(dependencies), stamp };
};

export const codeRoutes: RouteDeclarations<ActionsDependencies> = {
  [`GET ${PATH}`]: tabPage(CODE),
  [`POST ${PATH}/draft`]: tabForm(CODE, { ...EDIT, entered: enteredDraft }, saveDraft),
  // Counted as dangerous: code that gets another secret, for example one for another provider, does something else.
  [`POST ${PATH}/secrets`]: tabForm(
    CODE,
    { ...EDIT, isDangerous: true },
    async (deps, ctx, session, action) => {
      const { name, value } = formFields(ctx, 'name', 'value');
      const others = (action.secrets ?? []).filter((one) => one.name !== name.trim());
      return saveSecrets(deps, ctx, session, action, [
        ...others,
        { name: name.trim(), value: withoutReturns(value) },
      ]);
    },
  ),
  [`POST ${PATH}/secrets/remove`]: tabForm(
    CODE,
    { ...EDIT, isDangerous: true },
    async (deps, ctx, session, action) => {
      const { name } = formFields(ctx, 'name');
      return saveSecrets(
        deps,
        ctx,
        session,
        action,
        (action.secrets ?? []).filter((one) => one.name !== name),
      );
    },
  ),
};

async function saveDraft(
  deps: ActionsDependencies,
  ctx: Context,
  session: ConsoleSession,
  action: ActionAnswer,
) {
  const { code, dependencies, stamp } = enteredDraft(ctx);
  if (stamp !== draftStamp(action)) return { refused: { status: 409, key: 'console.actions.draft.changed' } };
  const body = {
    code,
    dependencies: parseDependencies(dependencies),
    modules: modulesIn(ctx, action.modules ?? []),
  };
  await callApi(deps, ctx, session, 'PATCH /actions/actions/:id', { params: { id: action.id }, body });
  return { notice: 'console.actions.said.saved' };
}

/**
 * Returns the ticked modules. One that was used before keeps its version unless its newest is asked for; others get
 * the newest.
 */
function modulesIn(ctx: Context, before: readonly ModuleReferenceAnswer[]): ModuleReferenceAnswer[] {
  const newest = ticked(ctx, 'newest');
  return ticked(ctx, 'module').map((module_id) => {
    const version = before.find((one) => one.module_id === module_id)?.module_version_id;
    return newest.includes(module_id) || version === undefined
      ? { module_id }
      : { module_id, module_version_id: version };
  });
}

function ticked(ctx: Context, name: string): string[] {
  const values = [bodyObject(ctx)[name] ?? []].flat();
  return values.filter((one) => typeof one === 'string');
}

async function saveSecrets(
  deps: ActionsDependencies,
  ctx: Context,
  session: ConsoleSession,
  { id }: ActionAnswer,
  secrets: readonly { name: string; value?: string }[],
) {
  if (secrets.some(({ name }) => name === ''))
    return { refused: { status: 400, key: 'console.actions.secret.nameless', field: 'name' } };
  await callApi(deps, ctx, session, 'PATCH /actions/actions/:id', { params: { id }, body: { secrets } });
  return { notice: 'console.actions.said.secretSaved' };
}
