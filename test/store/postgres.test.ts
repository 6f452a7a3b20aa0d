import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openPostgres } from '../../src/store/sql/postgres-store.ts';
import { type Cluster, startCluster } from '../support/postgres.ts';
import { storeContract } from './contract.ts';

describe('PostgreSQL', () => {
  let cluster: Cluster;
  let databases = 0;
  before(async () => {
    cluster = await startCluster();
  });
  after(() => cluster.stop());

  storeContract('PostgreSQL', async (clock) => {
    databases += 1;
    const database = `store_${databases}`;
    await cluster.query(`CREATE DATABASE ${database}`);
    const dataDir = await mkdtemp(join(tmpdir(), 'gatehouse-store-'));
    const open = () => openPostgres({ url: cluster.url(database), dataDir, clock });
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
        await cluster.query(`DROP DATABASE ${database}`);
        await rm(dataDir, { recursive: true });
      },
    };
  });
});
