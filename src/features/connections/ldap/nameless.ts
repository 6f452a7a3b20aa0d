// The warning about a directory that gives its entries no id of their own.
import type { Connection } from '../../../records/collections.ts';
import { ldapOptions } from '../../../records/connections/ldap.ts';
import type { Directories } from './directories.ts';
import { directoryStrategies } from './ldap-strategy.ts';

export function isDirectory({ strategy }: Pick<Connection, 'strategy'>): boolean {
  return directoryStrategies.some(({ name }) => name === strategy);
}

/**
 * Asks a directory whether it shows ids of its own, and returns what the operator is told if it does not: users are then
 * identified by a name.
 * @throws AuthError 503 if it cannot be asked.
 */
export async function namesWarning(
  directories: Pick<Directories, 'hasOwnIds'>,
  connection: Connection,
): Promise<string | undefined> {
  if (await directories.hasOwnIds(connection)) return undefined;
  const chosen = ldapOptions(connection)?.LDAP_UNIQUE_ID;
  const shown = chosen === undefined ? 'neither objectGUID nor entryUUID' : `no ${chosen}`;
  const instead = chosen === undefined ? ': LDAP_UNIQUE_ID may name another id that it has' : '';
  return `the directory of ${connection.name} shows ${shown}: its users are identified by uid, and whoever is given the uid of an earlier user gets the account${instead}`;
}
