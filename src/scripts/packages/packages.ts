// npm packages that actions require: those that an operator has put into a folder, and no others. Nothing is ever fetched.
import { keepLatest } from '../../runtime/latest.ts';
import type { ModuleFiles } from '../messages.ts';
import type { Scripts } from '../scripts.ts';
import { STAND_INS } from '../stand-ins.ts';
import { PackageFault } from './folder.ts';

/** An action, as far as its packages go. */
export interface Requiring {
  name: string;
  code: string;
  /** Names of packages. */
  dependencies: readonly string[];
}

export interface Packages {
  /**
   * The files of an action's packages, as they were when they were first read.
   * @throws PackageFault
   */
  filesOf(action: Requiring): Promise<ModuleFiles | undefined>;
  /**
   * The same of a script that lists none: of what it requires by name and the folder has.
   * @throws PackageFault
   */
  filesFor(code: string): Promise<ModuleFiles | undefined>;
  /** Reads them anew and loads them once. @returns why they cannot be used; undefined when they can. */
  faultOf(action: Requiring): Promise<string | undefined>;
}

interface PackagesDependencies {
  /** The folder that has the packages, `node_modules`. */
  directory: string;
  scripts: Pick<Scripts, 'run'>;
}

/** What is kept of actions that ran lately: each may be some megabytes. */
const MOST_KEPT = 20;
/** Scripts of which it is known what they require. */
const MOST_KNOWN = 500;

const LOAD = 'async (names) => { for (const name of names) require(name); return true; }';

/** The packages of a tenant's actions. */
export function createPackages({ directory, scripts }: PackagesDependencies): Packages {
  const kept = new Map<string, Promise<ModuleFiles>>();
  const read = (key: string, { code, dependencies }: Requiring) => {
    // Loaded when it is first needed: few tenants have any.
    const files = import('./bundle.ts').then(({ bundlePackages }) =>
      bundlePackages(directory, { code, dependencies, standIns: STAND_INS }),
    );
    keepLatest(kept, MOST_KEPT, key, files);
    files.catch(() => kept.delete(key));
    return files;
  };
  const found = new Map<string, Promise<string[]>>();
  const requiredBy = (code: string) => {
    const names = import('./bundle.ts').then(({ packagesRequired }) =>
      packagesRequired(directory, { code, standIns: STAND_INS }),
    );
    keepLatest(found, MOST_KNOWN, code, names);
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
      // Most require nothing, and need not be read for it.
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
        const { failure } = await scripts.run({ of, source: LOAD, entry: 'load', args: [names], files });
        return failure && `the packages ${names.join(', ')} cannot be loaded: ${failure.message}`;
      } catch (thrown) {
        if (thrown instanceof PackageFault) return thrown.message;
        throw thrown;
      }
    },
  };
}
