// How this process hears that the configuration was written: of its own writes by itself, of those of others by NOTIFY,
// and where that is not heard (a pooler between, a connection that is lost) by asking for the count.
import pg from 'pg';
import type { Pool } from './postgres-pool.ts';
import { CHANNEL, meta } from './postgres-schema.ts';

const everyMilliseconds = 500;

interface Revision {
  current(): number;
  /** This process has written the configuration. */
  raise(): void;
  stop(): Promise<void>;
}

/** Listens until it is stopped; a connection that is lost is made anew with the next question. */
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
      // Others' count is not believed, since whoever may connect to the database can say any, nor one of ours that skips one of
      // theirs: either would hide a change. The next look has the configuration read once more for that.
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
      // Also where it is less: a standby that has taken over may lack the latest.
      if (count !== known) raised += 1;
      known = count;
    } catch {
      // Requests say what is wrong with the database; here it is asked again.
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
