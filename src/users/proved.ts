// Users of passwordless connections: whoever proves that an address is theirs.
import { connectionKey } from '../records/collections.ts';
import type { UserRecord } from '../records/users.ts';
import { UniqueKeyError } from '../store/contract.ts';
import type { User, UsersDependencies } from './user.ts';

/** How a passwordless connection reaches its users; the strategy's name, too. */
export type Channel = 'email' | 'sms';

/** An address of a connection's: e-mail as `normalizeEmail` gives it, or a phone number in E.164. */
export interface ConnectionAddress {
  connection: string;
  channel: Channel;
  address: string;
}

type Lookup = Pick<UsersDependencies, 'store'>;

/** The user of a passwordless connection by their address. */
export async function findByAddress(
  { store }: Lookup,
  { connection, channel, address }: ConnectionAddress,
): Promise<User | undefined> {
  const index = channel === 'email' ? 'connectionEmail' : 'connectionPhone';
  return (await store.collection('users').findBy(index, connectionKey(connection, address)))[0];
}

/**
 * The user who has just proved an address, made if there was none, with the address verified.
 * Two proofs at once make one user.
 */
export async function userWhoProved(deps: UsersDependencies, proved: ConnectionAddress): Promise<User> {
  const known = (await findByAddress(deps, proved)) ?? (await create(deps, proved));
  const verified = proved.channel === 'email' ? known.email_verified : known.phone_verified === true;
  if (verified) return known;
  const field = proved.channel === 'email' ? 'email_verified' : 'phone_verified';
  const updated = await deps.store.collection('users').update(known.id, (current) => ({
    ...current,
    [field]: true,
    updated_at: new Date(deps.clock()).toISOString(),
  }));
  return updated ?? known;
}

async function create(deps: UsersDependencies, proved: ConnectionAddress): Promise<User> {
  const { store, clock, random } = deps;
  const { connection, channel, address } = proved;
  const hex = random(12).toString('hex');
  const at = new Date(clock()).toISOString();
  const record: UserRecord = {
    id: `${channel}|${hex}`,
    ...(channel === 'email'
      ? { email: address, email_verified: true }
      : { phone_number: address, phone_verified: true, email_verified: false }),
    user_metadata: {},
    app_metadata: {},
    identities: [{ provider: channel, user_id: hex, connection, isSocial: false }],
    created_at: at,
    updated_at: at,
    logins_count: 0,
  };
  try {
    await store.collection('users').insert(record);
  } catch (thrown) {
    if (!(thrown instanceof UniqueKeyError)) throw thrown;
  }
  const user = await findByAddress(deps, proved);
  if (user === undefined) throw new Error('the new user is not in the store');
  return user;
}
