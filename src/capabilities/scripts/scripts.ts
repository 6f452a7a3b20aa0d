// Runs the scripts of a tenant's configuration (profiles of connections, custom databases, actions) in a sandbox that
// has no access to this process, within limits.

import { hash } from 'node:crypto';
import type { Worker } from 'node:worker_threads';
import type { Outbound } from '../../http/outbound/outbound.ts';
import { keepLatest } from '../../runtime/latest.ts';
import { requester } from '../../runtime/requester.ts';
import type { SpareThreads } from '../../runtime/spare-threads.ts';
import {
  MAX_REUSED_BYTES,
  SCRIPT_LIMITS,
  type ScriptFailure,
  type ScriptLimits,
  type ScriptLine,
  type ScriptUsage,
} from './limits.ts';
import { moduleLoader } from './module.ts';
import { createPool } from './pool.ts';
import { createScriptLog, type ScriptLog } from './requests.ts';
import type {
  ContinueCondition,
  Job,
  JobSequence,
  ModuleFiles,
  ThreadData,
  Wrapper,
} from './scripts-messages.ts';
import type { SharedOutcome } from './shared-runs.ts';
import { type SharedThread, type SharedThreadOptions, startSharedThread } from './shared-thread.ts';
import type { JobOutcome } from './threads.ts';
import { MAX_THREADS } from './threads.ts';

export interface ScriptRun {
  /**
   * What the script belongs to, such as the name of a connection: for the log, and so that one does not take all
   * threads.
   */
  of: string;
  /**
   * The application whose request it is: applications get threads for scripts of one object in turn. Undefined where
   * there is none, or it is not known: then the network that asks counts.
   */
  askedBy: string | undefined;
  /** The source of the script; empty where `around` is all that runs. */
  source: string;
  around?: Wrapper | undefined;
  /**
   * The name of the function to call, such as `fetchUserProfile`. A script that is an expression without a name yields
   * that function.
   */
  entry: string;
  /** The arguments before the callback: values that JSON can hold. */
  args: readonly unknown[];
  /** Further global names: values that JSON can hold. */
  globals?: Readonly<Record<string, unknown>>;
  /** Packages that it may require. */
  files?: ModuleFiles | undefined;
  /** Secrets that the script is given. They are removed from what it prints and from the messages of its failures. */
  hidden?: readonly string[];
}

/** Scripts that run one after the other. */
interface ScriptRuns {
  runs: readonly ScriptRun[];
  /** The next script begins only when the result of the one before it is a list of these commands. */
  passing: ContinueCondition;
}

/** What became of a run. */
export type ScriptOutcome = {
  used: ScriptUsage;
  printed: ScriptLine[];
} & ({ result: unknown; failure?: undefined } | { failure: ScriptFailure; result?: undefined });

export interface Scripts {
  /**
   * Runs a script. Its answer is whichever comes first: the callback (`callback(error, result)`), a thrown error, or
   * the promise that a function without a parameter for the callback returns. Never rejects because of what a script
   * does.
   */
  run(run: ScriptRun): Promise<ScriptOutcome>;
  /** @returns the outcomes of those that ran. */
  runAll(runs: ScriptRuns): Promise<ScriptOutcome[]>;
  /** What scripts printed recently, where it is kept. */
  log: ScriptLog;
  /** Ends the threads, but does not wait long for one that nothing can interrupt. */
  close(): Promise<void>;
  /** Reports whether a thread was told to end and has not ended: the end of the process would wait for it. */
  isHeldUp(): boolean;
}

interface ScriptsDependencies {
  outbound: Outbound;
  /** Returns epoch milliseconds. */
  clock: () => number;
  /** Whether to keep what scripts print, for developers. It may contain tokens and personal data. */
  keepsLog: boolean;
  limits?: ScriptLimits;
  prepared?: ThreadData['prepared'];
  /** Most threads. */
  threads?: number;
  /** How long a script waits for a thread, milliseconds. */
  waitMs?: number | undefined;
  /** Where threads are taken from; without it, new ones are started. */
  spareThreads?: SpareThreads | undefined;
}

const IDLE_MS = 60_000;
const TIMEOUT_WAIT_MS = 10_000;
const NOTHING_USED: ScriptUsage = { wallMs: 0, cpuMs: 0, memoryBytes: 0, outputBytes: 0, requests: 0 };

