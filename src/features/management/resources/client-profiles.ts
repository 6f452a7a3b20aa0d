// Profiles that a client refers to. They are stored for tools, and have no effect.
import type { Store } from '../../../store/contract.ts';
import { apiError } from '../errors.ts';
import { isObject } from '../section.ts';

/** Checks that the profiles exist that a client's `my_organization_configuration` names. @throws AuthError 400 */
export async function requireProfiles(store: Store, asked: unknown): Promise<void> {
  if (!isObject(asked)) return;
  for (const kind of ['connection-profiles', 'user-attribute-profiles']) {
    const member = `${kind.slice(0, -1).replaceAll('-', '_')}_id`;
    const id = asked[member];
    if (id === undefined || id === null) continue;
    const found = await store.collection('documents').get(String(id));
    if (found?.kind !== kind)
      throw apiError(400, `my_organization_configuration.${member} names nothing`, 'invalid_body');
  }
}
