// Runs the actions that are bound to a trigger in turn, in as few trips to the sandbox as may be.
import type { BoundAction } from '../records/actions.ts';
import { type Answered, type AskDependencies, askActions, type Call } from './ask.ts';

/** When an action ran, epoch milliseconds. */
export interface Time {
  began: number;
  ended: number;
}

interface InTurn {
  /** The index of the first that runs. */
  from: number;
  /** How many may run without being asked whether they may. */
  atOnce: number;
  /** Whether one may run now. */
  mayRun(action: BoundAction): boolean;
  /** How one is called now. */
  callOf(action: BoundAction, index: number): Call;
  /** One has run. @returns whether no other one runs now. */
  taken(index: number, call: Call, answer: Answered, time: Time): Promise<boolean>;
}

/** Runs them. */
export async function askInTurn(
  deps: AskDependencies,
  bound: readonly BoundAction[],
  { from, atOnce, mayRun, callOf, taken }: InTurn,
): Promise<void> {
  let next = from;
  for (let action = bound[next]; action !== undefined && mayRun(action); action = bound[next]) {
    const calls = bound.slice(next, next + atOnce).map((one, n) => callOf(one, next + n));
    let began = deps.wallClock();
    for (const [n, answer] of (await askActions(deps, calls)).entries()) {
      const call = calls[n];
      const ended = began + Math.round(answer.ran?.used.wallMs ?? 0);
      if (call === undefined || (await taken(next++, call, answer, { began, ended }))) return;
      began = ended;
    }
  }
}