/** Makes the scripts of a tenant. No thread is started before the first run. */
export function createScripts({
  outbound,
  clock,
  keepsLog,
  limits = SCRIPT_LIMITS,
  prepared = [],
  threads = MAX_THREADS,
  waitMs = TIMEOUT_WAIT_MS,
  spareThreads,
}: ScriptsDependencies): Scripts {
  const ending = new Set<Worker>();
  const loadModule = moduleLoader();
  const common = { outbound, limits, prepared, idleMs: IDLE_MS, loadModule, spareThreads, ending };
  const pool = createPool({ ...common, most: threads, waitMs });
  const ratings = createScriptRatings();
  const sharedRequesting = createShared({ ...common, mayAsk: true });
  const sharedQuick = createShared({ ...common, mayAsk: false });
  /** Returns the shared thread that a script may run in, if any. */
  const sharedThreadFor = (script: string) =>
    ratings.has(script) ? sharedRequesting : ratings.isQuick(script) ? sharedQuick : undefined;
  const log = createScriptLog(keepsLog);
  const outcomesOf = async ({ runs, passing }: ScriptRuns): Promise<ScriptOutcome[]> => {
    const tooLong = runs.findIndex(({ source }) => source.length > limits.sourceLength);
    if (tooLong === 0) return [failed('source', `it is longer than ${limits.sourceLength} characters`)];
    const accepted = runs.slice(0, tooLong < 0 ? runs.length : tooLong);
    const { of: key = '', askedBy = requester().origin.network } = runs[0] ?? {};
    const sequence = { jobs: accepted.map(jobOf), passing };
    const script = scriptKey(accepted);
    const { outcomes, spentMs } =
      (await sharedThreadFor(script)?.run(key, sequence, () => ratings.refuse(script))) ?? ELSEWHERE;
    const remaining = { ...sequence, jobs: sequence.jobs.slice(outcomes.length), spentMs };
    const otherOutcomes = spentMs === undefined ? [] : await pool.run({ key, askedBy }, remaining);
    if (otherOutcomes !== undefined) ratings.note(script, [...outcomes, ...otherOutcomes]);
    const results = [...outcomes, ...(otherOutcomes ?? [])].map(readOutcome);
    return otherOutcomes === undefined
      ? [...results, failed('busy', 'there was no thread to run it')]
      : results;
  };
  const runAll = async (scriptRuns: ScriptRuns): Promise<ScriptOutcome[]> => {
    let at = clock();
    const outcomes = await outcomesOf(scriptRuns);
    return outcomes.map((rawOutcome, index) => {
      const { of = '', entry = '', hidden } = scriptRuns.runs[index] ?? {};
      const outcome = withoutSecretsIn(rawOutcome, hidden);
      const { failure, printed, used } = outcome;
      log.add({ at, of, entry, printed, used, failure });
      at += Math.round(used.wallMs);
      return outcome;
    });
  };
  return {
    log,
    isHeldUp: () => ending.size > 0,
    close: async () => {
      await Promise.all([sharedRequesting.close(), sharedQuick.close(), pool.close()]);
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
    // A script can replace the function that writes its result.
    return fault('the result is no JSON');
  }
}

function withoutSecretsIn(outcome: ScriptOutcome, hidden: readonly string[] = []): ScriptOutcome {
  if (hidden.length === 0) return outcome;
  const masked = (text: string) => withoutSecrets(text, hidden);
  const printed = outcome.printed.map((line) => ({ ...line, text: masked(line.text) }));
  if (outcome.failure === undefined) return { ...outcome, printed };
  const { kind, name, code, message } = outcome.failure;
  const failure = {
    kind,
    ...(name !== undefined && { name: masked(name) }),
    ...(code !== undefined && { code: masked(code) }),
    message: masked(message),
  };
  return { ...outcome, printed, failure };
}

/** Replaces secrets in a text by `***`, in each of the {@link formsOf} a secret. */
export function withoutSecrets(text: string, secrets: readonly string[]): string {
  const forms = secrets.filter((one) => one !== '').flatMap(formsOf);
  // The longest first: a secret may contain another one, and the rest of it would be shown.
  const ordered = forms.sort((a, b) => b.length - a.length);
  return ordered.reduce((rest, one) => rest.replaceAll(one, '***'), text);
}

/** Returns the forms of a secret: plain, as in JSON, as in a URL, and as in a form (`URLSearchParams`). */
const formsOf = (secret: string) => [
  secret,
  JSON.stringify(secret).slice(1, -1),
  encodeURIComponent(secret.toWellFormed()),
  new URLSearchParams({ '': secret }).toString().slice(1),
];

/**
 * Returns the texts in a configuration value, at any depth, that must not be shown. Texts below {@link MIN_SECRET_LENGTH}
 * characters are left out: they are words, not secrets.
 */
export function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return value.length < MIN_SECRET_LENGTH ? [] : [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsIn) : [];
}

