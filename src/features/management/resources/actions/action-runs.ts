// `/actions/actions/{id}/test` and `/actions/executions`: test runs of drafts, and the results of runs in logins.
import { z } from 'zod';
import type { ActionTest, ActionTestResult } from '../../../../capabilities/actions/try-action.ts';
import { ACTION_MODULE } from '../../../../records/tenant/action-modules.ts';
import { draftOf, triggerOf } from '../../../../records/tenant/actions.ts';
import { type Call, callsWith, ok } from '../../call.ts';
import { type DocumentDependencies, documentOf, documentsOf } from '../../document-resource.ts';
import { apiError } from '../../management-errors.ts';
import { notFound } from '../../resource.ts';
import { ACTION } from './actions-calls.ts';

export interface ActionRunDependencies extends DocumentDependencies {
  /** Runs an action without any of the effects that it asks for. */
  tryAction(trying: ActionTest): Promise<ActionTestResult>;
}

const call = callsWith<ActionRunDependencies>();

export const actionRunCalls: Call<ActionRunDependencies>[] = [
  call({
    method: 'POST',
    path: '/actions/actions/:id/test',
    scopes: ['create:actions'],
    summary: 'Run the draft of an action with an event',
    isBodySecret: true,
    body: z.strictObject({ payload: z.record(z.string(), z.unknown()) }),
    handle: async ({ store, tryAction }, { params, body }) => {
      const found = await documentOf(store, ACTION, params.id);
      const modules = await documentsOf(store, ACTION_MODULE);
      const [action, trigger] = [draftOf(found, modules), triggerOf(found)];
      if (action === undefined || trigger === undefined)
        throw apiError(400, 'Actions of that trigger do not run here.', 'invalid_body');
      const { fault, ...rest } = await tryAction({ action, trigger, event: body.payload });
      return ok({ payload: { ...rest, ...(fault !== undefined && { error: { msg: fault } }) } });
    },
  }),
  call({
    method: 'GET',
    path: '/actions/executions/:id',
    scopes: ['read:actions'],
    summary: 'Get the result of an execution of a trigger’s actions',
    handle: async ({ store }, { params }) => {
      const found = await store.collection('actionExecutions').get(params.id ?? '');
      if (found === undefined) throw notFound('That execution does not exist.')();
      const { expiresAt: _, ...execution } = found;
      return ok(execution);
    },
  }),
];
