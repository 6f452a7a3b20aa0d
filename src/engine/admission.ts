// Whether a user who has proved who they are may come in. Asked at every place where a login ends
// (tokens.ts, interaction.ts) and whenever the engine looks a user up, so that no path can skip it.
import { AuthError } from '../http/errors.ts';
import type { UserRecord } from '../store/collections.ts';
import type { Frozen } from '../store/contract.ts';

/**
 * Decides on a user's admission.
 * @returns why not, as the error to answer; undefined when the user may come in.
 */
export function admit(user: Frozen<UserRecord>): AuthError | undefined {
  // "user is blocked" is compared by SDKs (wire-details 0.5).
  if (user.blocked === true) return new AuthError(403, 'unauthorized', 'user is blocked');
  return undefined;
}
