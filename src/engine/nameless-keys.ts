// The keys of clients that were registered without a `kid`.
import type { Client } from 'oidc-provider';

interface ClientKeys {
  selectForVerify(wanted: { alg: string; kid?: string | undefined }): { kid?: string }[];
}

/**
 * A `kid` is a hint (RFC 7515 §4.1.4): a key that was registered without one may be what an assertion names, by whatever name
 * its client gives it. The engine takes none but a key of that very name.
 */
export function matchKeysWithoutId(client: Client): void {
  // The types of the engine leave it out.
  const { asymmetricKeyStore: keys } = client as unknown as { asymmetricKeyStore: ClientKeys };
  // The engine gives the same client again where a change of an application is none to it: each would cost every look-up more.
  if (Object.hasOwn(keys, 'selectForVerify')) return;
  const select = keys.selectForVerify.bind(keys);
  keys.selectForVerify = ({ kid, ...wanted }) => {
    const found = select({ ...wanted, kid });
    if (found.length > 0 || kid === undefined) return found;
    return select(wanted).filter((key) => key.kid === undefined);
  };
}
