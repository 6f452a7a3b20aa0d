// Judges the regular expressions of src and sandbox: one that takes time in the square of a text, or worse, lets whoever
// sends the text stop the server. Judging one takes up to seconds, and longer on a busy machine, so those that were found
// safe are kept in safe.txt, which has all of them: what a check says does not depend on the time that it had.
//
//   node test/regexes/check.ts          judges and reports those that are not in the list; part of npm run check
//   node test/regexes/check.ts --write  adds to the list what was found safe, and removes what is gone
//   node test/regexes/check.ts --all    judges every one again, as after a new version of the checker
// docs/understand/decisions/code-tests.md#regular-expressions-are-judged-by-recheck-in-npm-run-check
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { EXCEPTIONS } from './exceptions.ts';
import { type Found, regexesIn } from './find.ts';

/** The repository, or another directory that is given as the last argument. */
const given = process.argv.slice(2).find((one) => !one.startsWith('--'));
const ROOT = given ?? fileURLToPath(new URL('../../', import.meta.url));
const LIST = new URL('./safe.txt', import.meta.url);
/** Milliseconds for one expression, on a busy machine. */
const TIMEOUT_MS = 30_000;

const isAll = process.argv.includes('--all');
const isWriting = process.argv.includes('--write');
const listed = new Set(readFileSync(LIST, 'utf8').split('\n'));
const found = regexesIn(ROOT, ['src/**/*.{ts,js}', 'sandbox/**/*.js']);
const excepted = new Map(EXCEPTIONS.map((one) => [one.regex, one]));
const safe: string[] = [];
const faults: string[] = [];

for (const one of found) {
  if (excepted.has(one.text)) continue;
  const verdict = !isAll && listed.has(one.text) ? 'safe' : await judge(one);
  if (verdict === 'safe') {
    safe.push(one.text);
    if (given === undefined && !isWriting && !isAll && !listed.has(one.text))
      faults.push(`${one.places.join(', ')}: ${one.text}\n  safe: add it by --write`);
  } else faults.push(`${one.places.join(', ')}: ${one.text}\n  ${verdict}`);
}
const texts = new Set(found.map(({ text }) => text));
for (const { regex } of EXCEPTIONS) {
  if (given === undefined && !texts.has(regex)) faults.push(`exceptions.ts: there is no ${regex}`);
}
if (isWriting) writeFileSync(LIST, `${safe.sort().join('\n')}\n`);
if (faults.length > 0) {
  process.stderr.write(
    `Regular expressions that may take long, or are not listed yet. Change them, or name them in test/regexes/exceptions.ts:\n${faults.join('\n')}\n`,
  );
  process.exitCode = 1;
}

/** Returns `safe`, or what is wrong with an expression. */
async function judge({ text, isComputed }: Found): Promise<string> {
  if (isComputed) return 'it is computed, so it cannot be judged';
  // The checker's own programs need Java or a certain platform; this part of it runs everywhere.
  process.env.RECHECK_BACKEND = 'pure';
  const { checkSync } = await import('recheck');
  const end = text.lastIndexOf('/');
  const result = checkSync(text.slice(1, end), text.slice(end + 1), { timeout: TIMEOUT_MS, randomSeed: 1 });
  if (result.status === 'safe') return 'safe';
  if (result.status === 'unknown') return `it cannot be judged: ${result.error.kind}`;
  return `${result.complexity.summary}, for example for ${result.attack.pattern.slice(0, 200)}`;
}
