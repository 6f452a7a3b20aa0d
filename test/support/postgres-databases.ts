// If TEST_DATABASE_URL is set, servers that tests start use that PostgreSQL server, with a database for each data
// directory; otherwise they use the embedded store.
import { hash } from 'node:crypto';
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { copyDatabase, queryOnce } from './postgres.ts';

/** The database that others are copied from, with ready-made keys, and the data directory that belongs to it. */
export const TEMPLATE = 'gatehouse_template';

/** Returns the URL of a database on the server. */
export function databaseUrl(server: string, database: string): string {
  const url = new URL(server);
  url.pathname = `/${database}`;
  return url.href;
}

interface TestDatabase {
  url: string;
  drop(): Promise<void>;
}

/**
 * Returns the database of a data directory, filled as after a first start unless it exists already.
 * @param ready whether it has ready-made keys
 */
export async function databaseFor(
  server: string,
  directory: string,
  { ready, tls }: { ready: boolean; tls: boolean },
): Promise<TestDatabase> {
  const name = `t${hash('sha256', directory).slice(0, 24)}`;
  const { rowCount } = await queryOnce(server, `SELECT 1 FROM pg_database WHERE datname = '${name}'`);
  if (rowCount === 0) {
    if (ready) await copyDatabase(server, name, TEMPLATE);
    else await queryOnce(server, `CREATE DATABASE ${name}`);
    const from = process.env.TEST_TEMPLATE_DIRECTORY ?? '';
    for (const part of ready ? (tls ? ['keys', 'tls'] : ['keys']) : []) {
      cpSync(join(from, part), join(directory, part), { recursive: true });
    }
  }
  return {
    url: databaseUrl(server, name),
    drop: async () => void (await queryOnce(server, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`)),
  };
}
