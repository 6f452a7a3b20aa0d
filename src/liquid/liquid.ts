// The tenant's own templates run in a thread, which is ended when one takes too long: the limits of a template language
// hold between two parts of a template, and not within a filter.
import { hash } from 'node:crypto';
import { Worker } from 'node:worker_threads';
import { threadEnvironment } from '../runtime/compile-cache.js';
import { keepLatest } from '../runtime/latest.ts';
import { HAS_THREAD_CPU_USAGE, threadTime } from '../runtime/thread-time.ts';
import type { LiquidJob } from './templates.ts';
import type { LiquidAnswer } from './worker.ts';

export interface TenantLiquid {
  /**
   * Renders a template of the tenant.
   * @throws TemplateFault when it is malformed or exceeds a limit, or when others take too long.
   */
  render(job: LiquidJob): Promise<string>;
  close(): Promise<void>;
}

/** A template that failed. */
interface FailedTemplate {
  /** Names it for those who read the log. */
  name: string;
  source: string;
  fault: string;
}

/** Renders templates in place of which ours are used when they fail. */
export interface ReportingLiquid extends TenantLiquid {
  /** Reports a template that failed and was replaced by ours, each once. */
  report(failed: FailedTemplate): void;
}

/** Adds reports of failed templates, each of which is recorded once. */
export function reportingLiquid(
  liquid: TenantLiquid,
  record: (failed: Omit<FailedTemplate, 'source'>) => void,
): ReportingLiquid {
  const reported = new Map<string, true>();
  return {
    ...liquid,
    report: ({ name, source, fault }) => {
      const key = JSON.stringify([name, hash('sha256', source, 'base64url'), fault]);
      if (!reported.has(key)) record({ name, fault });
      keepLatest(reported, MAX_REMEMBERED, key, true);
    },
  };
}

/** Why a template gave no text, in one sentence for whoever wrote it. */
export class TemplateFault extends Error {}

/** Processor time of one template, and its elapsed time, milliseconds. */
const MAX_CPU_MS = 500;
const MAX_ELAPSED_MS = 3_000;
/** How often a template is checked for that, milliseconds. */
const CHECK_MS = 50;
/** How long a template waits for others and for a new thread, which a busy machine takes seconds to start; how many wait. */
const MAX_WAIT_MS = 10_000;
const MAX_WAITING = 200;
/** A template that took too long is not tried again for so long, milliseconds. */
const REFUSED_MS = 60_000;
/** How many templates are remembered. */
const MAX_REMEMBERED = 200;
/** Memory of the thread, MiB. */
const RESOURCES = { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 8, stackSizeMb: 4 };

const TOO_LONG = 'the template takes too long';

interface Waiting {
  key: string;
  job: LiquidJob;
  done(answer: LiquidAnswer): void;
  timer: NodeJS.Timeout;
}

/** Makes the renderer. No thread is started before the first template. */
export function createTenantLiquid(): TenantLiquid {
  const waiting = new Set<Waiting>();
  /** When a template had its last turn, and until when one is refused, by the hash of its source. */
  const [served, refused] = [new Map<string, number>(), new Map<string, number>()];
  let turn = 0;
  let thread: LiquidThread | undefined;
  let isBusy = false;
  let isClosed = false;

  const take = (one: Waiting) => {
    waiting.delete(one);
    clearTimeout(one.timer);
    return one;
  };
  const refuse = (key: string) => {
    keepLatest(refused, MAX_REMEMBERED, key, performance.now() + REFUSED_MS);
    for (const one of waiting) if (one.key === key) take(one).done({ fault: TOO_LONG });
  };
  const serve = async (): Promise<void> => {
    if (isBusy) return;
    isBusy = true;
    for (let one = nextOf(waiting, served); one !== undefined; one = nextOf(waiting, served)) {
      const { key, job, done } = take(one);
      keepLatest(served, MAX_REMEMBERED, key, ++turn);
      thread ??= await startThread();
      const answer = await thread.run(job);
      if (thread.hasEnded()) {
        thread = undefined;
        refuse(key);
      }
      done(answer);
    }
    isBusy = false;
  };
  const answerOf = (job: LiquidJob): Promise<LiquidAnswer> => {
    const key = hash('sha256', job.source, 'base64url');
    if ((refused.get(key) ?? 0) > performance.now()) return Promise.resolve({ fault: TOO_LONG });
    if (isClosed || waiting.size >= MAX_WAITING) return Promise.resolve({ fault: 'too many templates wait' });
    const { promise, resolve: done } = Promise.withResolvers<LiquidAnswer>();
    const giveUp = () => waiting.delete(one) && done({ fault: 'other templates took too long' });
    const one: Waiting = { key, job, done, timer: setTimeout(giveUp, MAX_WAIT_MS) };
    waiting.add(one);
    void serve();
    return promise;
  };
  return {
    render: async (job) => {
      const answer = await answerOf(job);
      if ('fault' in answer) throw new TemplateFault(answer.fault);
      return answer.text;
    },
    close: async () => {
      isClosed = true;
      await thread?.end();
    },
  };
}

