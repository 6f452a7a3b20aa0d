// Applies a tenant file to the store: records that are missing at start, everything with `gatehouse apply`.

import { isDeepStrictEqual } from 'node:util';
import type { Key } from '../records/base/collection-spec.ts';
import type { Stored } from '../records/base/record.ts';
import { collections } from '../records/collections.ts';
import { databaseIdentity } from '../records/new-identity.ts';
import { type DevelopmentUser, developmentProfileSchema, type TenantFile } from '../records/tenant/tenant.ts';
import type { UserRecord } from '../records/users/users.ts';
import type { Random } from '../runtime/secrets.ts';
import type { Store } from '../store/contract.ts';
import { collectionByName } from '../store/contract.ts';
import { type Change, changesOf, linesOf, subjectOf } from './changes.ts';
import { declaredRecords } from './declared-records.ts';
import { clientIdOfName, directoryOf } from './names.ts';
import { asideName, recordRemovalBy, refuseInheritance } from './pending-removals.ts';
import { removeReferences } from './references.ts';
import {
  APPLIED_COLLECTIONS,
  type AppliedCollection,
  storedRecords,
  type TenantRecords,
} from './tenant-records.ts';

/**
 * `create-missing` changes no existing record. It does not recreate one that the file declared the last time and
 * that was deleted since. `match` makes the store equal to the file, except for users; `add` does so without removing
 * anything, and what is there by name keeps its id. `follow` writes only what differs
 * between `former` and the file.
 */
type ApplyMode = { mode: 'create-missing' | 'match' | 'add' } | { mode: 'follow'; former: TenantFile };

interface DevelopmentUsers {
  findInConnection(connection: { name: string }, identifier: string): Promise<object | undefined>;
  /** @returns `taken`: the identifier that another user has. */
  create(user: {
    identity: ReturnType<typeof databaseIdentity>;
    password: string;
    profile: Partial<UserRecord>;
  }): Promise<object | { taken: string }>;
}

export interface Applied {
  changes: string[];
  notes: string[];
}

export interface ApplyDependencies {
  store: Store;
  users: DevelopmentUsers;
  random: Random;
  managementAudience: string;
  /** Called before a record is removed, to delete what belongs to it alone. */
  beforeRemoval?(collection: AppliedCollection, record: object): Promise<void>;
  /** Called after each record that was written or removed. */
  onChange?(change: Change): void;
}

// docs/understand/decisions/operating.md#gatehouse-apply-is-resumable-not-atomic
/**
 * Each record is written as a whole, so a second run completes an interrupted one.
 * @param options.users whether to create the file's development users.
 * @returns a line for each change, none when the store already matched the file; `notes`: what was not changed, and why.
 * @throws RemovalPending, before anything is written, if a connection or API of the file has the name of one that is
 *   being removed; Error if one that stays has another name, or when a development user's identifier is taken.
 */
export async function applyTenant(
  deps: ApplyDependencies,
  file: TenantFile,
  { users, ...how }: ApplyMode & { users: boolean },
): Promise<Applied> {
  const { store } = deps;
  const { stored, wanted, changes } = await compare(deps, file, how.mode === 'add');
  const earlier = matches(how) ? new Set<string>() : await declaredEarlier(store);
  const isNew = (keys: readonly string[]) => !keys.some((key) => earlier.has(key));
  const { selected, kept } = ((): { selected: Change[]; kept: Change[] } => {
    switch (how.mode) {
      case 'match':
        return { selected: changes, kept: [] };
      case 'add':
        return { selected: changes.filter(({ after }) => after !== undefined), kept: [] };
      case 'follow':
        return edited(deps, { former: how.former, file, stored, changes });
      case 'create-missing':
        return {
          selected: missing(stored, changes).filter(({ collection, after }) =>
            isNew(namesOf(collection, after ?? {})),
          ),
          kept: [],
        };
    }
  })();
  await refuseInheritance(store, selected, { stored, declared: wanted });
  for (const name of APPLIED_COLLECTIONS) {
    const changesHere = selected.filter(({ collection }) => collection === name);
    // Removed records first, so that their names are free.
    for (const change of changesHere) {
      await recordRemovalBy(store, change, wanted, new Date().toISOString());
      if (change.after !== undefined) continue;
      await removeOld(deps, change);
      deps.onChange?.(change);
    }
    await writeInOrder(deps, name, changesHere);
  }
  const created = users ? await missingUsers(deps, file) : [];
  const newUsers = created.filter((user) => isNew([userName(file, user)]));
  for (const user of newUsers) await createDevelopmentUser(deps, file, user);
  // Last: what an interrupted run did not write is still missing at the next start.
  const declared = APPLIED_COLLECTIONS.filter((name) => name !== 'roles' || file.roles !== undefined);
  const records = declared.flatMap((name) => wanted[name].flatMap((record) => namesOf(name, record)));
  const names = [...records, ...(users ? file.users : []).map((user) => userName(file, user))];
  await storeDeclared(store, names);
  const otherIds =
    how.mode === 'add' ? [...keptIds(file, wanted), ...madeIds(wanted), ...sameNames(file, stored)] : [];
  return {
    changes: [...linesOf(selected), ...newUsers.map(userLine)],
    notes: [...kept.map(keptLine), ...otherIds],
  };
}

