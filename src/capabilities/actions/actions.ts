// Runs the actions that are bound to a trigger, one after the other, in the sandbox of scripts. Actions change nothing
// themselves: what they ask for is returned as data, for the caller to check and apply.
import { AuthError } from '../../http/errors.ts';
import { type BoundAction, NEEDED_TRIGGERS, type Trigger } from '../../records/tenant/actions.ts';
import type { Rules } from '../../records/tenant/rules.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Config } from '../../tenant/config.ts';
import type { Events } from '../../tenant/events.ts';
import { asFault, PackageFault } from '../scripts/packages/folder.ts';
import type { Packages } from '../scripts/packages/packages.ts';
import type { Scripts } from '../scripts/scripts.ts';
import { actionEvents } from './actions-declaration.ts';
import { type ActionOutcome, applyCommand, type Command, TRIGGER_METHODS } from './commands.ts';
import { type ActionEvent, currentEvent, ruleEvent } from './current-event.ts';
import type { Execution, Executions } from './executions.ts';
import type { RequiredFactors } from './factor-methods.ts';
import { commonFacts } from './facts.ts';
import { type ActionRun, createRun, type Progress } from './progress.ts';
import { type RuleUpdate, ruleAnswerSchema, ruleCommands, ruleState } from './rule-context.ts';
import {
  type ActionAnswer,
  type ActionCall,
  clientIdIn,
  type RunActionDependencies,
  runActions,
  type UserRole,
} from './run-action.ts';

/** The user and the client of a run, for the log. */
export interface ActionLogFields {
  client_id?: string | undefined;
  user_id?: string | undefined;
  user_name?: string | undefined;
  connection?: string | undefined;
  ip?: string | undefined;
  /** The id of the execution, where there is one. */
  execution?: string | undefined;
}

/** The longest time of a single action including its wait for a thread, milliseconds. */
export const MAX_ACTION_MS = 30_000;

interface RunOptions {
  /** Where an earlier run was suspended; this one continues there. */
  progress?: Progress | undefined;
  /** Whether an action may redirect the user: there is a browser, and it may show pages. */
  canRedirect?: boolean;
  /** Whether no rules run before the actions. */
  withoutRules?: boolean;
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
  isVerified?: (factors: RequiredFactors) => Promise<boolean>;
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
  run(trigger: Trigger, event: ActionEvent, about: ActionLogFields, options?: RunOptions): Promise<ActionRun>;
  /** Records that an action asked for something that it may not have. */
  recordRefusal(trigger: Trigger, what: string, about: ActionLogFields): void;
  /** @param reason the reason, in words for the log. */
  recordDropped(trigger: Trigger, reason: string, about: ActionLogFields): void;
}

interface ActionsDependencies {
  config: Pick<Config, 'actions' | 'rules' | 'settings' | 'customDomains'>;
  scripts: Pick<Scripts, 'run' | 'runAll'>;
  packages: Pick<Packages, 'filesOf' | 'filesFor'>;
  events: Pick<Events, 'record'>;
  executions: Executions;
  /** Returns epoch milliseconds. */
  wallClock: Clock;
  hostname: string;
}

