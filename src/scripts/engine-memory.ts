// The engine's module, which begins with less memory than it was built for: all of it is looked through after each run.
import { FIRST_BYTES, STACK_BYTES, WASM_PAGE } from './limits.ts';

/** Sections that are read (WebAssembly 1.0 §5.5.2). */
const [IMPORTS, GLOBALS, DATA] = [2, 6, 11];
/** Kinds of imports, and what a global that is a number and can change begins with. */
const [FUNCTION, MEMORY] = [0, 2];
const NUMBER = [0x7f, 1, 0x41];
/** The stack that it was built with, bytes. */
const BUILT_STACK = 5 * 1024 * 1024;

interface Section {
  from: number;
  to: number;
}

/**
 * The module, with so much memory to begin with, and such a stack in it.
 * @throws Error for an engine that is not as this expects it: it is another version.
 */
export function withLessMemory(module: Buffer): Buffer<ArrayBuffer> {
  const bytes = Buffer.from(module);
  const [imports, globals, data] = sectionsOf(bytes);
  setPages(bytes, imports, FIRST_BYTES / WASM_PAGE);
  moveHeap(bytes, globals, data);
  return bytes;
}

/** Those that are read. */
function sectionsOf(bytes: Buffer): [imports: Section, globals: Section, data: Section] {
  const sections = new Map<number, Section>();
  const { at, byte, number, skip } = readFrom(bytes, 8);
  while (at() < bytes.length) {
    const id = byte();
    const length = number();
    sections.set(id, { from: at(), to: at() + length });
    skip(length);
  }
  const found = (id: number) => sections.get(id) ?? otherVersion();
  return [found(IMPORTS), found(GLOBALS), found(DATA)];
}

/** Of the 256 pages that it asks for it uses a few. */
function setPages(bytes: Buffer, { from }: Section, pages: number): void {
  const { at, byte, number, skip } = readFrom(bytes, from);
  for (let left = number(); left > 0; left--) {
    // Its name, in two parts.
    skip(number());
    skip(number());
    const kind = byte();
    if (kind !== FUNCTION && kind !== MEMORY) break;
    number();
    if (kind === FUNCTION) continue;
    replaceNumber(bytes, at(), pages);
    return;
  }
  otherVersion();
}

/**
 * The stack, which begins where a global says, and grows downwards, ends where the constants end; where it begins, the heap does,
 * which a constant says.
 */
function moveHeap(bytes: Buffer, globals: Section, data: Section): void {
  const { at, byte, number } = readFrom(bytes, globals.from);
  if (number() !== 1 || !NUMBER.every((one) => one === byte())) otherVersion();
  const place = at();
  const top = number();
  const moved = top - BUILT_STACK + STACK_BYTES;
  const constant = littleEndian(top);
  const heap = bytes.indexOf(constant, data.from);
  if (heap < 0 || heap >= data.to || bytes.indexOf(constant, heap + 1) >= 0) otherVersion();
  littleEndian(moved).copy(bytes, heap);
  replaceNumber(bytes, place, moved);
}

/** A number there, by another one, in as many bytes as there were. */
function replaceNumber(bytes: Buffer, from: number, value: number): void {
  let [at, left] = [from, value];
  for (; bytes.readUInt8(at) >= 128; left >>= 7) bytes[at++] = 128 | left;
  // Of one that may be negative a bit of the last says whether it is.
  if (left >= 64) otherVersion();
  bytes[at] = left;
}

/** An address as a constant has it: without the zero at its end, which is not written down. */
function littleEndian(value: number): Buffer {
  const bytes = Buffer.alloc(3);
  bytes.writeUIntLE(value, 0, 3);
  return bytes;
}

/** Reads, from there on. */
function readFrom(bytes: Buffer, from: number) {
  let at = from;
  const byte = () => bytes.readUInt8(at++);
  /** §5.2.2 */
  const number = (): number => {
    const first = byte();
    return first < 128 ? first : first - 128 + 128 * number();
  };
  const skip = (length: number) => {
    at += length;
  };
  return { at: () => at, byte, number, skip };
}

function otherVersion(): never {
  throw new Error('the memory of the engine of scripts is not laid out as it was: it is another version');
}
