// `/actions/modules`: code that actions share. An action runs the module version that it names; no action runs a
// draft.
import { z } from 'zod';
import type { Frozen } from '../../../../records/base/record.ts';
import {
  ACTION_MODULE,
  type ModuleVersion,
  moduleVersionsOf,
} from '../../../../records/tenant/action-modules.ts';
import { secretNames, withSecretValues } from '../../../../records/tenant/actions.ts';
import { type DocumentRecord, usualMembers } from '../../../../records/tenant/documents.ts';
import { type Call, callsWith, ok } from '../../call.ts';
import { documentResourceCalls } from '../../document-calls.ts';
import {
  type DocumentDependencies,
  type DocumentResource,
  documentOf,
  documentsOf,
  documentView,
} from '../../document-resource.ts';
import { idOf } from '../../ids.ts';
import { pageQuery } from '../../list.ts';
import { conflict, notFound } from '../../resource.ts';
import { actionView, changedCode, namedItem, wrappedPage } from './actions-calls.ts';
import { type ModuleUse, usesOf } from './module-references.ts';

const members = {
  code: z.string().max(100_000).optional(),
  dependencies: z.array(namedItem).max(100).optional(),
  secrets: z.array(namedItem).max(100).optional(),
  api_version: z.string().max(16).optional(),
};

type Document = Frozen<DocumentRecord>;
type Body = Readonly<Record<string, unknown>>;

/** Number of versions kept; older ones are deleted unless an action uses them. */
const MAX_KEPT_VERSIONS = 100;

/**
 * Returns a module with its draft published as a new version; unchanged if the draft has no changes.
 * @param uses actions whose versions are kept.
 */
function published(
  { id, body }: Pick<Document, 'id' | 'body'>,
  version: Pick<ModuleVersion, 'id' | 'created_at'>,
  uses: readonly ModuleUse[] = [],
): Record<string, unknown> {
  const versions = moduleVersionsOf({ id, body });
  const last = versions.at(-1);
  if (last !== undefined && body.all_changes_published === true) return { ...body, versions };
  const { code = '', dependencies = [], secrets = [] } = body;
  const version_number = (last?.version_number ?? 0) + 1;
  const isKept = ({ id: one }: ModuleVersion, index: number) =>
    index >= versions.length - MAX_KEPT_VERSIONS || uses.some((use) => use.versionIds.includes(one));
  return {
    ...body,
    all_changes_published: true,
    latest_version_number: version_number,
    versions: [...versions.filter(isKept), { ...version, version_number, code, dependencies, secrets }],
  };
}

const versionId = (random: DocumentDependencies['random']) => idOf('acmv', random);

const resource: DocumentResource = {
  kind: ACTION_MODULE,
  path: '/actions/modules',
  name: 'action module',
  noun: 'actions',
  newId: (random) => idOf('acm', random),
  createBody: z.strictObject({
    ...members,
    // The name that actions require: `actions:NAME`.
    name: z.string().min(1).max(255),
    publish: z.boolean().optional(),
  }),
  patchBody: z.strictObject(members),
  defaults: usualMembers[ACTION_MODULE],
  generated: ({ random, now }, { publish, secrets, ...rest }) => {
    const withSecrets = secrets === undefined ? {} : { secrets: withSecretValues([], secrets, now()) };
    if (publish !== true) return withSecrets;
    return published(
      { id: '', body: { ...rest, ...withSecrets } },
      { id: versionId(random), created_at: now() },
    );
  },
  uniqueMember: 'name',
  change: (before, changes, now) => changedCode(before, changes, { published: 'all_changes_published', now }),
  list: { key: 'modules' },
  missing: notFound('That action module does not exist.'),
  taken: 'An action module with the same name already exists.',
  isRemovalStrict: true,
  beforeRemoval: async ({ store }, id) => {
    if ((await usesOf(store, id)).length > 0) throw conflict('Actions use the module.')();
  },
};

/** Returns a version without the values of its secrets. */
function versionView(moduleId: string, { secrets, ...version }: ModuleVersion): Record<string, unknown> {
  return { ...version, module_id: moduleId, secrets: secretNames(secrets, version.created_at || undefined) };
}

/** Returns a module as the API shows it. @param body the stored body with its id. */
function moduleView({ versions: _, publish: _publish, ...body }: Body, uses: readonly ModuleUse[]) {
  const id = String(body.id);
  const last = moduleVersionsOf({ id, body: { ...body, versions: _ } }).at(-1);
  const { module_id: _id, ...latest } = last === undefined ? {} : versionView(id, last);
  return {
    ...actionView(body),
    actions_using_module_total: uses.filter(({ isDeployed }) => isDeployed).length,
    latest_version_number: last?.version_number ?? 0,
    ...(last !== undefined && { latest_version: latest }),
  };
}