/** Returns who is next: of the template whose last turn is longest ago, so that one does not hold up all others. */
function nextOf(waiting: ReadonlySet<Waiting>, served: ReadonlyMap<string, number>): Waiting | undefined {
  const [first, ...others] = waiting;
  const turnOf = ({ key }: Waiting) => served.get(key) ?? 0;
  return first && others.reduce((found, one) => (turnOf(one) < turnOf(found) ? one : found), first);
}

interface LiquidThread {
  /** Renders a template. The thread ends when that takes too long, or too much memory. Never rejects. */
  run(job: LiquidJob): Promise<LiquidAnswer>;
  hasEnded(): boolean;
  end(): Promise<unknown>;
}

/** Starts the thread and waits until it is ready, or has ended. */
async function startThread(): Promise<LiquidThread> {
  const worker = newWorker();
  const ended = new Promise<void>((resolve) => worker.once('exit', () => resolve()));
  let hasEnded = false;
  void ended.then(() => {
    hasEnded = true;
  });
  // The reason of an error is not needed: the exit follows.
  worker.on('error', () => {});
  const next = () => new Promise<unknown>((resolve) => worker.once('message', resolve));
  await Promise.race([next(), ended]);
  const end = () => {
    hasEnded = true;
    return worker.terminate();
  };
  worker.unref();
  return {
    hasEnded: () => hasEnded,
    end,
    run: async (job) => {
      if (hasEnded) return { fault: 'the thread of templates has ended' };
      const answer = next() as Promise<LiquidAnswer>;
      const stopWatch = watch(worker, () => void end());
      worker.postMessage(job);
      const outcome = await Promise.race([answer, ended.then(() => ({ fault: TOO_LONG }))]);
      stopWatch();
      return outcome;
    },
  };
}

/** Calls a function when the thread has used too much time from now on. @returns a function that ends the watch. */
function watch(worker: Worker, tooMuch: () => void): () => void {
  const since = performance.now();
  let usedBefore: number | undefined;
  let isEnded = false;
  const check = async () => {
    const elapsed = performance.now() - since;
    // A thread that waits for a processor has not used it. Most templates end before the first check.
    const total = HAS_THREAD_CPU_USAGE ? await threadTime(worker) : elapsed;
    usedBefore ??= HAS_THREAD_CPU_USAGE ? total : 0;
    const used = total - usedBefore;
    if (!isEnded && (used >= MAX_CPU_MS || elapsed >= MAX_ELAPSED_MS)) tooMuch();
  };
  const timer = setInterval(() => void check(), CHECK_MS);
  return () => {
    isEnded = true;
    clearInterval(timer);
  };
}

function newWorker(): Worker {
  // The published package holds JavaScript; the repository runs the TypeScript files.
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
  return new Worker(new URL(`./worker.${extension}`, import.meta.url), {
    name: 'liquid',
    resourceLimits: RESOURCES,
    env: threadEnvironment(),
    execArgv: [],
  });
}
