// Runs the actions that are bound to a trigger, one after the other, in the sandbox of scripts. Actions change nothing
// themselves: what they ask for is returned as data, for the caller to check and apply.
import { AuthError } from '../http/errors.ts';
import { type BoundAction, NEEDED_TRIGGERS, type Trigger } from '../records/actions.ts';
import type { Rules } from '../records/rules.ts';
import type { Clock } from '../runtime/clock.ts';
import type { Packages } from '../scripts/packages/packages.ts';
import type { Scripts } from '../scripts/scripts.ts';
import type { Config } from '../tenant/config.ts';
import type { Events } from '../tenant/events.ts';
import { type ActionCache, createActionCache } from './cache.ts';
import { type ActionOutcome, type Command, METHODS, takeCommand } from './commands.ts';
import { type ActionEvent, eventNow, eventOfRules } from './event-now.ts';
import type { Execution, Executions } from './executions.ts';
import type { FactorsAsked } from './factors-asked.ts';
import { runInTurn, type Time } from './in-turn.ts';
import { type ActionRun, type Progress, runThrough } from './progress.ts';
import { runRules } from './rules.ts';
import type { ActionAnswer, Call, UserRole } from './run-action.ts';

/** The user and the client of a run, for the log. */
export interface ActionsAbout {
  client_id?: string | undefined;
  user_id?: string | undefined;
  user_name?: string | undefined;
  connection?: string | undefined;
  ip?: string | undefined;
  /** The id of the execution, where there is one. */
  execution?: string | undefined;
}

/** The longest time of a single action including its wait for a thread, milliseconds. */
export const LONGEST_OF_ONE = 30_000;

interface RunOptions {
  /** Where an earlier run was suspended; this one continues there. */
  progress?: Progress | undefined;
  /** Whether an action may redirect the user: there is a browser, and it may show pages. */
  canRedirect?: boolean;
  /** The actions to run in place of those that are bound to the trigger. */
  bound?: readonly BoundAction[];
  /** Values that must not appear in logs and messages, in addition to the actions' secrets. */
  hidden?: readonly string[];
  /** The id of the execution; without it, a new one. @see Executions.newId */
  execution?: string | undefined;
  /** No action begins after this time, epoch milliseconds: the remaining ones fail. */
  until?: number;
  /** What `api.roles` returns. */
  userRoles?: readonly UserRole[];
  /** Reports whether the user has already given one of the second factors that an action asks for. */
  isGiven?: (factors: FactorsAsked) => Promise<boolean>;
}

export interface Actions {
  /** Whether a trigger has any action or rule. Where it has none, the caller need not read anything for the event. */
  isBound(trigger: Trigger): boolean;
  /** Returns the id of an execution that will begin, for events of the same login that are recorded before it. */
  newExecution(): string;
  /**
   * Runs the actions of a trigger in order, at a login after the rules. Each sees the metadata that earlier ones have
   * set.
   * @returns what they asked for together. No action runs after one that denied access or redirected the user.
   * @throws AuthError 403 `access_denied` when one fails, or takes too long.
   */
  run(trigger: Trigger, event: ActionEvent, about: ActionsAbout, options?: RunOptions): Promise<ActionRun>;
  /** Records that an action asked for something that it may not have. */
  refused(trigger: Trigger, what: string, about: ActionsAbout): void;
  /** Records that actions were not run. @param why the reason, in words for the log. */
  dropped(trigger: Trigger, why: string, about: ActionsAbout): void;
}

interface ActionsDependencies {
  config: Pick<Config, 'actions' | 'rules' | 'settings'>;
  scripts: Pick<Scripts, 'run' | 'runAll'>;
  packages: Pick<Packages, 'filesOf' | 'filesFor'>;
  events: Pick<Events, 'record'>;
  executions: Executions;
  /** Returns epoch milliseconds. */
  wallClock: Clock;
  /** The tenant's host name. */
  hostname: string;
}

/** Makes the actions of a tenant. */
export function createActions(deps: ActionsDependencies): Actions {
  const { config, events, executions, wallClock } = deps;
  const cache = createActionCache(wallClock);
  const note = (description: string, { execution, ...about }: ActionsAbout) => {
    const known = Object.entries(about).filter(([, value]) => value !== undefined);
    events.record({
      type: 'actions_execution_failed',
      description,
      ...Object.fromEntries(known),
      ...executionDetails(execution),
    });
  };
  /**
   * Adds commands to the outcome.
   * @returns the outcome; or a fault, where a command with wrong arguments must not be ignored.
   */
  const take: TakeAll = (trigger, { commands, methods, of, about }, outcome) => {
    // A copy, so that a fault in the middle leaves nothing behind.
    const asked = commands.length === 0 ? outcome : structuredClone(outcome);
    for (const command of commands) {
      const taken = cache.take(trigger, command) || takeCommand(methods, asked, command);
      if (taken === 'failed') return { fault: `${command.method} was called with what it does not take` };
      if (!taken) note(`${of} was refused ${command.method}.`, about);
    }
    return { asked };
  };
  return {
    isBound: (trigger) => config.actions(trigger).length > 0 || rulesAt(config, trigger) !== undefined,
    newExecution: executions.newId,
    dropped: (trigger, why, about) => note(`The actions of ${trigger} were not run: ${why}.`, about),
    refused: (trigger, what, about) => note(`An action of ${trigger} was refused ${what}.`, about),
    run: (trigger, event, about, options = {}) =>
      runBound({ ...deps, cache, note, take }, { trigger, event, about, ...options }),
  };
}

