// Compares a record with a change of it, member by member.
import { isDeepStrictEqual } from 'node:util';
import { isObject } from '../../management/section.ts';
import { HIDDEN, hasSecrets, maskSecrets } from './secrets.ts';

/** A member that changes. */
interface Difference {
  /** The path of the member: `jwt_configuration.alg`. */
  path: string;
  /** JSON with secrets masked; undefined when the member did not exist. */
  before: string | undefined;
  /** Undefined when the member is removed. */
  after: string | undefined;
}

/**
 * Returns the differences between a record and a change of it.
 * @param after the members that are sent; null removes one.
 */
export function differences(
  before: Readonly<Record<string, unknown>>,
  after: Readonly<Record<string, unknown>>,
  path: readonly string[] = [],
): Difference[] {
  return Object.entries(after).flatMap(([name, value]) => {
    const at = [...path, name];
    const old = Object.hasOwn(before, name) ? before[name] : undefined;
    if (isDeepStrictEqual(old, value) || (old === undefined && value === null)) return [];
    if (isObject(old) && isObject(value)) return differences(old, withAbsent(old, value), at);
    return [{ path: at.join('.'), ...shownPair(name, old, value) }];
  });
}

/**
 * Returns the new object with undefined for members that it no longer has: a nested object is replaced as a whole.
 */
const withAbsent = (before: object, after: Record<string, unknown>): Record<string, unknown> => ({
  ...Object.fromEntries(Object.keys(before).map((name) => [name, undefined])),
  ...after,
});

function shownPair(name: string, before: unknown, after: unknown): Pick<Difference, 'before' | 'after'> {
  const shown = (value: unknown) =>
    value === undefined || value === null ? undefined : textOf(maskSecrets(value, name));
  const isSecret = hasSecrets({ [name]: before }) || hasSecrets({ [name]: after });
  const pair = { before: shown(before), after: shown(after) };
  // Two masked secrets look the same, so a mark shows that the secret changes.
  return isSecret && pair.before === pair.after && pair.after === HIDDEN
    ? { ...pair, after: `${HIDDEN} *` }
    : pair;
}

const textOf = (value: unknown): string =>
  typeof value === 'string' ? value : JSON.stringify(value, null, 2);
