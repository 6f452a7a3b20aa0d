// Which members of a record are secrets: they are on no page until somebody asks for them.

/** What stands in place of a secret. */
export const HIDDEN = '••••••••';

const SECRET =
  /secret|password|passphrase|private|credential|token|api_?key|access_?key|authorization|^(auth|pkcs7|totp|smtp_pass)$/i;
/** Names that have such a word in them, and say how, not what. */
const HARMLESS =
  /(policy|method|methods|alg|algorithm|dialect|type|types|lifetime|url|uri|uris|strategy|endpoint|mode|_id|encoded|format|history|level|usage|expires_in|expiration|rotation|audience|location)$/i;
/** Objects whose members are secrets, whatever they are called. */
const ALL_SECRET = /^(configuration|secrets|custom_?headers)$/i;

/** Whether a text member of that name is a secret. */
export const isSecretName = (name: string): boolean => SECRET.test(name) && !HARMLESS.test(name);

/** A copy of a value with {@link HIDDEN} in place of its secrets. */
export function hidden(value: unknown, name = '', isWithinSecret = false): unknown {
  if (typeof value === 'string')
    return value !== '' && (isWithinSecret || isSecretName(name)) ? HIDDEN : value;
  if (Array.isArray(value)) return value.map((item) => hidden(item, name, isWithinSecret));
  if (typeof value !== 'object' || value === null) return value;
  const isWithin = isWithinSecret || ALL_SECRET.test(name);
  return Object.fromEntries(
    Object.entries(value).map(([member, inner]) => [member, hidden(inner, member, isWithin)]),
  );
}

/** Whether there is something in a value that {@link hidden} hides. */
export function hasSecrets(value: unknown): boolean {
  return JSON.stringify(hidden(value)) !== JSON.stringify(value);
}

/**
 * A value that was shown with its secrets hidden and then edited, with the secrets that were left as they were.
 * @param before as it is stored.
 * @returns undefined in place of a hidden text where there is no secret at that place.
 */
export function withSecrets(edited: unknown, before: unknown): unknown {
  if (edited === HIDDEN) return typeof before === 'string' ? before : undefined;
  if (Array.isArray(edited))
    return edited.map((item, index) => withSecrets(item, Array.isArray(before) ? before[index] : undefined));
  if (typeof edited !== 'object' || edited === null) return edited;
  const base = typeof before === 'object' && before !== null ? (before as Record<string, unknown>) : {};
  return Object.fromEntries(
    Object.entries(edited).map(([name, value]) => [
      name,
      withSecrets(value, Object.hasOwn(base, name) ? base[name] : undefined),
    ]),
  );
}
