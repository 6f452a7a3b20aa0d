// What `gatehouse move out` writes about users: in the form of the hosted service's export of users, of its import files, and of
// the memberships that `gatehouse move in` reads.
import { DATABASE } from '../records/connections/connections.ts';
import { INTERNAL_MEMBERS, type PROFILE_CLAIMS, type UserRecord } from '../records/users/users.ts';
import type { Store } from '../store/contract.ts';
import { listAll } from '../store/list-all.ts';
import { type Identity, isLinked, originalUserId, primaryIdentity } from '../users/changes.ts';
import { NO_PASSWORD } from '../users/credentials.ts';
import { exportedFactor } from '../users/imported-factors.ts';
import { customHashOf, isImported } from '../users/imported-hashes/imported-hashes.ts';
import { RESERVED } from '../users/transfer/entry.ts';
import type { BatchPauses } from '../users/transfer/whole-file.ts';
import type { User } from '../users/user.ts';

/** Lines of one of the files, by its name without an ending. */
export interface LeavingLines {
  of: string;
  lines: string;
}

/** The file of all users, and that of roles, permissions and memberships. */
export const [USERS, MEMBERSHIPS] = ['users', 'memberships'];
/** The import files, by connection. Users without an e-mail address are apart: the hosted service's import refuses them. */
export const importName = (connection: string, hasEmail: boolean) =>
  `import/${connection}${hasEmail ? '' : '.without-email'}`;

/** Users that are read at a time, few enough not to delay logins. */
const PAGE = 100;

/** Members of a record that no export has: those of this server alone, and what has files of its own. */
const OWN = new Set<string>(['id', 'roles', 'permissions', ...INTERNAL_MEMBERS]);

/** Yields what the files have, some users at a time. @throws Error if the process is about to end */
export async function* leavingLines(store: Store, between: BatchPauses): AsyncGenerator<LeavingLines> {
  const names = {
    roles: new Map((await listAll(store.collection('roles'))).map(({ id, name }) => [id, name])),
    organizations: new Map(
      (await listAll(store.collection('organizations'))).map(({ id, name }) => [id, name]),
    ),
  };
  for (let after: string | undefined; ; ) {
    const page = await store
      .collection('users')
      .list({ limit: PAGE, ...(after === undefined ? {} : { after }) });
    const files = new Map<string, string>();
    const all = await Promise.all(page.records.map((user) => linesOfUser(store, user, names)));
    for (const { of, value } of all.flat()) files.set(of, `${files.get(of) ?? ''}${JSON.stringify(value)}\n`);
    for (const [of, lines] of files) yield { of, lines };
    if (page.next === undefined) return;
    if (between.isEnding()) throw new Error('the server is about to end');
    await between.rest(0);
    after = page.next;
  }
}

interface Names {
  roles: ReadonlyMap<string, string>;
  organizations: ReadonlyMap<string, string>;
}

async function linesOfUser(
  store: Store,
  user: User,
  names: Names,
): Promise<{ of: string; value: Record<string, unknown> }[]> {
  const [identities, memberships, authenticators] = await Promise.all([
    store.collection('identities').findBy('user', user.id),
    store.collection('memberships').findBy('user', user.id),
    store.collection('authenticators').findBy('user', user.id),
  ]);
  const factors = authenticators.filter(({ active }) => active).flatMap((one) => exportedFactor(one) ?? []);
  const databases = identities.filter(({ provider }) => provider === DATABASE);
  const credentials = await Promise.all(
    databases.map((one) => store.collection('credentials').get(originalUserId(one))),
  );
  return [
    { of: USERS as string, value: exportedUser(user, identities) },
    ...databases.map((identity, index) => {
      const isOwn = !isLinked(identity);
      const value = importedUser(user, identity, {
        hash: credentials[index]?.passwordHash ?? NO_PASSWORD,
        factors: isOwn ? factors : [],
      });
      return { of: importName(identity.connection, value.email !== undefined), value };
    }),
    ...accessLines(user, memberships, names).map((value) => ({ of: MEMBERSHIPS as string, value })),
  ];
}

/** A user as in the hosted service's export. */
function exportedUser(user: User, identities: readonly Identity[]): Record<string, unknown> {
  const primary = primaryIdentity(identities);
  const members = Object.fromEntries(Object.entries(user).filter(([name]) => !OWN.has(name)));
  const ordered = [
    ...(primary === undefined ? [] : [primary]),
    ...identities.filter((one) => one !== primary),
  ];
  return {
    ...primary?.attributes,
    user_id: user.id,
    ...members,
    identities: ordered.map(({ connection, provider, upstream_id, isSocial, profile, attributes }) => ({
      connection,
      provider,
      user_id: upstream_id,
      isSocial,
      ...(profile !== undefined && { profileData: { ...attributes, ...profile } }),
    })),
  };
}

/** Members of the profile that an import file may have. */
const IMPORTED = [
  'given_name',
  'family_name',
  'name',
  'nickname',
  'picture',
] satisfies (typeof PROFILE_CLAIMS)[number][];

/** An identity of a database as a user of an import file, which has no other members. */
function importedUser(
  user: User,
  identity: Identity,
  { hash, factors }: { hash: string; factors: readonly object[] },
): Record<string, unknown> {
  const isOwn = !isLinked(identity);
  const from: Partial<UserRecord> = isOwn ? (user as UserRecord) : (identity.profile as Partial<UserRecord>);
  const { email, username, phone_number } = identity;
  const metadata = isOwn ? user : { user_metadata: {}, app_metadata: {} };
  return {
    user_id: identity.upstream_id,
    ...(email !== undefined && { email, email_verified: from.email_verified === true }),
    ...(username !== undefined && { username }),
    ...(phone_number !== undefined && { phone_number, phone_verified: from.phone_verified === true }),
    ...Object.fromEntries(IMPORTED.flatMap((name) => (from[name] === undefined ? [] : [[name, from[name]]]))),
    ...(isOwn && user.blocked === true && { blocked: true }),
    app_metadata: Object.fromEntries(
      Object.entries(metadata.app_metadata).filter(([name]) => !RESERVED.has(name)),
    ),
    user_metadata: metadata.user_metadata,
    ...(hash !== NO_PASSWORD && { custom_password_hash: customForm(hash) }),
    ...(factors.length > 0 && { mfa_factors: factors }),
  };
}

function customForm(hash: string): object {
  if (isImported(hash)) return customHashOf(hash);
  const algorithm = hash.startsWith('$2') ? 'bcrypt' : 'argon2';
  return { algorithm, hash: { value: hash, encoding: 'utf8' } };
}

function accessLines(
  { id: user_id, roles = [], permissions = [] }: User,
  memberships: readonly { readonly organization_id: string; readonly roles: readonly string[] }[],
  names: Names,
): Record<string, unknown>[] {
  const named = (ids: readonly string[]) => ids.flatMap((id) => names.roles.get(id) ?? []);
  return [
    ...(roles.length > 0 ? [{ user_id, roles: named(roles) }] : []),
    ...(permissions.length > 0 ? [{ user_id, permissions }] : []),
    ...memberships.flatMap((one) => {
      const organization = names.organizations.get(one.organization_id);
      return organization === undefined ? [] : [{ user_id, organization, roles: named(one.roles) }];
    }),
  ];
}
