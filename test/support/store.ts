// Opens the store of a server's data directory: the embedded one, or that in the tests' database.
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Store } from '../../src/store/contract.ts';
import { openStore } from '../../src/store/open.ts';
import type { StoreOptions } from '../../src/store/store-options.ts';
import { queryOnce } from './postgres.ts';
import { databaseFor } from './postgres-databases.ts';

const server = process.env.TEST_DATABASE_URL;

/** Opens the store that a server of {@link startServer} with this directory uses or used. */
export async function openStoreOf(options: StoreOptions): Promise<Store> {
  if (server === undefined) return openStore(options);
  const { url } = await databaseFor(server, options.dataDir, { ready: false, tls: false });
  return openStore({ ...options, databaseUrl: url });
}

/**
 * A test of the embedded store's files, or of what only the embedded store is fast enough for. `it` is looked up at
 * each call: with `--parallel` mocha makes a new one for each file, and tests added to that of an earlier file never
 * run.
 */
export function itInFiles(title: string, test: () => Promise<void>): void {
  (server === undefined ? it : it.skip)(title, test);
}

/** A group of such tests. */
export function describeInFiles(title: string, group: () => void): void {
  (server === undefined ? describe : describe.skip)(title, group);
}

/** Returns everything that a server of {@link startServer} keeps: the texts of its files and of the rows of its database. */
export async function keptBy({ dataDir }: { dataDir: string }): Promise<string[]> {
  const entries = await readdir(dataDir, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  // A file may be replaced while it is read.
  const texts = await Promise.all(files.map((file) => readFile(file, 'latin1').catch(() => '')));
  return server === undefined ? texts : [...texts, ...(await rowsOf(server, dataDir))];
}

async function rowsOf(postgres: string, dataDir: string): Promise<string[]> {
  const { url } = await databaseFor(postgres, dataDir, { ready: false, tls: false });
  const { rows: tables } = await queryOnce(
    url,
    'SELECT tablename FROM pg_tables WHERE schemaname = current_schema()',
  );
  const each = tables.map(({ tablename }) => `SELECT row_to_json(t)::text AS row FROM "${tablename}" t`);
  const { rows } = await queryOnce(url, each.join(' UNION ALL '));
  return rows.map(({ row }) => row);
}
