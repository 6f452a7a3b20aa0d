// The user here whom the old tenant has proved. Users keep their ids, so it is the one with the same id.
import { admissionError } from '../../engine/admission/admission.ts';
import { endsOf } from '../../engine/base/signed-tokens.ts';
import type { Frozen } from '../../records/base/record.ts';
import { DATABASE } from '../../records/connections/connections.ts';
import type { MoveRecord } from '../../records/tenant/move.ts';
import type { Config } from '../../tenant/config.ts';
import type { User } from '../../users/user.ts';
import type { Users } from '../../users/users.ts';
import type { DatabaseRequest } from '../connections/database/custom/custom-run.ts';
import type { OldDirectory } from './old-directory.ts';

export interface OldUserDependencies {
  /** Those of the tenant: an administrator is never proved by the old tenant. */
  tenantUsers: Pick<Users, 'get' | 'identitiesOf'>;
  bringUser: BringUser;
}

/**
 * Makes a user who is not here yet, as their first login would.
 * @returns undefined where the passwords of their connection are not accepted either, or the old tenant has no such user.
 */
type BringUser = (move: Frozen<MoveRecord>, userId: string) => Promise<User | undefined>;

interface BringDependencies {
  config: Pick<Config, 'connection'>;
  oldDirectory: Pick<OldDirectory, 'get'>;
  /** Looks a user up as a database connection does, and makes them. */
  findInCustomDatabase(asked: DatabaseRequest): Promise<User | undefined>;
}

export function bringUserFrom({ config, oldDirectory, findInCustomDatabase }: BringDependencies): BringUser {
  return async (move, userId) => {
    const user = await oldDirectory.get(move, userId);
    const identity = user?.identities.find(
      ({ provider, user_id: id }) => provider === DATABASE && `${DATABASE}|${id}` === userId,
    );
    const connection = identity && (await config.connection(identity.connection));
    const identifier = user?.email ?? user?.username ?? user?.phone_number;
    if (connection?.strategy !== DATABASE || !identifier) return undefined;
    return findInCustomDatabase({ connection, identifier });
  };
}

/** A user whom the old tenant has proved and who is not let in here. The message is for the log. */
export class NotAdmitted extends Error {}

/**
 * Returns the user of an old session or token.
 * @param provedAt when the user proved to the old tenant who they are, epoch seconds; undefined where that is not known.
 * @throws NotAdmitted
 */
export async function userOfProof(
  { tenantUsers, bringUser }: OldUserDependencies,
  move: Frozen<MoveRecord>,
  userId: string,
  provedAt: number | undefined,
): Promise<User> {
  const user = (await tenantUsers.get(userId)) ?? (await bringUser(move, userId));
  if (user?.id !== userId) throw new NotAdmitted('its user is not here');
  if (admissionError(user) !== undefined) throw new NotAdmitted('its user is blocked here');
  // What is older than the move was the old tenant's to judge.
  const opened = Date.parse(move.opened_at);
  const ends = endsOf(user).filter((at) => at >= opened);
  const isEnded = ends.some((at) => provedAt === undefined || provedAt * 1000 < at);
  if (isEnded) throw new NotAdmitted('the access of its user was ended here, or the password changed');
  return user;
}

/** Returns the connection that a user has logged in with, where there is only one. */
export async function onlyConnection(
  { tenantUsers }: Pick<OldUserDependencies, 'tenantUsers'>,
  userId: string,
): Promise<string | undefined> {
  const [first, ...others] = await tenantUsers.identitiesOf(userId);
  return others.length === 0 ? first?.connection : undefined;
}

/** The most methods of a proof that are taken over, and the characters of one. */
const MAX_METHODS = 10;
const METHOD = /^[\w.:-]{1,50}$/;

/** Returns the authentication methods of an ID token of the old tenant (RFC 8176 §2), nothing else counts as one. */
export function methodsIn(amr: unknown): string[] {
  if (!Array.isArray(amr)) return [];
  return amr.filter((one) => typeof one === 'string' && METHOD.test(one)).slice(0, MAX_METHODS);
}
