// The tests of the contract for a PostgreSQL store, each in a database of its own.
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { openPostgres } from '../../src/store/postgres/postgres-store.ts';
import { type Cluster, copyDatabase } from '../support/postgres.ts';
import { SCRATCH } from '../support/scratch-directory.ts';
import { storeContract } from './contract.ts';

/** @param urlOf returns the URL for connecting to a database of the cluster. */
export function postgresContract(
  name: string,
  { cluster, urlOf }: { cluster(): Cluster; urlOf(database: string): string },
): void {
  /** An empty database and the directory of its key, to copy: creating its tables takes longer than the rest of a test. */
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
        // A pooler would keep connections to the template.
        await cluster().query(`DROP DATABASE ${database} WITH (FORCE)`);
        await rm(dataDir, { recursive: true });
      },
    };
  });
}
