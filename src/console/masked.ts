// Answers of the Management API as those see them who may look at everything, and change nothing: without what opens something.

import { isNamedSecret } from '../records/secrets.ts';

/** Beside what is a secret by its name: what viewers need not see of what they may read. */
const HELD_BACK =
  /token|private|assertion|authorization|^(pem|key|code|script|certificate|cert|configuration|customscripts|scripts|ticket|ticket_url|invitation_url|link)$/i;

/** Members whose names have such a word in them, and are none. */
const KNOWN: ReadonlySet<string> = new Set([
  'token_endpoint_auth_method',
  'token_dialect',
  'token_lifetime',
  'token_lifetime_for_web',
  'passwordPolicy',
  'password_options',
  'last_password_reset',
  'credential_type',
  'id_token_signed_response_alg',
]);

/** Whether a member of that name is no viewer's to see. */
export const isHeldBack = (name: string): boolean =>
  (isNamedSecret(name) || HELD_BACK.test(name)) && !KNOWN.has(name);

const MASK = '•••';

/** A copy without secrets: what is said in its place shows that there is one. */
export function withoutSecrets(value: unknown, isSecret = false): unknown {
  if (Array.isArray(value)) return value.map((item) => withoutSecrets(item, isSecret));
  if (typeof value === 'object' && value !== null) {
    return Object.fromEntries(
      Object.entries(value).map(([name, member]) => [
        name,
        withoutSecrets(member, isSecret || isHeldBack(name)),
      ]),
    );
  }
  return isSecret && typeof value === 'string' && value !== '' ? MASK : value;
}
