// Expired records are invisible at once; this takes them out of memory and off the disk, a slice at a time so that
// no backlog holds up the event loop.
import type { Logger } from 'pino';

const everyMilliseconds = 1000;

interface Purging {
  /** Each deletes some records that have expired, and says whether there may be more. */
  purges: (() => Promise<boolean>)[];
  /** Notes what time is believed, now and then. */
  saveTime?: (() => Promise<void>) | undefined;
  log: Pick<Logger, 'error'> | undefined;
}

/**
 * Purges once a second, without keeping the process alive, until it is stopped.
 * @returns what stops it, and waits for what is under way.
 */
export function purgeRegularly({
  purges,
  saveTime = async () => undefined,
  log,
}: Purging): () => Promise<void> {
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
    await saveTime().catch((err: unknown) => log?.error({ err }, 'the time could not be noted'));
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
