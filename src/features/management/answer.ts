// Authorizes, validates, carries out and records a call, whether it came with a token at `/api/v2` or from an
// administrator at the console. Both callers use these functions, so neither can forget a step.
import type { Logger } from 'pino';
import { z } from 'zod';
import { AuthError } from '../../http/errors.ts';
import { QueryTimeout, type Store } from '../../store/contract.ts';
import type { Events } from '../../tenant/events.ts';
import type { Answer, Call, CallRequest } from './call.ts';
import { authorize } from './caller.ts';
import { searchTimeout, validated } from './errors.ts';
import { recordCall } from './events.ts';
import { watchStore } from './unchanged.ts';

export interface AnswerDependencies {
  events: Pick<Events, 'record'>;
  store: Store;
  log: Logger;
}

/** The parts of a request that are not validated yet. */
interface ReceivedInput {
  query: unknown;
  /** Includes the text of an uploaded file, which the log leaves out. */
  body: unknown;
}

const EMPTY_QUERY = z.strictObject({});

/** Checks that the caller may make a call, and records a refusal. @throws AuthError 403 */
export function allow<D>({ events }: AnswerDependencies, call: Call<D>, request: CallRequest): void {
  try {
    authorize(call, request.caller, request.params);
  } catch (thrown) {
    recordFailure(events, call, request, thrown);
    throw thrown;
  }
}

/**
 * Returns the validated query of a call.
 * @throws AuthError 400 for a parameter that the call does not declare, or a bad value.
 */
export function queryFor<D>(call: Call<D>, query: unknown): unknown {
  return validated('query', call.query ?? EMPTY_QUERY, query);
}

/**
 * Validates query and body, runs the call's handler, and records the outcome. The caller must have passed `allow`.
 * @param request the request as the log shows it.
 * @param input query and body as received.
 * @throws AuthError 4xx; 503 when the store's query timed out
 */
export async function execute<D>(
  deps: D & AnswerDependencies,
  call: Call<D>,
  request: CallRequest,
  input: ReceivedInput,
): Promise<Answer> {
  try {
    const query = queryFor(call, input.query);
    const body = call.body === undefined ? undefined : validated('body', call.body, input.body ?? {});
    const watched = watchStore(deps.store);
    const handlerDeps = call.method === 'GET' ? deps : { ...deps, store: watched.store };
    const answer = await call.handle(handlerDeps, { ...request, query, body } as CallRequest<never, never>);
    const isRecorded = call.method === 'DELETE' || !(answer.isUnchanged ?? watched.isUnchanged());
    if (isRecorded) {
      recordCall(deps.events, call, request, { answer });
      for (const warning of answer.warnings ?? []) deps.log.warn({ path: call.path }, warning);
    }
    return answer;
  } catch (thrown) {
    const failure = thrown instanceof QueryTimeout ? searchTimeout() : thrown;
    recordFailure(deps.events, call, request, failure);
    throw failure;
  }
}

/** Records that a call failed before its handler ran, for example because of its query. */
export function recordFailure<D>(
  events: Pick<Events, 'record'>,
  call: Call<D>,
  request: CallRequest,
  thrown: unknown,
): void {
  const isOurs = thrown instanceof AuthError;
  const { status, message } = isOurs ? thrown : { status: 500, message: 'An unexpected error occurred.' };
  recordCall(events, call, request, { status, message });
}
