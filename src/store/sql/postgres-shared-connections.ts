// Connections that many reads share: each sends what it is asked at once, without waiting for the answers before. A
// statement then costs half of what it does with a connection of its own. Not for what may wait for a lock.
import pg from 'pg';
import { StoreUnavailable } from '../contract.ts';

/** Connections that are shared, in turn. */
export interface SharedConnections {
  /** One that is connected, or about to be. @throws what connecting throws. */
  next(): Promise<pg.Client>;
  close(): Promise<void>;
}

interface SharedConnection {
  client: pg.Client;
  connected: Promise<pg.Client>;
}

/**
 * Opens shared, each when it is first needed and again when it was lost.
 * @param hello what each connection says first
 */
export function openSharedConnections(
  settings: pg.ClientConfig,
  hello: string,
  count: number,
): SharedConnections {
  const shared: (SharedConnection | undefined)[] = Array.from({ length: count });
  let turn = 0;
  let closed = false;

  function connect(at: number): SharedConnection {
    // `pipeline` is younger than the types.
    const client = new pg.Client({ ...settings, pipeline: true } as pg.ClientConfig);
    const lose = () => {
      if (shared[at]?.client === client) shared[at] = undefined;
    };
    // Whoever asked is told by their answer.
    client.on('error', lose);
    client.on('end', lose);
    const connected = (async () => {
      try {
        await client.connect();
        await client.query(hello);
        return client;
      } catch (error) {
        lose();
        void client.end().catch(() => undefined);
        throw error;
      }
    })();
    return { client, connected };
  }

  return {
    next() {
      if (closed) throw new StoreUnavailable('the connections are closed');
      turn = (turn + 1) % count;
      const connection = shared[turn] ?? connect(turn);
      shared[turn] = connection;
      return connection.connected;
    },
    async close() {
      closed = true;
      const open = shared.flatMap((connection) => connection ?? []);
      await Promise.allSettled(open.map(async ({ connected }) => (await connected).end()));
    },
  };
}
