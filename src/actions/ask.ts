// Runs one action in the sandbox. What it asked for is returned as data.
import { readFileSync } from 'node:fs';
import type { BoundAction } from '../records/actions.ts';
import type { Clock } from '../runtime/clock.ts';
import { PackageFault } from '../scripts/packages/folder.ts';
import type { Packages } from '../scripts/packages/packages.ts';
import type { ScriptOutcome, Scripts } from '../scripts/scripts.ts';
import { requiringOf } from './action-packages.ts';
import { type Command, commandsSchema } from './commands.ts';
import type { Asking } from './progress.ts';

export interface AskDependencies {
  scripts: Pick<Scripts, 'run'>;
  packages: Pick<Packages, 'filesOf'>;
  /** Epoch milliseconds. */
  wallClock: Clock;
  /** The tenant's own host name. */
  hostname: string;
}

/** What one is called with. */
interface Asked {
  event: object;
  /** `rules`: the ids of those that ran before it. */
  how: Asking & { rules: string[] };
  /** What is in the cache of its trigger. */
  kept: object;
  /** What is to be read nowhere, beside its secrets. */
  hidden?: readonly string[];
}

/** What it asked for, or why it failed; and what it printed and used, if it ran. */
export type Answered = ({ commands: Command[] } | { fault: string }) & {
  ran?: Pick<ScriptOutcome, 'printed' | 'used'>;
};

const AROUND = readFileSync(new URL('../../sandbox/action.js', import.meta.url), 'utf8');

/** Has the sandbox run an action. */
export async function askAction(
  { scripts, packages, wallClock, hostname }: AskDependencies,
  action: Omit<BoundAction, 'isOptional'>,
  { event, how, kept, hidden = [] }: Asked,
): Promise<Answered> {
  const missing = action.modules.find(({ found }) => found === undefined);
  if (missing !== undefined) return { fault: `the module ${missing.name} is not there any more` };
  const modules = action.modules.flatMap(({ found }) => found ?? []);
  const files = await packages.filesOf(requiringOf(action)).catch(asFault);
  if (files instanceof PackageFault) return { fault: files.message };
  const { result, failure, ...ran } = await scripts.run({
    of: `action ${action.name}`,
    source: AROUND,
    entry: how.entry,
    args: [
      { ...event, secrets: action.secrets, configuration: {}, tenant: { id: hostname.split('.')[0] } },
      action.code,
      how.entry,
      how.methods,
      kept,
      {
        now: Math.floor(wallClock() / 1000),
        issuer: hostname,
        canRedirect: how.canRedirect,
        rules: how.rules,
        modules,
      },
    ],
    files,
    hidden: [action, ...modules].flatMap(({ secrets }) => Object.values(secrets)).concat(hidden),
  });
  if (failure !== undefined) return { fault: `${failure.kind}: ${failure.message}`, ran };
  const read = commandsSchema.safeParse(result);
  return read.success ? { commands: read.data, ran } : { fault: 'what it recorded cannot be read', ran };
}

/** @throws what is no fault of a package. */
function asFault(thrown: unknown): PackageFault {
  if (thrown instanceof PackageFault) return thrown;
  throw thrown;
}