export function createActions(deps: ActionsDependencies): Actions {
  const { config, events, executions, wallClock, hostname } = deps;
  const factsOf = commonFacts(config, hostname);
  const cache = createActionCache(wallClock);
  const recordFailure = (description: string, { execution, ...about }: ActionLogFields) => {
    const setFields = Object.entries(about).filter(([, value]) => value !== undefined);
    events.record({
      type: actionEvents.actions_execution_failed,
      description,
      ...Object.fromEntries(setFields),
      ...executionDetails(execution),
    });
  };
  /**
   * Adds commands to the outcome.
   * @returns the outcome; or a fault, where a command with wrong arguments must not be ignored.
   */
  const applyCommands: ApplyCommands = (trigger, { commands, methods, of, about }, outcome) => {
    // A copy, so that a fault in the middle leaves nothing behind.
    const next = commands.length === 0 ? outcome : structuredClone(outcome);
    for (const command of commands) {
      const applied = cache.apply(trigger, command) || applyCommand(methods, next, command);
      if (applied === 'failed') return { fault: `${command.method} was called with what it does not take` };
      if (!applied) recordFailure(`${of} was refused ${command.method}.`, about);
    }
    return { outcome: next };
  };
  return {
    isBound: (trigger) => config.actions(trigger).length > 0 || rulesAt(config, trigger) !== undefined,
    newExecution: executions.newId,
    recordDropped: (trigger, reason, about) =>
      recordFailure(`The actions of ${trigger} were not run: ${reason}.`, about),
    recordRefusal: (trigger, what, about) =>
      recordFailure(`An action of ${trigger} was refused ${what}.`, about),
    run: (trigger, event, about, options = {}) =>
      runBound(
        { ...deps, factsOf, cache, recordFailure, applyCommands },
        { trigger, event, about, ...options },
      ),
  };
}

/** Returns the rules that run at a trigger, if any. */
function rulesAt(config: Pick<Config, 'rules'>, trigger: Trigger): Rules | undefined {
  return trigger === 'post-login' && config.rules().enabled.length > 0 ? config.rules() : undefined;
}

/** How many actions one call of the sandbox gets: preparing those that do not run is wasted work. */
const MAX_IN_BATCH = 4;

interface RunDependencies extends ActionsDependencies, Pick<RunActionDependencies, 'factsOf'> {
  cache: ActionCache;
  recordFailure(description: string, about: ActionLogFields): void;
  applyCommands: ApplyCommands;
}

/** @see Actions.run */
async function runBound(
  deps: RunDependencies,
  { trigger, event, about: subject, ...options }: RunOptions & RunSubject,
): Promise<ActionRun> {
  const { config, executions, cache, recordFailure, applyCommands, wallClock } = deps;
  const { progress: earlier, canRedirect = false, hidden = [], userRoles = [] } = options;
  const execution = executions.start(trigger, options.execution);
  const about = { ...subject, execution: execution.id };
  const bound = options.bound ?? config.actions(trigger);
  const rules = options.withoutRules === true ? undefined : rulesAt(config, trigger);
  const run = createRun(trigger, { bound, rules }, earlier);
  const failure = (what: string) => {
    recordFailure(what, about);
    execution.end(false);
    // The reason is for the log only.
    return new AuthError(403, 'access_denied', 'The request could not be completed.');
  };
  if (run.runsRules && rules !== undefined) {
    const seen = { event: ruleEvent(event, run.ruleRequest), about, outcome: run.outcome(), execution };
    const applied = await applyRules(deps, applyCommands, seen);
    if ('fault' in applied) throw failure(applied.fault);
    run.rulesDone(applied.outcome);
  }
  const ruleIds = rules?.enabled.map(({ id }) => id) ?? [];
  const callOf = (action: BoundAction, index: number): ActionCall => {
    const { request, options: callOptions } = run.callOf(index, canRedirect);
    const visible = currentEvent(event, run.outcome(), new Date(wallClock()).toISOString());
    const seen = request === undefined ? visible : { ...visible, request };
    const calledWith = { ...callOptions, rules: ruleIds, userRoles };
    const cacheEntries = cache.entries(trigger);
    return { action, input: { event: seen, options: calledWith, cacheEntries, hidden } };
  };
  const onAnswer: RunInTurnOptions['onAnswer'] = async (index, { action, input }, answer, time) => {
    const of = `The action ${action.name} (${trigger})`;
    const commands = { ...answer, ...input.options, of, about };
    const applied = 'fault' in commands ? commands : applyCommands(trigger, commands, run.outcome());
    execution.startRun(action.name, time.began)('fault' in applied ? applied.fault : undefined, time.ended);
    const isOptional = bound[index]?.isOptional === true && !NEEDED_TRIGGERS.has(trigger);
    if ('fault' in applied && !isOptional) throw failure(`${of} failed: ${applied.fault}`);
    if ('fault' in applied) recordFailure(`${of} failed: ${applied.fault}`, about);
    const outcome = 'fault' in applied ? run.outcome() : applied.outcome;
    return run.actionDone(index, await withoutVerified(outcome, options.isVerified));
  };
  const mayRun = ({ name }: BoundAction): boolean => {
    if (options.until !== undefined && wallClock() > options.until)
      throw failure(`The action ${name} (${trigger}) was not run: those before it took too long`);
    return !isOver(run.outcome());
  };
  const batchSize = options.until === undefined ? MAX_IN_BATCH : 1;
  await runInTurn(deps, bound, { from: run.next, batchSize, mayRun, callOf, onAnswer });
  const outcome = run.outcome();
  execution.end(outcome.login.redirect !== undefined || outcome.login.factors !== undefined);
  return {
    ...outcome,
    progress: run.progress(),
    progressForPrimaryUser: run.progressForPrimaryUser(),
    execution: execution.id,
  };
}

