// The user here whom the old tenant has proved. Users keep their ids, so it is the one with the same id.
import { admissionError } from '../../engine/admission/admission.ts';
import { endsOf } from '../../engine/base/signed-tokens.ts';
import type { MoveRecord } from '../../records/tenant/move.ts';
import type { User } from '../../users/user.ts';
import type { Users } from '../../users/users.ts';

export interface OldUserDependencies {
  /** Those of the tenant: an administrator is never proved by the old tenant. */
  tenantUsers: Pick<Users, 'get' | 'identitiesOf'>;
}

/** A user whom the old tenant has proved and who is not let in here. The message is for the log. */
export class NotAdmitted extends Error {}

/**
 * Returns the user of an old session or token.
 * @param provedAt when the user proved to the old tenant who they are, epoch seconds; undefined where that is not known.
 * @throws NotAdmitted
 */
export async function userOfProof(
  { tenantUsers }: OldUserDependencies,
  move: Pick<MoveRecord, 'opened_at'>,
  userId: string,
  provedAt: number | undefined,
): Promise<User> {
  const user = await tenantUsers.get(userId);
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
