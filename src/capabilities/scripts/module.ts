// QuickJS, as WebAssembly.
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { INITIAL_MEMORY_BYTES, STACK_BYTES, WASM_PAGE } from './limits.ts';

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

// Patches the WebAssembly module of the script engine to begin with less memory than it was built for: the whole memory
// is compared after each run.

/** Ids of the sections that are read (WebAssembly 1.0 §5.5.2). */
const [IMPORTS, GLOBALS, DATA] = [2, 6, 11];
/** Kinds of imports (§5.5.5), and the first bytes of a global that is a mutable i32 with a constant (§5.5.9). */
const [FUNCTION, MEMORY] = [0, 2];
const NUMBER = [0x7f, 1, 0x41];
/** Size of the stack that the engine was built with, bytes. */
const BUILT_STACK_BYTES = 5 * 1024 * 1024;

interface Section {
  from: number;
  to: number;
}

/**
 * Returns a copy of the module whose memory begins with `INITIAL_MEMORY_BYTES`, of which `STACK_BYTES` are its stack.
 * @throws Error where the module is not laid out as expected: it is another version of the engine.
 */
export function withLessMemory(module: Buffer): Buffer<ArrayBuffer> {
  const bytes = Buffer.from(module);
  const [imports, globals, data] = sectionsOf(bytes);
  setPages(bytes, imports, INITIAL_MEMORY_BYTES / WASM_PAGE);
  moveHeap(bytes, globals, data);
  return bytes;
}

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

/** Sets the initial size of the imported memory. The engine asks for 256 pages and uses a few of them. */
function setPages(bytes: Buffer, { from }: Section, pages: number): void {
  const { at, byte, number, skip } = readFrom(bytes, from);
  for (let left = number(); left > 0; left--) {
    // The import's module and name.
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
 * Makes the stack smaller. A global holds its upper end, from which it grows downwards to the end of the constants. The
 * heap begins at its upper end, too, and a constant in the data section holds that address.
 */
function moveHeap(bytes: Buffer, globals: Section, data: Section): void {
  const { at, byte, number } = readFrom(bytes, globals.from);
  if (number() !== 1 || !NUMBER.every((one) => one === byte())) otherVersion();
  const place = at();
  const top = number();
  const moved = top - BUILT_STACK_BYTES + STACK_BYTES;
  const constant = littleEndian(top);
  const heap = bytes.indexOf(constant, data.from);
  if (heap < 0 || heap >= data.to || bytes.indexOf(constant, heap + 1) >= 0) otherVersion();
  littleEndian(moved).copy(bytes, heap);
  replaceNumber(bytes, place, moved);
}

/** Replaces a LEB128 number (§5.2.2) by another one of as many bytes. */
function replaceNumber(bytes: Buffer, from: number, value: number): void {
  let [at, left] = [from, value];
  for (; bytes.readUInt8(at) >= 128; left >>= 7) bytes[at++] = 128 | left;
  // The global's number is signed: this bit of its last byte is the sign.
  if (left >= 64) otherVersion();
  bytes[at] = left;
}

/** Returns an address as the data section holds it: its highest byte is zero, and trailing zeros are left out. */
function littleEndian(value: number): Buffer {
  const bytes = Buffer.alloc(3);
  bytes.writeUIntLE(value, 0, 3);
  return bytes;
}

/** Reads the bytes from an offset on. */
function readFrom(bytes: Buffer, from: number) {
  let at = from;
  const byte = () => bytes.readUInt8(at++);
  /** Reads an unsigned LEB128 number (§5.2.2). */
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
