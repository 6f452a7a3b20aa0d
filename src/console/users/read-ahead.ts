// What the list of users begins with, read before anybody asks for it: after a start the threads that search are still to be
// started, and what they read is still to be brought from the disk.
import type { Background } from '../../runtime/background.ts';
import type { Store } from '../../store/contract.ts';
import { NEWEST_FIRST, PER_PAGE } from './list.ts';

/** @returns what reads ahead, in the background and the first time alone: what was read once is at hand from then on. */
export function usersReadAhead({ store, background }: { store: Store; background: Background }): () => void {
  let isRead = false;
  return () => {
    if (isRead) return;
    isRead = true;
    background.run('reading users ahead', async () => {
      await store.collection('users').list({ sort: NEWEST_FIRST, limit: PER_PAGE, total: true });
    });
  };
}
