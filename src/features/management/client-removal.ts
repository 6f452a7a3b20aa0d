// Ends what users granted a deleted application, and its refresh tokens: otherwise a new application with the same client_id, which
// a tenant file can declare, would have them.
import { endGranted } from '../../engine/base/granted.ts';
import {
  ADMINISTRATOR_APPROVAL,
  ADMINISTRATOR_TOKEN,
  ADMINISTRATORS,
} from '../../records/users/administrators.ts';
import type { Store } from '../../store/contract.ts';
import { pagesOf } from '../../store/list-all.ts';
import { pendingRemovals } from './pending-removal.ts';

/** The removals of applications whose consents and tokens may be left. */
export const clientRemovals = pendingRemovals('clients');

/** How many artifacts are read at once. */
const PAGE = 500;

/** What lasts, and what is worth nothing without it: a code needs its grant. */
const LASTING = ['Grant:', 'RefreshTokenFamily.sha256:'];

/** Ends what was granted to a deleted application, and notes that it is done. */
export async function removeGrantedTo(store: Store, clientId: string): Promise<void> {
  await endGranted(store, clientId);
  // First-party applications have grants without a consent.
  const artifacts = store.collection('artifacts');
  for (const prefix of LASTING) {
    for await (const page of pagesOf(artifacts, { where: { field: 'id', prefix }, limit: PAGE })) {
      const ofClient = page.filter(({ payload }) => payload.clientId === clientId);
      await Promise.all(ofClient.map(({ id }) => artifacts.delete(id)));
    }
  }
  await endPrograms(store, clientId);
  await clientRemovals.complete(store, clientId);
}

/** Ends what administrators have approved for an application. */
async function endPrograms(store: Store, clientId: string): Promise<void> {
  const challenges = store.collection('challenges');
  const register = await store.collection('administrators').get(ADMINISTRATORS);
  for (const { user_id: userId } of register?.members ?? []) {
    const ofClient = (await challenges.findBy('user', userId)).filter(
      ({ purpose, data }) =>
        (purpose === ADMINISTRATOR_TOKEN || purpose === ADMINISTRATOR_APPROVAL) && data.clientId === clientId,
    );
    await Promise.all(ofClient.map(({ id }) => challenges.delete(id)));
  }
}

/** Continues the removals that the end of the process interrupted. */
export async function resumeClientRemovals(store: Store): Promise<void> {
  const exists = async (clientId: string) =>
    (await store.collection('clients').get(clientId)) !== undefined ||
    (await store.collection('registrations').get(clientId)) !== undefined;
  await clientRemovals.resume(store, exists, (clientId) => removeGrantedTo(store, clientId));
}
