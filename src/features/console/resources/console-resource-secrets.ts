// Recognizes secrets in records. No page shows them unless the administrator asks for it.
import { isDeepStrictEqual } from 'node:util';
import { isNamedSecret } from '../../../records/secrets.ts';

/** Shown in place of a secret. */
export const HIDDEN = '••••••••';

/** Names of secrets, in addition to those that are recognized everywhere. */
const SECRET = /private|token|api_?key|access_?key|authorization|^totp$/i;
/** Endings of names that match but hold no secret. */
const HARMLESS =
  /(policy|method|methods|alg|algorithm|dialect|type|types|lifetime|url|uri|uris|strategy|endpoint|mode|_id|encoded|format|history|level|usage|expires_in|expiration|rotation|audience|location)$/i;
/** Objects all of whose members are secrets. */
const ALL_SECRET = /^(configuration|setup|signing_?key|decryption_?key)$|secrets$|custom_?headers$/i;

export const isSecretName = (name: string): boolean =>
  (isNamedSecret(name) || SECRET.test(name)) && !HARMLESS.test(name);

/** Returns a copy of a value with {@link HIDDEN} in place of its secrets. */
export function maskSecrets(value: unknown, name = '', isWithinSecret = false): unknown {
  if (typeof value === 'string')
    return value !== '' && (isWithinSecret || isSecretName(name)) ? HIDDEN : value;
  if (Array.isArray(value)) return value.map((item) => maskSecrets(item, name, isWithinSecret));
  if (typeof value !== 'object' || value === null) return value;
  const isWithin = isWithinSecret || ALL_SECRET.test(name);
  return Object.fromEntries(
    Object.entries(value).map(([member, inner]) => [member, maskSecrets(inner, member, isWithin)]),
  );
}

export function hasSecrets(value: unknown): boolean {
  return JSON.stringify(maskSecrets(value)) !== JSON.stringify(value);
}

/**
 * Puts the original secrets back into a value that was edited while they were hidden. A record inside a list is
 * identified by all of its visible content, so that none gets the secret of another that was moved or removed.
 * @param before the stored value.
 * @param name the name of its member.
 * @returns undefined in place of a hidden text that cannot be assigned to a secret.
 */
export function withSecrets(edited: unknown, before: unknown, name = ''): unknown {
  if (edited === HIDDEN) return typeof before === 'string' ? before : undefined;
  if (Array.isArray(edited)) return edited.map((item, index) => withSecretsOf(item, before, { index, name }));
  if (typeof edited !== 'object' || edited === null) return edited;
  const base = typeof before === 'object' && before !== null ? (before as Record<string, unknown>) : {};
  return Object.fromEntries(
    Object.entries(edited).map(([member, value]) => [
      member,
      withSecrets(value, Object.hasOwn(base, member) ? base[member] : undefined, member),
    ]),
  );
}

/** Returns the entered value with unchanged secrets hidden, from which {@link withSecrets} can restore it. */
export function maskUnchanged(after: unknown, before: unknown): unknown {
  const shown = maskUnchangedMembers(after, before, '', false);
  // For records that look alike the restored value may differ.
  return isDeepStrictEqual(withSecrets(shown, before), after) ? shown : after;
}

function maskUnchangedMembers(
  after: unknown,
  before: unknown,
  name: string,
  isWithinSecret: boolean,
): unknown {
  if (typeof after === 'string') return after === before ? maskSecrets(after, name, isWithinSecret) : after;
  if (Array.isArray(after)) {
    const all: unknown[] = Array.isArray(before) ? before : [];
    const isUnchanged = (item: unknown) => all.some((one) => isDeepStrictEqual(one, item));
    return after.map((item) => (isUnchanged(item) ? maskSecrets(item, name, isWithinSecret) : item));
  }
  if (typeof after !== 'object' || after === null) return after;
  const base = typeof before === 'object' && before !== null ? (before as Record<string, unknown>) : {};
  const isWithin = isWithinSecret || ALL_SECRET.test(name);
  return Object.fromEntries(
    Object.entries(after).map(([member, value]) => [
      member,
      maskUnchangedMembers(value, Object.hasOwn(base, member) ? base[member] : undefined, member, isWithin),
    ]),
  );
}

function withSecretsOf(
  item: unknown,
  before: unknown,
  { index, name }: { index: number; name: string },
): unknown {
  const shown = JSON.stringify(item);
  if (!shown.includes(HIDDEN)) return item;
  const all: unknown[] = Array.isArray(before) ? before : [];
  const isMatch = (one: unknown) => one !== undefined && JSON.stringify(maskSecrets(one, name)) === shown;
  const same = all.filter(isMatch);
  // Several items that look alike are only distinguished by their positions.
  const found = same.length === 1 ? same[0] : isMatch(all[index]) && all.length > 0 ? all[index] : undefined;
  return found ?? withSecrets(item, undefined, name);
}
