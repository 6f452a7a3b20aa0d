// `/actions/modules`: code that actions share. It is kept like actions themselves; running it is not built in yet.
import { z } from 'zod';
import type { DocumentRecord } from '../../records/documents.ts';
import type { Frozen } from '../../records/record.ts';
import { type Call, callsWith, created, ok } from '../call.ts';
import { idOf } from '../ids.ts';
import { documentOf, documentsOf, type Kept, type KeptDependencies, keptView } from '../kept.ts';
import { keptCalls } from '../kept-calls.ts';
import { pageQuery } from '../list.ts';
import { notFound } from '../resource.ts';
import { changedCode, shown, withSecretsHidden, wrapped } from './actions.ts';

const members = {
  code: z.string().max(100_000).optional(),
  dependencies: z
    .array(z.looseObject({ name: z.string().max(255) }))
    .max(100)
    .optional(),
  secrets: z
    .array(z.looseObject({ name: z.string().max(255) }))
    .max(100)
    .optional(),
  api_version: z.string().max(16).optional(),
};

const resource: Kept = {
  kind: 'action-module',
  path: '/actions/modules',
  name: 'action module',
  noun: 'actions',
  newId: (random) => idOf('acm', random),
  createBody: z.strictObject({
    ...members,
    name: z.string().min(1).max(255),
    publish: z.boolean().optional(),
  }),
  patchBody: z.strictObject(members),
  usual: {
    code: '',
    dependencies: [],
    secrets: [],
    actions_using_module_total: 0,
    all_changes_published: false,
    latest_version_number: 0,
  },
  uniqueMember: 'name',
  change: (before, asked) => changedCode(before, asked, 'all_changes_published'),
  list: { key: 'modules' },
  missing: notFound('That action module does not exist.'),
  taken: 'An action module with the same name already exists.',
  isRemovalStrict: true,
};

type Version = Record<string, unknown>;

/** The versions are kept beside what is answered. */
const versionsOf = ({ body }: Frozen<DocumentRecord>) => (body.versions ?? []) as readonly Version[];

const moduleView = (one: Frozen<DocumentRecord>) => {
  const { versions: _, publish: _publish, ...view } = shown(keptView(resource, one));
  return view;
};

const call = callsWith<KeptDependencies>();
const [, create, read, update, remove] = keptCalls(resource).map((one) =>
  withoutVersions(withSecretsHidden(one)),
);
const VERSIONS = '/actions/modules/:id/versions';

/** Whatever is changed is not published until somebody does it. */
function withoutVersions(one: Call<KeptDependencies>): Call<KeptDependencies> {
  return {
    ...one,
    handle: async (deps, request) => {
      const answer = await one.handle(deps, request);
      if (answer.body === undefined) return answer;
      const { versions: _, publish: _publish, ...body } = answer.body as Record<string, unknown>;
      return { ...answer, body };
    },
  };
}

/** All calls of modules. */
export const actionModuleCalls: Call<KeptDependencies>[] = [
  call({
    method: 'GET',
    path: '/actions/modules',
    scopes: ['read:actions'],
    summary: 'List action modules',
    query: z.strictObject(pageQuery),
    handle: async ({ store }, { query }) =>
      ok(wrapped('modules', (await documentsOf(store, resource.kind)).map(moduleView), query)),
  }),
  ...[create, read, update, remove].filter((one) => one !== undefined),
  call({
    method: 'GET',
    path: VERSIONS,
    scopes: ['read:actions'],
    summary: 'List the versions of an action module',
    query: z.strictObject(pageQuery),
    handle: async ({ store }, { params, query }) =>
      ok(wrapped('versions', versionsOf(await documentOf(store, resource, params.id)), query)),
  }),
  call({
    method: 'POST',
    path: VERSIONS,
    scopes: ['create:actions'],
    summary: 'Publish an action module',
    handle: async (deps, { params }) => {
      const { id } = await documentOf(deps.store, resource, params.id);
      const [version_id, at] = [idOf('acmv', deps.random), deps.now()];
      let version: Version = {};
      await deps.store.collection('documents').update(id, (current) => {
        const versions = versionsOf(current);
        const { code, dependencies, secrets } = shown(keptView(resource, current));
        const version_number = versions.length + 1;
        version = {
          id: version_id,
          module_id: id,
          version_number,
          code,
          dependencies,
          secrets,
          created_at: at,
        };
        const state = { all_changes_published: true, latest_version_number: version_number };
        return { ...current, body: { ...current.body, ...state, versions: [...versions, version] } };
      });
      return created(version);
    },
  }),
];
