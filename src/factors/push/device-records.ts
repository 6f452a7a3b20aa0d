// What is kept of a device: its key and name, and where a push message wakes it.
import { SECOND_FACTORS } from '../../records/second-factors.ts';
import { judge } from '../../store/judge.ts';
import type { Authenticators } from '../authenticators.ts';

/** The kind of the authenticators that are devices which approve logins. */
export const KIND = SECOND_FACTORS.push.kind;

/** Gives a device's authenticator its key and name. @returns false when it has one already. */
export async function registerDevice(
  authenticators: Authenticators,
  id: string,
  { publicKey, name }: { publicKey: Record<string, unknown>; name: string },
): Promise<boolean> {
  const isNew = await judge(authenticators, id, (current) =>
    current.kind === KIND && current.publicKey === undefined
      ? { verdict: true, next: { ...current, publicKey, name } }
      : { verdict: false },
  );
  return isNew === true;
}

/** Where a push message wakes a device; undefined for nowhere. */
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
