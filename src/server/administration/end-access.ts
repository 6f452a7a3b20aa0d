// The end of a user's sessions and tokens by a command where no server runs. Applications are not notified.
import type { Clock } from '../../runtime/clock.ts';
import type { Store } from '../../store/contract.ts';

/** Returns a function that ends all sessions and tokens of a user. */
export function endAccessIn(store: Store, clock: Clock): (userId: string) => Promise<void> {
  return async (userId) => {
    await store.collection('artifacts').deleteBy('account', userId);
    const access_ended_at = new Date(clock()).toISOString();
    await store.collection('users').update(userId, (user) => ({ ...user, access_ended_at }));
  };
}
