// Runs the actions that are bound to a trigger in turn, with as few calls of the sandbox as possible.
import type { BoundAction } from '../records/actions.ts';
import { type ActionAnswer, type Call, type RunActionDependencies, runActions } from './run-action.ts';

/** When an action ran, epoch milliseconds. */
export interface Time {
  began: number;
  ended: number;
}

interface InTurn {
  /** Index of the first action to run. */
  from: number;
  /** How many actions one call of the sandbox may get. `mayRun` is asked only about the first of them. */
  atOnce: number;
  /** Reports whether an action may run now. */
  mayRun(action: BoundAction): boolean;
  /** Returns the call of an action, as of now. */
  callOf(action: BoundAction, index: number): Call;
  /** Handles the answer of an action. @returns whether no further action runs now. */
  taken(index: number, call: Call, answer: ActionAnswer, time: Time): Promise<boolean>;
}

/** Runs the actions. */
export async function runInTurn(
  deps: RunActionDependencies,
  bound: readonly BoundAction[],
  { from, atOnce, mayRun, callOf, taken }: InTurn,
): Promise<void> {
  let next = from;
  for (let action = bound[next]; action !== undefined && mayRun(action); action = bound[next]) {
    const calls = bound.slice(next, next + atOnce).map((one, n) => callOf(one, next + n));
    let began = deps.wallClock();
    for (const [n, answer] of (await runActions(deps, calls)).entries()) {
      const call = calls[n];
      const ended = began + Math.round(answer.ran?.used.wallMs ?? 0);
      if (call === undefined || (await taken(next++, call, answer, { began, ended }))) return;
      began = ended;
    }
  }
}
