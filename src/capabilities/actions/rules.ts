// Runs the rules of a tenant at a login, before its actions, one after the other: each is called with the `user` and
// `context` that the one before it left. As with actions, what they ask for is returned as data.

import type { Config } from '../../tenant/config.ts';
import { asFault, PackageFault } from '../scripts/packages/folder.ts';
import type { Packages } from '../scripts/packages/packages.ts';
import type { Scripts } from '../scripts/scripts.ts';
import type { Command } from './commands.ts';
import type { Execution } from './executions.ts';
import { type RuleUpdate, ruleAnswerSchema, ruleCommands, ruleState } from './rule-context.ts';
import { clientIdIn } from './run-action.ts';

/** The outcome of the rules. */
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
  /** The tenant's host name. */
  hostname: string;
}

/** Runs the enabled rules. @param event the event of `post-login`. */
export async function runRules(
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
