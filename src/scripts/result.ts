// What a script has answered, as data.

/** JSON as data. To look at each member takes long, and is for what has such a name, as it is or with an escape. */
export const dataOf = (json: string): unknown =>
  /__proto__|\\u/i.test(json) ? JSON.parse(json, asData) : JSON.parse(json);

/** Without what would become the prototype of a copy. */
const asData = (key: string, value: unknown) => (key === '__proto__' ? undefined : value);

/** Levels of nesting. What copies a value, or writes it as JSON, takes a call for each level, and thousands are too many. */
const DEEPEST = 100;

/** Whether some of a result is nested deeper than any may be. Without recursion: the script chooses the depth. */
export function isTooDeep(data: unknown): boolean {
  let level = [data].filter(isNesting);
  for (let depth = 1; level.length > 0; depth++) {
    if (depth > DEEPEST) return true;
    level = level.flatMap((one) => Object.values(one).filter(isNesting));
  }
  return false;
}

const isNesting = (value: unknown): value is object => typeof value === 'object' && value !== null;
