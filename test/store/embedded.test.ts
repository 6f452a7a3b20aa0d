import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openStore } from '../../src/store/open.ts';
import { storeContract } from './contract.ts';

storeContract('embedded', async (clock) => {
  const dataDir = await mkdtemp(join(tmpdir(), 'gatehouse-store-'));
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
