// `npm run test:near`: runs the tests that are nearest to a change, until their time is up.
//
// By their imports nearly all tests depend on nearly all of src, because they start a whole server. So nearness is measured
// by three signs, each worth more the fewer tests have it:
//   words    the test says what the changed lines say: names, wire names, messages, clauses of standards, words of its title
//   path     folders and names that test and file have in common: test/saml, src/features/saml
//   imports  the test reaches the file by few imports, without starting a server
// Where functions are changed that other files call, the tests that are nearest to these files are near, too.
// What a page shows is in templates and locales, so a template counts with its English texts, and with the code that names it.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const USAGE = `npm run test:near [-- [--seconds=N] [--since=COMMIT] [--list] [file…]]
Runs the tests nearest to the changed files: those given, or else what is not committed and the commits since main.
--seconds  when no further test is begun; 30 by default
--since    another commit instead of where main was left
--list     prints the test files, nearest first, and runs none`;

/** Most test files to begin. */
const MAX_FILES = 30;
/** Tests that are less near than this part of the nearest are left out. */
const MIN_NEARNESS = 0.1;
/** No test depends on these. */
const SILENT = /^bench\/|\.md$/;

process.chdir(fileURLToPath(new URL('../..', import.meta.url)));

/** A changed file. */
interface Changed {
  path: string;
  /** Lines that were added or removed; of a file that was named and has no changes, all. */
  lines: string;
  /** The functions around them. */
  around: string;
}

function git(...args: string[]): string {
  const { status, stdout } = spawnSync('git', args, { encoding: 'utf8', maxBuffer: 1 << 28 });
  return status === 0 ? stdout : '';
}

/** Returns the commit that a change begins at: where it left its upstream, or main. */
function base(): string {
  for (const branch of ['@{upstream}', 'main', 'origin/main']) {
    const found = git('merge-base', 'HEAD', branch).trim();
    if (found !== '') return found;
  }
  return 'HEAD';
}

function changes(named: readonly string[], since: string): Changed[] {
  const differences = git('diff', '--function-context', since)
    .split(/^diff --git /m)
    .slice(1);
  const changed = differences.map((text): Changed => {
    const [head = '', ...lines] = text.split('\n');
    const body = lines.slice(lines.findIndex((line) => line.startsWith('@@')) + 1);
    return {
      path: head.slice(head.indexOf(' b/') + 3),
      lines: body.filter((line) => /^[-+]/.test(line) && !isImport(line.slice(1))).join('\n'),
      around: body.filter((line) => line.startsWith(' ')).join('\n'),
    };
  });
  const whole = (path: string) => ({ path, lines: read(path), around: '' });
  if (named.length > 0)
    return named
      .map((name) => posix.normalize(name))
      .map((name) => changed.find(({ path }) => path === name) ?? whole(name));
  const untracked = git('ls-files', '--others', '--exclude-standard').split('\n').filter(Boolean);
  return [...changed, ...untracked.map(whole)];
}

const isImport = (line: string) => /^\s*(?:import\b|\} from '|(?:type )?\w+,$)/.test(line);

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => posix.join(parentPath, name));
}

/** Returns the words of a text: names as a whole and by their parts, without the `s` of a plural; and clauses of standards. */
function wordsOf(text: string): Set<string> {
  const words = new Set<string>(text.match(/RFC \d+|§[\d.]*\d/g));
  for (const [name] of text.matchAll(/[A-Za-z][A-Za-z0-9]*(?:[_-][A-Za-z0-9]+)*/g)) {
    const parts = name.split(/[_-]|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])/);
    if (parts.length > 1) words.add(name.toLowerCase());
    for (const part of parts) if (part.length > 1) words.add(part.toLowerCase().replace(/(?<=..[^s])s$/, ''));
  }
  return words;
}

/** How rare words are in a set of texts: 1 for what one has, 0 for what all have. */
function rarity(texts: readonly ReadonlySet<string>[]): (word: string) => number {
  const counts = new Map<string, number>();
  for (const words of texts) for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
  return (word) => Math.log(texts.length / Math.max(1, counts.get(word) ?? 1)) / Math.log(texts.length);
}

const sources = ['src', 'sandbox'].flatMap(filesBelow);
const tests = filesBelow('test').filter((path) => path.endsWith('.ts'));
const testFiles = tests.filter((path) => path.endsWith('.test.ts'));

// Imports, also those by `import()` and of files that a URL names: threads, the sandbox.

const IMPORT = /(?:\bfrom|\bimport\(?|new URL\()\s*['`](\.[^'`]+)['`]/g;
const importsOf = new Map(
  [...sources, ...tests].map((path) => [
    path,
    [...read(path).matchAll(IMPORT)].map(([, to = '']) => posix.join(posix.dirname(path), to)),
  ]),
);

/** How many imports away a file may be. */
const FARTHEST = 3;

/** Returns how many imports a test is from each file that it reaches without the server. */
function distancesFrom(test: string): Map<string, number> {
  const distances = new Map([[test, 0]]);
  for (const [path, distance] of distances)
    if (distance < FARTHEST && !path.startsWith('src/server/'))
      for (const next of importsOf.get(path) ?? [])
        if (!distances.has(next)) distances.set(next, distance + 1);
  return distances;
}

// What tests say.

interface Test {
  path: string;
  /** Words, each with how much the test is about it: 1 for those of its path and titles. */
  words: Map<string, number>;
  distances: Map<string, number>;
}

function testOf(path: string): Test {
  const text = read(path);
  const titles = [...text.matchAll(/\b(?:describe|it)\(\s*['`]([^'`]+)/g)]
    .map(([, title]) => title)
    .join(' ');
  const helpers = (importsOf.get(path) ?? []).filter(
    (one) => one.startsWith('test/') && !one.startsWith('test/support/'),
  );
  const words = new Map<string, number>();
  for (const word of wordsOf(helpers.map(read).join('\n'))) words.set(word, 0.2);
  for (const word of wordsOf(text)) words.set(word, 0.6);
  for (const word of wordsOf(`${path} ${titles}`)) words.set(word, 1);
  return { path, words, distances: distancesFrom(path) };
}

const all = testFiles.map(testOf);
const inTests = rarity(all.map(({ words }) => new Set(words.keys())));
const inSources = rarity(sources.map((path) => wordsOf(read(path))));
const inPaths = rarity(testFiles.map(wordsOf));

// What pages show.

const texts = new Map(
  filesBelow('views/locales')
    .filter((path) => /\ben\b/.test(path))
    .flatMap((path) => [...read(path).matchAll(/"([\w.-]+)":\s*"((?:[^"\\]|\\.)*)"/g)])
    .map(([, key = '', text = '']) => [key, text]),
);

/** Adds to a text the English texts whose keys it quotes. */
function withTexts(text: string): string {
  const quoted = [...text.matchAll(/['"]([\w.-]+)['"]/g)].map(([, key = '']) => texts.get(key) ?? '');
  return [text, ...quoted].join('\n');
}

/** Returns the files of src that name a template, or the page that has it as a part. */
function namersOf(path: string): string[] {
  const [, name] = /^views\/(?:pages\/|partials\/|email\/|sms\/)?(.*?)\.\w+$/.exec(path) ?? [];
  const namers = sources.filter((source) => name !== undefined && read(source).includes(`'${name}'`));
  // A word such as `html` is quoted everywhere.
  return namers.length > 10 ? [] : namers;
}

/** Returns the files of src that name what the changed lines and those around them export. */
function callersOf({ path, lines, around }: Changed): string[] {
  const exported = [
    ...`${lines}\n${around}`.matchAll(/^.?export (?:async )?(?:function|const|class) (\w+)/gm),
  ];
  if (!path.startsWith('src/') || exported.length === 0) return [];
  const named = new RegExp(`\\b(?:${exported.map(([, name]) => name).join('|')})\\b`);
  return sources.filter((one) => importsOf.get(one)?.includes(path) && named.test(read(one)));
}

/** What each sign counts. */
const COUNTS = { words: 1, path: 0.5, imports: 0.7 };

/** Returns how near each test is to a changed file, in the order of the tests: 1 for the nearest. */
function nearness({ path, lines, around }: Changed): number[] {
  // What tests share changes those that import it.
  if (path.startsWith('test/'))
    return all.map(({ distances }) => 1 / (1 + (distances.get(path) ?? Infinity)));
  const namers = namersOf(path);
  const wanted = new Map<string, number>();
  const want = (text: string, weight: number) => {
    for (const word of wordsOf(withTexts(text)))
      wanted.set(word, Math.max(wanted.get(word) ?? 0, weight * inTests(word) * inSources(word)));
  };
  want(read(path), 0.15);
  want(around, 0.5);
  want(lines, 1);
  want(namers.join(' '), 0.5);
  const places = [path, ...namers].map((one) => [
    ...wordsOf(one.replace(/^\w+\//, '').replace(/\.\w+$/, '')),
  ]);
  const reach = all.filter(({ distances }) => distances.has(path)).length;
  const signs = {
    // Long tests say more, and are not nearer for that.
    words: all.map(
      ({ words }) => sum(wanted, ([word, weight]) => weight * (words.get(word) ?? 0)) / Math.sqrt(words.size),
    ),
    path: all.map(({ path: own }) => {
      const ours = wordsOf(own);
      const common = (place: string[]) => sum(place, (word) => (ours.has(word) ? inPaths(word) : 0));
      return Math.max(...places.map(common)) / Math.sqrt(ours.size);
    }),
    imports: all.map(
      ({ distances }) =>
        1 / (distances.get(path) ?? Number.POSITIVE_INFINITY) / Math.sqrt(Math.max(reach, 1)),
    ),
  };
  const scales = Object.entries(signs).map(
    ([name, values]) => [values, COUNTS[name as keyof typeof signs] / (Math.max(...values) || 1)] as const,
  );
  const near = all.map((_, index) => sum(scales, ([values, scale]) => (values[index] ?? 0) * scale));
  const most = Math.max(...near);
  return near.map((value) => value / most);
}

function sum<T>(values: Iterable<T>, of: (value: T) => number): number {
  let total = 0;
  for (const value of values) total += of(value);
  return total;
}

/**
 * Returns the tests in the order of their nearness to all changes. The first of each change come first, however many files
 * were changed.
 */
function ranked(changed: readonly Changed[]): { path: string; near: number }[] {
  const totals = all.map(({ path }) => ({ path, near: 0, order: 0 }));
  const add = (one: Changed, weight: number) => {
    const near = nearness(one);
    const order = near.map((_, index) => index).sort((a, b) => (near[b] ?? 0) - (near[a] ?? 0));
    for (const [place, index] of order.entries()) {
      const total = totals[index];
      if (total === undefined) continue;
      total.near = Math.max(total.near, (near[index] ?? 0) * Math.min(weight, 1));
      total.order += weight / (place + 3);
    }
  };
  for (const one of changed) {
    const weight = Math.log(2 + one.lines.length);
    add(one, weight);
    const callers = callersOf(one);
    for (const path of callers) add({ path, lines: '', around: '' }, weight / Math.sqrt(1 + callers.length));
  }
  return totals.filter(({ near }) => near >= MIN_NEARNESS).sort((a, b) => b.order - a.order);
}

/** Runs test files in this order. @returns the exit code, and the files that were not run to their end in time. */
function run(files: readonly string[], seconds: number): { status: number; left: string[] } {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-near-'));
  const leftFile = join(folder, 'left');
  const env = {
    ...process.env,
    NEAR_SECONDS: String(seconds),
    NEAR_UNTIL: String(Date.now() + seconds * 1000),
    NEAR_LEFT: leftFile,
  };
  const limit = './test/support/near-limit.ts';
  try {
    const options = ['--parallel', '--reporter', 'dot', '--require', limit, ...files];
    const { status } = spawnSync('node_modules/.bin/mocha', options, { env, stdio: 'inherit' });
    return { status: status ?? 1, left: read(leftFile).split('\n').filter(Boolean) };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const { values, positionals } = parseArgs({
  options: {
    seconds: { type: 'string', default: '30' },
    since: { type: 'string' },
    list: { type: 'boolean' },
    help: { type: 'boolean' },
  },
  allowPositionals: true,
});
const changed = changes(positionals, values.since ?? base()).filter(({ path }) => !SILENT.test(path));
const found = ranked(changed);
const say = (text: string) => process.stdout.write(`${text}\n`);
if (values.help === true) say(USAGE);
else if (found.length === 0) say('No test is near what has changed.');
else if (values.list === true) say(found.map(({ path, near }) => `${near.toFixed(2)} ${path}`).join('\n'));
else {
  const chosen = found.slice(0, MAX_FILES).map(({ path }) => path);
  const { status, left } = run(chosen, Number(values.seconds));
  const rest = found.map(({ path }) => path).filter((path) => left.includes(path) || !chosen.includes(path));
  const shown = rest.slice(0, 10).map((path) => `  ${path}\n`);
  say(`${found.length - rest.length} of ${testFiles.length} test files were run to their end.`);
  if (rest.length > 0) say(`${rest.length} that are less near were not, first of all:\n${shown.join('')}`);
  // Otherwise a machine that is too busy to finish one would pass for a success.
  if (left.length === chosen.length) say('None was run to its end: --seconds=N gives them more time.');
  process.exitCode = left.length === chosen.length ? 1 : status;
}
