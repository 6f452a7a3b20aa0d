// The memory of a sandbox, which is all that it knows.
import { FIRST_BYTES, WASM_PAGE } from './limits.ts';

/**
 * Opens one.
 * @param memoryBytes what it may become.
 * @param mayGrow whether there is room for so many bytes more.
 * @returns `shortage` says whether it wanted to be larger than it may.
 */
export function openMemory(memoryBytes: number, mayGrow: (more: number) => boolean) {
  // QuickJS's own limit does not count everything; this memory cannot grow further, whatever it is used for.
  const most = Math.floor(memoryBytes / WASM_PAGE);
  const wasmMemory = new WebAssembly.Memory({ initial: FIRST_BYTES / WASM_PAGE, maximum: most });
  const shortage = { was: false };
  wasmMemory.grow = (pages) => {
    try {
      if (!mayGrow(pages * WASM_PAGE)) throw new RangeError('there is no room');
      return WebAssembly.Memory.prototype.grow.call(wasmMemory, pages);
    } catch (error) {
      shortage.was = true;
      throw error;
    }
  };
  return { wasmMemory, shortage };
}