/** Returns a file in which what is stored by name has the stored id: users and other records belong to it. */
function withStoredIds(file: TenantFile, stored: TenantRecords): TenantFile {
  const named = <T extends { name: string; id?: string | undefined }>(
    items: readonly T[],
    records: readonly { name: string; id: string }[],
  ): T[] => {
    const ids = new Map(records.map(({ name, id }) => [name, id]));
    return items.map((item) => {
      const id = ids.get(item.name);
      return id === undefined ? item : { ...item, id };
    });
  };
  const apis = new Map(stored.resourceServers.map(({ identifier, id }) => [identifier, id]));
  return {
    ...file,
    databases: named(file.databases, stored.connections),
    connections: named(file.connections, stored.connections),
    organizations: named(file.organizations, stored.organizations),
    ...(file.roles !== undefined && { roles: named(file.roles, stored.roles) }),
    resourceServers: file.resourceServers.map((api) => {
      const id = apis.get(api.identifier);
      return id === undefined ? api : { ...api, id };
    }),
  };
}

/** Returns a line for each record that has another id than the file gives it, because it was there. */
function keptIds(file: TenantFile, wanted: TenantRecords): string[] {
  const sections = [
    ['connections', [...file.databases, ...file.connections]],
    ['organizations', file.organizations],
    ['roles', file.roles ?? []],
  ] as const;
  return sections.flatMap(([name, items]) => {
    const ids = new Map<string, string>(wanted[name].map((one) => [one.name, one.id]));
    return items.flatMap((item) => {
      const id = ids.get(item.name);
      return item.id === undefined || id === item.id ? [] : [`${name}.${item.name} keeps its id ${id}`];
    });
  });
}

// docs/understand/decisions/moving.md#an-application-whose-id-no-file-has-is-named
/** Returns a line with the applications that got their ids here, because nothing gives them others. */
function madeIds({ clients }: TenantRecords): string[] {
  const names = clients
    .filter(({ client_id: id, name }) => id === clientIdOfName(name))
    .map(({ name }) => name);
  return names.length === 0
    ? []
    : [
        `these applications have ids that were made here, which they do not know, because no file has the ones they had: ${names.sort().join(', ')} (export with AUTH0_EXPORT_IDENTIFIERS=true, or give --identifiers or --from)`,
      ];
}

/** Returns a line for each application that is here under an id of its own and under one that was made here. */
function sameNames(file: TenantFile, { clients }: TenantRecords): string[] {
  const given = new Map(file.clients.map(({ name, client_id: id }) => [name, id]));
  return clients.flatMap(({ name, client_id: made }) => {
    const id = given.get(name);
    return made !== clientIdOfName(name) || id === undefined || id === made
      ? []
      : [
          `clients.${id} is a second application of the name ${name}: delete ${made}, whose id was made here, when nothing uses it`,
        ];
  });
}

const matches = ({ mode }: ApplyMode) => mode === 'match' || mode === 'add';

