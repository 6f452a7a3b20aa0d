// The contract of a store over a PostgreSQL, each test in a database of its own.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openPostgres } from '../../src/store/sql/postgres-store.ts';
import type { Cluster } from '../support/postgres.ts';
import { storeContract } from './contract.ts';

/** @param urlOf the address by which a database of the cluster is used. */
export function postgresContract(
  name: string,
  { cluster, urlOf }: { cluster(): Cluster; urlOf(database: string): string },
): void {
  let databases = 0;
  storeContract(name, async (clock) => {
    databases += 1;
    const database = `store_${databases}`;
    await cluster().query(`CREATE DATABASE ${database}`);
    const dataDir = await mkdtemp(join(tmpdir(), 'gatehouse-store-'));
    const open = () => openPostgres({ url: urlOf(database), dataDir, clock });
    let store = await open();
    return {
      store,
      reopen: async () => {
        await store.close();
        store = await open();
        return store;
      },
      cleanup: async () => {
        await store.close();
        // A pooler keeps its connections.
        await cluster().query(`DROP DATABASE ${database} WITH (FORCE)`);
        await rm(dataDir, { recursive: true });
      },
    };
  });
}