/** Returns the rules that run at a trigger, if any. */
function rulesAt(config: Pick<Config, 'rules'>, trigger: Trigger): Rules | undefined {
  return trigger === 'post-login' && config.rules().enabled.length > 0 ? config.rules() : undefined;
}

/** How many actions one call of the sandbox gets: preparing those that do not run is wasted work. */
const MOST_AT_ONCE = 4;

interface RunDependencies extends ActionsDependencies {
  cache: ActionCache;
  note(description: string, about: ActionsAbout): void;
  take: TakeAll;
}

/** @see Actions.run */
async function runBound(
  deps: RunDependencies,
  { trigger, event, about: who, ...options }: RunOptions & RunSubject,
): Promise<ActionRun> {
  const { config, executions, cache, note, take, wallClock } = deps;
  const { progress: before, canRedirect = false, hidden = [], userRoles = [] } = options;
  const execution = executions.begin(trigger, options.execution);
  const about = { ...who, execution: execution.id };
  const bound = options.bound ?? config.actions(trigger);
  const rules = rulesAt(config, trigger);
  const run = runThrough(trigger, { bound, rules }, before);
  const fail = (what: string) => {
    note(what, about);
    execution.end(false);
    // The reason is for the log only.
    return new AuthError(403, 'access_denied', 'The request could not be completed.');
  };
  if (run.isForRules && rules !== undefined) {
    const told = eventOfRules(event, run.returnedToRules);
    const ran = await applyRules(deps, take, { event: told, about, outcome: run.outcome(), execution });
    if ('fault' in ran) throw fail(ran.fault);
    run.begin(ran.asked);
  }
  const callOf = (action: BoundAction, index: number): Call => {
    const { request, how } = run.step(index, canRedirect);
    const told = eventNow(event, run.outcome(), new Date(wallClock()).toISOString());
    const input = {
      event: request === undefined ? told : { ...told, request },
      how: { ...how, rules: rules?.enabled.map(({ id }) => id) ?? [], userRoles },
      kept: cache.of(trigger),
      hidden,
    };
    return { action, input };
  };
  /** Handles the answer of an action. @returns whether no further action runs now. */
  const taken = async (index: number, { action, input }: Call, answer: ActionAnswer, time: Time) => {
    const of = `The action ${action.name} (${trigger})`;
    const ran =
      'fault' in answer ? answer : take(trigger, { ...answer, ...input.how, of, about }, run.outcome());
    execution.runs(action.name, time.began)('fault' in ran ? ran.fault : undefined, time.ended);
    const isOptional = bound[index]?.isOptional === true && !NEEDED_TRIGGERS.has(trigger);
    if ('fault' in ran && !isOptional) throw fail(`${of} failed: ${ran.fault}`);
    if ('fault' in ran) note(`${of} failed: ${ran.fault}`, about);
    return run.done(index, await withoutGiven('fault' in ran ? run.outcome() : ran.asked, options.isGiven));
  };
  const mayRun = ({ name }: BoundAction): boolean => {
    if (options.until !== undefined && wallClock() > options.until)
      throw fail(`The action ${name} (${trigger}) was not run: those before it took too long`);
    return !isOver(run.outcome());
  };
  const atOnce = options.until === undefined ? MOST_AT_ONCE : 1;
  await runInTurn(deps, bound, { from: run.next, atOnce, mayRun, callOf, taken });
  const outcome = run.outcome();
  execution.end(outcome.login.redirect !== undefined || outcome.login.factors !== undefined);
  return { ...outcome, progress: run.progress(), again: run.again(), execution: execution.id };
}

/** Removes the request for a second factor that the user has given already. */
async function withoutGiven(asked: ActionOutcome, isGiven: RunOptions['isGiven']): Promise<ActionOutcome> {
  const { factors, ...login } = asked.login;
  return factors !== undefined && (await isGiven?.(factors)) === true ? { ...asked, login } : asked;
}

/** The subject of a run. */
interface RunSubject {
  trigger: Trigger;
  event: ActionEvent;
  about: ActionsAbout;
}

type TakeAll = (
  trigger: Trigger,
  given: { commands: readonly Command[]; methods: readonly string[]; of: string; about: ActionsAbout },
  outcome: ActionOutcome,
) => { asked: ActionOutcome } | { fault: string };

/** Reports whether no further action runs now. */
const isOver = ({ denied, login }: ActionOutcome) => denied !== undefined || login.redirect !== undefined;

/** Runs the rules of a tenant, and adds what they asked for to the outcome. */
async function applyRules(
  deps: ActionsDependencies,
  take: TakeAll,
  {
    event,
    about,
    outcome,
    execution,
  }: { event: ActionEvent; about: ActionsAbout; outcome: ActionOutcome; execution: Execution },
): Promise<ReturnType<TakeAll>> {
  const { commands, refused, fault } = await runRules(deps, event, execution);
  if (fault !== undefined) return { fault };
  const ran = take('post-login', { commands, methods: METHODS['post-login'], of: 'A rule', about }, outcome);
  if ('fault' in ran) return { fault: `A rule failed: ${ran.fault}` };
  if (refused !== undefined) ran.asked.denied = { error: 'unauthorized', reason: refused };
  return ran;
}

/** Returns the details of a log event that name an execution. */
export function executionDetails(id: string | undefined): {
  details?: { actions: { executions: string[] } };
} {
  return id === undefined ? {} : { details: { actions: { executions: [id] } } };
}