/** Returns what {@link applyTenant} would change in the mode `match`, without changing it. @throws as it does */
export async function planTenant(
  deps: ApplyDependencies,
  file: TenantFile,
  { users }: { users: boolean },
): Promise<string[]> {
  const { stored, wanted, changes } = await compare(deps, file);
  await refuseInheritance(deps.store, changes, { stored, declared: wanted });
  return [...linesOf(changes), ...(users ? await missingUsers(deps, file) : []).map(userLine)];
}

const userName = (file: TenantFile, user: DevelopmentUser) =>
  `users ${directoryOf(file, user)} ${user.email}`;
const keptLine = (change: Change) =>
  `${subjectOf(change).slice(2)} stays, because users belong to it: gatehouse apply removes it`;
const userLine = ({ email }: DevelopmentUser) => `+ users.${email}`;

async function compare(
  { store, random, managementAudience }: ApplyDependencies,
  file: TenantFile,
  keepsIds = false,
) {
  const stored = await storedRecords(store);
  const declared = declaredRecords(keepsIds ? withStoredIds(file, stored) : file, stored, {
    random,
    managementAudience,
    now: new Date().toISOString(),
    keepsIds,
  });
  return { stored, wanted: declared, changes: changesOf(file, stored, declared) };
}

/** What users belong to, so that its removal takes more away than the file can restore. */
const OF_USERS: readonly AppliedCollection[] = ['connections', 'organizations', 'roles'];

// docs/understand/decisions/operating.md#a-development-server-follows-the-edits-of-its-tenant-file
/**
 * Returns the changes of what somebody has edited in the file, and `kept`, the removals that only `match` makes. What was
 * changed elsewhere, and is the same in both versions of the file, is in neither.
 */
function edited(
  { managementAudience }: ApplyDependencies,
  {
    former,
    file,
    stored,
    changes,
  }: { former: TenantFile; file: TenantFile; stored: TenantRecords; changes: readonly Change[] },
): { selected: Change[]; kept: Change[] } {
  // The same ids, secrets and times for both versions, where the file has none.
  const options = { random: (bytes: number) => Buffer.alloc(bytes), managementAudience, now: '' };
  const [before, after] = [former, file].map((one) => declaredRecords(one, stored, options)) as [
    TenantRecords,
    TenantRecords,
  ];
  const keyOf = ({ collection, id }: Change) => `${collection} ${id}`;
  const keys = new Set(changesOf(file, before, after).map(keyOf));
  const ofFile = changes.filter((change) => keys.has(keyOf(change)));
  const isKept = (change: Change) => change.after === undefined && OF_USERS.includes(change.collection);
  return { selected: ofFile.filter((one) => !isKept(one)), kept: ofFile.filter(isKept) };
}

function missing(stored: TenantRecords, changes: readonly Change[]): Change[] {
  // Also matched by name: adding an id to a record in the file must not create a second one.
  const taken = new Set(
    APPLIED_COLLECTIONS.flatMap((name) => stored[name].flatMap((record) => keysOf(name, record))),
  );
  return changes.filter(
    ({ collection, before, after }) =>
      before === undefined && after !== undefined && !keysOf(collection, after).some((key) => taken.has(key)),
  );
}

async function removeOld(deps: ApplyDependencies, { collection, id, before }: Change): Promise<void> {
  const { store } = deps;
  if (before === undefined) return;
  await deps.beforeRemoval?.(collection, before);
  await removeReferences(store, collection, id);
  await collectionByName(store, collection).delete(id);
  await removeReferences(store, collection, id);
}

/**
 * Writes records, each when its names are free: one that takes the name of another comes after it. None is deleted to be made
 * anew, because a run that is killed between the two would lose what only the store has of it, such as generated secrets.
 */
