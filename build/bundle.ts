// Bundles the sources into JavaScript: each program with all that it loads at its start in a few files. Without that
// Node.js would look up and read some 1,100 files and the compiled code of each, a third of a start and 40 MB.
// docs/understand/decisions/operating.md#the-published-package-has-our-code-in-a-few-files-and-other-packages-as-they-are
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

/**
 * Packages that are not bundled: machine code, WebAssembly, the API that an SDK for traces shares, and 8 MB of which
 * little is ever loaded.
 */
export const APART = [
  '@node-rs/argon2',
  '@jitl/quickjs-ng-wasmfile-release-sync',
  '@opentelemetry/api',
  'twilio',
];

/** Options for dependencies. `apart`: none is bundled; `inside`: all are, except {@link APART}. */
const PACKAGES = {
  apart: { packages: 'external' },
  inside: {
    // An optional dependency of `pg` that is not installed.
    external: [...APART, 'pg-native'],
    // Modules that are loaded later by `import()` export names only as ECMAScript modules.
    mainFields: ['module', 'main'],
    // CommonJS code requires modules of Node.js by this function.
    banner: {
      js: "import { createRequire as requireBy } from 'node:module';\nconst require = requireBy(import.meta.url);",
    },
  },
} satisfies Record<string, BuildOptions>;

/** Modules find other files relative to their own path, so each keeps the path that it had, whatever file it is in. */
const places = (packages: keyof typeof PACKAGES): Plugin => ({
  name: 'places',
  setup({ onLoad }) {
    onLoad({ filter: /\.[jt]s$/ }, async ({ path }) => {
      if (!path.startsWith(SOURCE)) return undefined;
      const text = await readFile(path, 'utf8');
      const place = JSON.stringify(relative(SOURCE, path).replace(/\.ts$/, '.js'));
      const root = "import.meta.url.slice(0, import.meta.url.lastIndexOf('/dist/') + 6)";
      // esbuild finds a package that is loaded lazily only where a plain `require` loads it.
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
 * @param others further programs, by their names in the directory.
 * @returns the inputs of each file, by paths from the repository.
 */
export async function bundle(
  directory: string,
  packages: keyof typeof PACKAGES,
  others: Record<string, string> = {},
): Promise<Metafile> {
  const named = (file: string) => [file.replace(/\.ts$/, ''), join(SOURCE, file)] as const;
  const { outputFiles, metafile } = await build({
    entryPoints: { ...Object.fromEntries(PROGRAMS.map(named)), ...others },
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
