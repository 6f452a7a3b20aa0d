// `/actions`: actions as they are edited and stored. Logins run the version that was deployed last.
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import type { ModuleReference } from '../../../../records/tenant/action-modules.ts';
import {
  asDraft,
  secretNames,
  TENANT_FILE_VERSION,
  withSecretValues,
} from '../../../../records/tenant/actions.ts';
import { usualMembers } from '../../../../records/tenant/documents.ts';
import { type Call, callsWith, ok } from '../../call.ts';
import { documentResourceCalls } from '../../document-calls.ts';
import {
  type DocumentDependencies,
  type DocumentResource,
  documentsOf,
  documentView,
} from '../../document-resource.ts';
import { pageQuery } from '../../list.ts';
import { flag } from '../../management-fields.ts';
import { conflict, merged, notFound } from '../../resource.ts';
import { resolvedReferences } from './module-references.ts';

// Removes an action that is being deleted from its triggers.

interface Binding {
  readonly action: { readonly id: string };
}

// docs/understand/decisions/actions-scripts.md#a-bound-action-can-be-deleted-only-with-forcetrue
/**
 * Removes an action from all triggers that it is bound to. Without `force`, this is refused, because the action may
 * be the one that denies access to somebody.
 * @throws AuthError 409 if the action is bound and `isForced` is false
 */
async function unbind({ store, now }: DocumentDependencies, id: string, isForced: boolean): Promise<void> {
  const others = (bindings: unknown) =>
    ((bindings ?? []) as readonly Binding[]).filter(({ action }) => action.id !== id);
  for (const trigger of await documentsOf(store, 'trigger')) {
    const { bindings = [] } = trigger.body as { bindings?: readonly Binding[] };
    if (others(bindings).length === bindings.length) continue;
    if (!isForced) throw conflict('The action is bound to a trigger: unbind it first, or say force=true.')();
    await store.collection('documents').update(trigger.id, (current) => ({
      ...current,
      body: { ...current.body, bindings: others(current.body.bindings) },
      updated_at: now(),
    }));
  }
}

/** The triggers that an action can have. Actions of some triggers are stored and never run. */
export const TRIGGERS = [
  'post-login',
  'credentials-exchange',
  'pre-user-registration',
  'post-user-registration',
  'post-change-password',
  'send-phone-message',
  'custom-phone-provider',
  'custom-email-provider',
  'password-reset-post-challenge',
  'custom-token-exchange',
  'event-stream',
  'password-hash-migration',
  'login-post-identifier',
  'signup-post-identifier',
] as const;

/** A secret or a package of an action. */
export const namedItem = z.looseObject({ name: z.string().max(255) });
const reference = z.looseObject({
  module_id: z.string().max(255).optional(),
  module_name: z.string().max(255).optional(),
  module_version_id: z.string().max(255).optional(),
  module_version_number: z.int().optional(),
});
const members = {
  name: z.string().min(1).max(255),
  code: z.string().max(100_000),
  dependencies: z.array(namedItem).max(100),
  secrets: z.array(namedItem).max(100),
  runtime: z.string().max(16),
  modules: z.array(reference).max(20),
};
const supported = z
  .array(z.looseObject({ id: z.enum(TRIGGERS), version: z.string().max(16).optional() }))
  .min(1)
  .max(1);

/**
 * Returns the body with changes applied. If the code, packages, secrets or modules change, the result is marked as
 * not published.
 * @param published the member that says whether all changes are published.
 * @param now ISO 8601.
 */
export function changedCode(
  before: Record<string, unknown>,
  changes: Record<string, unknown>,
  { published, now }: { published: string; now: string },
): Record<string, unknown> {
  const after = merged(before, changes);
  if (after.secrets !== undefined) after.secrets = withSecretValues(before.secrets, after.secrets, now);
  const isSame = ['code', 'dependencies', 'secrets', 'modules'].every((name) =>
    isDeepStrictEqual(before[name], after[name]),
  );
  return isSame ? after : { ...after, [published]: false };
}

