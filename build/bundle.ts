// Makes the JavaScript of the published package: each program with all that it loads at its start in a few files. For each of
// some 1,100 files Node.js would look, read, and take the compiled code from another file: a third of a start, and 40 MB.
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build, type Plugin } from 'esbuild';

const SOURCE = fileURLToPath(new URL('../src/', import.meta.url));

/** What is started or imported by its path. */
const PROGRAMS = ['cli.ts', 'testing/index.ts', 'scripts/worker.ts', 'store/sql/sqlite-worker.ts'];

/** Modules find files and packages by where they are themselves: they keep the places that they had, whatever file they are in. */
const places: Plugin = {
  name: 'places',
  setup({ onLoad }) {
    onLoad({ filter: /\.[jt]s$/ }, async ({ path }) => {
      const text = await readFile(path, 'utf8');
      const place = JSON.stringify(relative(SOURCE, path).replace(/\.ts$/, '.js'));
      const root = "import.meta.url.slice(0, import.meta.url.lastIndexOf('/dist/') + 6)";
      return {
        contents: text.replaceAll('import.meta.url', `(${root} + ${place})`),
        loader: path.endsWith('.ts') ? 'ts' : 'js',
      };
    });
  },
};

const { outputFiles } = await build({
  entryPoints: PROGRAMS.map((file) => `${SOURCE}${file}`),
  outdir: fileURLToPath(new URL('../dist/', import.meta.url)),
  outbase: SOURCE,
  chunkNames: 'chunks/[name]-[hash]',
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node22',
  // They keep the versions that whoever installs the package chooses, such as one that mends a vulnerability.
  packages: 'external',
  plugins: [places],
  write: false,
});
for (const { path, text } of outputFiles) {
  await mkdir(dirname(path), { recursive: true });
  // With one other character, such as in a comment, Node.js keeps the whole text at two bytes each.
  const ascii = text.replace(
    /[^\0-\x7f]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  await writeFile(path, ascii);
}
