// Runs the actions that are bound to a trigger in turn, with as few calls of the sandbox as possible.
import type { BoundAction } from '../../records/actions.ts';
import { type ActionAnswer, type ActionCall, type RunActionDependencies, runActions } from './run-action.ts';

/** When an action ran, epoch milliseconds. */
interface RunTimes {
  began: number;
  ended: number;
}

export interface RunInTurnOptions {
  /** Index of the first action to run. */
  from: number;
  /** How many actions one call of the sandbox may get. `mayRun` is asked only about the first of them. */
  batchSize: number;
  /** Reports whether an action may run now. */
  mayRun(action: BoundAction): boolean;
  /** Returns the call of an action, as of now. */
  callOf(action: BoundAction, index: number): ActionCall;
  /** Handles the answer of an action. @returns whether no further action runs now. */
  onAnswer(index: number, call: ActionCall, answer: ActionAnswer, time: RunTimes): Promise<boolean>;
}

/** Runs the actions. */
export async function runInTurn(
  deps: RunActionDependencies,
  bound: readonly BoundAction[],
  { from, batchSize, mayRun, callOf, onAnswer }: RunInTurnOptions,
): Promise<void> {
  let next = from;
  for (let action = bound[next]; action !== undefined && mayRun(action); action = bound[next]) {
    const calls = bound.slice(next, next + batchSize).map((one, offset) => callOf(one, next + offset));
    let began = deps.wallClock();
    for (const [offset, answer] of (await runActions(deps, calls)).entries()) {
      const call = calls[offset];
      const ended = began + Math.round(answer.run?.used.wallMs ?? 0);
      if (call === undefined || (await onAnswer(next++, call, answer, { began, ended }))) return;
      began = ended;
    }
  }
}
