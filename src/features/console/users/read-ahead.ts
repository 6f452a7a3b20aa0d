// Reads the first page of the user list before it is requested. After a start the search threads are not running yet,
// and the data is not cached.
import type { Background } from '../../../runtime/background.ts';
import type { Store } from '../../../store/contract.ts';
import { NEWEST_FIRST, PER_PAGE } from './list.ts';

/** Returns a function that reads ahead in the background. It only does so once, because the data stays cached. */
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
