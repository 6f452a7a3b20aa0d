// Exports the users of a store in the format of import files, so that an operator can move them to another system.
import type { Frozen } from '../../records/base/record.ts';
import { INTERNAL_MEMBERS, SERVER_MEMBERS, type UserRecord } from '../../records/users/users.ts';
import type { Store } from '../../store/contract.ts';
import { pagesOf } from '../../store/list-all.ts';
import { NO_PASSWORD } from '../credentials.ts';
import { exportedFactor } from '../imported-factors.ts';
import { customHashOf, isImported } from '../imported-hashes/imported-hashes.ts';

interface ExportOptions {
  /** The name of the connection whose users are exported; all users if undefined. */
  connection?: string | undefined;
  /** Whether to include password hashes and second factors. */
  withHashes: boolean;
}

/** Users that are read at a time, few enough not to delay logins. */
const PAGE = 100;

/** Members that the server sets itself and that imports do not accept. */
const SERVER_SET = new Set<string>([
  'id',
  'permissions',
  'roles',
  'multifactor',
  ...SERVER_MEMBERS,
  ...INTERNAL_MEMBERS,
]);

/** Yields the users, some at a time. */
export async function* exportUsers(
  store: Store,
  { connection, withHashes }: ExportOptions,
): AsyncGenerator<Record<string, unknown>[]> {
  for await (const page of pagesOf(store.collection('users'), { limit: PAGE })) {
    const users = await Promise.all(
      page.map(async (user) => {
        if (connection !== undefined && !(await belongsTo(store, user.id, connection))) return [];
        return [{ ...profileOf(user), ...(withHashes ? await proofsOf(store, user.id) : {}) }];
      }),
    );
    yield users.flat();
  }
}

async function belongsTo(store: Store, userId: string, connection: string): Promise<boolean> {
  const identities = await store.collection('identities').findBy('user', userId);
  return identities.some((one) => one.connection === connection);
}

function profileOf(user: Frozen<UserRecord>): Record<string, unknown> {
  const members = Object.fromEntries(Object.entries(user).filter(([name]) => !SERVER_SET.has(name)));
  // Imports add the prefix again.
  return { user_id: user.id.slice(user.id.indexOf('|') + 1), ...members };
}

async function proofsOf(store: Store, userId: string): Promise<Record<string, unknown>> {
  const [credential, authenticators] = await Promise.all([
    store.collection('credentials').get(userId),
    store.collection('authenticators').findBy('user', userId),
  ]);
  const factors = authenticators.filter(({ active }) => active).flatMap((one) => exportedFactor(one) ?? []);
  return {
    ...hashMembers(credential?.passwordHash ?? NO_PASSWORD),
    ...(factors.length === 0 ? {} : { mfa_factors: factors }),
  };
}

function hashMembers(hash: string): Record<string, unknown> {
  if (hash === NO_PASSWORD) return {};
  if (isImported(hash)) return { custom_password_hash: customHashOf(hash) };
  if (/^\$2[ab]\$/.test(hash)) return { password_hash: hash };
  const algorithm = hash.startsWith('$2y$') ? 'bcrypt' : 'argon2';
  return { custom_password_hash: { algorithm, hash: { value: hash, encoding: 'utf8' } } };
}
