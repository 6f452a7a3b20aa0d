// Records of runs of a trigger's actions, kept for some days: which ran, when, and why they failed. The event, the
// calls and the output of an action are never recorded.

import type { Frozen } from '../../records/base/record.ts';
import type { ActionExecutionRecord } from '../../records/state/action-executions.ts';
import type { Background } from '../../runtime/background.ts';
import { type Clock, epochSeconds } from '../../runtime/clock.ts';
import type { Random } from '../../runtime/secrets.ts';
import { type Store, UniqueKeyError } from '../../store/contract.ts';

export interface Executions {
  /** Returns the id of an execution that will begin. */
  newId(): string;
  start(trigger: string, id?: string): Execution;
}

export interface Execution {
  id: string;
  /**
   * Records that an action or rule begins.
   * @param startedAt when, epoch milliseconds; now without it.
   * @returns a function that records its end: why it failed, if it did, and when, epoch milliseconds; now without it.
   */
  startRun(name: string, startedAt?: number): (fault?: string, endedAt?: number) => void;
  /** @param isSuspended whether it continues when the user is back. */
  end(isSuspended: boolean): void;
}

interface ExecutionsDependencies {
  store: Pick<Store, 'collection' | 'batch'>;
  background: Background;
  clock: Clock;
  random: Random;
  retentionDays(): number;
}

/** How many days executions are kept at most. */
const MAX_DAYS = 10;
const DAY_SECONDS = 86_400;
/** How many writes wait for the store. Further executions are not recorded. */
const MAX_WAITING = 1000;
/** Results of an execution, which a user may continue again and again. */
const MAX_RESULTS = 100;
/** Ids of executions that have not begun. An older one is looked up in the store when it begins. */
const MAX_PENDING_IDS = 1000;
/** Characters of a name and of an error. */
const MAX_LENGTH = { name: 255, error: 1000 };

export function createExecutions(deps: ExecutionsDependencies): Executions {
  const { clock, random, retentionDays } = deps;
  const record = recorder(deps);
  const now = (at = clock()) => new Date(at).toISOString();
  const pendingIds = new Set<string>();
  const newId = () => {
    const id = random(16).toString('hex');
    pendingIds.add(id);
    const [oldest = id] = pendingIds;
    if (pendingIds.size > MAX_PENDING_IDS) pendingIds.delete(oldest);
    return id;
  };
  return {
    newId,
    start: (trigger, id = newId()) => {
      const created_at = now();
      const isFirst = pendingIds.delete(id);
      const results: ActionExecutionRecord['results'] = [];
      return {
        id,
        startRun: (name, startedAt) => {
          const result: (typeof results)[number] = {
            action_name: name.slice(0, MAX_LENGTH.name),
            started_at: now(startedAt),
          };
          results.push(result);
          return (fault, endedAt) => {
            result.ended_at = now(endedAt);
            if (fault !== undefined) result.error = { id: 'failed', msg: fault.slice(0, MAX_LENGTH.error) };
          };
        },
        end: (isSuspended) =>
          record(isFirst, {
            id,
            trigger_id: trigger,
            status: isSuspended ? 'suspended' : 'final',
            results,
            created_at,
            updated_at: now(),
            expiresAt: epochSeconds(clock) + Math.min(MAX_DAYS, retentionDays()) * DAY_SECONDS,
          }),
      };
    },
  };
}

/** Returns a function that records executions. New ones of one turn of the event loop share a write. */
function recorder({ store, background }: Pick<ExecutionsDependencies, 'store' | 'background'>) {
  const what = 'a note of an execution';
  let waiting = 0;
  let first: ActionExecutionRecord[] = [];
  const insertFirst = async () => {
    const records = first;
    first = [];
    const writes = records.map((insert) => ({ collection: 'actionExecutions' as const, insert }));
    try {
      await store.batch(writes);
    } catch (error) {
      // Another process has continued one of them since its id was made.
      if (!(error instanceof UniqueKeyError)) throw error;
      await Promise.all(records.map(mergeIntoStored));
    } finally {
      waiting -= records.length;
    }
  };
  const mergeIntoStored = (record: ActionExecutionRecord) =>
    store.collection('actionExecutions').upsert(record.id, (before) => merged(before, record));
  return (isFirst: boolean, record: ActionExecutionRecord) => {
    if (waiting >= MAX_WAITING) return;
    waiting++;
    if (isFirst) {
      if (first.push(record) === 1) background.run(what, insertFirst);
      return;
    }
    background.run(what, async () => {
      await mergeIntoStored(record).finally(() => waiting--);
    });
  };
}

/** Adds the results from before the redirect to those of a continued execution. */
function merged(
  before: Frozen<ActionExecutionRecord> | undefined,
  now: ActionExecutionRecord,
): ActionExecutionRecord {
  if (before === undefined) return now;
  const results = [...structuredClone(before.results as ActionExecutionRecord['results']), ...now.results];
  return { ...now, results: results.slice(-MAX_RESULTS), created_at: before.created_at };
}
