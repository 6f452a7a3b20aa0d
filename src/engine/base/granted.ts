// What users have granted an application: their consents, and what it has got by them.
import type { Store } from '../../store/contract.ts';

/** How many users are read at once. */
const PAGE = 100;

/** Revokes the tokens of a user that an application has, and its codes that are not redeemed yet. */
export async function endTokensOf(
  store: Pick<Store, 'collection'>,
  userId: string,
  clientId: string,
): Promise<void> {
  const artifacts = store.collection('artifacts');
  const ofApplication = (await artifacts.findBy('account', userId)).filter(
    ({ model, payload }) => model !== 'Session' && payload.clientId === clientId,
  );
  await Promise.all(ofApplication.map(({ id }) => artifacts.delete(id)));
}

/** Ends what all users have granted an application that asks each of them for consent. */
export async function endGranted(store: Pick<Store, 'collection'>, clientId: string): Promise<void> {
  const consents = store.collection('consents');
  const where = { index: 'client', equals: clientId } as const;
  for (;;) {
    const { records } = await consents.list({ where, limit: PAGE });
    if (records.length === 0) return;
    await Promise.all(
      records.map(async ({ id, user_id: userId }) => {
        // Last, so that what fails is done again.
        await endTokensOf(store, userId, clientId);
        await consents.delete(id);
      }),
    );
  }
}
