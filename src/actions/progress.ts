// Where the actions of a trigger go on: they may have to wait for the user between one and the next.
import { createHash } from 'node:crypto';
import { type BoundAction, continueEntry, TRIGGER_ENTRIES, type Trigger } from '../records/actions.ts';
import { type ActionOutcome, methodsOf, nothingAsked } from './commands.ts';

/** How far the actions of a login have come that waits for its user: JSON, kept with what waits. */
export interface Progress {
  /** Stands for the actions that were bound: where others are bound now, they begin anew. */
  of: string;
  /** The index of the one that goes on; -1 for the rules. */
  next: number;
  /** What was asked for until then. */
  outcome: ActionOutcome;
  /** What that one is told of the request that the user came back with; it then goes on where it sent the user away. */
  request?: Readonly<Record<string, unknown>>;
}

/** What became of a run. */
export interface ActionRun extends ActionOutcome {
  /**
   * Where they go on when the user has done what is asked for; undefined: they begin anew.
   */
  progress?: Progress | undefined;
  /**
   * Where they go on for another user whom they named: who is asked for something is that one, so that the action that asks
   * runs again; undefined: they begin anew.
   */
  again?: Progress | undefined;
  /** The id of the execution. */
  execution: string;
}

/** How an action is called. */
export interface Asking {
  entry: string;
  /** The methods of `api` that it has. */
  methods: readonly string[];
  canRedirect: boolean;
}

/** One run through the actions that are bound. */
interface Run {
  /** The index of the first that runs. */
  next: number;
  /** The rules run. */
  isForRules: boolean;
  /** What they are told of the request that the user came back with. */
  returnedToRules: Progress['request'];
  /** What was asked for until now. */
  outcome(): ActionOutcome;
  /** The rules have run. @param asked what was asked for with them. */
  begin(asked: ActionOutcome): void;
  /** How the one with that index is called. */
  step(index: number, canRedirect: boolean): { request: Progress['request']; how: Asking };
  /** The one with that index has run. @param asked what was asked for with it. @returns whether no other one runs now. */
  done(index: number, asked: ActionOutcome): boolean;
  /** @see ActionRun.progress */
  progress(): Progress | undefined;
  /** @see ActionRun.again */
  again(): Progress | undefined;
}

/** Stands for the rules among indexes. */
const RULES = -1;

/** @param before where an earlier run came to. */
export function runThrough(
  trigger: Trigger,
  { bound, rules }: { bound: readonly BoundAction[]; rules: object | undefined },
  before: Progress | undefined,
): Run {
  let known: string | undefined;
  // Most runs come to their end, and nobody asks.
  const of = () => {
    known ??= fingerprint(bound, rules);
    return known;
  };
  const from = before !== undefined && before.of === of() ? before : undefined;
  let outcome = from === undefined ? nothingAsked() : structuredClone(from.outcome);
  delete outcome.login.redirect;
  delete outcome.login.factors;
  let reached = from?.request === undefined ? from : undefined;
  let again: Omit<Progress, 'of'> | undefined;
  const at = (next: number): Progress => ({ of: of(), next, outcome: structuredClone(outcome) });
  const isAtRules = from?.next === RULES;
  return {
    next: Math.max(from?.next ?? 0, 0),
    isForRules: from === undefined || isAtRules,
    returnedToRules: isAtRules ? from.request : undefined,
    outcome: () => outcome,
    begin: (asked) => {
      outcome = asked;
      // They run as a whole when the user is back; and not once more when that was told.
      if (outcome.login.redirect !== undefined) reached = { of: of(), next: RULES, outcome: nothingAsked() };
      else reached = isAtRules && from.request !== undefined ? at(0) : undefined;
    },
    step: (index, canRedirect) => {
      const request = index === from?.next ? from.request : undefined;
      const isContinued = request !== undefined;
      return {
        request,
        how: {
          entry: isContinued ? continueEntry(trigger) : TRIGGER_ENTRIES[trigger],
          methods: methodsOf(trigger, isContinued),
          canRedirect,
        },
      };
    },
    done: (index, asked) => {
      again = { next: index, outcome };
      outcome = asked;
      if (outcome.login.redirect !== undefined) reached = at(index);
      else if (outcome.login.factors !== undefined) reached = at(index + 1);
      // What was told on the way back is used once.
      else if (index === from?.next && from.request !== undefined) reached = at(index + 1);
      const { redirect, factors } = outcome.login;
      return outcome.denied !== undefined || redirect !== undefined || factors !== undefined;
    },
    progress: () => {
      const { redirect, factors, primaryUser } = outcome.login;
      const isOver = redirect === undefined && factors === undefined;
      return isOver && primaryUser !== undefined ? at(bound.length) : reached;
    },
    again: () =>
      again === undefined || outcome.login.primaryUser === undefined
        ? undefined
        : structuredClone({ of: of(), ...again }),
  };
}

/** Stands for the rules and the actions that are bound, as they are now. */
function fingerprint(bound: readonly BoundAction[], rules: object | undefined): string {
  const hash = createHash('sha256').update(JSON.stringify(rules ?? {}));
  for (const { name, code, isOptional, modules } of bound) {
    const shared = modules.map((one) => [one.name, one.found?.code]);
    hash.update(JSON.stringify([name, code, isOptional, ...shared]));
  }
  return hash.digest('base64url');
}
