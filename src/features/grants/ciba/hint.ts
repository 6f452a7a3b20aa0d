// Finds the user of a CIBA request by its `login_hint`: a subject identifier (RFC 9493 §3.2.3).
import { z } from 'zod';
import { admissionError } from '../../../engine/admission.ts';
import { AuthError } from '../../../http/errors.ts';
import { jsonOf } from '../../../runtime/json.ts';
import type { User } from '../../../users/user.ts';
import type { Users } from '../../../users/users.ts';

const subject = z.object({
  format: z.literal('iss_sub'),
  iss: z.string(),
  sub: z.string().min(1).max(300),
});

export interface HintDependencies {
  issuer: string;
  users: Users;
  /** Whether a connection is enabled for an application. */
  hasRealm(clientId: string, realm: string): Promise<boolean>;
}

/**
 * Returns the user of a hint, and that connection of the user which is enabled for the application. A user of other
 * connections, and one who may not log in, counts as unknown: nobody asks their devices.
 * @throws AuthError 400 `unknown_user_id`
 */
export async function hintedUser(
  { issuer, users, hasRealm }: HintDependencies,
  clientId: string,
  hint: string,
): Promise<{ user: User; connection: string }> {
  const parsed = subject.safeParse(jsonOf(hint));
  const isOurs = parsed.success && parsed.data.iss.replace(/\/$/, '') === issuer.replace(/\/$/, '');
  const user = isOurs ? await users.get(parsed.data.sub) : undefined;
  const isAdmitted = user !== undefined && admissionError(user) === undefined;
  for (const { connection } of isAdmitted ? await users.identitiesOf(user.id) : []) {
    if (isAdmitted && (await hasRealm(clientId, connection))) return { user, connection };
  }
  throw new AuthError(400, 'unknown_user_id', 'User ID is malformed or unknown');
}
