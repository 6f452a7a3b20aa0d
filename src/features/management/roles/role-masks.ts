// Masks secrets in answers of the Management API, for roles that may read everything but change nothing.

import { isNamedSecret } from '../../../records/secrets.ts';
import { fieldsOf } from '../search/lucene.ts';

/**
 * Names of members that are masked although they do not name a secret: they grant access, or viewers do not need
 * them.
 */
const MASKED_NAMES =
  /token|private|assertion|authorization|^(pem|key|code|script|certificate|cert|configuration|customscripts|scripts|ticket|ticket_url|invitation_url|link)$/i;

/** Names of members that match one of these words but hold no secret. */
const UNMASKED_NAMES: ReadonlySet<string> = new Set([
  'token_endpoint_auth_method',
  'token_dialect',
  'token_lifetime',
  'token_lifetime_for_web',
  'passwordPolicy',
  'password_options',
  'last_password_reset',
  'credential_type',
  'id_token_signed_response_alg',
  'subject_type_authorization',
]);

export const isMasked = (name: string): boolean =>
  (isNamedSecret(name) || MASKED_NAMES.test(name)) && !UNMASKED_NAMES.has(name);

/**
 * Reports whether one of these texts is a search by a member that is masked: by its results the member could be found
 * out letter by letter.
 */
export const searchesMasked = (texts: readonly string[]): boolean =>
  texts.some((text) => [...fieldsOf(text)].some((field) => field.split('.').some(isMasked)));

const MASK = '•••';

/** Returns a copy in which secrets are masked; the mask shows that there is one. */
export function withoutSecrets(value: unknown, isSecret = false): unknown {
  if (Array.isArray(value)) return value.map((item) => withoutSecrets(item, isSecret));
  if (typeof value === 'object' && value !== null) {
    return Object.fromEntries(
      Object.entries(value).map(([name, member]) => [
        name,
        withoutSecrets(member, isSecret || isMasked(name)),
      ]),
    );
  }
  return isSecret && typeof value === 'string' && value !== '' ? MASK : value;
}
