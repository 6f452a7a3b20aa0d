// One user of the tenant that this one takes the place of, who moves here while a bridge to it is open: made as an import of the
// whole tenant makes them, with their linked identities.
import { identityId } from '../../records/connections/identities.ts';
import type { ImportedFactor } from '../imported-factors.ts';
import { importMoved, type MoveDependencies, moveTargetIn } from './moved-import.ts';

/** A user as the Management API of the old tenant shows them. */
export interface OldUserRecord {
  user_id: string;
  identities: readonly { connection: string; provider: string; user_id: string }[];
}

/**
 * Makes the user. Whoever is here already is not changed: neither a user with the id, nor one who has an identity of it.
 * @param factors the second factors that move, of the user's identity of the old tenant's database.
 * @returns why the user cannot be made, in English; undefined if the user is here.
 */
export async function makeOldUser(
  deps: Pick<MoveDependencies, 'store' | 'clock' | 'random'>,
  user: OldUserRecord,
  factors: readonly ImportedFactor[],
): Promise<string | undefined> {
  const { store } = deps;
  const isHere = async () => (await store.collection('users').get(user.user_id)) !== undefined;
  if (await isHere()) return undefined;
  const identities = await Promise.all(
    user.identities.map((one) => store.collection('identities').get(identityId(one.connection, one.user_id))),
  );
  if (identities.some((one) => one !== undefined)) return 'an identity of the user is here already';
  const [first] = user.identities;
  const secrets =
    factors.length === 0
      ? []
      : [{ user_id: user.user_id, connection: first?.connection, mfa_factors: factors }];
  const { refused } = await importMoved(
    // Whether the user is let in is judged by the bridge that makes them.
    { ...deps, endBlocked: async () => undefined, letsEnrol: true },
    [JSON.stringify({ user, secrets })],
    await moveTargetIn(store),
  );
  const [error] = refused.flatMap(({ errors }) => errors);
  // Of several logins at once, one has made the user.
  if (error === undefined || (await isHere())) return undefined;
  return `${error.path === undefined || error.path === '' ? 'the user' : error.path}: ${error.message}`;
}
