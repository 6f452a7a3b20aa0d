// Makes `dist` of the published package: what runs, the declarations of what can be imported, the licences of the
// packages that are bundled, and the documents as a site.
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { bundle, ROOT } from './bundle.ts';
import { licencesOf } from './bundled-packages.ts';
import { SITE, writeSite } from './docs/site.ts';

const DIST = join(ROOT, 'dist');

mkdirSync(DIST, { recursive: true });
// The site is written in place, because a server of this checkout may be reading it.
for (const name of readdirSync(DIST))
  if (join(DIST, name) !== SITE) rmSync(join(DIST, name), { recursive: true });
await writeSite();
const { inputs } = await bundle(DIST, 'apart');
writeFileSync(join(DIST, 'LICENSES.txt'), licencesOf(Object.keys(inputs)));

// The compiler declares all modules; these few are all that the declarations of the entry point need.
const declared = mkdtempSync(join(tmpdir(), 'gatehouse-declarations-'));
try {
  execFileSync('npx', ['tsc', '-p', 'tsconfig.build.json', '--outDir', declared], { cwd: ROOT });
  for (const file of reachableFrom(join(declared, 'testing/index.d.ts')))
    cpSync(file, join(DIST, relative(declared, file)));
} finally {
  rmSync(declared, { recursive: true, force: true });
}

/** Returns a file of declarations and the files that it imports, directly or through others. */
function reachableFrom(file: string, found = new Set<string>()): Set<string> {
  if (found.has(file)) return found;
  found.add(file);
  for (const [, path = ''] of readFileSync(file, 'utf8').matchAll(
    /(?:from |import |import\()["'](\.[^"']+)\.ts["']/g,
  ))
    reachableFrom(join(dirname(file), `${path}.d.ts`), found);
  return found;
}
