// Expired records are invisible at once; this takes them out of memory and off the disk, a slice at a time so that
// no backlog holds up the event loop.
import type { Logger } from 'pino';

const everyMilliseconds = 1000;

/**
 * Purges once a second, without keeping the process alive, until it is stopped.
 * @param purges each deletes some records that have expired, and says whether there may be more
 * @returns what stops it, and waits for what is under way.
 */
export function purgeRegularly(
  purges: (() => Promise<boolean>)[],
  log: Pick<Logger, 'error'> | undefined,
): () => Promise<void> {
  let running: Promise<void> | undefined;
  let stopped = false;
  const all = async () => {
    try {
      for (const purge of purges) {
        while (!stopped && (await purge())) await new Promise((resolve) => setImmediate(resolve));
      }
    } catch (err) {
      log?.error({ err }, 'expired records could not be purged');
    }
    running = undefined;
  };
  const timer = setInterval(() => {
    running ??= all();
  }, everyMilliseconds);
  timer.unref();
  return async () => {
    stopped = true;
    clearInterval(timer);
    await running;
  };
}
