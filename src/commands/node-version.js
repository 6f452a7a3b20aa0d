// Versions of Node.js. JavaScript, because an older Node.js, which this recognizes, does not load TypeScript.
import { createRequire } from 'node:module';

/**
 * Reports whether a version is older than another; missing numbers count as 0.
 * @param {string} version
 * @param {string} than
 */
export function isOlder(version, than) {
  /** @param {string} text */
  const numbers = (text) => text.split('.').map((part) => Number.parseInt(part, 10) || 0);
  const [has, needs] = [numbers(version), numbers(than)];
  const first = [0, 1, 2].find((index) => (has[index] ?? 0) !== (needs[index] ?? 0));
  return first !== undefined && (has[first] ?? 0) < (needs[first] ?? 0);
}

/**
 * Reports whether this Node.js is supported. If not, it says so on standard error, and the process will exit with 1.
 * @param {string} program the URL of the program: its folder is next to package.json, built and not built.
 */
export function checkNodeVersion(program) {
  const { engines } = createRequire(program)('../package.json');
  const needed = engines.node.replace(/^>=/, '');
  const { node } = process.versions;
  if (!isOlder(node, needed)) return true;
  process.stderr.write(`gatehouse needs Node.js ${needed} or newer, and this is ${node}\n`);
  process.exitCode = 1;
  return false;
}
