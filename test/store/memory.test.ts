import { openMemoryStore } from '../../src/store/memory/store.ts';
import { storeContract } from './contract.ts';

storeContract('memory', async (clock) => {
  const store = openMemoryStore(clock);
  return { store, reopen: async () => store, cleanup: () => store.close() };
});
