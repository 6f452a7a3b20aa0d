// Versions of Node.js.

/** Reports whether a version is older than another; missing numbers count as 0. */
export function isOlder(version: string, than: string): boolean {
  const numbers = (text: string) => text.split('.').map((part) => Number.parseInt(part, 10) || 0);
  const [has, needs] = [numbers(version), numbers(than)];
  const first = [0, 1, 2].find((index) => (has[index] ?? 0) !== (needs[index] ?? 0));
  return first !== undefined && (has[first] ?? 0) < (needs[first] ?? 0);
}
