// Checks on the result of a script before it is used as data.

/**
 * Parses JSON, without members named `__proto__`. Only a text with such a name, plain or escaped, is parsed with a
 * reviver, which is slow.
 */
export const dataOf = (json: string): unknown =>
  /__proto__|\\u/i.test(json) ? JSON.parse(json, asData) : JSON.parse(json);

/** Leaves out the member that would become the prototype of a copy. */
const asData = (key: string, value: unknown) => (key === '__proto__' ? undefined : value);

/**
 * Deepest nesting of a result. Copying a value or writing it as JSON recurses for each level, and thousands would
 * exhaust the stack.
 */
const MAX_DEPTH = 100;

/**
 * Reports whether a result is nested deeper than {@link MAX_DEPTH}. It does not recurse, because the script chooses the
 * depth.
 */
export function isTooDeep(data: unknown): boolean {
  let level = [data].filter(isNesting);
  for (let depth = 1; level.length > 0; depth++) {
    if (depth > MAX_DEPTH) return true;
    level = level.flatMap((one) => Object.values(one).filter(isNesting));
  }
  return false;
}

const isNesting = (value: unknown): value is object => typeof value === 'object' && value !== null;