export const ACTION: DocumentResource = {
  kind: 'action',
  path: '/actions/actions',
  name: 'action',
  noun: 'actions',
  newId: (random) => {
    const hex = random(16).toString('hex');
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
  },
  createBody: z.strictObject({
    ...z.strictObject(members).partial().shape,
    name: members.name,
    supported_triggers: supported,
    deploy: z.boolean().optional(),
  }),
  patchBody: z.strictObject({
    ...z.strictObject(members).partial().shape,
    supported_triggers: supported.optional(),
  }),
  defaults: usualMembers.action,
  generated: ({ now }, { secrets }) =>
    secrets === undefined ? {} : { secrets: withSecretValues([], secrets, now()) },
  change: (before, changes, now) =>
    changedCode(asDraft(before), changes, { published: 'all_changes_deployed', now }),
  uniqueMember: 'name',
  list: { key: 'actions', perPage: 20 },
  missing: notFound('That action does not exist.'),
  taken: 'An action with the same name already exists.',
  isRemovalStrict: true,
  beforeRemoval: unbind,
};

/** Returns an action as the API shows it: with the names of its secrets, without their values. */
export function actionView(view: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const { versions: _, deployed_secrets: _values, ...rest } = view;
  const names = secretNames(view.secrets, view.updated_at);
  return { ...rest, secrets: names, ...(view.deployed === true && deployedByFile(rest, names)) };
}

function deployedByFile(view: Readonly<Record<string, unknown>>, secrets: readonly object[]): object {
  const { id, name, code, dependencies, runtime, modules, supported_triggers, created_at, updated_at } = view;
  const content = {
    code,
    dependencies,
    runtime,
    supported_triggers,
    ...(modules !== undefined && { modules }),
  };
  const version = {
    action: { id, name },
    ...content,
    secrets,
    ...TENANT_FILE_VERSION,
    created_at,
    updated_at,
  };
  return { all_changes_deployed: true, deployed_version: version };
}

const call = callsWith<DocumentDependencies>();

const [, create, read, update, remove] = documentResourceCalls(ACTION).map((one) =>
  withSecretsHidden(withModules(one)),
);

/** Wraps a call so that references to modules are stored complete: with id, name and version. */
function withModules(one: Call<DocumentDependencies>): Call<DocumentDependencies> {
  return {
    ...one,
    handle: async (deps, request) => {
      const { modules } = (request.body ?? {}) as { modules?: ModuleReference[] };
      if (modules === undefined) return one.handle(deps, request);
      const body = { ...(request.body as object), modules: await resolvedReferences(deps.store, modules) };
      // The call's own schema validated the rest; the type of a call in a list does not say so.
      return one.handle(deps, { ...request, body: body as never });
    },
  };
}

/** The calls for actions, except deployment, which `action-versions.ts` adds. */
export const actionCalls: Call<DocumentDependencies>[] = [
  call({
    method: 'GET',
    path: '/actions/actions',
    scopes: ['read:actions'],
    summary: 'List actions',
    query: z.strictObject({
      ...pageQuery,
      triggerId: z.string().optional(),
      actionName: z.string().optional(),
      deployed: flag.optional(),
      installed: flag.optional(),
    }),
    handle: async (deps, { query }) => {
      const all = (await documentsOf(deps.store, 'action'))
        .map((one) => actionView(documentView(ACTION, one)))
        .filter((one) => query.actionName === undefined || one.name === query.actionName)
        .filter((one) => query.triggerId === undefined || isFor(one, query.triggerId))
        .filter(
          (one) => query.deployed === undefined || (one.deployed_version !== undefined) === query.deployed,
        )
        .filter(() => query.installed !== true);
      return ok(wrappedPage('actions', all, query));
    },
  }),
  ...[create, read, update, remove].filter((one) => one !== undefined),
];

function withSecretsHidden(one: Call<DocumentDependencies>): Call<DocumentDependencies> {
  return {
    ...one,
    handle: async (deps, request) => {
      const answer = await one.handle(deps, request);
      return answer.body === undefined
        ? answer
        : { ...answer, body: actionView(answer.body as Record<string, unknown>) };
    },
  };
}

function isFor(action: Readonly<Record<string, unknown>>, trigger: string): boolean {
  return (
    (action.supported_triggers as { id: string }[] | undefined)?.some(({ id }) => id === trigger) ?? false
  );
}

/**
 * Returns a page of a list in the form of the Actions API, which is always wrapped. A page past the end has the total 0,
 * as at the hosted service: the response has no `start`, so that clients in Go ask for pages until the total is 0.
 */
export function wrappedPage(
  key: string,
  all: readonly unknown[],
  { page = 0, per_page: perPage = 20 }: { page?: number | undefined; per_page?: number | undefined },
): object {
  const items = all.slice(page * perPage, (page + 1) * perPage);
  return {
    total: page > 0 && items.length === 0 ? 0 : all.length,
    page,
    per_page: perPage,
    [key]: items,
  };
}
