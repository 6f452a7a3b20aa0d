// Connections that many reads share: each statement is sent at once, without waiting for earlier answers. A statement
// then costs half of what it costs on a connection of its own. Not for statements that may wait for a lock.
import pg from 'pg';
import { StoreUnavailable } from '../contract.ts';

/** Shared connections, used in turn. */
export interface SharedConnections {
  /** Returns a connection that is connected or connecting. @throws what connecting throws. */
  next(): Promise<pg.Client>;
  close(): Promise<void>;
}

interface SharedConnection {
  client: pg.Client;
  connected: Promise<pg.Client>;
}

/**
 * Returns connections that are opened when first needed, and again after they were lost.
 * @param hello the statements that each connection runs first
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
    // `pipeline` is missing in the types.
    const client = new pg.Client({ ...settings, pipeline: true } as pg.ClientConfig);
    const lose = () => {
      if (shared[at]?.client === client) shared[at] = undefined;
    };
    // The queries under way report the error to their callers.
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
