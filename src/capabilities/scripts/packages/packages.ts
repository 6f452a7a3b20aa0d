// The npm packages that actions may require: only those that an operator has put into a folder. Nothing is ever
// downloaded.
import { keepLatest } from '../../../runtime/latest.ts';
import type { Scripts } from '../scripts.ts';
import type { ModuleFiles } from '../scripts-messages.ts';
import { BUILT_IN_MODULES } from '../stand-ins.ts';
import { PackageFault } from './folder.ts';

/** The members of an action that decide which packages it gets. */
export interface Requiring {
  name: string;
  code: string;
  dependencies: readonly string[];
}

export interface Packages {
  /**
   * Returns the files of an action's packages, as they were when they were first read.
   * @throws PackageFault
   */
  filesOf(action: Requiring): Promise<ModuleFiles | undefined>;
  // docs/understand/decisions/actions-scripts.md#rules-and-database-scripts-have-the-packages-that-they-require-by-name
  /**
   * Returns the files for a script that lists no packages: of those that it requires by name and the folder has.
   * @throws PackageFault
   */
  filesFor(code: string): Promise<ModuleFiles | undefined>;
  /**
   * Reads the packages again and loads them once in the sandbox.
   * @returns why they cannot be used; undefined when they can.
   */
  faultOf(action: Requiring): Promise<string | undefined>;
}

interface PackagesDependencies {
  /** The folder of the packages, `node_modules`. */
  directory: string;
  scripts: Pick<Scripts, 'run'>;
}

/** How many actions' files are kept: each may take some megabytes. */
const MAX_LOADED = 20;
/** How many scripts' requirements are kept. */
const MAX_SCANNED = 500;

const LOAD = 'async (names) => { for (const name of names) require(name); return true; }';

export function createPackages({ directory, scripts }: PackagesDependencies): Packages {
  const kept = new Map<string, Promise<ModuleFiles>>();
  const read = (key: string, { code, dependencies }: Requiring) => {
    // Imported when it is first needed, because few tenants have packages.
    const files = import('./bundle.ts').then(({ bundlePackages }) =>
      bundlePackages(directory, { code, dependencies, standIns: BUILT_IN_MODULES }),
    );
    keepLatest(kept, MAX_LOADED, key, files);
    files.catch(() => kept.delete(key));
    return files;
  };
  const found = new Map<string, Promise<string[]>>();
  const requiredBy = (code: string) => {
    const names = import('./bundle.ts').then(({ packagesRequired }) =>
      packagesRequired(directory, { code, standIns: BUILT_IN_MODULES }),
    );
    keepLatest(found, MAX_SCANNED, code, names);
    names.catch(() => found.delete(code));
    return names;
  };
  const keyOf = ({ code, dependencies }: Requiring) => JSON.stringify([dependencies, code]);
  const filesOf: Packages['filesOf'] = async (action) => {
    if (action.dependencies.length === 0) return undefined;
    const key = keyOf(action);
    return kept.get(key) ?? read(key, action);
  };
  return {
    filesOf,
    filesFor: async (code) => {
      // Most scripts require nothing and need not be parsed.
      if (!code.includes('require')) return undefined;
      return filesOf({ name: '', code, dependencies: await (found.get(code) ?? requiredBy(code)) });
    },
    faultOf: async (action) => {
      if (action.dependencies.length === 0) return undefined;
      try {
        const files = await read(keyOf(action), action);
        const names = [...(files.get('')?.links.keys() ?? [])];
        if (names.length === 0) return undefined;
        const of = `packages of ${action.name}`;
        const run = { of, askedBy: undefined, source: LOAD, entry: 'load', args: [names], files };
        const { failure } = await scripts.run(run);
        return failure && `the packages ${names.join(', ')} cannot be loaded: ${failure.message}`;
      } catch (thrown) {
        if (thrown instanceof PackageFault) return thrown.message;
        throw thrown;
      }
    },
  };
}
