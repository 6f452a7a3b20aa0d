// Bundles the sources into JavaScript: each program with all that it loads at its start in a few files. Without that
// Node.js would look up and read some 1,100 files and the compiled code of each, a third of a start and 40 MB.
// docs/understand/decisions/operating.md#the-published-package-contains-the-packages-of-which-it-needs-little
import { readFileSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type BuildOptions, build, type Metafile, type Plugin } from 'esbuild';

export const ROOT = fileURLToPath(new URL('../', import.meta.url));
const SOURCE = join(ROOT, 'src/');

/** The programs, and the modules that are imported by path at run time. */
export const PROGRAMS = [
  'cli.ts',
  'testing/index.ts',
  'capabilities/liquid/liquid-worker.ts',
  'capabilities/saml-messages/saml-messages-worker.ts',
  'capabilities/scripts/script-worker.ts',
  'store/sqlite/sqlite-worker.ts',
];

/** Packages that are never bundled: machine code, WebAssembly, and the API that an SDK for traces shares. */
export const APART = ['@node-rs/argon2', '@jitl/quickjs-ng-wasmfile-release-sync', '@opentelemetry/api'];

const { dependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));

/**
 * What is left to be installed. `apart`: the dependencies that package.json declares; what else the code imports, is
 * bundled. `inside`: {@link APART}, and an optional dependency of `pg` that is not installed.
 */
const EXTERNAL = { apart: Object.keys(dependencies), inside: [...APART, 'pg-native'] };

/**
 * Twilio's own HTTP client, for which we give ours (src/capabilities/delivery/sms.ts). With it, axios and eleven other
 * packages would be bundled that are never run.
 */
const unused: Plugin = {
  name: 'unused',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^\.\/RequestClient$/ }, ({ importer }) =>
      importer.includes('/twilio/lib/base/') ? { path: 'RequestClient', namespace: 'unused' } : undefined,
    );
    onLoad({ filter: /.*/, namespace: 'unused' }, () => ({ contents: '' }));
  },
};

/** Modules find other files relative to their own path, so each keeps the path that it had, whatever file it is in. */
const places: Plugin = {
  name: 'places',
  setup({ onLoad }) {
    onLoad({ filter: /\.[jt]s$/ }, async ({ path }) => {
      if (!path.startsWith(SOURCE)) return undefined;
      const text = await readFile(path, 'utf8');
      const place = JSON.stringify(relative(SOURCE, path).replace(/\.ts$/, '.js'));
      const root = "import.meta.url.slice(0, import.meta.url.lastIndexOf('/dist/') + 6)";
      // esbuild finds a package that is loaded lazily only where a plain `require` loads it.
      const found = text.replace(/createRequire\(import\.meta\.url\)(\('[^.])/g, 'require$1');
      return {
        contents: found.replaceAll('import.meta.url', `(${root} + ${place})`),
        loader: path.endsWith('.ts') ? 'ts' : 'js',
      };
    });
  },
};

/** Returns the options of a bundle. @param others further programs, by their names in the directory. */
const optionsOf = (packages: keyof typeof EXTERNAL, others: Record<string, string> = {}) =>
  ({
    entryPoints: { ...Object.fromEntries(PROGRAMS.map(named)), ...others },
    absWorkingDir: ROOT,
    outbase: SOURCE,
    chunkNames: 'chunks/[name]-[hash]',
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node22',
    external: EXTERNAL[packages],
    // Modules that are loaded later by `import()` export names only as ECMAScript modules.
    mainFields: ['module', 'main'],
    // CommonJS code requires modules of Node.js by this function.
    banner: {
      js: "import { createRequire as requireBy } from 'node:module';\nconst require = requireBy(import.meta.url);",
    },
    plugins: [places, unused],
    metafile: true,
    write: false,
  }) satisfies BuildOptions;

const named = (file: string) => [file.replace(/\.ts$/, ''), join(SOURCE, file)] as const;

/** Returns the files that a bundle is made of, by their paths from the repository. */
export async function inputsOf(packages: keyof typeof EXTERNAL): Promise<string[]> {
  const { metafile } = await build({ ...optionsOf(packages), outdir: ROOT });
  return Object.keys(metafile.inputs);
}

/**
 * Writes the programs into a directory, whose name must be `dist`: what they read is beside it, as in the repository.
 * @param others further programs, by their names in the directory.
 * @returns the inputs of each file, by paths from the repository.
 */
export async function bundle(
  directory: string,
  packages: keyof typeof EXTERNAL,
  others: Record<string, string> = {},
): Promise<Metafile> {
  const { outputFiles, metafile } = await build({ ...optionsOf(packages, others), outdir: directory });
  for (const { path, text } of outputFiles) {
    await mkdir(dirname(path), { recursive: true });
    // With a single character outside of Latin-1, such as in a comment, Node.js keeps the whole text at two bytes per
    // character.
    const ascii = text.replace(
      /[^\0-\x7f]/g,
      (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
    );
    await writeFile(path, ascii);
  }
  return metafile;
}
