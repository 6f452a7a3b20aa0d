// Directories, loaded with the first login that asks one: most tenants have none.
import type { Directories, DirectoriesDependencies } from './directories.ts';

/** @see createDirectories */
export function lazyDirectories(deps: DirectoriesDependencies): Directories {
  let loading: Promise<Directories> | undefined;
  const load = () => {
    loading ??= import('./directories.ts').then(({ createDirectories }) => createDirectories(deps));
    return loading;
  };
  return {
    prove: async (connection, name, password) => (await load()).prove(connection, name, password),
    check: async (connection) => (await load()).check(connection),
    close: async () => (await loading)?.close(),
  };
}
