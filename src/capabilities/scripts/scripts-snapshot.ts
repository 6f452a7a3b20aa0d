// A snapshot of a sandbox's memory, which restores it after each run.
import { MAX_REUSED_BYTES, WASM_PAGE } from './limits.ts';

/** The unit that is copied where memory has changed, bytes: a run changes little. */
const PART_BYTES = 4096;
/** The largest range that is compared at once, bytes. */
const MAX_RANGE_BYTES = 16 * WASM_PAGE;

/**
 * Copies of memory pages by their offset. Sandboxes that are made in the same way share them, because their memories
 * are nearly equal.
 */
export interface Pages {
  /** Zeros, which are never written to, so that the system backs all of them by one page. */
  zeros: Buffer;
  /**
   * Returns copies of a page at an offset, as one or more consecutive buffers. Parts that equal an earlier copy are
   * shared with it.
   */
  keep(at: number, is: Buffer): Buffer[];
}

/** Makes an empty set of pages. */
export function createPages(): Pages {
  const kept = new Map<number, Buffer>();
  return {
    zeros: Buffer.alloc(MAX_RANGE_BYTES),
    keep: (at, is) => {
      const known = kept.get(at);
      if (known?.equals(is)) return [known];
      if (known !== undefined) return partsOf(is, known);
      const copy = Buffer.from(is);
      kept.set(at, copy);
      return [copy];
    },
  };
}

/** Splits a page into parts. Parts that equal those of another page are shared with it. */
function partsOf(page: Buffer, other: Buffer): Buffer[] {
  const starts = Array.from({ length: page.length / PART_BYTES }, (_, n) => n * PART_BYTES);
  return starts.map((at) => {
    const [is, known] = [page, other].map((one) => one.subarray(at, at + PART_BYTES)) as [Buffer, Buffer];
    return known.equals(is) ? known : Buffer.from(is);
  });
}

/** A range of a memory, and a copy of its content at the time of the snapshot. */
interface Span {
  is: Buffer;
  was: Buffer;
}

export function snapshot(wasmMemory: WebAssembly.Memory, { zeros, keep }: Pages) {
  let memory = wasmMemory.buffer;
  /** The parts that are not all zeros, by offset. */
  const kept = new Map<number, Buffer>();
  const emptyPage = zeros.subarray(0, WASM_PAGE);
  for (let page = 0; page < memory.byteLength; page += WASM_PAGE) {
    const is = Buffer.from(memory, page, WASM_PAGE);
    if (is.equals(emptyPage)) continue;
    let at = page;
    for (const was of keep(page, is)) {
      kept.set(at, was);
      at += was.length;
    }
  }
  /** Returns the whole memory as ranges with their earlier content. */
  const spansOf = (): Span[] => {
    const spans: Span[] = [];
    for (let at = 0; at < memory.byteLength; ) {
      let length = kept.get(at)?.length ?? WASM_PAGE;
      const isEnd = (to: number) => to === memory.byteLength || kept.has(to) || to - at === MAX_RANGE_BYTES;
      while (!kept.has(at) && !isEnd(at + length)) length += WASM_PAGE;
      spans.push({ is: Buffer.from(memory, at, length), was: kept.get(at) ?? zeros.subarray(0, length) });
      at += length;
    }
    return spans;
  };
  let spans = spansOf();
  return {
    /**
     * Restores the content. Memory that was added since is zeroed, because it cannot shrink.
     * @returns false where the memory has become too large to keep.
     */
    restore: (): boolean => {
      if (wasmMemory.buffer !== memory) {
        memory = wasmMemory.buffer;
        if (memory.byteLength > MAX_REUSED_BYTES) return false;
        spans = spansOf();
      }
      for (let n = 0; n < spans.length; n++) {
        const span = spans[n] as Span;
        if (span.is.equals(span.was)) continue;
        if (span.is.length <= PART_BYTES) span.is.set(span.was);
        // Runs change the same places again and again. The range is split, so that the rest around them is compared at
        // once.
        else spans.splice(n--, 1, ...halvesOf(span));
      }
      return true;
    },
  };
}

function halvesOf({ is, was }: Span): [Span, Span] {
  const half = Math.ceil(is.length / PART_BYTES / 2) * PART_BYTES;
  return [
    { is: is.subarray(0, half), was: was.subarray(0, half) },
    { is: is.subarray(half), was: was.subarray(half) },
  ];
}
