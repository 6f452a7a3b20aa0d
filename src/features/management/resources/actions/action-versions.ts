// `/actions/actions/{id}/deploy` and `…/versions`: deploying actions, and their deployed versions.
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { packageRequirement } from '../../../../capabilities/actions/action-packages.ts';
import type { Packages } from '../../../../capabilities/scripts/packages/packages.ts';
import type { Frozen } from '../../../../records/base/record.ts';
import { ACTION_MODULE, type ModuleReference } from '../../../../records/tenant/action-modules.ts';
import { draftOf } from '../../../../records/tenant/actions.ts';
import type { DocumentRecord } from '../../../../records/tenant/documents.ts';
import { type Answer, type Call, callsWith, ok } from '../../call.ts';
import { type DocumentDependencies, documentOf, documentsOf, documentView } from '../../document-resource.ts';
import { pageQuery } from '../../list.ts';
import { apiError } from '../../management-errors.ts';
import { notFound } from '../../resource.ts';
import { ACTION, actionCalls, actionView, wrappedPage } from './actions-calls.ts';
import { resolvedReferences } from './module-references.ts';

type Action = Frozen<DocumentRecord>;
type Version = Record<string, unknown>;

/** Number of versions kept; older ones are deleted, because each list reads the whole action. */
const MAX_KEPT_VERSIONS = 20;

const missing = notFound('That version does not exist.');

/** Members of a draft that make up a version; secrets are always the current ones. */
const VERSION_MEMBERS = ['code', 'dependencies', 'runtime', 'modules'];

export interface ActionVersionDependencies extends DocumentDependencies {
  packages: Pick<Packages, 'faultOf'>;
}

/** Returns the versions of an action, newest first; the newest is the deployed one. */
function versionsOf({ body }: Action): Version[] {
  const versions = (body.versions ?? []) as readonly Version[];
  return versions.map((one, index) => ({ ...one, deployed: index === 0 }));
}

function versionOf(action: Action, id: string | undefined): Version {
  const found = versionsOf(action).find((one) => one.id === id);
  if (found === undefined) throw missing();
  return found;
}

/** An earlier version to deploy, and whether the draft is replaced by it. */
interface EarlierVersion {
  id: string | undefined;
  updatesDraft: boolean;
}

/**
 * Deploys the draft of an action, or an earlier version of it.
 * @throws AuthError 404; 400 if a module is missing.
 */