/** Removes the request for a second factor that the user has given already. */
async function withoutVerified(
  outcome: ActionOutcome,
  isVerified: RunOptions['isVerified'],
): Promise<ActionOutcome> {
  const { factors, ...login } = outcome.login;
  return factors !== undefined && (await isVerified?.(factors)) === true ? { ...outcome, login } : outcome;
}

interface RunSubject {
  trigger: Trigger;
  event: ActionEvent;
  about: ActionLogFields;
}

type ApplyCommands = (
  trigger: Trigger,
  given: { commands: readonly Command[]; methods: readonly string[]; of: string; about: ActionLogFields },
  outcome: ActionOutcome,
) => { outcome: ActionOutcome } | { fault: string };

/** Reports whether no further action runs now. */
const isOver = ({ denied, login }: ActionOutcome) => denied !== undefined || login.redirect !== undefined;

async function applyRules(
  deps: ActionsDependencies,
  applyCommands: ApplyCommands,
  {
    event,
    about,
    outcome,
    execution,
  }: { event: ActionEvent; about: ActionLogFields; outcome: ActionOutcome; execution: Execution },
): Promise<ReturnType<ApplyCommands>> {
  const { commands, refused, fault } = await runRules(deps, event, execution);
  if (fault !== undefined) return { fault };
  const applied = applyCommands(
    'post-login',
    { commands, methods: TRIGGER_METHODS['post-login'], of: 'A rule', about },
    outcome,
  );
  if ('fault' in applied) return { fault: `A rule failed: ${applied.fault}` };
  if (refused !== undefined) applied.outcome.denied = { error: 'unauthorized', reason: refused };
  return applied;
}

export function executionDetails(id: string | undefined): {
  details?: { actions: { executions: string[] } };
} {
  return id === undefined ? {} : { details: { actions: { executions: [id] } } };
}

// Runs the actions that are bound to a trigger in turn, with as few calls of the sandbox as possible.

/** When an action ran, epoch milliseconds. */
interface RunTimes {
  began: number;
  ended: number;
}

interface RunInTurnOptions {
  /** Index of the first action to run. */
  from: number;
  /** How many actions one call of the sandbox may get. `mayRun` is asked only about the first of them. */
  batchSize: number;
  mayRun(action: BoundAction): boolean;
  callOf(action: BoundAction, index: number): ActionCall;
  /** @returns whether no further action runs now. */
  onAnswer(index: number, call: ActionCall, answer: ActionAnswer, time: RunTimes): Promise<boolean>;
}

