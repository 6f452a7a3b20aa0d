// The thread that reads large messages, as seen from the main thread. It gets no private key.
import { serverBusy } from '../../http/errors.ts';
import { createTaskThread, type TaskThread } from '../../runtime/task-thread.ts';
import { moduleBeside } from '../../runtime/worker-thread.ts';
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

/** A task takes up to 200 ms of the processor. */
const LIMITS = {
  maxCpuMs: 2_000,
  maxElapsedMs: 10_000,
  maxWaiting: 32,
  maxWaitMs: 10_000,
  idleMs: 30_000,
  memory: { maxOldGenerationSizeMb: 192, maxYoungGenerationSizeMb: 16, stackSizeMb: 4 },
};

export interface XmlThread extends Pick<TaskThread<XmlTask, XmlAnswer>, 'close' | 'isHeldUp'> {
  /** @throws AuthError 400 when the message is refused, 503 when too many wait. */
  run(task: XmlTask): Promise<XmlElement>;
}

/** Returns what runs tasks in a thread. Networks take turns, and within a network its addresses. */
export function createXmlThread(): XmlThread {
  const module = moduleBeside(import.meta.url, 'saml-messages-worker');
  const { run, ...thread } = createTaskThread<XmlTask, XmlAnswer>({ ...LIMITS, name: 'saml', module });
  return {
    ...thread,
    run: async (task) => {
      const outcome = await run(task);
      if (outcome.failure === 'busy')
        throw serverBusy('Too many large SAML messages are being read. Try again in a moment.');
      if (outcome.failure !== undefined) {
        const cause = outcome.cause ?? `its thread ended: ${outcome.failure}`;
        throw badMessage('The SAML message cannot be read.', cause);
      }
      const { answer } = outcome;
      if ('element' in answer) return JSON.parse(answer.element) as XmlElement;
      throw badMessage(answer.refused, answer.cause);
    },
  };
}