async function deploy(
  deps: ActionVersionDependencies,
  id: string | undefined,
  earlier?: EarlierVersion,
): Promise<Answer> {
  const action = await documentOf(deps.store, ACTION, id);
  const warnings = await requireModules(
    deps,
    earlier === undefined ? action.body : versionOf(action, earlier.id),
    action,
  );
  const hex = deps.random(16).toString('hex');
  const [version_id, at] = [hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-'), deps.now()];
  let version: Version = {};
  await deps.store.collection('documents').update(action.id, (current) => {
    const draft = actionView(documentView(ACTION, current));
    const source = earlier === undefined ? draft : versionOf(current, earlier.id);
    const [last] = versionsOf(current);
    const { code, dependencies, secrets, runtime, modules } = source;
    // A draft without changes since its deployment gets no new version.
    if (earlier === undefined && current.body.all_changes_deployed === true && last !== undefined) {
      version = last;
      return current;
    }
    version = {
      id: version_id,
      action: { id: current.id, name: current.body.name },
      code,
      dependencies,
      secrets,
      runtime,
      ...(modules !== undefined && { modules }),
      supported_triggers: current.body.supported_triggers,
      number: Number(last?.number ?? 0) + 1,
      status: 'built',
      deployed: true,
      built_at: at,
      created_at: at,
      updated_at: at,
    };
    const isDraft = VERSION_MEMBERS.every((name) => isDeepStrictEqual(source[name], draft[name]));
    const body = {
      ...current.body,
      ...(earlier?.updatesDraft === true && { code, dependencies, runtime, modules }),
      all_changes_deployed: isDraft || earlier?.updatesDraft === true,
      // An action that a tenant file deployed has a draft of its own from now on.
      ...(current.body.deployed === true && { deployed: false }),
      // Even an earlier version runs with the current secrets: the version has only their names.
      deployed_secrets: current.body.secrets,
      deployed_version: version,
      versions: [version, ...versionsOf(current)].slice(0, MAX_KEPT_VERSIONS),
    };
    return { ...current, body };
  });
  return ok(version, { warnings });
}

/**
 * Refuses to deploy an action without its modules.
 * @returns a warning about a package that cannot be used, without which the action fails when it runs.
 * @throws AuthError 400 naming the module that is missing
 */
async function requireModules(
  { packages, store }: ActionVersionDependencies,
  version: Readonly<Record<string, unknown>>,
  { body: { name } }: { body: Readonly<Record<string, unknown>> },
): Promise<string[]> {
  const modules = await documentsOf(store, ACTION_MODULE);
  const runnable = draftOf({ body: { ...version, name } }, modules);
  if (runnable === undefined) return [];
  const missing = runnable.modules.find(({ found }) => found === undefined);
  if (missing !== undefined)
    throw apiError(400, `The action cannot be deployed: there is no module ${missing.name}.`, 'invalid_body');
  const fault = await packages.faultOf(packageRequirement(runnable));
  return fault === undefined ? [] : [`the action ${String(name)} fails when it runs: ${fault}`];
}

const call = callsWith<ActionVersionDependencies>();
const PATH = '/actions/actions/:id';

interface NewAction {
  deploy?: boolean;
  modules?: ModuleReference[];
  [member: string]: unknown;
}

/**
 * Wraps the call that creates an action: with `deploy`, it is deployed too, and is not created if it cannot be
 * deployed.
 */
function withDeployment(one: Call<DocumentDependencies>): Call<ActionVersionDependencies> {
  if (one.method !== 'POST') return one;
  return {
    ...one,
    handle: async (deps, request) => {
      const { deploy: isDeployed, ...body } = request.body as NewAction;
      if (isDeployed === true) {
        const modules = await resolvedReferences(deps.store, body.modules ?? []);
        await requireModules(deps, { ...body, modules }, { body });
      }
      // The call's own schema validated the body; the type of a call in a list does not say so.
      const answer = await one.handle(deps, { ...request, body: body as never });
      if (isDeployed !== true) return answer;
      const { id } = answer.body as { id: string };
      const { warnings = [] } = await deploy(deps, id);
      const after = actionView(documentView(ACTION, await documentOf(deps.store, ACTION, id)));
      return { ...answer, body: after, after, warnings };
    },
  };
}

export const actionVersionCalls: Call<ActionVersionDependencies>[] = [
  ...actionCalls.map(withDeployment),
  call({
    method: 'POST',
    path: `${PATH}/deploy`,
    scopes: ['create:actions'],
    summary: 'Deploy an action',
    handle: (deps, { params }) => deploy(deps, params.id),
  }),
  call({
    method: 'GET',
    path: `${PATH}/versions`,
    scopes: ['read:actions'],
    summary: 'List the versions of an action',
    query: z.strictObject(pageQuery),
    handle: async ({ store }, { params, query }) =>
      ok(wrappedPage('versions', versionsOf(await documentOf(store, ACTION, params.id)), query)),
  }),
  call({
    method: 'GET',
    path: `${PATH}/versions/:version`,
    scopes: ['read:actions'],
    summary: 'Get a version of an action',
    handle: async ({ store }, { params }) =>
      ok(versionOf(await documentOf(store, ACTION, params.id), params.version)),
  }),
  call({
    method: 'POST',
    path: `${PATH}/versions/:version/deploy`,
    scopes: ['create:actions'],
    summary: 'Deploy an earlier version of an action',
    body: z.object({ update_draft: z.boolean().optional() }).optional(),
    handle: (deps, { params, body }) =>
      deploy(deps, params.id, { id: params.version, updatesDraft: body?.update_draft === true }),
  }),
];
