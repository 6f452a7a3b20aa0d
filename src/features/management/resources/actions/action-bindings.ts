// `/actions/triggers`: the triggers, and which actions run at each, in which order.
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import type { Frozen } from '../../../../records/base/record.ts';
import { bindingFault } from '../../../../records/tenant/actions.ts';
import type { DocumentRecord } from '../../../../records/tenant/documents.ts';
import { type Call, callsWith, ok } from '../../call.ts';
import { type DocumentDependencies, documentsOf, documentView } from '../../document-resource.ts';
import { pageQuery } from '../../list.ts';
import { apiError } from '../../management-errors.ts';
import { ACTION, actionView, namedItem, TRIGGERS, wrappedPage } from './actions-calls.ts';

const call = callsWith<DocumentDependencies>();

type Binding = Readonly<Record<string, unknown>>;

/** @throws AuthError 404 for an unknown trigger. */
function triggerOf(id: string | undefined): string {
  const trigger = TRIGGERS.find((one) => one === id);
  if (trigger === undefined) throw apiError(404, 'That trigger does not exist.');
  return trigger;
}

async function bindingViews(deps: DocumentDependencies, trigger: string): Promise<readonly Binding[]> {
  const [bindings, actions] = await Promise.all([
    bindingsOf(deps, trigger),
    documentsOf(deps.store, 'action'),
  ]);
  return bindings.map((one) => {
    const action = actions.find(({ id }) => id === (one.action as { id?: string } | undefined)?.id);
    return action === undefined ? one : { ...one, action: actionView(documentView(ACTION, action)) };
  });
}

async function bindingsOf({ store }: DocumentDependencies, trigger: string): Promise<readonly Binding[]> {
  const found = (await documentsOf(store, 'trigger')).find(({ name }) => name === trigger);
  return (found?.body.bindings as readonly Binding[] | undefined) ?? [];
}

/**
 * Returns a test for the action that a binding refers to.
 * @param before the current bindings, to which a `binding_id` refers.
 */
function matcherOf({ type, value }: { type: string; value: string }, before: readonly Binding[]) {
  const boundAction = before.find((one) => one.id === value)?.action as { id?: string } | undefined;
  const id = type === 'binding_id' ? boundAction?.id : value;
  return (one: Frozen<DocumentRecord>) => (type === 'action_name' ? one.body.name === value : one.id === id);
}

export const actionBindingCalls: Call<DocumentDependencies>[] = [
  call({
    method: 'GET',
    path: '/actions/triggers',
    scopes: ['read:actions'],
    summary: 'List triggers',
    handle: async () =>
      ok({
        triggers: TRIGGERS.map((id) => ({
          id,
          version: id === 'post-login' ? 'v3' : 'v2',
          status: 'CURRENT',
          runtimes: ['node22'],
          default_runtime: 'node22',
          binding_policy: 'trigger-bound',
        })),
      }),
  }),
  call({
    method: 'GET',
    path: '/actions/triggers/:triggerId/bindings',
    scopes: ['read:actions'],
    summary: 'Get the actions bound to a trigger',
    query: z.strictObject(pageQuery),
    handle: async (deps, { params, query }) =>
      ok(wrappedPage('bindings', await bindingViews(deps, triggerOf(params.triggerId)), query)),
  }),
  call({
    method: 'PATCH',
    path: '/actions/triggers/:triggerId/bindings',
    scopes: ['update:actions'],
    summary: 'Bind actions to a trigger',
    body: z.strictObject({
      bindings: z
        .array(
          z.strictObject({
            ref: z.strictObject({
              type: z.enum(['action_name', 'action_id', 'binding_id']),
              value: z.string().max(255),
            }),
            display_name: z.string().max(255).optional(),
            secrets: z.array(namedItem).max(0, 'must be empty: secrets are set with the action').optional(),
            /** An extension of the hosted API: with `continue`, a failure of the action does not end the login. */
            on_error: z.enum(['stop', 'continue']).optional(),
          }),
        )
        .max(100),
    }),
    handle: async (deps, { params, body }) => {
      const trigger = triggerOf(params.triggerId);
      const before = await bindingsOf(deps, trigger);
      const actions = await documentsOf(deps.store, 'action');
      const bindings = body.bindings.map(({ ref, display_name, on_error }, index) => {
        const action = actions.find(matcherOf(ref, before));
        if (action === undefined)
          throw apiError(400, `The action ${ref.value} does not exist.`, 'invalid_body');
        const fault = bindingFault(action, trigger);
        if (fault !== undefined)
          throw apiError(400, `The action ${String(action.body.name)} ${fault}.`, 'invalid_body');
        const binding = {
          id: `${trigger}-${index}`,
          trigger_id: trigger,
          display_name: display_name ?? String(action.body.name),
          action: actionView(documentView(ACTION, action)),
          ...(on_error === 'continue' && { on_error }),
        };
        const { created_at = deps.now(), updated_at = deps.now(), ...last } = before[index] ?? {};
        const isSame = isDeepStrictEqual(last, JSON.parse(JSON.stringify(binding)));
        return { ...binding, created_at, updated_at: isSame ? updated_at : deps.now() };
      });
      const record: Omit<DocumentRecord, 'created_at'> = {
        id: `trigger-${trigger}`,
        kind: 'trigger',
        name: trigger,
        body: { bindings },
        updated_at: deps.now(),
      };
      await deps.store.collection('documents').upsert(record.id, (current) => ({
        created_at: record.updated_at,
        ...current,
        ...record,
      }));
      return ok(wrappedPage('bindings', bindings, {}), { before, after: bindings });
    },
  }),
];
