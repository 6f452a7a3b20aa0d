// Records of removals that take longer than the request or command that causes them. A record is stored before the
// connection, API or application is deleted. With it, an interrupted removal continues at the next start, and nothing new can
// take the name while parts of the old one are left: they would belong to the new one.
import type { Stored } from '../records/base/record.ts';
import type { Store } from '../store/contract.ts';
import type { Change } from './changes.ts';
import type { AppliedCollection, TenantRecords } from './tenant-records.ts';

/** The collections whose records are removed slowly: by what others refer to them, and what is left for a while. */
export const SLOWLY_REMOVED = {
  connections: { kind: 'connection-removal', member: 'name', left: 'users' },
  resourceServers: { kind: 'api-removal', member: 'identifier', left: 'permissions' },
  clients: { kind: 'client-removal', member: 'client_id', left: 'consents and tokens' },
} as const;

export type SlowlyRemoved = keyof typeof SLOWLY_REMOVED;

/** Thrown when a tenant file takes a name whose removal is pending. */
export class RemovalPending extends Error {}

export const isSlowlyRemoved = (collection: string): collection is SlowlyRemoved =>
  Object.hasOwn(SLOWLY_REMOVED, collection);

/** @param name the name of the connection, the identifier of the API, or the client_id. */
export const removalId = (collection: SlowlyRemoved, name: string): string =>
  `${SLOWLY_REMOVED[collection].kind}/${name}`;

/** Returns the name that others refer to a record by, if records of its collection are removed slowly. */
function nameOf(collection: string, record: object): string | undefined {
  if (!isSlowlyRemoved(collection)) return undefined;
  return String((record as Readonly<Record<string, unknown>>)[SLOWLY_REMOVED[collection].member]);
}

/** Returns whether an earlier record of the same name is still being removed. Other collections have none. */
export async function isRemovalPending(store: Store, collection: string, record: object): Promise<boolean> {
  if (!isSlowlyRemoved(collection)) return false;
  const id = removalId(collection, nameOf(collection, record) ?? '');
  return (await store.collection('documents').get(id)) !== undefined;
}

/** Records that a removal begins. Call it before the record is deleted. @param at ISO 8601. */
export async function recordRemoval(
  store: Store,
  collection: SlowlyRemoved,
  name: string,
  at: string,
): Promise<void> {
  const { kind, member } = SLOWLY_REMOVED[collection];
  const record = { id: removalId(collection, name), kind, body: { [member]: name } };
  await store.collection('documents').put({ ...record, created_at: at, updated_at: at });
}

/**
 * Records the removal that a change of the tenant file begins, if it begins one. A record that only gets another id
 * keeps what belongs to its name.
 * @param at ISO 8601.
 */
export async function recordRemovalBy(
  store: Store,
  { collection, before, after }: Change,
  declared: TenantRecords,
  at: string,
): Promise<void> {
  if (before === undefined || after !== undefined || !isSlowlyRemoved(collection)) return;
  const name = nameOf(collection, before);
  if (name !== undefined && !namesIn(declared, collection).has(name))
    await recordRemoval(store, collection, name, at);
}

/**
 * Refuses changes after which something would belong to another connection or API than before: a new one whose name
 * is that of one that is being removed, and another name for one that stays.
 * @param all all records, before and after the changes.
 * @throws RemovalPending for the first; Error for the second.
 */
export async function refuseInheritance(
  store: Store,
  changes: readonly Change[],
  { stored, declared }: Record<'stored' | 'declared', TenantRecords>,
): Promise<void> {
  for (const { collection, before, after } of changes) {
    if (after === undefined || !isSlowlyRemoved(collection)) continue;
    const { left, member } = SLOWLY_REMOVED[collection];
    const name = nameOf(collection, after) ?? '';
    const label = `${collection}.${name}`;
    const old = before && nameOf(collection, before);
    const isAside = old?.endsWith(asideName('', before as Stored)) === true;
    if (old !== undefined && !isAside && !namesIn(declared, collection).has(old))
      throw new Error(
        `${label}: its id is that of ${old}, and the ${member} cannot change, because the ${left} of ${old} would be left: without the id, ${old} is removed and ${name} is new`,
      );
    if (namesIn(stored, collection).has(name) || !(await isRemovalPending(store, collection, after)))
      continue;
    throw new RemovalPending(
      `${label}: the ${left} of the one with this ${member} that was deleted are not removed yet; the server removes them while it runs: apply the file again after that`,
    );
  }
}

/** Returns the name of a record while one that takes its name is written. */
export const asideName = (name: string, { id }: Stored): string => `${name}-${id}`;

const namesIn = (records: TenantRecords, collection: AppliedCollection): ReadonlySet<string | undefined> =>
  new Set(records[collection].map((record) => nameOf(collection, record)));
