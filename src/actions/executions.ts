// What became of each run of the actions of a trigger, for a while: which ran, when, and how they failed. Never what they
// were told, asked for or printed.
import type { ActionExecutionRecord } from '../records/action-executions.ts';
import type { Frozen } from '../records/record.ts';
import type { Background } from '../runtime/background.ts';
import { type Clock, epochSeconds } from '../runtime/clock.ts';
import type { Random } from '../runtime/random.ts';
import type { Store } from '../store/contract.ts';

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
  store: Pick<Store, 'collection'>;
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
/** Characters of a name and of an error. */
const LONGEST = { name: 255, error: 1000 };

/** The executions of a tenant. */
export function createExecutions(deps: ExecutionsDependencies): Executions {
  const { store, background, clock, random, retentionDays } = deps;
  let waiting = 0;
  const now = (at = clock()) => new Date(at).toISOString();
  const newId = () => random(16).toString('hex');
  const keep = (record: ActionExecutionRecord) => {
    if (waiting >= MOST_WAITING) return;
    waiting++;
    background.run('a note of an execution', async () => {
      await store
        .collection('actionExecutions')
        .upsert(record.id, (before) => joined(before, record))
        .finally(() => waiting--);
    });
  };
  return {
    newId,
    begin: (trigger, id = newId()) => {
      const created_at = now();
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
          keep({
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

/** With what ran before the user was sent elsewhere, where they go on now. */
function joined(
  before: Frozen<ActionExecutionRecord> | undefined,
  now: ActionExecutionRecord,
): ActionExecutionRecord {
  if (before === undefined) return now;
  const results = [...structuredClone(before.results as ActionExecutionRecord['results']), ...now.results];
  return { ...now, results: results.slice(-MOST_RESULTS), created_at: before.created_at };
}
