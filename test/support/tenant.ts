// The test tenant with what a test needs beside it.
import { tenant } from './flows.ts';

interface Application {
  client_id: string;
  grant_types: readonly string[];
  refresh_token?: object;
}

/** What the changes of a tenant are made from: the test tenant, or that of a folder of tests. */
interface Base {
  clients: readonly Application[];
  databases: readonly { enabled_clients: readonly string[] }[];
}

interface Changes {
  /** Members of applications, by `client_id`. */
  change?: Record<string, object | ((client: Application) => object)>;
  /** Records beside those of the tenant, by section. */
  add?: Record<string, readonly object[]>;
  /** Applications with which the users of all databases may log in, too. */
  enable?: readonly string[];
  /** Any other section, instead of the tenant's. */
  [section: string]: unknown;
}

/** Returns a tenant with changes. @param base by default the test tenant. */
export function tenantWith<T extends Base = typeof tenant>(
  { change = {}, add = {}, enable = [], ...sections }: Changes,
  base?: T,
): T {
  const { clients, databases, ...others } = { ...(base ?? tenant), ...sections } as T & Base;
  const unknown = Object.keys(change).filter((id) => clients.every(({ client_id }) => client_id !== id));
  if (unknown.length > 0) throw new Error(`the tenant has no ${unknown}`);
  const changed: Record<string, unknown> = {
    ...others,
    clients: clients.map((client) => {
      const members = change[client.client_id];
      return { ...client, ...(typeof members === 'function' ? members(client) : members) };
    }),
    databases: databases.map((one) => ({ ...one, enabled_clients: [...one.enabled_clients, ...enable] })),
  };
  for (const [section, records] of Object.entries(add))
    changed[section] = [...((changed[section] ?? []) as object[]), ...records];
  return changed as T;
}

/** Returns the sections of a tenant file whose actions run at a trigger, in this order. @param codes by their names. */
export function actionsAt(trigger: string, codes: Record<string, string>) {
  const supported_triggers = [{ id: trigger }];
  return {
    actions: Object.entries(codes).map(([name, code]) => ({
      name,
      code,
      deployed: true,
      supported_triggers,
    })),
    triggers: { [trigger]: Object.keys(codes).map((action_name) => ({ action_name })) },
  };
}
