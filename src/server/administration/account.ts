// The order of `gatehouse users account`: decides whose a user is, if an account with the user's name at the provider may be
// that of another person.
import { z } from 'zod';
import type { IdentityRecord } from '../../records/connections/identities.ts';
import { type Store, UniqueKeyError } from '../../store/contract.ts';
import type { Events } from '../../tenant/events.ts';
import type { Identity } from '../../users/changes.ts';
import type { User } from '../../users/user.ts';
import { order, recordOrder } from './order.ts';

const body = z.strictObject({
  /** The user's id. */
  user: z.string().min(1).max(1024),
  /** The provider's id of the account that is the user's. */
  join: z.string().min(1).max(512).optional(),
  /** Whether the account that was refused is another person's. */
  keep: z.boolean().optional(),
});

export const account = order({ body, run: decideAccount });

/** What is known about whose a user is. */
export interface AccountState {
  user: Pick<User, 'id' | 'email' | 'name' | 'created_at' | 'last_login' | 'logins_count'>;
  identities: (Pick<Identity, 'connection' | 'upstream_id' | 'stable_id' | 'refused'> & { dn?: unknown })[];
}

/**
 * Carries out the order, and returns what is known then. To keep the user apart ends the sessions and tokens of whoever was the
 * user: the provider has given the name to somebody else.
 * @throws Error if there is no such user, no account was refused, or it is not the one that was named.
 */
async function decideAccount(
  {
    store,
    events,
    endBlocked,
  }: { store: Store; events: Pick<Events, 'record'>; endBlocked(userId: string): Promise<void> },
  { user: id, join, keep = false }: z.output<typeof body>,
): Promise<AccountState> {
  if (join !== undefined && keep) throw new Error('--join and --keep exclude each other');
  if ((await store.collection('users').get(id)) === undefined) throw new Error(`there is no user ${id}`);
  if (join !== undefined || keep) await decide(store, id, join);
  // The provider has no account of the earlier person any more, who is not to stay logged in by what they got before.
  if (keep) await endBlocked(id);
  const state = await stateOf(store, id);
  if (join !== undefined || keep) {
    const effect = keep ? 'Keep a user apart from the account of its name' : 'Join a user with an account';
    recordOrder(events, 'users account', effect, { after: { user_id: id, stable_id: join ?? null } });
  }
  return state;
}

/** @param join the id to record; undefined: none, so that the account gets a user of its own. */
async function decide(store: Store, userId: string, join: string | undefined): Promise<void> {
  const identities = store.collection('identities');
  const refused = (await identities.findBy('user', userId)).find((one) => one.refused !== undefined);
  if (refused === undefined) throw new Error(`no account was refused for ${userId}`);
  const change = (current: Identity): IdentityRecord => {
    // Another account may have tried to log in since the administrator looked.
    if (current.refused === undefined || (join !== undefined && current.refused.stable_id !== join))
      throw new Error(`${join ?? 'it'} is not the account that was refused last for ${userId}: look again`);
    const { refused: _, ...rest } = current;
    return { ...(rest as IdentityRecord), stable_id: join ?? null };
  };
  try {
    await identities.update(refused.id, change);
  } catch (thrown) {
    if (!(thrown instanceof UniqueKeyError)) throw thrown;
    throw new Error(`${join} is the account of another user`);
  }
}

async function stateOf(store: Store, id: string): Promise<AccountState> {
  const user = await store.collection('users').get(id);
  const identities = await store.collection('identities').findBy('user', id);
  const { email, name, created_at = '', last_login, logins_count = 0 } = user ?? {};
  return {
    user: {
      id,
      ...(email !== undefined && { email }),
      ...(name !== undefined && { name }),
      created_at,
      ...(last_login !== undefined && { last_login }),
      logins_count,
    },
    identities: identities.map(({ connection, upstream_id, stable_id, refused, attributes }) => ({
      connection,
      upstream_id,
      ...(stable_id !== undefined && { stable_id }),
      ...(refused !== undefined && { refused }),
      ...(attributes?.dn !== undefined && { dn: attributes.dn }),
    })),
  };
}

/** Returns what is known, for people to read. */
export function accountReport({ user, identities }: AccountState): string {
  const { id, email = '-', name = '-', created_at, last_login = 'never', logins_count } = user;
  const lines = identities.flatMap(({ connection, upstream_id, dn, stable_id, refused }) => [
    `${upstream_id} of the connection ${connection}${dn === undefined ? '' : `, last seen as ${String(dn)}`}`,
    `  its account: ${stable_id ?? (stable_id === null ? 'none any more' : 'not recorded')}`,
    ...(refused === undefined
      ? []
      : [
          `  refused at ${refused.at}: ${refused.description}`,
          `  if it is the same person: gatehouse users account '${id}' --join '${refused.stable_id}'`,
          `  if it is somebody else:   gatehouse users account '${id}' --keep`,
        ]),
  ]);
  const head = `${id}: ${name}, ${email}, since ${created_at}, ${logins_count} logins, the last ${last_login}`;
  return [head, ...lines].join('\n');
}
