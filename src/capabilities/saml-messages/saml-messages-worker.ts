// The thread that reads and verifies large messages. It has public keys alone.
import { AuthError } from '../../http/errors.ts';
import { answerTasks } from '../../runtime/task-worker.ts';
import { parseDom, plain } from './dom.ts';
import type { XmlAnswer, XmlTask } from './thread.ts';
import { verifySigned } from './verification.ts';

answerTasks(answerTo);

function answerTo({ text, signed }: XmlTask): XmlAnswer {
  try {
    const element = signed ? verifySigned(text, signed.place, signed.verifier) : plain(parseDom(text));
    return { element: JSON.stringify(element) };
  } catch (thrown) {
    // Any other error ends the thread, and the message is refused.
    if (!(thrown instanceof AuthError)) throw thrown;
    const { error_description: refused, cause } = thrown;
    return { refused, cause: cause === undefined ? undefined : String(cause) };
  }
}
