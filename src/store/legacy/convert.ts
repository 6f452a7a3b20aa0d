// Converts a store of the legacy format at the first start. The old store is kept as `store.old`; a start that is
// interrupted at any point is continued by the next one.
import { rename, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Logger } from 'pino';
import { prepareStore } from '../create.ts';
import { syncDirectory } from '../files.ts';
import { lockDirectory } from '../lock.ts';
import { isLegacyStore, readLegacyStore } from './read.ts';

/**
 * Converts a store of the legacy format, if there is one, to the present format.
 * @throws Error naming the file that is damaged or missing in the old store, or when an old server has it open.
 */
export async function convertLegacyStore(
  directory: string,
  clock: () => number,
  log: Pick<Logger, 'warn'> | undefined,
): Promise<void> {
  const aside = `${directory}.old`;
  const making = `${directory}.new`;
  if (!(await exists(directory)) && (await exists(aside)) && (await exists(making))) {
    // An earlier start was interrupted after it had moved the old store: the new one is complete.
    await rename(making, directory);
    await syncDirectory(dirname(directory));
  }
  if (!(await isLegacyStore(directory))) return;
  if (await exists(aside))
    throw new Error(`${aside} is in the way of the store of the old format in ${directory}`);
  const unlock = lockDirectory(directory);
  try {
    await prepareStore(making, await readLegacyStore(directory, clock()));
    await rename(directory, aside);
    await rename(making, directory);
    await syncDirectory(dirname(directory));
  } finally {
    unlock();
  }
  log?.warn(
    { aside },
    'the store was taken over from the old format, which is kept aside: delete it when all is well',
  );
}

async function exists(directory: string): Promise<boolean> {
  return stat(directory).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return false;
      throw error;
    },
  );
}
