// What a change of a record changes, member by member.
import { isDeepStrictEqual } from 'node:util';
import { isObject } from '../../management/section.ts';
import { HIDDEN, hasSecrets, hidden } from './secrets.ts';

/** A member that changes. */
interface Difference {
  /** `jwt_configuration.alg`. */
  path: string;
  /** As JSON, without secrets; undefined for what was not there. */
  before: string | undefined;
  /** undefined for what is taken away. */
  after: string | undefined;
}

/**
 * What differs between a record and what it is to become.
 * @param after the members that are sent alone; null takes one away.
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

/** The new object, and undefined for what it has no longer: an object within a record is sent as a whole. */
const withAbsent = (before: object, after: Record<string, unknown>): Record<string, unknown> => ({
  ...Object.fromEntries(Object.keys(before).map((name) => [name, undefined])),
  ...after,
});

function shownPair(name: string, before: unknown, after: unknown): Pick<Difference, 'before' | 'after'> {
  const shown = (value: unknown) =>
    value === undefined || value === null ? undefined : textOf(hidden(value, name));
  const isSecret = hasSecrets({ [name]: before }) || hasSecrets({ [name]: after });
  const pair = { before: shown(before), after: shown(after) };
  // Two secrets look alike: that it is another one is said.
  return isSecret && pair.before === pair.after && pair.after === HIDDEN
    ? { ...pair, after: `${HIDDEN} *` }
    : pair;
}

const textOf = (value: unknown): string =>
  typeof value === 'string' ? value : JSON.stringify(value, null, 2);
