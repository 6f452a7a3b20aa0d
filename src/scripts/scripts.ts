// Scripts of a tenant's configuration (profiles of connections, custom databases, actions): run in a sandbox that knows
// nothing of this process, within limits.

import type { Outbound } from '../http/outbound.ts';
import type { SpareThreads } from '../runtime/spare-threads.ts';
import { createLightScripts, scriptKey } from './light.ts';
import {
  SCRIPT_LIMITS,
  type ScriptFailure,
  type ScriptLimits,
  type ScriptLine,
  type ScriptUsage,
} from './limits.ts';
import { createScriptLog, type ScriptLog } from './log.ts';
import type { Job, ModuleFiles, Passing, ThreadData, Wrapper } from './messages.ts';
import { moduleLoader } from './module.ts';
import { createPool } from './pool.ts';
import { dataOf, isTooDeep } from './result.ts';
import { createShared, ELSEWHERE } from './shared.ts';
import type { JobOutcome } from './thread.ts';
import { MOST_THREADS } from './threads.ts';

export interface ScriptRun {
  /** Whose script it is, such as the name of a connection: for the log, and so that one does not take all threads. */
  of: string;
  /** The text of the script; empty where it is one of our own. */
  source: string;
  around?: Wrapper | undefined;
  /** The name of the function, such as `fetchUserProfile`; a script that gives one without a name has just that. */
  entry: string;
  /** What it is called with, before the callback: what JSON can say. */
  args: readonly unknown[];
  /** Further global names: what JSON can say. */
  globals?: Readonly<Record<string, unknown>>;
  /** Packages that it may require. */
  files?: ModuleFiles | undefined;
  /** Secrets that it is given: in what it prints and fails with they are not shown. */
  hidden?: readonly string[];
}

/** Scripts of which one runs after the other. */
interface ScriptRuns {
  runs: readonly ScriptRun[];
  /** The next one begins only when the result of the one before it is such a list. */
  passing: Passing;
}

/** What became of a run. */
export type ScriptOutcome = {
  used: ScriptUsage;
  /** What it printed. */
  printed: ScriptLine[];
} & ({ result: unknown; failure?: undefined } | { failure: ScriptFailure; result?: undefined });

export interface Scripts {
  /**
   * Runs a script. Its answer is what comes first: the callback (`callback(error, result)`), what is thrown, or the promise
   * that a function without a parameter for the callback returns. Never rejects for what a script does.
   */
  run(run: ScriptRun): Promise<ScriptOutcome>;
  /** Runs several, each as `run` does, without coming back between. @returns what became of them, as far as they ran. */
  runAll(runs: ScriptRuns): Promise<ScriptOutcome[]>;
  /** What scripts printed lately, where it is kept. */
  log: ScriptLog;
  close(): Promise<void>;
}

interface ScriptsDependencies {
  outbound: Outbound;
  /** Epoch milliseconds. */
  clock: () => number;
  /** Whether what they print is kept, for developers to see: it may hold tokens and people's data. */
  keepsLog: boolean;
  limits?: ScriptLimits;
  prepared?: ThreadData['prepared'];
  /** Threads at most. */
  threads?: number;
  /** How long a script waits for one, milliseconds. */
  waitMs?: number | undefined;
  /** Where its threads come from; its own unless said otherwise. */
  spareThreads?: SpareThreads | undefined;
}

const IDLE = 60_000;
const WAIT = 10_000;
const NOTHING_USED: ScriptUsage = { wallMs: 0, cpuMs: 0, memoryBytes: 0, outputBytes: 0, requests: 0 };

