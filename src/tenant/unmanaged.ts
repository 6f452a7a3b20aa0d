// What a tenant file does not manage, taken out of the file, and kept in the store.
import type { Frozen } from '../records/base/record.ts';
import { strategyRecord } from '../records/connections/connections.ts';
import type { TenantFile } from '../records/tenant/tenant.ts';
import { isUnmanaged, type Unmanaged } from '../records/tenant/unmanaged.ts';
import type { Source } from './source.ts';
import type { TenantRecords } from './tenant-records.ts';

type Document = Readonly<Record<string, unknown>>;

/** Returns a source without the sections that are not managed. */
export function withoutSections(source: Source, unmanaged: Unmanaged | undefined): Source {
  if (unmanaged === undefined) return source;
  const kept = Object.entries(Object(source.value) as Document).filter(
    ([section]) => !unmanaged.sections.includes(section) && !['exclude', 'include'].includes(section),
  );
  return { ...source, value: Object.fromEntries(kept) };
}

const NAMED_SECTIONS = ['clients', 'databases', 'connections', 'resourceServers', 'rules'] as const;

/** Returns a source without the items that are not managed, and the client grants of such applications. */
export function withoutItems(source: Source, unmanaged: Unmanaged | undefined): Source {
  if (unmanaged === undefined) return source;
  const document = Object(source.value) as Document;
  /** The position of each item that is left, by section. */
  const positions = new Map<string, number[]>();
  const filtered = (section: string, isKept: (item: Document) => boolean): [string, unknown][] => {
    const items = document[section];
    if (!Array.isArray(items)) return [];
    const at = items.flatMap((item: unknown, index) => (isKept(Object(item) as Document) ? [index] : []));
    positions.set(section, at);
    return [[section, at.map((index) => items[index] as unknown)]];
  };
  const clients = (Array.isArray(document.clients) ? document.clients : []) as Document[];
  const excluded = clients.filter((client) => isUnmanaged(unmanaged, 'clients', client));
  const names = new Set([...unmanaged.clients, ...excluded.flatMap(({ name, client_id: id }) => [name, id])]);
  const value = {
    ...document,
    ...Object.fromEntries([
      ...NAMED_SECTIONS.flatMap((section) =>
        filtered(section, (item) => !isUnmanaged(unmanaged, section, item)),
      ),
      ...filtered('clientGrants', ({ client_id: id }) => id === undefined || !names.has(id)),
    ]),
  };
  const original = ([section = '', index = '', ...rest]: readonly string[]) => {
    const at = positions.get(section)?.[Number(index)];
    return [section, ...(index === '' ? [] : [at === undefined ? index : String(at)]), ...rest];
  };
  return {
    ...source,
    value,
    placeOf: (path) => source.placeOf(original(path)),
    foldersOf: (path) => source.foldersOf(original(path)),
  };
}

/** The stored records that a file does not manage. Those of documents are of the kinds that it has no section for anyway. */
export function keptRecords(
  { unmanaged }: Pick<TenantFile, 'unmanaged'>,
  stored: TenantRecords,
): Pick<TenantRecords, 'clients' | 'connections' | 'resourceServers' | 'clientGrants' | 'organizations'> {
  const clients = stored.clients.filter((client) => isUnmanaged(unmanaged, 'clients', client));
  const ids = new Set(clients.map((client) => client.client_id));
  const isKept = (section: string) => unmanaged?.sections.includes(section) === true;
  return {
    clients,
    connections: stored.connections.filter((connection) =>
      isUnmanaged(unmanaged, sectionOf(connection), connection),
    ),
    resourceServers: stored.resourceServers.filter((api) => isUnmanaged(unmanaged, 'resourceServers', api)),
    clientGrants: stored.clientGrants.filter(
      ({ client_id: id }) =>
        isKept('clientGrants') || (!isKept('clients') && id !== undefined && ids.has(id)),
    ),
    organizations: isKept('organizations') ? stored.organizations : [],
  };
}