/** Characters. */
const MIN_SECRET_LENGTH = 4;

const failed = (kind: ScriptFailure['kind'], message: string): ScriptOutcome => ({
  failure: { kind, message },
  used: NOTHING_USED,
  printed: [],
});

// Checks on the result of a script before it is used as data.

/**
 * Parses JSON, without members named `__proto__`. Only a text with such a name, plain or escaped, is parsed with a
 * reviver, which is slow.
 */
const dataOf = (json: string): unknown =>
  /__proto__|\\u/i.test(json) ? JSON.parse(json, asData) : JSON.parse(json);

/** Leaves out the member that would become the prototype of a copy. */
const asData = (key: string, value: unknown) => (key === '__proto__' ? undefined : value);

/**
 * Deepest nesting of a result. Copying a value or writing it as JSON recurses for each level, and thousands would
 * exhaust the stack.
 */
const MAX_DEPTH = 100;

/**
 * Reports whether a result is nested deeper than {@link MAX_DEPTH}. It does not recurse, because the script chooses the
 * depth.
 */
function isTooDeep(data: unknown): boolean {
  let level = [data].filter(isNesting);
  for (let depth = 1; level.length > 0; depth++) {
    if (depth > MAX_DEPTH) return true;
    level = level.flatMap((one) => Object.values(one).filter(isNesting));
  }
  return false;
}

const isNesting = (value: unknown): value is object => typeof value === 'object' && value !== null;

// Runs several scripts in one thread, so that one runs while others wait for their requests: a thread for each costs
// more than most scripts. Only scripts that used little in threads of their own come here.
// docs/understand/decisions/actions-scripts.md#scripts-that-have-shown-that-they-need-little-share-a-thread

interface Shared {
  /**
   * Runs a job sequence beside others.
   * @param key what the scripts belong to. No key may take more than half of the places.
   * @param onRefused called when one of the scripts must not run in a shared thread again.
   * @returns the outcomes of the jobs that ended here. `spentMs` is set when the remaining jobs are to run in a thread
   * of their own: there was no place, one of them is not allowed here, or another run ended the thread. What they have
   * done so far had no effect outside.
   */
  run(key: string, sequence: JobSequence, onRefused: () => void): Promise<SharedOutcome>;
  close(): Promise<void>;
}

/** How many sequences wait for a place, and how long, milliseconds. */
const MAX_WAITING = 200;
const TIMEOUT_WAITING_MS = 250;

/** Nothing has run: all jobs are to run in a thread of their own. */
const ELSEWHERE: SharedOutcome = { outcomes: [], spentMs: 0 };

/** Makes a shared thread's queue. No thread is started before the first sequence, which runs elsewhere. */
function createShared(options: Omit<SharedThreadOptions, 'onFree' | 'onEnd'>): Shared {
  const waiting = new Set<{ key: string; take(thread: SharedThread | undefined): void }>();
  let isClosed = false;
  let thread: SharedThread | undefined;
  let starting: Promise<void> | undefined;

  const onFree = () => {
    // Most waiting sequences have the same key: once one of them finds no place, the others need not be tried.
    let full: string | undefined;
    for (const one of waiting) {
      if (one.key === full) continue;
      if (thread?.hasPlace(one.key)) one.take(thread);
      else full = one.key;
    }
  };
  const onEnd = () => {
    thread = undefined;
    for (const one of waiting) one.take(undefined);
  };
  const start = async () => {
    const started = await startSharedThread({ ...options, onFree, onEnd }).catch(() => undefined);
    if (isClosed) await started?.leave();
    else thread = started;
    starting = undefined;
  };
  return {
    run: async (key, sequence, onRefused) => {
      if (isClosed) return ELSEWHERE;
      if (thread === undefined) {
        starting ??= start();
        return ELSEWHERE;
      }
      if (thread.hasPlace(key)) return thread.run(key, sequence, onRefused);
      if (waiting.size >= MAX_WAITING) return ELSEWHERE;
      return new Promise((resolve) => {
        const one = {
          key,
          take: (found: SharedThread | undefined) => {
            clearTimeout(timer);
            waiting.delete(one);
            resolve(found?.run(key, sequence, onRefused) ?? ELSEWHERE);
          },
        };
        const timer = setTimeout(() => one.take(undefined), TIMEOUT_WAITING_MS);
        waiting.add(one);
      });
    },
    close: async () => {
      isClosed = true;
      await starting;
      await thread?.leave();
    },
  };
}

