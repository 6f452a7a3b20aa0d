// Authorizes, validates, carries out and records a call, whether it came with a token at `/api/v2` or from an
// administrator at the console. Both callers use these functions, so neither can forget a step.

import { isDeepStrictEqual } from 'node:util';
import type { Logger } from 'pino';
import { z } from 'zod';
import { AuthError } from '../../http/errors.ts';
import { type Collection, collectionByName, QueryTimeout, type Store } from '../../store/contract.ts';
import type { Events } from '../../tenant/events.ts';
import type { Answer, Call, CallRequest } from './call.ts';
import { recordCall } from './call.ts';
import { authorize } from './caller.ts';
import { searchTimeout, validated } from './errors.ts';

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

// Detects calls that change nothing, because the records have the requested values already. Such a call writes no
// record, not even a new `updated_at`, and is not logged. Deploy tools send their whole configuration at each run.
// docs/decisions/management-api.md#a-call-that-changes-nothing-leaves-no-trace

/** The store that a call is given, and whether the call changed anything. */
interface WatchedStore {
  store: Store;
  /** Whether the call tried to change records and each of them had the requested values already. */
  isUnchanged(): boolean;
}

interface Dated {
  id: string;
  updated_at?: unknown;
}

/** Wraps a store for one call. An update that would only change `updated_at` leaves the record unchanged. */
function watchStore(store: Store): WatchedStore {
  const counts = { unchanged: 0, changed: 0 };
  /** Returns the record to write: the current one if the new one is equal to it. */
  const recordToWrite = <T extends Dated>(current: T | undefined, next: T): T => {
    const isSame = current !== undefined && isDeepStrictEqual(withoutDate(current), withoutDate(next));
    counts[isSame ? 'unchanged' : 'changed'] += 1;
    return isSame ? current : next;
  };
  const countingChange = <A extends unknown[], R>(write: (...args: A) => R) => {
    return (...args: A): R => {
      counts.changed += 1;
      return write(...args);
    };
  };
  const watchedCollection = (collection: Collection<Dated>): Collection<Dated> => ({
    ...collection,
    update: (id, change) => collection.update(id, (current) => recordToWrite(current, change(current))),
    upsert: (id, change) => collection.upsert(id, (current) => recordToWrite(current, change(current))),
    put: async (record) => {
      const current = await collection.get(record.id);
      if (recordToWrite(current, record) === record) await collection.put(record);
    },
    insert: countingChange(collection.insert),
    take: countingChange(collection.take),
    delete: countingChange(collection.delete),
    deleteBy: countingChange(collection.deleteBy),
  });
  return {
    store: {
      ...store,
      // The cast restores the record type of the collection.
      collection: (name) => watchedCollection(collectionByName<Dated>(store, name)) as never,
      batch: countingChange(store.batch),
    },
    isUnchanged: () => counts.unchanged > 0 && counts.changed === 0,
  };
}

/** Returns a record as it would be stored, without `updated_at`. */
function withoutDate(record: Dated): object {
  const { updated_at: _, ...rest } = JSON.parse(JSON.stringify(record)) as Dated;
  return rest;
}
