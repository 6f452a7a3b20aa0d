// Which members of a record are secrets: they are on no page until somebody asks for them.
import { isDeepStrictEqual } from 'node:util';
import { isNamedSecret } from '../../records/secrets.ts';

/** What stands in place of a secret. */
export const HIDDEN = '••••••••';

/** Beside what is a secret in any record. */
const SECRET = /private|token|api_?key|access_?key|authorization|^totp$/i;
/** Names that have such a word in them, and say how, not what. */
const HARMLESS =
  /(policy|method|methods|alg|algorithm|dialect|type|types|lifetime|url|uri|uris|strategy|endpoint|mode|_id|encoded|format|history|level|usage|expires_in|expiration|rotation|audience|location)$/i;
/** Objects whose members are secrets, whatever they are called. */
const ALL_SECRET = /^(configuration|setup|signing_?key|decryption_?key)$|secrets$|custom_?headers$/i;

/** Whether a text member of that name is a secret. */
export const isSecretName = (name: string): boolean =>
  (isNamedSecret(name) || SECRET.test(name)) && !HARMLESS.test(name);

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
 * A value that was shown with its secrets hidden and then edited, with the secrets that were left as they were. A record in a
 * list is known by all that is shown of it, so that none gets the secret of another that has moved or gone.
 * @param before as it is stored. @param name of the member.
 * @returns undefined in place of a hidden text where it is not known which secret is meant.
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

/** What is asked for, with those secrets hidden that stay as they are: {@link withSecrets} puts them back. */
export function withKeptHidden(after: unknown, before: unknown): unknown {
  const shown = keptHidden(after, before, '', false);
  // Of records that look alike it may not be known which one is meant.
  return isDeepStrictEqual(withSecrets(shown, before), after) ? shown : after;
}

function keptHidden(after: unknown, before: unknown, name: string, isWithinSecret: boolean): unknown {
  if (typeof after === 'string') return after === before ? hidden(after, name, isWithinSecret) : after;
  if (Array.isArray(after)) {
    const all: unknown[] = Array.isArray(before) ? before : [];
    const isKept = (item: unknown) => all.some((one) => isDeepStrictEqual(one, item));
    return after.map((item) => (isKept(item) ? hidden(item, name, isWithinSecret) : item));
  }
  if (typeof after !== 'object' || after === null) return after;
  const base = typeof before === 'object' && before !== null ? (before as Record<string, unknown>) : {};
  const isWithin = isWithinSecret || ALL_SECRET.test(name);
  return Object.fromEntries(
    Object.entries(after).map(([member, value]) => [
      member,
      keptHidden(value, Object.hasOwn(base, member) ? base[member] : undefined, member, isWithin),
    ]),
  );
}

/** An item of a list with its secrets. */
function withSecretsOf(
  item: unknown,
  before: unknown,
  { index, name }: { index: number; name: string },
): unknown {
  const shown = JSON.stringify(item);
  if (!shown.includes(HIDDEN)) return item;
  const all: unknown[] = Array.isArray(before) ? before : [];
  const isIt = (one: unknown) => one !== undefined && JSON.stringify(hidden(one, name)) === shown;
  const same = all.filter(isIt);
  // Several that look alike are told by their places alone.
  const found = same.length === 1 ? same[0] : isIt(all[index]) && all.length > 0 ? all[index] : undefined;
  return found ?? withSecrets(item, undefined, name);
}
