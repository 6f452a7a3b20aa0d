// Runs actions in the sandbox. What they ask for is returned as data.
import type { RunnableAction } from '../../records/tenant/actions.ts';
import type { Clock } from '../../runtime/clock.ts';
import { asFault, PackageFault } from '../scripts/packages/folder.ts';
import type { Packages } from '../scripts/packages/packages.ts';
import {
  type ScriptOutcome,
  type ScriptRun,
  type Scripts,
  textsIn,
  withoutSecrets,
} from '../scripts/scripts.ts';
import { packageRequirement } from './action-packages.ts';
import { CONTINUE_CONDITION, type Command, commandsSchema } from './commands.ts';
import type { CallOptions } from './progress.ts';

export interface RunActionDependencies {
  scripts: Pick<Scripts, 'runAll'>;
  packages: Pick<Packages, 'filesOf'>;
  /** Returns epoch milliseconds. */
  wallClock: Clock;
  hostname: string;
  /** Returns what is added to each event (facts.ts); absent for a test, whose event is given. */
  factsOf?(event: object): Promise<Record<string, unknown>>;
}

export interface UserRole {
  id: string;
  name: string;
  description?: string | undefined;
}

interface ActionInput {
  event: object;
  /** `rules`: the ids of the rules that ran before it. */
  options: CallOptions & { rules: string[]; userRoles?: readonly UserRole[] };
  /** The entries of its trigger's cache. */
  cacheEntries: object;
  /** Values that must not appear in logs and messages, in addition to the action's secrets. */
  hidden?: readonly string[];
}

export interface ActionCall {
  action: RunnableAction;
  input: ActionInput;
}

/** What an action asked for, or why it failed; and what it printed and used, if it ran. */
export type ActionAnswer = ({ commands: Command[] } | { fault: string }) & {
  run?: Pick<ScriptOutcome, 'printed' | 'used'>;
};

export async function runAction(
  deps: RunActionDependencies,
  action: RunnableAction,
  input: ActionInput,
): Promise<ActionAnswer> {
  const [answer] = await runActions(deps, [{ action, input }]);
  return answer ?? { fault: 'it was not run' };
}

// docs/understand/decisions/actions-scripts.md#actions-run-one-after-the-other-in-the-sandbox-without-returning-to-the-server
/**
 * Runs actions in the sandbox, one after the other. The next one runs only when what the one before it asked for
 * changes neither the event of the next one nor whether it runs.
 * @returns the answers of those that ran.
 */
export async function runActions(
  deps: RunActionDependencies,
  calls: readonly ActionCall[],
): Promise<ActionAnswer[]> {
  const runs: ScriptRun[] = [];
  for (const call of calls) {
    const run = await runOf(deps, call);
    if ('fault' in run && runs.length === 0) return [run];
    if ('fault' in run) break;
    runs.push(run);
  }
  const outcomes = await deps.scripts.runAll({ runs, passing: CONTINUE_CONDITION });
  return outcomes.map((outcome, index) => answerOf(outcome, calls[index]));
}

export function secretsOf(action: RunnableAction): string[] {
  const modules = action.modules.flatMap(({ found }) => found ?? []);
  return [action, ...modules].flatMap(({ secrets }) => Object.values(secrets));
}

const hiddenTextsOf = ({ action, input }: ActionCall): string[] =>
  secretsOf(action).concat(input.hidden ?? []);

async function runOf(
  { packages, wallClock, hostname, factsOf }: RunActionDependencies,
  call: ActionCall,
): Promise<ScriptRun | { fault: string }> {
  const { action, input } = call;
  const { event, options, cacheEntries } = input;
  const facts = (await factsOf?.(event)) ?? { tenant: { id: hostname.split('.')[0] } };
  if (action.isUndeployed === true) return { fault: 'it has no deployed version' };
  const missing = action.modules.find(({ found }) => found === undefined);
  if (missing !== undefined) return { fault: `the module ${missing.name} is not there any more` };
  const modules = action.modules.flatMap(({ found }) => found ?? []);
  const files = await packages.filesOf(packageRequirement(action)).catch(asFault);
  if (files instanceof PackageFault) return { fault: files.message };
  return {
    of: `action ${action.name}`,
    askedBy: clientIdIn(event),
    source: '',
    around: 'action',
    entry: options.entry,
    args: [
      { ...event, ...facts, secrets: action.secrets, configuration: {} },
      action.code,
      options.entry,
      options.methods.join(' '),
      {
        cacheEntries,
        now: Math.floor(wallClock() / 1000),
        issuer: hostname,
        canRedirect: options.canRedirect,
        rules: options.rules,
        userRoles: options.userRoles,
        modules,
      },
    ],
    files,
    hidden: hiddenTextsOf(call),
  };
}

/** Returns the application of an event, if it has one: no application takes all threads from the others. */
export function clientIdIn(event: object): string | undefined {
  const { client } = event as { client?: { client_id?: unknown } };
  return typeof client?.client_id === 'string' ? client.client_id : undefined;
}

/** Methods whose arguments are texts for the log, or for the user or client that is refused. */
const METHODS_WITH_TEXTS: ReadonlySet<string> = new Set([
  'access.deny',
  'access.rejectInvalidSubjectToken',
  'validation.error',
  'notification.drop',
  'notification.retry',
  'session.revoke',
  'refreshToken.revoke',
]);

/** @param call the action, whose secrets are removed from texts. */
function answerOf({ result, failure, ...run }: ScriptOutcome, call: ActionCall | undefined): ActionAnswer {
  if (failure !== undefined) return { fault: `${failure.kind}: ${failure.message}`, run };
  const parsed = commandsSchema.safeParse(result);
  if (!parsed.success) return { fault: 'what it recorded cannot be read', run };
  return {
    commands: parsed.data.map((command) =>
      METHODS_WITH_TEXTS.has(command.method) ? withHiddenSecrets(command, call) : command,
    ),
    run,
  };
}

function withHiddenSecrets(command: Command, call: ActionCall | undefined): Command {
  const hidden = call === undefined ? [] : textsIn(hiddenTextsOf(call));
  const args = command.args.map((arg) => (typeof arg === 'string' ? withoutSecrets(arg, hidden) : arg));
  return { ...command, args };
}
