// The memory of a sandbox, as it was when it was made.
import { LITTLE_BYTES, WASM_PAGE } from './limits.ts';

/** What is copied at once where something was changed, bytes: a run changes little. */
const PART = 4096;
/** What is compared at once at most, bytes. */
const MOST = 16 * WASM_PAGE;

/** What memories were, by places: those of sandboxes that are made in the same way are nearly the same. */
export interface Pages {
  /** Nobody writes to it: the system has one page for all of it. */
  zeros: Buffer;
  /** A page, at that place of a memory, as one or more that follow on each other: another one's where they are the same. */
  keep(at: number, is: Buffer): Buffer[];
}

/** None yet. */
export function createPages(): Pages {
  const kept = new Map<number, Buffer>();
  return {
    zeros: Buffer.alloc(MOST),
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

/** A page in parts: those of another one where they are the same. */
function partsOf(page: Buffer, other: Buffer): Buffer[] {
  const starts = Array.from({ length: page.length / PART }, (_, n) => n * PART);
  return starts.map((at) => {
    const [is, known] = [page, other].map((one) => one.subarray(at, at + PART)) as [Buffer, Buffer];
    return known.equals(is) ? known : Buffer.from(is);
  });
}

/** A place of a memory, and what was there. */
interface Span {
  is: Buffer;
  was: Buffer;
}

/** A memory as it is now. */
export function snapshot(wasmMemory: WebAssembly.Memory, { zeros, keep }: Pages) {
  let memory = wasmMemory.buffer;
  /** What is not empty, by places. */
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
  /** All of a memory, with what it was. */
  const spansOf = (): Span[] => {
    const spans: Span[] = [];
    for (let at = 0; at < memory.byteLength; ) {
      let length = kept.get(at)?.length ?? WASM_PAGE;
      const isEnd = (to: number) => to === memory.byteLength || kept.has(to) || to - at === MOST;
      while (!kept.has(at) && !isEnd(at + length)) length += WASM_PAGE;
      spans.push({ is: Buffer.from(memory, at, length), was: kept.get(at) ?? zeros.subarray(0, length) });
      at += length;
    }
    return spans;
  };
  let spans = spansOf();
  return {
    /** What it has grown by is empty then: it cannot shrink. @returns false for one that has become large. */
    restore: (): boolean => {
      if (wasmMemory.buffer !== memory) {
        memory = wasmMemory.buffer;
        if (memory.byteLength > LITTLE_BYTES) return false;
        spans = spansOf();
      }
      for (let n = 0; n < spans.length; n++) {
        const span = spans[n] as Span;
        if (span.is.equals(span.was)) continue;
        if (span.is.length <= PART) span.is.set(span.was);
        // Runs change the same places again and again: what is around those is compared at once.
        else spans.splice(n--, 1, ...halvesOf(span));
      }
      return true;
    },
  };
}

function halvesOf({ is, was }: Span): [Span, Span] {
  const half = Math.ceil(is.length / PART / 2) * PART;
  return [
    { is: is.subarray(0, half), was: was.subarray(0, half) },
    { is: is.subarray(half), was: was.subarray(half) },
  ];
}
