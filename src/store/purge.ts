// Removes expired records from memory and disk. They are invisible as soon as they expire; they are removed in small
// batches so that a backlog does not block the event loop.
import type { Logger } from 'pino';

const everyMilliseconds = 1000;

interface Purging {
  /** Each deletes some expired records and returns whether there may be more. */
  purges: (() => Promise<boolean>)[];
  /** Stores the state of the deletion clock, if it is due. */
  saveTime?: (() => Promise<void>) | undefined;
  log: Pick<Logger, 'error'> | undefined;
}

/**
 * Purges once a second, without keeping the process alive, until it is stopped.
 * @returns a function that stops it and waits for a purge under way.
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
