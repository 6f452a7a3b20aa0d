// `/actions/actions/{id}/test` and `/actions/executions`: running a draft, and what became of runs in logins.
import { z } from 'zod';
import type { Tried, Trying } from '../../actions/try-action.ts';
import { ACTION_MODULE } from '../../records/action-modules.ts';
import { draftOf, triggerOf } from '../../records/actions.ts';
import { type Call, callsWith, ok } from '../call.ts';
import { apiError } from '../errors.ts';
import { documentOf, documentsOf, type KeptDependencies } from '../kept.ts';
import { notFound } from '../resource.ts';
import { ACTION } from './actions.ts';

export interface ActionRunDependencies extends KeptDependencies {
  /** Runs an action, and does nothing of what it asks for. */
  tryAction(trying: Trying): Promise<Tried>;
}

const call = callsWith<ActionRunDependencies>();

/** All calls of runs. */
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
    summary: 'Get what became of a run of the actions of a trigger',
    handle: async ({ store }, { params }) => {
      const found = await store.collection('actionExecutions').get(params.id ?? '');
      if (found === undefined) throw notFound('That execution does not exist.')();
      const { expiresAt: _, ...execution } = found;
      return ok(execution);
    },
  }),
];
