// The progress of a trigger's actions, which may have to wait for the user between one action and the next.
import { createHash } from 'node:crypto';
import {
  type BoundAction,
  continueEntry,
  TRIGGER_ENTRIES,
  type Trigger,
} from '../../records/tenant/actions.ts';
import { type ActionOutcome, emptyOutcome, methodsOf } from './commands.ts';

/** How far the actions of a login have come while it waits for its user: JSON, stored with the waiting request. */
export interface Progress {
  /** A fingerprint of the bound actions. If it has changed, the actions begin anew. */
  of: string;
  /** The index of the action that continues; -1 for the rules. */
  next: number;
  outcome: ActionOutcome;
  /** The request in which the user came back. The action that redirected the user then continues with it. */
  request?: Readonly<Record<string, unknown>>;
}

export interface ActionRun extends ActionOutcome {
  /** Where the actions continue after the user has done what was asked for. Without it, they begin anew. */
  progress?: Progress | undefined;
  /**
   * Where the actions continue for the primary user that they named. The action that asked something of the user runs
   * again, because the question is for the primary user. Without it, they begin anew.
   */
  progressForPrimaryUser?: Progress | undefined;
  /** The id of the execution. */
  execution: string;
}

export interface CallOptions {
  entry: string;
  /** The methods of `api` that it has. */
  methods: readonly string[];
  canRedirect: boolean;
}

interface Run {
  /** The index of the first action that runs. */
  next: number;
  runsRules: boolean;
  /** The request in which the user came back from a redirect of the rules. */
  ruleRequest: Progress['request'];
  outcome(): ActionOutcome;
  /** @param newOutcome what was asked for so far, including it. */
  rulesDone(newOutcome: ActionOutcome): void;
  callOf(index: number, canRedirect: boolean): { request: Progress['request']; options: CallOptions };
  /**
   * @param newOutcome what was asked for so far, including it.
   * @returns whether no further action runs now.
   */
  actionDone(index: number, newOutcome: ActionOutcome): boolean;
  /** @see ActionRun.progress */
  progress(): Progress | undefined;
  /** @see ActionRun.progressForPrimaryUser */
  progressForPrimaryUser(): Progress | undefined;
}

/** The index that stands for the rules. */
const RULES_INDEX = -1;

/** Begins a run, or continues one. @param earlier the progress of an earlier run. */
export function createRun(
  trigger: Trigger,
  { bound, rules }: { bound: readonly BoundAction[]; rules: object | undefined },
  earlier: Progress | undefined,
): Run {
  let knownFingerprint: string | undefined;
  // Computed only when needed: most runs are never suspended.
  const currentFingerprint = () => {
    knownFingerprint ??= fingerprint(bound, rules);
    return knownFingerprint;
  };
  const resumed = earlier !== undefined && earlier.of === currentFingerprint() ? earlier : undefined;
  let outcome = resumed === undefined ? emptyOutcome() : structuredClone(resumed.outcome);
  delete outcome.login.redirect;
  delete outcome.login.factors;
  let suspended = resumed?.request === undefined ? resumed : undefined;
  let lastAction: Omit<Progress, 'of'> | undefined;
  const progressAt = (next: number): Progress => ({
    of: currentFingerprint(),
    next,
    outcome: structuredClone(outcome),
  });
  const isAtRules = resumed?.next === RULES_INDEX;
  return {
    next: Math.max(resumed?.next ?? 0, 0),
    runsRules: resumed === undefined || isAtRules,
    ruleRequest: isAtRules ? resumed.request : undefined,
    outcome: () => outcome,
    rulesDone: (newOutcome) => {
      outcome = newOutcome;
      // When the user is back, all rules run again; after that they do not run once more.
      if (outcome.login.redirect !== undefined)
        suspended = { of: currentFingerprint(), next: RULES_INDEX, outcome: emptyOutcome() };
      else suspended = isAtRules && resumed.request !== undefined ? progressAt(0) : undefined;
    },
    callOf: (index, canRedirect) => {
      const request = index === resumed?.next ? resumed.request : undefined;
      return { request, options: callOptions(trigger, request !== undefined, canRedirect) };
    },
    actionDone: (index, newOutcome) => {
      lastAction = { next: index, outcome };
      outcome = newOutcome;
      if (outcome.login.redirect !== undefined) suspended = progressAt(index);
      else if (outcome.login.factors !== undefined) suspended = progressAt(index + 1);
      // The request in which the user came back is used once.
      else if (index === resumed?.next && resumed.request !== undefined) suspended = progressAt(index + 1);
      const { redirect, factors } = outcome.login;
      return outcome.denied !== undefined || redirect !== undefined || factors !== undefined;
    },
    progress: () => {
      const { redirect, factors, primaryUser } = outcome.login;
      const isOver = redirect === undefined && factors === undefined;
      return isOver && primaryUser !== undefined ? progressAt(bound.length) : suspended;
    },
    progressForPrimaryUser: () =>
      lastAction === undefined || outcome.login.primaryUser === undefined
        ? undefined
        : structuredClone({ of: currentFingerprint(), ...lastAction }),
  };
}

/** @param isContinued whether the action continues after its redirect. */
function callOptions(trigger: Trigger, isContinued: boolean, canRedirect: boolean): CallOptions {
  const entry = isContinued ? continueEntry(trigger) : TRIGGER_ENTRIES[trigger];
  return { entry, methods: methodsOf(trigger, isContinued), canRedirect };
}

function fingerprint(bound: readonly BoundAction[], rules: object | undefined): string {
  const hash = createHash('sha256').update(JSON.stringify(rules ?? {}));
  for (const { name, code, isOptional, modules } of bound) {
    const shared = modules.map((one) => [one.name, one.found?.code]);
    hash.update(JSON.stringify([name, code, isOptional, ...shared]));
  }
  return hash.digest('base64url');
}
