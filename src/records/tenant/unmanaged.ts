// What of a tenant a file does not manage: applying it leaves that as it is. The deploy tool's configuration says so.
import { z } from 'zod';

const names = z.array(z.string()).default([]);

export const unmanagedSchema = z.strictObject({
  /** Whole sections of the file. */
  sections: names,
  /** Applications, databases and so on by their names. */
  clients: names,
  databases: names,
  connections: names,
  /** The only connections that are managed, by their names; all if it is not set. */
  other_connections_than: z.array(z.string()).optional(),
  resourceServers: names,
  rules: names,
  /** Applications with `is_first_party: false`, and their client grants. */
  third_party_clients: z.boolean().default(false),
  /** Members of the items of a section, as paths such as `options.client_secret`. */
  members: z.record(z.string(), names).default({}),
  /** Whether what the file lacks stays. */
  removals: z.boolean().default(false),
});

export type Unmanaged = z.output<typeof unmanagedSchema>;

type ByName = 'clients' | 'databases' | 'connections' | 'resourceServers' | 'rules';

/** Returns whether an item of a section is not managed. */
export function isUnmanaged(
  unmanaged: Unmanaged | undefined,
  section: string,
  item: { readonly name?: unknown; readonly is_first_party?: unknown },
): boolean {
  if (unmanaged === undefined) return false;
  if (unmanaged.sections.includes(section)) return true;
  const name = String(item.name);
  if (section === 'clients' && unmanaged.third_party_clients && item.is_first_party === false) return true;
  if (section === 'connections' && unmanaged.other_connections_than?.includes(name) === false) return true;
  return ['clients', 'databases', 'connections', 'resourceServers', 'rules'].includes(section)
    ? unmanaged[section as ByName].includes(name)
    : false;
}