/** The sandbox of a tenant; no thread is started before the first run. */
export function createScripts({
  outbound,
  clock,
  keepsLog,
  limits = SCRIPT_LIMITS,
  prepared = [],
  threads = MOST_THREADS,
  waitMs = WAIT,
  spareThreads,
}: ScriptsDependencies): Scripts {
  const common = { outbound, limits, prepared, idleMs: IDLE, loadModule: moduleLoader(), spareThreads };
  const pool = createPool({ ...common, most: threads, waitMs });
  const light = createLightScripts();
  const asking = createShared({ ...common, mayAsk: true });
  const quick = createShared({ ...common, mayAsk: false });
  /** Where a script may run beside others, if it may. */
  const sharedBy = (script: string) =>
    light.has(script) ? asking : light.isQuick(script) ? quick : undefined;
  const log = createScriptLog(keepsLog);
  const outcomesOf = async ({ runs, passing }: ScriptRuns): Promise<ScriptOutcome[]> => {
    const tooLong = runs.findIndex(({ source }) => source.length > limits.sourceLength);
    if (tooLong === 0) return [failed('source', `it is longer than ${limits.sourceLength} characters`)];
    const asked = runs.slice(0, tooLong < 0 ? runs.length : tooLong);
    const [key, trip] = [runs[0]?.of ?? '', { jobs: asked.map(jobOf), passing }];
    const script = scriptKey(asked);
    const { outcomes, spentMs } =
      (await sharedBy(script)?.run(key, trip, () => light.refuse(script))) ?? ELSEWHERE;
    const left = { ...trip, jobs: trip.jobs.slice(outcomes.length), spentMs };
    const others = spentMs === undefined ? [] : await pool.run(key, left);
    if (others !== undefined) light.note(script, [...outcomes, ...others]);
    const read = [...outcomes, ...(others ?? [])].map(readOutcome);
    return others === undefined ? [...read, failed('busy', 'there was no thread to run it')] : read;
  };
  const runAll = async (asked: ScriptRuns): Promise<ScriptOutcome[]> => {
    let at = clock();
    const outcomes = await outcomesOf(asked);
    return outcomes.map((given, index) => {
      const { of = '', entry = '', hidden } = asked.runs[index] ?? {};
      const outcome = withHidden(given, hidden);
      const { failure, printed, used } = outcome;
      log.add({ at, of, entry, printed, used, failure });
      at += Math.round(used.wallMs);
      return outcome;
    });
  };
  return {
    log,
    close: async () => {
      await Promise.all([asking.close(), quick.close(), pool.close()]);
    },
    runAll,
    run: async (run) => {
      const [outcome] = await runAll({ runs: [run], passing: { methods: [], most: 0 } });
      return outcome ?? failed('crashed', 'it could not be run to its end');
    },
  };
}

const jobOf = ({ source, around, entry, args, globals = {}, files }: ScriptRun): Job => ({
  source,
  around,
  entry,
  args: JSON.stringify(args),
  globals: JSON.stringify(globals),
  files,
});

function readOutcome({ result, failure, ...rest }: JobOutcome): ScriptOutcome {
  if (failure !== undefined) return { ...rest, failure };
  const fault = (message: string) => ({
    ...rest,
    failure: { kind: 'script' as const, name: 'TypeError', message },
  });
  try {
    const data = result === undefined ? null : dataOf(result);
    return isTooDeep(data) ? fault('the result is nested too deep') : { ...rest, result: data };
  } catch {
    // A script can change what writes it.
    return fault('the result is no JSON');
  }
}

/** An outcome without secrets in what is told of it. */
function withHidden(outcome: ScriptOutcome, hidden: readonly string[] = []): ScriptOutcome {
  if (hidden.length === 0) return outcome;
  const shown = (text: string) => withoutSecrets(text, hidden);
  const printed = outcome.printed.map((line) => ({ ...line, text: shown(line.text) }));
  if (outcome.failure === undefined) return { ...outcome, printed };
  const { kind, name, code, message } = outcome.failure;
  const failure = {
    kind,
    ...(name !== undefined && { name: shown(name) }),
    ...(code !== undefined && { code: shown(code) }),
    message: shown(message),
  };
  return { ...outcome, printed, failure };
}

/** A text without secrets, however they are written in it. */
export function withoutSecrets(text: string, secrets: readonly string[]): string {
  const forms = secrets.filter((one) => one !== '').flatMap(formsOf);
  return forms.reduce((rest, one) => rest.replaceAll(one, '***'), text);
}

/** A secret as it is, and as JSON and addresses have it. */
const formsOf = (secret: string) => [
  secret,
  JSON.stringify(secret).slice(1, -1),
  encodeURIComponent(secret.toWellFormed()),
];

/** The texts of a configuration, however deep, that are to be read nowhere; shorter ones are no secrets, but words. */
export function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return value.length < SHORTEST_SECRET ? [] : [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsIn) : [];
}

/** Characters. */
const SHORTEST_SECRET = 4;

const failed = (kind: ScriptFailure['kind'], message: string): ScriptOutcome => ({
  failure: { kind, message },
  used: NOTHING_USED,
  printed: [],
});
