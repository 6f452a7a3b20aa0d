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
  const keyOf = ({ code, dependencies }: Requiring) => JSON.stringify([dependencies, code]);
  return {
    filesOf: async (action) => {
      if (action.dependencies.length === 0) return undefined;
      const key = keyOf(action);
      return kept.get(key) ?? read(key, action);
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
