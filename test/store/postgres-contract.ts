// The contract of a store over a PostgreSQL, each test in a database of its own.
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { openPostgres } from '../../src/store/sql/postgres-store.ts';
import { type Cluster, copyDatabase } from '../support/postgres.ts';
import { SCRATCH } from '../support/scratch-directory.ts';
import { storeContract } from './contract.ts';

/** @param urlOf the address by which a database of the cluster is used. */
export function postgresContract(
  name: string,
  { cluster, urlOf }: { cluster(): Cluster; urlOf(database: string): string },
): void {
  /** An empty store, and the directory of its key: its tables take longer to make than all else of a test. */
  const template = 'store_template';
  let empty: string;
  before(async () => {
    empty = await mkdtemp(join(SCRATCH, 'gatehouse-store-'));
    await cluster().query(`CREATE DATABASE ${template}`);
    await (
      await openPostgres({
        url: cluster().url(template),
        dataDir: empty,
        clock: Date.now,
      })
    ).close();
  });
  after(() => rm(empty, { recursive: true }));

  let databases = 0;
  storeContract(name, async (clock) => {
    databases += 1;
    const database = `store_${databases}`;
    await copyDatabase(cluster().url(), database, template);
    const dataDir = await mkdtemp(join(SCRATCH, 'gatehouse-store-'));
    await cp(empty, dataDir, { recursive: true });
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
