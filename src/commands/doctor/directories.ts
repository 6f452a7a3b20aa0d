// Checks whether directories tell their users from all earlier ones.
import { createDirectories } from '../../features/connections/ldap/directories.ts';
import { isDirectory, namesWarning } from '../../features/connections/ldap/nameless.ts';
import { AuthError } from '../../http/errors.ts';
import type { Outbound } from '../../http/outbound/outbound.ts';
import type { Connection } from '../../records/collections.ts';
import type { TenantFile } from '../../records/tenant/tenant.ts';
import type { Clock } from '../../runtime/clock.ts';
import { type Finding, findings, messageOf } from './finding.ts';

const directoryFindings = findings('directories');

/** Asks the directories of the tenant file, one after the other. */
export async function checkDirectories(
  connections: TenantFile['connections'],
  deps: { outbound: Outbound; clock: Clock },
): Promise<Finding[]> {
  const directories = createDirectories(deps);
  const found: Finding[] = [];
  try {
    for (const one of connections.filter((each) => isDirectory(each) && each.options.LDAP_URL)) {
      const connection = { ...one, id: one.name } as Connection;
      const finding = await namesWarning(directories, connection).then(
        (text) =>
          text === undefined
            ? directoryFindings.ok(`that of ${one.name} has ids of its own`)
            : directoryFindings.warning(text),
        (thrown) => directoryFindings.fault(`nobody can log in with ${one.name} now: ${reasonOf(thrown)}`),
      );
      found.push(finding);
    }
    return found;
  } finally {
    await directories.close();
  }
}

/** Returns what the directory or the network answered, which a login does not tell. */
function reasonOf(thrown: unknown): string {
  const cause = thrown instanceof AuthError ? thrown.cause : undefined;
  return messageOf(cause ?? thrown);
}
