// What becomes of a call, whoever asks: a token at `/api/v2`, or an administrator at the console. It is authorized, validated
// and recorded here, so that no way in has to remember it.
import { z } from 'zod';
import { AuthError } from '../http/errors.ts';
import { QueryTimeout, type Store } from '../store/contract.ts';
import type { Events } from '../tenant/events.ts';
import type { Answer, Call, CallRequest } from './call.ts';
import { authorize } from './caller.ts';
import { searchTimeout, validated } from './errors.ts';
import { recordCall } from './events.ts';
import { watchStore } from './unchanged.ts';

export interface AnswerDependencies {
  events: Pick<Events, 'record'>;
  store: Store;
}

/** What a request brought, before it was looked at. */
interface Brought {
  query: unknown;
  /** With the text of a file that came in a form, which the log does not have. */
  body: unknown;
}

const NOTHING = z.strictObject({});

/** Whether the caller may make a call; a refusal is recorded. @throws AuthError 403 */
export function allow<D>({ events }: AnswerDependencies, call: Call<D>, about: CallRequest): void {
  try {
    authorize(call, about.caller, about.params);
  } catch (thrown) {
    recordFailure(events, call, about, thrown);
    throw thrown;
  }
}

/** The query of a call. @throws AuthError 400 for one that it does not take. */
export function queryFor<D>(call: Call<D>, query: unknown): unknown {
  return validated('query', call.query ?? NOTHING, query);
}

/**
 * Carries out a call that is allowed.
 * @param about as the log is to have it.
 * @throws AuthError 4xx
 */
export async function carryOut<D>(
  deps: D & AnswerDependencies,
  call: Call<D>,
  about: CallRequest,
  brought: Brought,
): Promise<Answer> {
  try {
    const query = queryFor(call, brought.query);
    const body = call.body === undefined ? undefined : validated('body', call.body, brought.body ?? {});
    const watched = watchStore(deps.store);
    const to = call.method === 'GET' ? deps : { ...deps, store: watched.store };
    const given = await call.handle(to, { ...about, query, body } as CallRequest<never, never>);
    const isRecorded = call.method === 'DELETE' || !(given.isUnchanged ?? watched.isUnchanged());
    if (isRecorded) recordCall(deps.events, call, about, { answer: given });
    return given;
  } catch (thrown) {
    const failure = thrown instanceof QueryTimeout ? searchTimeout() : thrown;
    recordFailure(deps.events, call, about, failure);
    throw failure;
  }
}

/** Records that a call failed before it could be carried out, such as for a form that could not be read. */
export function recordFailure<D>(
  events: Pick<Events, 'record'>,
  call: Call<D>,
  about: CallRequest,
  thrown: unknown,
): void {
  const isOurs = thrown instanceof AuthError;
  const { status, message } = isOurs ? thrown : { status: 500, message: 'An unexpected error occurred.' };
  recordCall(events, call, about, { status, message });
}
