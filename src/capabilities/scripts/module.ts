// QuickJS, as WebAssembly.
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { withLessMemory } from './engine-memory.ts';

export type LoadModule = () => Promise<WebAssembly.Module>;

/** Returns a function that compiles the module once for all threads. After a failure the next call tries again. */
export function moduleLoader(): LoadModule {
  let loaded: Promise<WebAssembly.Module> | undefined;
  return async () => {
    try {
      loaded ??= load();
      return await loaded;
    } catch (error) {
      loaded = undefined;
      throw error;
    }
  };
}

async function load(): Promise<WebAssembly.Module> {
  const file = import.meta.resolve('@jitl/quickjs-ng-wasmfile-release-sync/wasm');
  return WebAssembly.compile(withLessMemory(await readFile(fileURLToPath(file))));
}
