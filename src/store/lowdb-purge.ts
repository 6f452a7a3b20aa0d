// Expired records are invisible at once; this takes them out of memory and, by a line in the journal, off
// the disk, a slice at a time so that no backlog holds up the event loop.
import type { Logger } from 'pino';
import type { Commit } from './lowdb-collection.ts';
import { expired, remove, type Table } from './table.ts';

const everyMilliseconds = 1000;
const slice = 500;

export interface Purged {
  table: Table;
  commit: Commit;
}

/**
 * Purges once a second, for as long as `active`, without keeping the process alive.
 * @returns what stops it.
 */
export function purgeRegularly(
  tables: Purged[],
  active: () => boolean,
  log: Pick<Logger, 'error'> | undefined,
): () => void {
  let running = false;
  const timer = setInterval(async () => {
    if (running) return;
    running = true;
    try {
      for (const one of tables) await purge(one, active);
    } catch (err) {
      log?.error({ err }, 'expired records could not be purged');
    } finally {
      running = false;
    }
  }, everyMilliseconds);
  timer.unref();
  return () => clearInterval(timer);
}

async function purge({ table, commit }: Purged, active: () => boolean): Promise<void> {
  while (active()) {
    const ids = expired(table, slice);
    if (ids.length === 0) return;
    await commit(remove(table, ids));
    await new Promise((resolve) => setImmediate(resolve));
  }
}
