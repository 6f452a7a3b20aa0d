// The keys of clients that were registered without a `kid`.
import type { Client } from 'oidc-provider';

interface ClientKeys {
  selectForVerify(criteria: { alg: string; kid?: string | undefined }): { kid?: string }[];
}

/**
 * Lets an assertion with a `kid` be verified by a key that was registered without one: `kid` is only a hint (RFC 7515 §4.1.4),
 * and the engine accepts only a key with exactly that `kid`.
 */
export function matchKeysWithoutId(client: Client): void {
  // Missing from the engine's types.
  const { asymmetricKeyStore: keys } = client as unknown as { asymmetricKeyStore: ClientKeys };
  // The engine may hand out the same client object again; wrapping it each time would make every look-up slower.
  if (Object.hasOwn(keys, 'selectForVerify')) return;
  const select = keys.selectForVerify.bind(keys);
  keys.selectForVerify = ({ kid, ...criteria }) => {
    const found = select({ ...criteria, kid });
    if (found.length > 0 || kid === undefined) return found;
    return select(criteria).filter((key) => key.kid === undefined);
  };
}
