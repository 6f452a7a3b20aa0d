// Package names, and the targets of `exports` and `imports` in `package.json` (Node.js documentation, "Packages").
// docs/decisions/actions-scripts.md#the-exports-of-a-package-are-read-by-our-own-code

/** The form of a package's name, with its scope. */
const NAME = /^(?:@[a-z0-9~_-][a-z0-9~._-]*\/)?[a-z0-9~_-][a-z0-9~._-]*$/i;

/** @returns a package's name and the path in it; undefined where the specifier names no package. */
export function packageOf(specifier: string): { name: string; path: string } | undefined {
  const words = specifier.split('/');
  const count = specifier.startsWith('@') ? 2 : 1;
  const name = words.slice(0, count).join('/');
  return NAME.test(name) ? { name, path: words.slice(count).join('/') } : undefined;
}

/**
 * The conditions that hold in the sandbox, which is not Node.js. CommonJS is preferred, because modules are converted
 * to it.
 */
const CONDITIONS = [new Set(['browser', 'require', 'default']), new Set(['browser', 'import', 'default'])];

/**
 * Returns the path that an entry leads to, relative to the package's folder.
 * @param entry `.`, `./path` or `#name`.
 * @returns undefined where the package has no such entry.
 */
export function exportedTarget(entries: unknown, entry: string): string | undefined {
  const isOne = !isObject(entries) || !Object.keys(entries).some((key) => /^[.#]/.test(key));
  const all: Record<string, unknown> = isOne ? { '.': entries } : (entries as Record<string, unknown>);
  for (const conditions of CONDITIONS) {
    const target = matched(all, entry, conditions);
    if (target !== undefined) return target;
  }
  return undefined;
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null;

function matched(
  entries: Record<string, unknown>,
  entry: string,
  conditions: ReadonlySet<string>,
): string | undefined {
  if (Object.hasOwn(entries, entry)) return targetOf(entries[entry], conditions);
  // The pattern with the longest part before its `*` comes first, and of those the longest.
  const patterns = Object.keys(entries)
    .filter((key) => key.includes('*'))
    .sort((a, b) => b.indexOf('*') - a.indexOf('*') || b.length - a.length);
  for (const pattern of patterns) {
    const [before = '', after = ''] = pattern.split('*');
    const isIt =
      entry.startsWith(before) && entry.endsWith(after) && entry.length > before.length + after.length;
    if (!isIt) continue;
    const middle = entry.slice(before.length, entry.length - after.length);
    return targetOf(entries[pattern], conditions)?.replaceAll('*', middle);
  }
  return undefined;
}

function targetOf(target: unknown, conditions: ReadonlySet<string>): string | undefined {
  if (typeof target === 'string') return target;
  const choices: unknown[] = Array.isArray(target)
    ? target
    : isObject(target)
      ? Object.entries(target).flatMap(([condition, of]) => (conditions.has(condition) ? [of] : []))
      : [];
  for (const choice of choices) {
    const found = targetOf(choice, conditions);
    if (found !== undefined) return found;
  }
  return undefined;
}
