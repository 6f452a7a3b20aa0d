// What of an account its user may change here: what another provider says of them is changed there.
import { CONSOLE_DIRECTORY } from '../../records/administrators.ts';
import type { Connection } from '../../records/collections.ts';
import { strategyRecord } from '../../records/connections.ts';
import { changesPasswords, customDatabase } from '../../records/database-options.ts';
import { ADDRESS_KINDS } from '../../records/identities.ts';
import type { Config } from '../../tenant/config.ts';
import { type Identity, primaryIdentity } from '../../users/identities.ts';
import type { Users } from '../../users/users.ts';

/** Where a user was made. */
interface Home {
  identity: Identity;
  connection: Connection;
  /** Whether name, picture and the like are kept here alone. */
  editsProfile: boolean;
  /** Whether the e-mail address is a matter of this server: of a database of its own. */
  editsEmail: boolean;
  editsPassword: boolean;
}

/** The home of a user; undefined where its connection is gone. */
export async function homeOf(
  { config, users }: { config: Pick<Config, 'connection'>; users: Pick<Users, 'identitiesOf'> },
  userId: string,
): Promise<Home | undefined> {
  const identity = primaryIdentity(await users.identitiesOf(userId));
  const connection = identity && (await config.connection(identity.connection));
  if (identity === undefined || connection === undefined) return undefined;
  const strategy = strategyRecord(connection.strategy);
  const isDatabase = strategy?.isDatabase === true;
  const isHere = strategy !== undefined && strategy.isUpstream !== true;
  const isElsewhere = customDatabase(connection) === 'elsewhere';
  return {
    identity,
    connection,
    editsProfile: isHere && !isElsewhere,
    // Owners invite by the address: it is theirs to say.
    editsEmail: isDatabase && !isElsewhere && connection.name !== CONSOLE_DIRECTORY,
    // Administrators do that at the console, where nothing is the tenant's.
    editsPassword:
      isDatabase &&
      connection.name !== CONSOLE_DIRECTORY &&
      changesPasswords(connection) &&
      ADDRESS_KINDS.some((kind) => identity[kind] !== undefined),
  };
}
