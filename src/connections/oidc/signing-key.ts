// The keys that connections sign their requests with.
import type { JWK } from 'jose';
import type { Store } from '../../store/contract.ts';

/** The key that a connection signs with now; undefined where it has none. @param connectionId its `id`. */
export async function signingKeyOf(
  store: Pick<Store, 'collection'>,
  connectionId: string,
): Promise<{ kid: string; jwk: JWK } | undefined> {
  const all = await store.collection('connectionKeys').findBy('connection', connectionId);
  const current = all.find(({ state }) => state === 'current');
  return current && { kid: current.id, jwk: { ...current.jwk } };
}
