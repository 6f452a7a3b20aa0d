// The thread that reads large messages, as seen from the main thread. It gets no private key.
import { Worker } from 'node:worker_threads';
import PQueue from 'p-queue';
import { atMost } from '../http/at-most.ts';
import { threadEnvironment } from '../runtime/compile-cache.js';
import type { Verifier } from './signature.ts';
import type { SignedPlace } from './verification.ts';
import { badMessage, type XmlElement } from './xml.ts';

/** A measured message to read; with `signed`, to verify. */
export interface XmlTask {
  text: string;
  signed?: { place: SignedPlace; verifier: Verifier };
}

/** What the thread answers: an element as JSON, which takes half as long as a copy of it, or why the message is refused. */
export type XmlAnswer = { element: string } | { refused: string; cause: string | undefined };

/** Tasks that may wait; the next ones are answered 503. */
const MAX_WAITING = 32;
/** A task takes up to 200 ms; a busy machine may take longer. */
const MAX_TASK_MS = 10_000;
const IDLE_MS = 30_000;
const RESOURCES = { maxOldGenerationSizeMb: 192, maxYoungGenerationSizeMb: 16, stackSizeMb: 4 };

/** Returns what runs tasks in a thread, one after the other. */
export function createXmlThread() {
  const queue = new PQueue({ concurrency: 1 });
  const admit = atMost(MAX_WAITING);
  let worker: Worker | undefined;
  let idle: NodeJS.Timeout | undefined;
  const end = () => {
    void worker?.terminate();
    worker = undefined;
  };
  const runNow = async (task: XmlTask): Promise<XmlElement> => {
    clearTimeout(idle);
    worker ??= newWorker();
    const answer = await answerOf(worker, task).catch((thrown: unknown) => {
      end();
      throw badMessage('The SAML message cannot be read.', thrown);
    });
    idle = setTimeout(end, IDLE_MS).unref();
    if ('element' in answer) return JSON.parse(answer.element) as XmlElement;
    throw badMessage(answer.refused, answer.cause);
  };
  return {
    /** @throws AuthError 400 when the message is refused, 503 when too many wait. */
    run: (task: XmlTask): Promise<XmlElement> => admit(() => queue.add(() => runNow(task))),
  };
}

function answerOf(worker: Worker, task: XmlTask): Promise<XmlAnswer> {
  const { promise, resolve, reject } = Promise.withResolvers<XmlAnswer>();
  const gone = () => reject(new Error('the thread has ended'));
  const timer = setTimeout(() => reject(new Error('it takes too long')), MAX_TASK_MS);
  worker.once('message', resolve).once('error', reject).once('exit', gone);
  worker.ref();
  worker.postMessage(task);
  return promise.finally(() => {
    clearTimeout(timer);
    worker.unref();
    worker.off('message', resolve).off('error', reject).off('exit', gone);
  });
}

function newWorker(): Worker {
  // The published package contains JavaScript; the repository runs TypeScript directly.
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
  return new Worker(new URL(`./worker.${extension}`, import.meta.url), {
    name: 'saml',
    resourceLimits: RESOURCES,
    env: threadEnvironment(),
    execArgv: [],
    // A fault is an event here; without a listener it would end the process.
  }).on('error', () => undefined);
}
