// How this process learns that the configuration was written: directly for its own writes, by NOTIFY for those of
// others, and, where notifications are not delivered (a pooler, a lost connection), by reading the counter.
import pg from 'pg';
import type { Pool } from './postgres-pool.ts';
import { CHANNEL, meta } from './postgres-schema.ts';

const everyMilliseconds = 500;

interface Revision {
  current(): number;
  /** Called after this process has written the configuration. */
  raise(): void;
  stop(): Promise<void>;
}

/** Listens until it is stopped; a lost connection is made again with the next check. */
export async function watchRevision(pool: Pool): Promise<Revision> {
  let raised = 0;
  let known = Number(await meta(pool.run, 'revision'));
  const { rows } = await pool.run({ text: 'SELECT current_schema()' }, []);
  const schema = rows[0]?.[0] ?? '';
  let client: pg.Client | undefined;
  let asking: Promise<void> | undefined;
  let stopped = false;

  async function listen(): Promise<void> {
    const next = new pg.Client({ ...pool.settings });
    const lose = () => {
      if (client === next) client = undefined;
    };
    next.on('error', lose);
    next.on('end', lose);
    next.on('notification', ({ payload = '', processId }) => {
      const at = payload.lastIndexOf(' ');
      if (payload.slice(0, at) !== schema) return;
      // The number of another session's notification is not trusted, as anyone with access to the database can send one; nor is one
      // of our own that skips a number. Either could hide a change: the next check of the counter then raises the revision again.
      if (!pool.isOwn(processId)) raised += 1;
      else if (Number(payload.slice(at + 1)) === known + 1) known += 1;
    });
    try {
      await next.connect();
      await next.query(`LISTEN ${CHANNEL}`);
    } catch (error) {
      await next.end();
      throw error;
    }
    client = next;
  }

  async function ask(): Promise<void> {
    try {
      if (client === undefined) await listen();
      const count = Number(await meta(pool.run, 'revision'));
      // Also if the number is lower: a standby that has taken over may lack the latest writes.
      if (count !== known) raised += 1;
      known = count;
    } catch {
      // Requests report the fault of the database; the next check tries again.
    }
    asking = undefined;
  }

  await listen();
  const timer = setInterval(() => {
    if (!stopped) asking ??= ask();
  }, everyMilliseconds);
  timer.unref();
  return {
    current: () => raised,
    raise: () => {
      raised += 1;
    },
    async stop() {
      stopped = true;
      clearInterval(timer);
      await asking;
      await client?.end();
    },
  };
}
