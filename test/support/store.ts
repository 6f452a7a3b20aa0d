// The store of a data directory beside the servers that have it: embedded, or in the database of the tests.
import type { Store } from '../../src/store/contract.ts';
import { openStore, type StoreOptions } from '../../src/store/open.ts';
import { databaseFor } from './postgres-databases.ts';

const server = process.env.TEST_DATABASE_URL;

/** Opens the store that a server of {@link startServer} with this directory has, or had. */
export async function openStoreOf(options: StoreOptions): Promise<Store> {
  if (server === undefined) return openStore(options);
  const { url } = await databaseFor(server, options.dataDir, { ready: false, tls: false });
  return openStore({ ...options, databaseUrl: url });
}

/** A test of the files that the embedded store has, or of what it alone is quick enough for. */
export const itInFiles = server === undefined ? it : it.skip;
export const describeInFiles = server === undefined ? describe : describe.skip;
