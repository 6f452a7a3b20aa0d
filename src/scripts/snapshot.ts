// The memory of a sandbox, as it was when it was made.
import { LITTLE_BYTES, WASM_PAGE } from './limits.ts';

/** What is compared, and copied, at once where something is, bytes: a run changes little. */
const PART = 4096;

/** What memories were, in parts: those of sandboxes that are made in the same way are nearly the same. */
export interface Pages {
  zeros: Buffer;
  /** A part, at that place of a memory; another one's where it is the same. */
  keep(at: number, is: Buffer): Buffer;
}

/** None yet. */
export function createPages(): Pages {
  const kept = new Map<number, Buffer>();
  return {
    zeros: Buffer.alloc(WASM_PAGE),
    keep: (at, is) => {
      const known = kept.get(at);
      if (known?.equals(is)) return known;
      const copy = Buffer.from(is);
      if (known === undefined) kept.set(at, copy);
      return copy;
    },
  };
}

/** A memory as it is now. */
export function snapshot(wasmMemory: WebAssembly.Memory, { zeros, keep }: Pages) {
  let memory = wasmMemory.buffer;
  const kept = new Map<number, Buffer>();
  for (let page = 0; page < memory.byteLength; page += WASM_PAGE) {
    if (Buffer.from(memory, page, WASM_PAGE).equals(zeros)) continue;
    for (let at = page; at < page + WASM_PAGE; at += PART)
      kept.set(at, keep(at, Buffer.from(memory, at, PART)));
  }
  /** All of a memory, with what it was. */
  const parts = () => {
    const all: { is: Buffer; was: Buffer }[] = [];
    for (let at = 0; at < memory.byteLength; ) {
      const was = kept.get(at) ?? zeros;
      all.push({ is: Buffer.from(memory, at, was.length), was });
      at += was.length;
    }
    return all;
  };
  let all = parts();
  return {
    /** What it has grown by is empty then: it cannot shrink. @returns false for one that has become large. */
    restore: (): boolean => {
      if (wasmMemory.buffer !== memory) {
        memory = wasmMemory.buffer;
        if (memory.byteLength > LITTLE_BYTES) return false;
        all = parts();
      }
      for (const { is, was } of all) if (!is.equals(was)) is.set(was);
      return true;
    },
  };
}
