// Makes JavaScript of the sources: each program with all that it loads at its start in a few files. For each of some 1,100 files
// Node.js would look, read, and take the compiled code from another file: a third of a start, and 40 MB.
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type BuildOptions, build, type Metafile, type Plugin } from 'esbuild';

export const ROOT = fileURLToPath(new URL('../', import.meta.url));
const SOURCE = join(ROOT, 'src/');

/** What is started or imported by its path. */
const PROGRAMS = ['cli.ts', 'testing/index.ts', 'scripts/worker.ts', 'store/sql/sqlite-worker.ts'];

/** Packages that stay as they are: machine code, WebAssembly, what an SDK for traces shares, and 8 MB of which little is ever loaded. */
export const APART = [
  '@node-rs/argon2',
  '@jitl/quickjs-ng-wasmfile-release-sync',
  '@opentelemetry/api',
  'twilio',
];

/** What of packages goes into the files: nothing, or all that can. */
const PACKAGES = {
  apart: { packages: 'external' },
  inside: {
    // What `pg` would take if it were there.
    external: [...APART, 'pg-native'],
    // What is loaded later, by `import()`, has names as a module alone.
    mainFields: ['module', 'main'],
    // CommonJS asks for modules of Node.js by this.
    banner: {
      js: "import { createRequire as requireBy } from 'node:module';\nconst require = requireBy(import.meta.url);",
    },
  },
} satisfies Record<string, BuildOptions>;

/** Modules find files by where they are themselves: they keep the places that they had, whatever file they are in. */
const places = (packages: keyof typeof PACKAGES): Plugin => ({
  name: 'places',
  setup({ onLoad }) {
    onLoad({ filter: /\.[jt]s$/ }, async ({ path }) => {
      if (!path.startsWith(SOURCE)) return undefined;
      const text = await readFile(path, 'utf8');
      const place = JSON.stringify(relative(SOURCE, path).replace(/\.ts$/, '.js'));
      const root = "import.meta.url.slice(0, import.meta.url.lastIndexOf('/dist/') + 6)";
      // A package that is loaded when it is first needed is found by esbuild where it is required, and by nothing else.
      const found =
        packages === 'apart'
          ? text
          : text.replace(/createRequire\(import\.meta\.url\)(\('[^.])/g, 'require$1');
      return {
        contents: found.replaceAll('import.meta.url', `(${root} + ${place})`),
        loader: path.endsWith('.ts') ? 'ts' : 'js',
      };
    });
  },
});

/**
 * Writes the programs into a directory, whose name must be `dist`: what they read is beside it, as in the repository.
 * @returns what went into which file, by paths from the repository.
 */
export async function bundle(directory: string, packages: keyof typeof PACKAGES): Promise<Metafile> {
  const { outputFiles, metafile } = await build({
    entryPoints: PROGRAMS.map((file) => join(SOURCE, file)),
    absWorkingDir: ROOT,
    outdir: directory,
    outbase: SOURCE,
    chunkNames: 'chunks/[name]-[hash]',
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node22',
    ...PACKAGES[packages],
    plugins: [places(packages)],
    metafile: true,
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
  return metafile;
}