async function writeInOrder(
  { store, onChange }: ApplyDependencies,
  name: AppliedCollection,
  changes: readonly Change[],
): Promise<void> {
  const collection = collectionByName(store, name);
  const keys = (record: object | undefined) => (record === undefined ? [] : keysOf(name, record));
  let waiting = changes.filter(({ after }) => after !== undefined);
  while (waiting.length > 0) {
    const holders = new Map(waiting.flatMap(({ id, before }) => keys(before).map((key) => [key, id])));
    const isFree = ({ id, after }: Change) => keys(after).every((key) => (holders.get(key) ?? id) === id);
    const ready = waiting.filter(isFree);
    for (const change of ready) {
      await collection.put(change.after as Stored);
      onChange?.(change);
    }
    waiting = waiting.filter((change) => !ready.includes(change));
    if (ready.length > 0) continue;
    // Names that go round in a circle, such as two that are swapped. One record waits under a name that nobody has.
    const wanted = new Map(waiting.flatMap(({ id, after }) => keys(after).map((key) => [key, id])));
    const inTheWay = waiting.find(({ id, before }) =>
      keys(before).some((key) => (wanted.get(key) ?? id) !== id),
    );
    if (inTheWay?.before === undefined) throw new Error(`two records of ${name} have the same name`);
    const before = setAside(inTheWay.before as Stored);
    await collection.put(before);
    waiting = waiting.map((one) => (one === inTheWay ? { ...one, before } : one));
  }
}

/** Returns a record with other unique keys. It has them only until it is written under its new ones. */
function setAside(record: Stored): Stored {
  const members: Readonly<Record<string, unknown>> = { ...record };
  const texts = ['name', 'identifier', 'audience'].flatMap((member) =>
    typeof members[member] === 'string' ? [[member, asideName(String(members[member]), record)]] : [],
  );
  const domains = 'discovery_domains' in record ? { discovery_domains: [] } : {};
  return { ...record, ...Object.fromEntries(texts), ...domains };
}

function keysOf(name: AppliedCollection, record: object): string[] {
  const unique = Object.entries(collections[name].unique as Record<string, Key<object>>).flatMap(
    ([key, of]) => [of(record) ?? []].flat().map((value) => `${name} ${key} ${value}`),
  );
  return [`${name} id ${(record as Stored).id}`, ...unique];
}

/**
 * Returns the keys that identify a record of the file. Domains are excluded, because another organization may get
 * them.
 */
function namesOf(name: AppliedCollection, record: object): string[] {
  return keysOf(name, record).filter((key) => !key.startsWith('organizations domain '));
}

async function missingUsers({ users }: ApplyDependencies, file: TenantFile): Promise<DevelopmentUser[]> {
  const found: DevelopmentUser[] = [];
  for (const user of file.users) {
    const connection = { name: directoryOf(file, user) };
    if ((await users.findInConnection(connection, user.email)) === undefined) found.push(user);
  }
  return found;
}

async function createDevelopmentUser(
  { users }: ApplyDependencies,
  file: TenantFile,
  user: DevelopmentUser,
): Promise<void> {
  const connection = directoryOf(file, user);
  const {
    email,
    password,
    username,
    email_verified,
    blocked,
    multifactor,
    permissions,
    user_metadata,
    app_metadata,
  } = user;
  const created = await users.create({
    identity: databaseIdentity(connection, { email, username }),
    password,
    profile: {
      ...developmentProfileSchema.parse(user),
      email_verified,
      user_metadata,
      app_metadata,
      ...(blocked === undefined ? {} : { blocked }),
      ...(multifactor === undefined ? {} : { multifactor }),
      ...(permissions === undefined ? {} : { permissions }),
    },
  });
  if ('taken' in created)
    throw new Error(`users: the ${created.taken} of ${email} is taken in ${connection}`);
}

// The names that the tenant file declared at the last start. A record that the file declared then and that is gone
// now was deleted on purpose, and is not created again. A name that the file dropped and declares again is new.
// docs/understand/decisions/operating.md#a-record-that-a-call-has-deleted-stays-deleted

const ID = 'declared';

/** Returns the names that the file declared the last time. */
async function declaredEarlier(store: Store): Promise<ReadonlySet<string>> {
  const found = await store.collection('documents').get(ID);
  return new Set(found?.kind === ID ? (found.body.names as readonly string[]) : []);
}

/** Stores the names that the file declares now. */
async function storeDeclared(store: Store, declared: readonly string[]): Promise<void> {
  const names = [...new Set(declared)].sort();
  const before = await store.collection('documents').get(ID);
  if (isDeepStrictEqual(before?.body.names, names)) return;
  const at = new Date().toISOString();
  const created_at = before?.created_at ?? at;
  await store.collection('documents').put({ id: ID, kind: ID, body: { names }, created_at, updated_at: at });
}
