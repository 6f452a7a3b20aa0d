// What became of each run of the actions of a trigger, for a while: which ran, when, and how they failed. Never what they
// were told, asked for or printed.
import type { ActionExecutionRecord } from '../records/action-executions.ts';
import type { Frozen } from '../records/record.ts';
import type { Background } from '../runtime/background.ts';
import { type Clock, epochSeconds } from '../runtime/clock.ts';
import type { Random } from '../runtime/random.ts';
import { type Store, UniqueKeyError } from '../store/contract.ts';

export interface Executions {
  /** The id of an execution that is about to begin. */
  newId(): string;
  /** Begins one. */
  begin(trigger: string, id?: string): Execution;
}

export interface Execution {
  id: string;
  /**
   * An action, or a rule, begins. @param began when, where it is not now, epoch milliseconds.
   * @returns what is told how it ended: why it failed, if it did; and when, where it is not now.
   */
  runs(name: string, began?: number): (fault?: string, ended?: number) => void;
  /** No other one runs. @param isSuspended whether they go on when the user is back. */
  end(isSuspended: boolean): void;
}

interface ExecutionsDependencies {
  store: Pick<Store, 'collection' | 'batch'>;
  background: Background;
  clock: Clock;
  random: Random;
  /** How many days the log is kept. */
  retentionDays(): number;
}

/** Days that they are kept at most. */
const MOST_DAYS = 10;
const DAY_SECONDS = 86_400;
/** Writes that wait for the store: where it cannot follow, further ones are left out. */
const MOST_WAITING = 1000;
/** Actions of an execution: a user may be sent elsewhere again and again. */
const MOST_RESULTS = 100;
/** Ids that were given and have not begun: of further ones it is looked up whether they are there. */
const MOST_GIVEN = 1000;
/** Characters of a name and of an error. */
const LONGEST = { name: 255, error: 1000 };

/** The executions of a tenant. */
export function createExecutions(deps: ExecutionsDependencies): Executions {
  const { clock, random, retentionDays } = deps;
  const keep = keeper(deps);
  const now = (at = clock()) => new Date(at).toISOString();
  const given = new Set<string>();
  const newId = () => {
    const id = random(16).toString('hex');
    given.add(id);
    const [oldest = id] = given;
    if (given.size > MOST_GIVEN) given.delete(oldest);
    return id;
  };
  return {
    newId,
    begin: (trigger, id = newId()) => {
      const created_at = now();
      const isFirst = given.delete(id);
      const results: ActionExecutionRecord['results'] = [];
      return {
        id,
        runs: (name, began) => {
          const result: (typeof results)[number] = {
            action_name: name.slice(0, LONGEST.name),
            started_at: now(began),
          };
          results.push(result);
          return (fault, ended) => {
            result.ended_at = now(ended);
            if (fault !== undefined) result.error = { id: 'failed', msg: fault.slice(0, LONGEST.error) };
          };
        },
        end: (isSuspended) =>
          keep(isFirst, {
            id,
            trigger_id: trigger,
            status: isSuspended ? 'suspended' : 'final',
            results,
            created_at,
            updated_at: now(),
            expiresAt: epochSeconds(clock) + Math.min(MOST_DAYS, retentionDays()) * DAY_SECONDS,
          }),
      };
    },
  };
}

/** What keeps executions: those that begin in one turn of the event loop together. */
function keeper({ store, background }: Pick<ExecutionsDependencies, 'store' | 'background'>) {
  const what = 'a note of an execution';
  let waiting = 0;
  let first: ActionExecutionRecord[] = [];
  const keepFirst = async () => {
    const records = first;
    first = [];
    const writes = records.map((insert) => ({ collection: 'actionExecutions' as const, insert }));
    try {
      await store.batch(writes);
    } catch (error) {
      // Another process has gone on with one of them since its id was given.
      if (!(error instanceof UniqueKeyError)) throw error;
      await Promise.all(records.map(keepMore));
    } finally {
      waiting -= records.length;
    }
  };
  const keepMore = (record: ActionExecutionRecord) =>
    store.collection('actionExecutions').upsert(record.id, (before) => joined(before, record));
  return (isFirst: boolean, record: ActionExecutionRecord) => {
    if (waiting >= MOST_WAITING) return;
    waiting++;
    if (isFirst) {
      if (first.push(record) === 1) background.run(what, keepFirst);
      return;
    }
    background.run(what, async () => {
      await keepMore(record).finally(() => waiting--);
    });
  };
}

/** With what ran before the user was sent elsewhere, where they go on now. */
function joined(
  before: Frozen<ActionExecutionRecord> | undefined,
  now: ActionExecutionRecord,
): ActionExecutionRecord {
  if (before === undefined) return now;
  const results = [...structuredClone(before.results as ActionExecutionRecord['results']), ...now.results];
  return { ...now, results: results.slice(-MOST_RESULTS), created_at: before.created_at };
}
