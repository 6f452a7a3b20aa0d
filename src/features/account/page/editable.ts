// What a user may change at the account page. What another provider says of them is changed there.

import type { Connection } from '../../../records/collections.ts';
import { strategyRecord } from '../../../records/connections/connections.ts';
import { ADDRESS_KINDS } from '../../../records/connections/identities.ts';
import { changesPasswords, customDatabase } from '../../../records/database-options.ts';
import { CONSOLE_DIRECTORY } from '../../../records/users/administrators.ts';
import type { Config } from '../../../tenant/config.ts';
import { type Identity, primaryIdentity } from '../../../users/changes.ts';
import type { Users } from '../../../users/users.ts';

/** The identity that a user was created with, and what they may change of their account. */
interface Editable {
  identity: Identity;
  connection: Connection;
  /** Whether the profile is stored only here. */
  editsProfile: boolean;
  /** Whether the e-mail address is managed here: for users of a database whose users are stored here. */
  editsEmail: boolean;
  editsPassword: boolean;
}

/** Returns what a user may change; undefined when their connection was deleted. */
export async function editableOf(
  { config, users }: { config: Pick<Config, 'connection'>; users: Pick<Users, 'identitiesOf'> },
  userId: string,
): Promise<Editable | undefined> {
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
    // Administrators cannot change their address: owners invite them by it.
    editsEmail: isDatabase && !isElsewhere && connection.name !== CONSOLE_DIRECTORY,
    // Administrators change passwords in the console, whose pages run no scripts of the tenant.
    editsPassword:
      isDatabase &&
      connection.name !== CONSOLE_DIRECTORY &&
      changesPasswords(connection) &&
      ADDRESS_KINDS.some((kind) => identity[kind] !== undefined),
  };
}
