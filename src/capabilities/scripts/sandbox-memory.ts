// The memory of a sandbox, which holds all of its state.
import { INITIAL_MEMORY_BYTES, WASM_PAGE } from './limits.ts';

/**
 * Opens the memory of a sandbox.
 * @param memoryBytes its largest size.
 * @param mayGrow reports whether there is room for so many bytes more.
 * @returns `shortage.was` is true once it could not grow as much as was asked.
 */
export function openMemory(memoryBytes: number, mayGrow: (more: number) => boolean) {
  // QuickJS's own limit does not count everything. This memory cannot grow further, whatever it is used for.
  const most = Math.floor(memoryBytes / WASM_PAGE);
  const wasmMemory = new WebAssembly.Memory({ initial: INITIAL_MEMORY_BYTES / WASM_PAGE, maximum: most });
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
