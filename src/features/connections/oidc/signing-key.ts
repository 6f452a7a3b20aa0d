// The keys with which connections sign their requests.
import type { JWK } from 'jose';
import type { Store } from '../../../store/contract.ts';

/** Returns the current signing key of a connection; undefined if it has none. @param connectionId the connection's `id`. */
export async function signingKeyOf(
  store: Pick<Store, 'collection'>,
  connectionId: string,
): Promise<{ kid: string; jwk: JWK } | undefined> {
  const keys = await store.collection('connectionKeys').findBy('connection', connectionId);
  const current = keys.find(({ state }) => state === 'current');
  return current && { kid: current.id, jwk: { ...current.jwk } };
}