async function runInTurn(
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

// `api.cache`: texts that actions of one trigger keep for later runs, in this process, for a day at most.

interface Entry {
  value: string;
  /** Epoch milliseconds. */
  expires_at: number;
}

interface ActionCache {
  entries(trigger: string): Record<string, Entry>;
  /** Applies `cache.set` and `cache.delete`. @returns false for another command. */
  apply(trigger: string, command: Command): boolean;
}

/** Limits of a trigger's cache: entries, characters of a key and of a value, age in milliseconds. */
const LIMITS = { entries: 20, key: 64, value: 4096, age: 24 * 3600 * 1000 };

/** @param clock returns epoch milliseconds. */
function createActionCache(clock: Clock): ActionCache {
  const triggers = new Map<string, Map<string, Entry>>();
  const entriesOf = (trigger: string) => {
    const entries = triggers.get(trigger) ?? new Map<string, Entry>();
    triggers.set(trigger, entries);
    for (const [key, { expires_at }] of entries) if (expires_at <= clock()) entries.delete(key);
    return entries;
  };
  return {
    entries: (trigger) => Object.fromEntries(entriesOf(trigger)),
    apply: (trigger, { method, args }) => {
      const [key, value, until] = args;
      if (!method.startsWith('cache.') || typeof key !== 'string') return false;
      const entries = entriesOf(trigger);
      entries.delete(key);
      if (method === 'cache.delete') return true;
      if (typeof value !== 'string' || typeof until !== 'number') return false;
      if (key.length > LIMITS.key || value.length > LIMITS.value) return true;
      const [oldest] = entries.keys();
      if (entries.size >= LIMITS.entries && oldest !== undefined) entries.delete(oldest);
      entries.set(key, { value, expires_at: Math.min(until, clock() + LIMITS.age) });
      return true;
    },
  };
}

// Runs the rules of a tenant at a login, before its actions, one after the other: each is called with the `user` and
// `context` that the one before it left. As with actions, what they ask for is returned as data.
// docs/understand/decisions/actions-scripts.md#each-rule-is-a-run-of-its-own

interface RulesOutcome {
  /** What they asked for together; nothing where one refused or failed. */
  commands: Command[];
  /** The message of a rule that refused the login. */
  refused?: string;
  /** Which rule failed, and why. */
  fault?: string;
}

interface RulesDependencies {
  config: Pick<Config, 'rules'>;
  scripts: Pick<Scripts, 'run'>;
  packages: Pick<Packages, 'filesFor'>;
  hostname: string;
}

/** @param event the event of `post-login`. */
async function runRules(
  { config, scripts, packages, hostname }: RulesDependencies,
  event: Readonly<Record<string, unknown>>,
  execution: Pick<Execution, 'startRun'>,
): Promise<RulesOutcome> {
  const { enabled, configuration } = config.rules();
  const updates: RuleUpdate[] = [];
  let state = ruleState(event, hostname.split('.')[0] ?? hostname);
  for (const { name, script } of enabled) {
    const recordEnd = execution.startRun(name);
    const files = await packages.filesFor(script).catch(asFault);
    if (files instanceof PackageFault) {
      recordEnd(files.message);
      return failed(name, files.message);
    }
    const { result, failure } = await scripts.run({
      of: `rule ${name}`,
      askedBy: clientIdIn(event),
      source: '',
      around: 'rule',
      entry: 'rule',
      args: [state.user, state.context, hostname, script],
      globals: { configuration },
      files,
      hidden: Object.values(configuration),
    });
    recordEnd(failure && `${failure.kind}: ${failure.message}`);
    // The rule refuses the login; the client is told the message.
    if (failure?.kind === 'script' && failure.name === 'UnauthorizedError')
      return { commands: [], refused: failure.message };
    if (failure !== undefined) return failed(name, `${failure.kind}: ${failure.message}`);
    const parsed = ruleAnswerSchema.safeParse(result);
    if (!parsed.success) return failed(name, 'what it left cannot be read');
    state = parsed.data;
    updates.push(...parsed.data.updates);
  }
  return { commands: ruleCommands(state, updates, event) };
}

const failed = (name: string, why: string): RulesOutcome => ({
  commands: [],
  fault: `The rule ${name} failed: ${why}`,
});
