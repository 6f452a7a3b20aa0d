// QuickJS, as WebAssembly.
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { FIRST_BYTES, WASM_PAGE } from './limits.ts';

export type LoadModule = () => Promise<WebAssembly.Module>;

/** What compiles it, once for all threads; where it cannot be loaded, the next time tries anew. */
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
  return WebAssembly.compile(withPages(await readFile(fileURLToPath(file)), FIRST_BYTES / WASM_PAGE));
}

/** The section of imports, and in it what is a memory (WebAssembly 1.0 §5.5.5). */
const IMPORTS = 2;
const [FUNCTION, MEMORY] = [0, 2];

/** The module, which asks for so many pages of memory to begin with; of the 256 that it asks for itself it uses a third. */
function withPages(module: Buffer, pages: number): Buffer<ArrayBuffer> {
  const bytes = Buffer.from(module);
  let at = 8;
  const number = (): number => {
    const byte = bytes.readUInt8(at++);
    return byte < 128 ? byte : byte - 128 + 128 * number();
  };
  const skip = () => {
    const length = number();
    at += length;
  };
  for (let id = bytes.readUInt8(at++); id !== IMPORTS; id = bytes.readUInt8(at++)) skip();
  number();
  for (let left = number(); left > 0; left--) {
    // Its name, in two parts.
    skip();
    skip();
    const kind = bytes.readUInt8(at++);
    if (kind !== FUNCTION && kind !== MEMORY) break;
    number();
    if (kind === FUNCTION) continue;
    // As many bytes as there were: two.
    bytes.set([128 + (pages % 128), pages >> 7], at);
    return bytes;
  }
  throw new Error('QuickJS imports no memory');
}
