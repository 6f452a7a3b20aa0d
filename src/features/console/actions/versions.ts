// Deploying an action, and its deployed versions.
import type { Context } from 'koa';
import { timesOf } from '../../../capabilities/pages/times.ts';
import { formFields } from '../../../http/body-fields.ts';
import type { RouteDeclarations } from '../../../http/routes.ts';
import { callApi } from '../api-calls.ts';
import { lineDiff, withContext } from '../line-diff.ts';
import type { ConsoleSession } from '../page.ts';
import { type ActionTab, tabForm, tabPage } from './action.ts';
import {
  type ActionAnswer,
  type ActionsDependencies,
  deployedVersion,
  formatDependencies,
  type VersionAnswer,
} from './view.ts';

/** Returns a version as one text: its packages and modules as comment lines, then its code. */
function textOf({ code = '', dependencies = [], modules = [] }: VersionAnswer): string {
  const needs = [
    ...formatDependencies(dependencies).split('\n'),
    ...modules.map((one) => `actions:${one.module_name ?? one.module_id}@${one.module_version_number ?? ''}`),
  ].filter((line) => line !== '');
  return [...needs.map((line) => `// needs ${line}`), code].join('\n');
}

/** Returns the changed lines between two versions, with context; empty when nothing changed. */
const changes = (before: VersionAnswer | undefined, after: VersionAnswer) => {
  const lines = lineDiff(before === undefined ? '' : textOf(before), textOf(after));
  return lines.every(({ kind }) => kind === 'same') ? [] : withContext(lines);
};

const DEPLOY: ActionTab = {
  tab: 'deploy',
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

const VERSIONS: ActionTab = {
  tab: 'versions',
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

export const versionRoutes: RouteDeclarations<ActionsDependencies> = {
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
