// `/user-blocks`: accounts that are locked after wrong passwords. `/anomaly/blocks/ips`: addresses that are
// throttled.
import { isIP } from 'node:net';
import { z } from 'zod';
import type { Locks } from '../../../../capabilities/protection/locks.ts';
import { ADDRESS_KINDS } from '../../../../records/connections/identities.ts';
import type { Config } from '../../../../tenant/config.ts';
import type { Users } from '../../../../users/users.ts';
import { type Call, callsWith, noContent, ok } from '../../call.ts';
import { apiError } from '../../management-errors.ts';
import { flag } from '../../management-fields.ts';
import { notFound } from '../../resource.ts';
import { userOf } from './user-calls.ts';

export interface BlocksDependencies {
  users: Users;
  config: Pick<Config, 'connection' | 'connections'>;
  locks: Locks;
}

interface Account {
  connection: string;
  identifier: string;
  /** Whether the identifier is the user's id: what was typed, or a code of the second factor, is counted for it, too. */
  isUserId?: boolean;
}

/** Returns an identifier in all connections: what was typed is locked, whether or not a user has it. */
async function accountsNamed({ config }: BlocksDependencies, identifier: string): Promise<Account[]> {
  return (await config.connections()).map(({ name }) => ({ connection: name, identifier }));
}

/** Returns all identifiers that a user can log in with. @throws AuthError 404 */
async function accountsOf(deps: BlocksDependencies, id: string | undefined): Promise<Account[]> {
  const user = await userOf(deps, id);
  const identities = await deps.users.identitiesOf(user.id);
  return identities.flatMap((identity) => {
    const names = ADDRESS_KINDS.flatMap((kind) => [identity[kind] ?? [], user[kind] ?? []].flat());
    const { connection } = identity;
    const typed = [...new Set(names)].map((identifier) => ({ connection, identifier }));
    return [...typed, { connection, identifier: user.id, isUserId: true }];
  });
}

async function blocksOf(
  { locks }: BlocksDependencies,
  accounts: readonly Account[],
  {
    consider_brute_force_enablement: considersEnablement = false,
  }: { consider_brute_force_enablement?: boolean | undefined },
) {
  if (considersEnablement && !locks.isEnabled()) return { blocked_for: [] };
  const found = await Promise.all(
    accounts.map(async ({ connection, identifier, isUserId = false }) =>
      (await locks.lockedFor({ connection, identifier })).map((ip) => ({
        isUserId,
        block: { identifier, connection, ip },
      })),
    ),
  );
  const all = found.flat();
  // A block of something typed blocks the user's id with it, and is listed once.
  const isListed = ({ connection, ip }: { connection: string; ip: string }) =>
    all.some(({ isUserId, block }) => !isUserId && block.connection === connection && block.ip === ip);
  const listed = all.filter(({ isUserId, block }) => !isUserId || !isListed(block));
  return { blocked_for: listed.map(({ block }) => block) };
}

const call = callsWith<BlocksDependencies>();
const considerQuery = { consider_brute_force_enablement: flag.optional() };
const identifierQuery = { identifier: z.string().min(1).max(320) };

const userBlocks: Call<BlocksDependencies>[] = [
  call({
    method: 'GET',
    path: '/user-blocks',
    scopes: ['read:users'],
    summary: 'Get the blocks of an identifier',
    query: z.strictObject({ ...identifierQuery, ...considerQuery }),
    handle: async (deps, { query }) =>
      ok(await blocksOf(deps, await accountsNamed(deps, query.identifier), query)),
  }),
  call({
    method: 'DELETE',
    path: '/user-blocks',
    scopes: ['update:users'],
    summary: 'Unblock an identifier',
    query: z.strictObject(identifierQuery),
    handle: async (deps, { query }) => {
      for (const account of await accountsNamed(deps, query.identifier)) await deps.locks.unlock(account);
      return noContent({ before: query });
    },
  }),
  call({
    method: 'GET',
    path: '/user-blocks/:id',
    scopes: ['read:users'],
    summary: 'Get the blocks of a user',
    query: z.strictObject(considerQuery),
    handle: async (deps, { params, query }) =>
      ok(await blocksOf(deps, await accountsOf(deps, params.id), query)),
  }),
  call({
    method: 'DELETE',
    path: '/user-blocks/:id',
    scopes: ['update:users'],
    summary: 'Unblock a user',
    handle: async (deps, { params }) => {
      for (const account of await accountsOf(deps, params.id)) await deps.locks.unlock(account);
      return noContent();
    },
  }),
];

/** @throws AuthError 400 if the text is not one */
function addressOf(text = ''): string {
  if (isIP(text) === 0)
    throw apiError(400, 'Path validation error: not an IP address on property id.', 'invalid_uri');
  return text;
}

const addressBlocks: Call<BlocksDependencies>[] = [
  call({
    method: 'GET',
    path: '/anomaly/blocks/ips/:id',
    scopes: ['read:anomaly_blocks'],
    summary: 'Check whether an IP address is blocked',
    handle: async ({ locks }, { params }) => {
      if (await locks.isThrottled(addressOf(params.id))) return ok(undefined);
      throw notFound('IP address specified is not currently blocked.')();
    },
  }),
  call({
    method: 'DELETE',
    path: '/anomaly/blocks/ips/:id',
    scopes: ['delete:anomaly_blocks'],
    summary: 'Unblock an IP address',
    handle: async ({ locks }, { params }) => {
      await locks.release(addressOf(params.id));
      return noContent({ before: { ip: params.id } });
    },
  }),
];

export const blockCalls: Call<BlocksDependencies>[] = [...userBlocks, ...addressBlocks];
