// Joins a package of CommonJS modules into one script for a browser: some SDKs are published without one, and this
// avoids a bundler as a dependency.
import { existsSync, readFileSync } from 'node:fs';
import { createRequire, isBuiltin } from 'node:module';
import { dirname, join, resolve } from 'node:path';

const REQUIRE = /\brequire\(\s*(?:'([^'\n]+)'|"([^"\n]+)")\s*\)/g;
/** An empty module, for what a package says a browser does not need, and for what only Node.js has. */
const EMPTY = 'empty';

interface Module {
  id: number;
  source: string;
  /** The ids of the modules that it requires, by the name in `require`. */
  requires: Record<string, number>;
}

/**
 * Joins the modules that a package's entry requires.
 * @param name the installed package; or several, by the names for the page, which then share their dependencies.
 * @param global the global variable with the package's exports.
 */
export function bundle(name: string | Readonly<Record<string, string>>, global: string): string {
  const modules = new Map<string, Module>();
  const add = (file: string): number => {
    const known = modules.get(file);
    if (known !== undefined) return known.id;
    const source = sourceOf(file);
    const module: Module = { id: modules.size, source, requires: {} };
    modules.set(file, module);
    for (const [, single, double] of source.matchAll(REQUIRE)) {
      const wanted = single ?? double ?? '';
      const found = resolveFrom(file, wanted);
      if (found !== undefined) module.requires[wanted] = add(found);
    }
    return module.id;
  };
  const entryOf = (one: string) => add(createRequire(import.meta.url).resolve(one));
  const exported =
    typeof name === 'string'
      ? `load(${entryOf(name)})`
      : `{${Object.entries(name)
          .map(([key, one]) => `${JSON.stringify(key)}:load(${entryOf(one)})`)
          .join()}}`;
  const bodies = [...modules.values()].map(
    ({ source, requires }) => `[function(module,exports,require){${source}\n},${JSON.stringify(requires)}]`,
  );
  return `(function(process,global){(function(modules,made){
function load(id){
if(made[id])return made[id].exports;
var module=made[id]={exports:{}},at=modules[id];
at[0].call(module.exports,module,module.exports,function(name){
if(!(name in at[1]))throw new Error('not bundled: '+name);
return load(at[1][name]);});
return module.exports;}
globalThis[${JSON.stringify(global)}]=${exported};
})([${bodies.join(',\n')}],{});})({env:{NODE_ENV:'production'}},globalThis);`;
}

function sourceOf(file: string): string {
  if (file === EMPTY) return '';
  const text = readFileSync(file, 'utf8');
  return file.endsWith('.json') ? `module.exports=${text}` : text;
}

/** Returns undefined if it is not installed: a package may try to load an optional module. */
function resolveFrom(file: string, wanted: string): string | undefined {
  if (file === EMPTY) return undefined;
  // A package takes precedence over Node's own module of the same name, for example `events`.
  const name = isBuiltin(wanted) ? `${wanted}/` : wanted;
  let found: string;
  try {
    found = createRequire(file).resolve(name);
  } catch {
    return isBuiltin(wanted) ? EMPTY : undefined;
  }
  const { directory, manifest } = packageOf(found);
  // Node.js would take the ES module of a package that has both; its `main` is CommonJS.
  if (found.endsWith('.mjs')) return join(directory, manifest.main ?? 'index.js');
  const { main = 'index.js', browser = {} } = manifest;
  const replaced = Object.entries(typeof browser === 'string' ? { [main]: browser } : browser);
  const [, instead] = replaced.find(([path]) => resolve(directory, path) === found) ?? [];
  return instead === undefined ? found : instead === false ? EMPTY : resolve(directory, instead);
}

interface Manifest {
  name?: string;
  main?: string;
  /** What browsers use instead of a file; `false` for nothing. */
  browser?: Record<string, string | false> | string;
}

function packageOf(file: string): { directory: string; manifest: Manifest } {
  for (let directory = dirname(file); directory !== dirname(directory); directory = dirname(directory)) {
    const path = join(directory, 'package.json');
    if (!existsSync(path)) continue;
    const manifest = JSON.parse(readFileSync(path, 'utf8')) as Manifest;
    if (manifest.name !== undefined) return { directory, manifest };
  }
  throw new Error(`${file} is of no package`);
}
