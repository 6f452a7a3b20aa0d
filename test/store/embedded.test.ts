import { cp, mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { openStore } from '../../src/store/open.ts';
import { SCRATCH } from '../support/scratch-directory.ts';
import { storeContract } from './contract.ts';

describe('embedded', () => {
  /** An empty store to copy: creating its tables takes longer than the rest of a test. */
  let empty: string;
  before(async () => {
    empty = await mkdtemp(join(SCRATCH, 'gatehouse-store-'));
    await (await openStore({ dataDir: empty, clock: Date.now })).close();
  });
  after(() => rm(empty, { recursive: true }));

  storeContract('embedded', async (clock) => {
    const dataDir = await mkdtemp(join(SCRATCH, 'gatehouse-store-'));
    await cp(empty, dataDir, { recursive: true });
    let store = await openStore({ dataDir, clock });
    return {
      store,
      reopen: async () => {
        await store.close();
        store = await openStore({ dataDir, clock });
        return store;
      },
      cleanup: async () => {
        await store.close();
        await rm(dataDir, { recursive: true });
      },
    };
  });
});
