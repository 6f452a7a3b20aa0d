// Where a store is, for the commands that move one.
import type { Logger } from 'pino';
import { systemClock } from '../runtime/clock.ts';
import type { Settings } from '../settings/index.ts';
import type { Store } from '../store/contract.ts';
import { openStore } from '../store/open.ts';
import { keyFile } from '../store/sealing/key.ts';

export type StorePlace = Pick<Settings, 'dataDir' | 'databaseUrl' | 'secretsKey'>;

/** Returns what a person calls the key of a store. */
export const keyName = ({ dataDir, secretsKey }: Pick<Settings, 'dataDir' | 'secretsKey'>) =>
  secretsKey === undefined ? keyFile(dataDir) : 'SECRETS_KEY';

interface OpenOptions {
  log: Logger;
  clock?: () => number;
  isFilling?: boolean;
}

export async function withStore<T>(
  place: StorePlace,
  { log, clock = systemClock, isFilling = false }: OpenOptions,
  work: (store: Store) => Promise<T>,
): Promise<T> {
  const store = await openStore({ ...place, clock, log, isFilling, mustBeThere: !isFilling });
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}
