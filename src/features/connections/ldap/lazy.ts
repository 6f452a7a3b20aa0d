// Loads the LDAP client at the first login that needs it, as most tenants have no directory.
import type { Directories, DirectoriesDependencies } from './directories.ts';

/** Returns directories as createDirectories does, but imports that module at the first call. */
export function lazyDirectories(deps: DirectoriesDependencies): Directories {
  let loading: Promise<Directories> | undefined;
  const load = () => {
    loading ??= import('./directories.ts').then(({ createDirectories }) => createDirectories(deps));
    return loading;
  };
  return {
    find: async (connection, name) => (await load()).find(connection, name),
    prove: async (connection, entry, password) => (await load()).prove(connection, entry, password),
    check: async (connection) => (await load()).check(connection),
    hasOwnIds: async (connection) => (await load()).hasOwnIds(connection),
    close: async () => (await loading)?.close(),
  };
}