const viewOf = async ({ store }: DocumentDependencies, one: Document) =>
  moduleView(documentView(resource, one), await usesOf(store, one.id));

const call = callsWith<DocumentDependencies>();
const [, create, read, update, remove] = documentResourceCalls(resource).map(asModule);
const MODULE_PATH = '/actions/modules/:id';

/** Wraps a call so that it returns modules as the API shows them. */
function asModule(one: Call<DocumentDependencies>): Call<DocumentDependencies> {
  return {
    ...one,
    handle: async (deps, request) => {
      const answer = await one.handle(deps, request);
      const body = answer.body as Body | undefined;
      if (typeof body?.id !== 'string') return answer;
      return { ...answer, body: moduleView(body, await usesOf(deps.store, body.id)) };
    },
  };
}

const versionCalls: Call<DocumentDependencies>[] = [
  call({
    method: 'GET',
    path: `${MODULE_PATH}/versions`,
    scopes: ['read:actions'],
    summary: 'List the versions of an action module',
    query: z.strictObject(pageQuery),
    handle: async ({ store }, { params, query }) => {
      const one = await documentOf(store, resource, params.id);
      return ok(
        wrappedPage(
          'versions',
          moduleVersionsOf(one).map((version) => versionView(one.id, version)),
          query,
        ),
      );
    },
  }),
  call({
    method: 'GET',
    path: `${MODULE_PATH}/versions/:version`,
    scopes: ['read:actions'],
    summary: 'Get a version of an action module',
    handle: async ({ store }, { params }) => {
      const one = await documentOf(store, resource, params.id);
      return ok(versionView(one.id, versionOf(one, params.version)));
    },
  }),
  call({
    method: 'POST',
    path: `${MODULE_PATH}/versions`,
    scopes: ['create:actions'],
    summary: 'Publish an action module',
    handle: async (deps, { params }) => {
      const { id } = await documentOf(deps.store, resource, params.id);
      const version = { id: versionId(deps.random), created_at: deps.now() };
      const uses = await usesOf(deps.store, id);
      const after = await deps.store
        .collection('documents')
        .update(id, (current) => ({ ...current, body: published(current, version, uses) }));
      if (after === undefined) throw resource.missing();
      const publishedVersion = versionView(id, moduleVersionsOf(after).at(-1) as ModuleVersion);
      return ok(publishedVersion, { after: publishedVersion });
    },
  }),
  call({
    method: 'POST',
    path: `${MODULE_PATH}/rollback`,
    scopes: ['create:actions'],
    summary: 'Roll back the draft of an action module to a version',
    body: z.strictObject({ module_version_id: z.string().max(255) }),
    handle: async (deps, { params, body }) => {
      const { id } = await documentOf(deps.store, resource, params.id);
      const after = await deps.store.collection('documents').update(id, (current) => {
        const { id: version, code, dependencies, secrets } = versionOf(current, body.module_version_id);
        const all_changes_published = moduleVersionsOf(current).at(-1)?.id === version;
        return {
          ...current,
          body: {
            ...current.body,
            code,
            dependencies: [...dependencies],
            secrets: [...secrets],
            all_changes_published,
          },
          updated_at: deps.now(),
        };
      });
      if (after === undefined) throw resource.missing();
      return ok(await viewOf(deps, after));
    },
  }),
];

/** @throws AuthError 404 */
function versionOf(one: Document, id: string | undefined): ModuleVersion {
  const found = moduleVersionsOf(one).find((version) => version.id === id);
  if (found === undefined) throw notFound('That version does not exist.')();
  return found;
}

export const actionModuleCalls: Call<DocumentDependencies>[] = [
  call({
    method: 'GET',
    path: '/actions/modules',
    scopes: ['read:actions'],
    summary: 'List action modules',
    query: z.strictObject(pageQuery),
    handle: async (deps, { query }) => {
      const all = await documentsOf(deps.store, resource.kind);
      return ok(wrappedPage('modules', await Promise.all(all.map((one) => viewOf(deps, one))), query));
    },
  }),
  ...[create, read, update, remove].filter((one) => one !== undefined),
  call({
    method: 'GET',
    path: `${MODULE_PATH}/actions`,
    scopes: ['read:actions'],
    summary: 'List the actions that use an action module',
    query: z.strictObject(pageQuery),
    handle: async ({ store }, { params, query }) => {
      const { id } = await documentOf(store, resource, params.id);
      const uses = (await usesOf(store, id)).map(({ view }) => view);
      return ok(wrappedPage('actions', uses, query));
    },
  }),
  ...versionCalls,
];
