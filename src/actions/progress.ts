// The progress of a trigger's actions, which may have to wait for the user between one action and the next.
import { createHash } from 'node:crypto';
import { type BoundAction, continueEntry, TRIGGER_ENTRIES, type Trigger } from '../records/actions.ts';
import { type ActionOutcome, methodsOf, nothingAsked } from './commands.ts';

/** How far the actions of a login have come while it waits for its user: JSON, stored with the waiting request. */
export interface Progress {
  /** A fingerprint of the bound actions. If it has changed, the actions begin anew. */
  of: string;
  /** The index of the action that continues; -1 for the rules. */
  next: number;
  /** What was asked for so far. */
  outcome: ActionOutcome;
  /** The request in which the user came back. The action that redirected the user then continues with it. */
  request?: Readonly<Record<string, unknown>>;
}

/** The outcome of a run. */
export interface ActionRun extends ActionOutcome {
  /** Where the actions continue after the user has done what was asked for. Without it, they begin anew. */
  progress?: Progress | undefined;
  /**
   * Where the actions continue for the primary user that they named. The action that asked something of the user runs
   * again, because the question is for the primary user. Without it, they begin anew.
   */
  again?: Progress | undefined;
  /** The id of the execution. */
  execution: string;
}

/** How an action is called. */
export interface CallOptions {
  entry: string;
  /** The methods of `api` that it has. */
  methods: readonly string[];
  canRedirect: boolean;
}

/** A run through the bound actions. */
interface Run {
  /** The index of the first action that runs. */
  next: number;
  /** Whether the rules run. */
  isForRules: boolean;
  /** The request in which the user came back from a redirect of the rules. */
  returnedToRules: Progress['request'];
  /** Returns what was asked for so far. */
  outcome(): ActionOutcome;
  /** Records the outcome of the rules. @param asked what was asked for so far, including it. */
  begin(asked: ActionOutcome): void;
  /** Returns how the action with an index is called. */
  step(index: number, canRedirect: boolean): { request: Progress['request']; how: CallOptions };
  /**
   * Records the outcome of the action with an index.
   * @param asked what was asked for so far, including it.
   * @returns whether no further action runs now.
   */
  done(index: number, asked: ActionOutcome): boolean;
  /** @see ActionRun.progress */
  progress(): Progress | undefined;
  /** @see ActionRun.again */
  again(): Progress | undefined;
}

/** The index that stands for the rules. */
const RULES = -1;

/** Begins a run, or continues one. @param before the progress of an earlier run. */
export function runThrough(
  trigger: Trigger,
  { bound, rules }: { bound: readonly BoundAction[]; rules: object | undefined },
  before: Progress | undefined,
): Run {
  let known: string | undefined;
  // Computed only when needed: most runs are never suspended.
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
      // When the user is back, all rules run again; after that they do not run once more.
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
      // The request in which the user came back is used once.
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

/** Returns a hash of the rules and of the bound actions, as they are now. */
function fingerprint(bound: readonly BoundAction[], rules: object | undefined): string {
  const hash = createHash('sha256').update(JSON.stringify(rules ?? {}));
  for (const { name, code, isOptional, modules } of bound) {
    const shared = modules.map((one) => [one.name, one.found?.code]);
    hash.update(JSON.stringify([name, code, isOptional, ...shared]));
  }
  return hash.digest('base64url');
}