// Decides which scripts may share a thread: those that used little in threads of their own.

/** By the key of {@link scriptKey}. */
interface ScriptRatings {
  /** Whether the script uses little and makes requests. */
  has(script: string): boolean;
  /** Whether the script makes no requests and ends before another thread would have started. */
  isQuick(script: string): boolean;
  note(script: string, outcomes: readonly JobOutcome[]): void;
  /** Keeps a script out of shared threads for long: it kept others from running, or must not be run twice. */
  refuse(script: string): void;
}

/** How many such runs in a row a script needs before it may share a thread. */
const REQUIRED_RUNS = 3;
/** The count after a refusal: so many such runs more. */
const REFUSED_COUNT = -1_000;
/** Processor time that is too much, milliseconds. */
const MAX_LIGHT_CPU_MS = 50;
// docs/understand/decisions/actions-scripts.md#quick-scripts-share-another-thread
/**
 * Processor time of a quick run, milliseconds: less than a login itself needs, so that one thread has time for all.
 * Once a script is quick, the second limit applies.
 */
const [QUICK_CPU_MS, STILL_QUICK_CPU_MS] = [1, 4];
/** A run that took so long was waiting, not computing, milliseconds. */
const MAX_QUICK_WALL_MS = 100;
const MAX_SCRIPTS = 200;

/** How many runs in a row were of each kind; negative after a refusal. */
interface RunCounts {
  requesting: number;
  quick: number;
}

const countOf = (before: number, continues: boolean, more: number): number =>
  Math.min(continues ? before + more : Math.min(before, 0), REQUIRED_RUNS);

/** Returns the key of a sequence of scripts, of a fixed length. */
export function scriptKey(
  runs: readonly { readonly of: string; readonly entry: string; readonly source: string }[],
): string {
  const each = runs.map(({ of, entry, source }) => [
    of,
    entry,
    source && hash('sha256', source, 'base64url'),
  ]);
  return hash('sha256', JSON.stringify(each), 'base64url');
}

/** Makes the record of scripts, which is empty at first. */
export function createScriptRatings(): ScriptRatings {
  const known = new Map<string, RunCounts>();
  const countsOf = (script: string): RunCounts => known.get(script) ?? { requesting: 0, quick: 0 };
  const remember = (script: string, now: RunCounts) => keepLatest(known, MAX_SCRIPTS, script, now);
  const usesLittle = ({ failure, used }: JobOutcome) =>
    (failure === undefined || failure.kind === 'script') &&
    used.cpuMs < MAX_LIGHT_CPU_MS &&
    used.memoryBytes <= MAX_REUSED_BYTES;
  return {
    has: (script) => countsOf(script).requesting >= REQUIRED_RUNS,
    isQuick: (script) => countsOf(script).quick >= REQUIRED_RUNS,
    note: (script, outcomes) => {
      const before = countsOf(script);
      const [useLittle, makesRequests] = [
        outcomes.every(usesLittle),
        outcomes.some(({ used }) => used.requests > 0),
      ];
      const maxCpuMs = before.quick >= REQUIRED_RUNS ? STILL_QUICK_CPU_MS : QUICK_CPU_MS;
      const areShort = outcomes.every(({ used }) => used.cpuMs < maxCpuMs && used.wallMs < MAX_QUICK_WALL_MS);
      remember(script, {
        // A script that makes no requests leaves the thread no time for others.
        requesting: countOf(before.requesting, useLittle, makesRequests ? 1 : 0),
        quick: countOf(before.quick, useLittle && areShort && !makesRequests, 1),
      });
    },
    refuse: (script) => remember(script, { requesting: REFUSED_COUNT, quick: REFUSED_COUNT }),
  };
}