export const sectionOf = ({ strategy }: { readonly strategy: string }): 'databases' | 'connections' =>
  strategyRecord(strategy)?.isDatabase === true ? 'databases' : 'connections';

/** @throws Error for an application that a record refers to, where applications are not managed and the tenant has none of that name */
export function checkReferences(
  { sections }: Unmanaged,
  { clients, connections, clientGrants }: TenantRecords,
): void {
  const ids = new Set(clients.map((client) => client.client_id));
  const missing = (client: string, at: string) =>
    new Error(
      `${at}: ${client} is no application of this tenant, and the file does not manage its applications`,
    );
  if (!sections.includes('clients')) return;
  for (const { name, enabled_clients: enabled } of connections)
    for (const id of enabled) if (!ids.has(id)) throw missing(id, `${name}.enabled_clients`);
  for (const { client_id: id, audience } of clientGrants)
    if (id !== undefined && !ids.has(id)) throw missing(id, `clientGrants for ${audience}`);
}

/** The collections that are sections of the file as they are. */
const COLLECTIONS = ['clients', 'resourceServers', 'clientGrants', 'organizations', 'roles'] as const;

/** Returns records with the members that are not managed (EXCLUDED_PROPS) as they are stored, where they are. */
export function withKeptMembers(
  { members }: Unmanaged,
  declared: TenantRecords,
  stored: TenantRecords,
): TenantRecords {
  const kept = <T extends { readonly id: string }>(
    section: string,
    items: readonly T[],
    before: readonly Frozen<{ id: string }>[],
  ): T[] => {
    const byId = new Map(before.map((one) => [one.id, one]));
    return items.map((item) => withMembers(item, byId.get(item.id), members[section]));
  };
  const [settings] = declared.tenant;
  const [before] = stored.tenant as readonly Document[];
  const sections = Object.entries(members).flatMap(([section, paths]) => {
    const value = (settings as Document | undefined)?.[section];
    return typeof value === 'object' && value !== null
      ? [[section, withMembers(value, before?.[section] as object | undefined, paths)] as const]
      : [];
  });
  return {
    ...declared,
    ...Object.fromEntries(
      COLLECTIONS.map((name) => [name, kept<{ readonly id: string }>(name, declared[name], stored[name])]),
    ),
    connections: declared.connections.map(
      (connection) => kept(sectionOf(connection), [connection], stored.connections)[0] ?? connection,
    ),
    tenant: settings === undefined ? [] : [{ ...settings, ...Object.fromEntries(sections) }],
  };
}

function withMembers<T extends object>(
  item: T,
  stored: Frozen<object> | undefined,
  paths: readonly string[] = [],
): T {
  if (stored === undefined || paths.length === 0) return item;
  const result = structuredClone(item);
  for (const path of paths.map((one) => one.split('.'))) {
    const value = path.reduce<unknown>(
      (at, step) => (Object.hasOwn(Object(at) as object, step) ? (at as Document)[step] : undefined),
      stored,
    );
    if (value !== undefined) setAt(result as Record<string, unknown>, path, value);
  }
  return result;
}

function setAt(
  members: Record<string, unknown>,
  [step = '', ...rest]: readonly string[],
  value: unknown,
): void {
  // What each object has is no member of its own.
  const before = Object.hasOwn(members, step) ? members[step] : undefined;
  if (rest.length > 0 && typeof before === 'object' && before !== null)
    setAt(before as Record<string, unknown>, rest, value);
  else if (rest.length > 0) {
    const made = {};
    setAt(made, rest, value);
    Object.defineProperty(members, step, {
      value: made,
      enumerable: true,
      writable: true,
      configurable: true,
    });
  } else
    Object.defineProperty(members, step, {
      value: structuredClone(value),
      enumerable: true,
      writable: true,
      configurable: true,
    });
}
