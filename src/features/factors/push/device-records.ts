// What is stored of a device: its key, its name, and its push endpoint.
import { SECOND_FACTORS } from '../../../records/users/second-factors.ts';
import { updateWithResult } from '../../../store/contract.ts';
import type { Authenticators } from '../authenticators.ts';

export const DEVICE_KIND = SECOND_FACTORS.push.kind;

/** Stores the key and name of a device. @returns false when its authenticator has a key already. */
export async function registerDevice(
  authenticators: Authenticators,
  id: string,
  { publicKey, name }: { publicKey: Record<string, unknown>; name: string },
): Promise<boolean> {
  const isNew = await updateWithResult(authenticators, id, (current) =>
    current.kind === DEVICE_KIND && current.publicKey === undefined
      ? { result: true, next: { ...current, publicKey, name } }
      : { result: false },
  );
  return isNew === true;
}

/** Stores whether a device shows the details of requests. */
export async function setShowsDetails(
  authenticators: Authenticators,
  id: string,
  showsDetails: boolean,
): Promise<void> {
  await authenticators.update(id, (current) => ({ ...current, showsDetails }));
}

/** Stores the push endpoint of a device (RFC 8030); undefined removes it. */
export async function setPushEndpoint(
  authenticators: Authenticators,
  id: string,
  endpoint: string | undefined,
): Promise<void> {
  await authenticators.update(id, (current) => {
    const { pushEndpoint: _before, ...rest } = current;
    return endpoint === undefined ? rest : { ...rest, pushEndpoint: endpoint };
  });
}
