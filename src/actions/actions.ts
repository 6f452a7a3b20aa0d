// Runs the actions that are bound to a trigger, one after the other, in the sandbox of scripts. They change nothing
// themselves: what they asked for is returned as data, for the caller to check and apply.
import { readFileSync } from 'node:fs';
import { AuthError } from '../http/errors.ts';
import { type BoundAction, TRIGGER_ENTRIES, type Trigger } from '../records/actions.ts';
import type { Clock } from '../runtime/clock.ts';
import type { Scripts } from '../scripts/scripts.ts';
import type { Config } from '../tenant/config.ts';
import type { Events } from '../tenant/events.ts';
import { createActionCache } from './cache.ts';
import {
  type ActionOutcome,
  type Command,
  commandsSchema,
  METHODS,
  nothingAsked,
  takeCommand,
} from './commands.ts';
import { runRules } from './rules.ts';

/** What actions are told; what is the same for all of a tenant is added here. */
export type ActionEvent = Readonly<Record<string, unknown>>;

/** Who is concerned, for the log. */
export interface ActionsAbout {
  client_id?: string | undefined;
  user_id?: string | undefined;
  ip?: string | undefined;
}

export interface Actions {
  /** Whether any action or rule would run; where none does, nothing has to be read for it. */
  isBound(trigger: Trigger): boolean;
  /**
   * Runs the actions of a trigger, each knowing what those before it set of the user; at a login after the rules.
   * @returns what they asked for together; nothing after one that denied.
   * @throws AuthError 403 `access_denied` when one fails, or takes too long.
   */
  run(trigger: Trigger, event: ActionEvent, about: ActionsAbout): Promise<ActionOutcome>;
  /** Records that an action asked for what it may not have. */
  refused(trigger: Trigger, what: string, about: ActionsAbout): void;
}

interface ActionsDependencies {
  config: Pick<Config, 'actions' | 'rules' | 'settings'>;
  scripts: Pick<Scripts, 'run'>;
  events: Pick<Events, 'record'>;
  /** Epoch milliseconds. */
  wallClock: Clock;
  /** The tenant's own host name. */
  hostname: string;
}

const AROUND = readFileSync(new URL('../../sandbox/action.js', import.meta.url), 'utf8');

/** The actions of a tenant. */
export function createActions(deps: ActionsDependencies): Actions {
  const { config, scripts, events, wallClock, hostname } = deps;
  const cache = createActionCache(wallClock);
  const note = (description: string, about: ActionsAbout) => {
    const known = Object.entries(about).filter(([, value]) => value !== undefined);
    events.record({ type: 'actions_execution_failed', description, ...Object.fromEntries(known) });
  };
  const ask = async (trigger: Trigger, action: BoundAction, event: ActionEvent) => {
    const { result, failure } = await scripts.run({
      of: `action ${action.name}`,
      source: AROUND,
      entry: TRIGGER_ENTRIES[trigger],
      args: [
        { ...event, secrets: action.secrets, configuration: {}, tenant: { id: hostname.split('.')[0] } },
        action.code,
        TRIGGER_ENTRIES[trigger],
        METHODS[trigger],
        cache.of(trigger),
      ],
      hidden: Object.values(action.secrets),
    });
    if (failure !== undefined) return { fault: `${failure.kind}: ${failure.message}` };
    const read = commandsSchema.safeParse(result);
    return read.success ? { commands: read.data } : { fault: 'what it recorded cannot be read' };
  };
  const hasRules = (trigger: Trigger) => trigger === 'post-login' && config.rules().enabled.length > 0;
  const take = (trigger: Trigger, outcome: ActionOutcome, command: Command) =>
    cache.take(trigger, command) || takeCommand(trigger, outcome, command);
  const applyRules = async (outcome: ActionOutcome, event: ActionEvent, about: ActionsAbout) => {
    const { commands, refused, fault } = await runRules(deps, event);
    if (fault !== undefined) {
      note(fault, about);
      throw failure();
    }
    if (refused !== undefined) outcome.denied = { error: 'unauthorized', reason: refused };
    for (const command of commands)
      if (!take('post-login', outcome, command)) note(`A rule was refused ${command.method}.`, about);
  };
  return {
    isBound: (trigger) => config.actions(trigger).length > 0 || hasRules(trigger),
    refused: (trigger, what, about) => note(`An action of ${trigger} was refused ${what}.`, about),
    run: async (trigger, event, about) => {
      const outcome = nothingAsked();
      if (hasRules(trigger)) await applyRules(outcome, event, about);
      if (outcome.denied !== undefined) return outcome;
      for (const action of config.actions(trigger)) {
        const { commands = [], fault } = await ask(trigger, action, withMetadata(event, outcome));
        if (fault !== undefined) {
          note(`The action ${action.name} (${trigger}) failed: ${fault}`, about);
          if (action.isOptional) continue;
          throw failure();
        }
        for (const command of commands) {
          if (take(trigger, outcome, command)) continue;
          note(`The action ${action.name} (${trigger}) was refused ${command.method}.`, about);
        }
        if (outcome.denied !== undefined) break;
      }
      return outcome;
    },
  };
}

/** What is told of an action or a rule that failed: why is for the log alone. */
const failure = () => new AuthError(403, 'access_denied', 'The request could not be completed.');

/** The event as the next action sees it. */
function withMetadata(event: ActionEvent, { userMetadata, appMetadata }: ActionOutcome): ActionEvent {
  const user = event.user as Record<string, object> | undefined;
  if (user === undefined) return event;
  return {
    ...event,
    user: {
      ...user,
      user_metadata: withMembers(user.user_metadata, userMetadata),
      app_metadata: withMembers(user.app_metadata, appMetadata),
    },
  };
}

/** Metadata with members set, and without those that were set to null. */
export function withMembers(
  before: object | undefined,
  set: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  const members = Object.entries({ ...before, ...set }).filter(
    ([name]) => set[name] !== null || !(name in set),
  );
  return Object.fromEntries(members);
}
