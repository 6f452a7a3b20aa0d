// A sandbox: QuickJS in a WebAssembly instance. Before each run its memory, which is all that it knows, is what it was when
// it was made; where that cannot be, it is made anew.
import { readFileSync } from 'node:fs';
import * as quickjs from '@jitl/quickjs-ng-wasmfile-release-sync';
import {
  newQuickJSWASMModuleFromVariant,
  newVariant,
  type QuickJSContext,
  type QuickJSHandle,
  type QuickJSSyncVariant,
} from 'quickjs-emscripten-core';
import type { Plain } from './host-functions.ts';
import { FIRST_BYTES } from './limits.ts';
import { STAND_INS } from './stand-ins.ts';

/** What those and the globals are made of besides. */
const PARTS = ['fetch', 'form-data', 'text'];
/** What is around scripts of a kind. */
const WRAPPERS = ['action', 'rule'];

// Its types are those of the CommonJS form.
const variant = quickjs.default as unknown as QuickJSSyncVariant;

const WASM_PAGE = 65_536;
/** The depth of calls, bytes of stack: below that of the WebAssembly stack, so that it ends in an error of the script. */
const STACK = 256 * 1024;

const shims = new Map<string, string>();

/** A shim's text; read once. */
function textOf(name: string): string {
  let text = shims.get(name);
  if (text === undefined) {
    text = readFileSync(new URL(`../../sandbox/${name}.js`, import.meta.url), 'utf8');
    shims.set(name, text);
  }
  return text;
}

/** A call into the sandbox that ended in an error that nothing in it caught. */
export interface Uncaught {
  name: string;
  message: string;
}

export interface Sandbox {
  /** Undoes all that a run did. @returns false when it cannot: this sandbox is not to be used again. */
  reset(): boolean;
  /** Calls what the runtime of the sandbox gives, then all that waits on promises. @returns what was not caught. */
  call(name: 'start' | 'deliver', args: readonly Plain[]): Uncaught | undefined;
  memoryBytes(): number;
  /** Whether it has nearly all the memory that it may have: it grows in steps. */
  isFull(): boolean;
}

interface SandboxOptions {
  wasmModule: WebAssembly.Module;
  memoryBytes: number;
  /** What the shims call; answers with text, bytes or nothing. An Error that it throws is one of the script. */
  host(name: string, args: readonly Plain[]): Plain | undefined;
  /** Asked again and again while something runs: whether to end it. */
  isOver(): boolean;
}

/** Makes one. */
export async function createSandbox({
  wasmModule,
  memoryBytes,
  host,
  isOver,
}: SandboxOptions): Promise<Sandbox> {
  // QuickJS's own limit does not count everything; this memory cannot grow further, whatever it is used for.
  const pages = Math.floor(memoryBytes / WASM_PAGE);
  const wasmMemory = new WebAssembly.Memory({ initial: FIRST_BYTES / WASM_PAGE, maximum: pages });
  const engine = await newQuickJSWASMModuleFromVariant(newVariant(variant, { wasmModule, wasmMemory }));
  const runtime = engine.newRuntime();
  runtime.setMaxStackSize(STACK);
  const context = runtime.newContext();
  const texts = conversions(context);
  const hostFunction = context.newFunction('host', (name, ...args) => {
    try {
      const answer = hostAnswer(
        host,
        context.getString(name),
        args.map((one) => texts.plainOf(one)),
      );
      return answer === undefined ? undefined : texts.handleOf(answer);
    } catch (thrown) {
      return { error: context.newError(thrown instanceof Error ? thrown.message : 'it failed') };
    }
  });
  const make = context.unwrapResult(context.evalCode(textOf('runtime'), 'runtime.js'));
  const parts = context.unwrapResult(context.callFunction(make, context.undefined, hostFunction));
  const functions = { start: context.getProp(parts, 'start'), deliver: context.getProp(parts, 'deliver') };
  context.unwrapResult(context.callFunction(context.getProp(parts, 'load'), context.undefined));
  runtime.setInterruptHandler(isOver);
  const uncaught = (error: QuickJSHandle): Uncaught => {
    const { name = 'Error', message = '' } = (context.dump(error) ?? {}) as Partial<Uncaught>;
    return { name: String(name), message: String(message) };
  };
  const memory = snapshot(wasmMemory);
  // A call that ended in the engine's own failure leaves its stack behind, which is not in the memory.
  let isBroken = false;
  return {
    reset: () => !isBroken && memory.restore(),
    memoryBytes: () => wasmMemory.buffer.byteLength,
    isFull: () => wasmMemory.buffer.byteLength > 0.75 * pages * WASM_PAGE,
    call: (name, args) => {
      isBroken = true;
      const handles = args.map((one) => texts.handleOf(one));
      const called = context.callFunction(functions[name], context.undefined, ...handles);
      let error = called.error;
      while (error === undefined && runtime.hasPendingJob() && !isOver()) {
        error = runtime.executePendingJobs().error;
      }
      const thrown = error === undefined ? undefined : uncaught(error);
      isBroken = false;
      return thrown;
    },
  };
}

/** What is compared at once, bytes. */
const CHUNK = 256 * 1024;

/** A memory as it is now. */
function snapshot(wasmMemory: WebAssembly.Memory) {
  const zeros = Buffer.alloc(CHUNK);
  const { byteLength } = wasmMemory.buffer;
  const chunks: { at: number; was: Buffer }[] = [];
  for (let at = 0; at < byteLength; at += CHUNK) {
    const is = Buffer.from(wasmMemory.buffer, at, CHUNK);
    chunks.push({ at, was: is.equals(zeros) ? zeros : Buffer.from(is) });
  }
  return {
    /** @returns false for a memory that has grown, which it cannot undo. */
    restore: (): boolean => {
      if (wasmMemory.buffer.byteLength !== byteLength) return false;
      for (const { at, was } of chunks) {
        const is = Buffer.from(wasmMemory.buffer, at, CHUNK);
        if (!is.equals(was)) is.set(was);
      }
      return true;
    },
  };
}

/** Shims, or what the host gives. */
function hostAnswer(host: SandboxOptions['host'], name: string, args: readonly Plain[]): Plain | undefined {
  if (name === 'modules') return STAND_INS.join(',');
  if (name === 'wrappers') return WRAPPERS.join(',');
  if (name !== 'shim') return host(name, args);
  const [module = ''] = args;
  if (typeof module !== 'string' || ![...STAND_INS, ...PARTS, ...WRAPPERS].includes(module))
    throw new Error('there is no such shim');
  return textOf(module);
}

/** Text and bytes, to the sandbox and from it. */
function conversions(context: QuickJSContext) {
  // Taken before a script can replace them. Plain strings of the engine's interface end at a NUL, and know no half of a
  // surrogate pair: those pass as JSON.
  const json = context.getProp(context.global, 'JSON');
  const [parse, stringify] = [context.getProp(json, 'parse'), context.getProp(json, 'stringify')];
  const convert = (by: QuickJSHandle, handle: QuickJSHandle) =>
    context.unwrapResult(context.callFunction(by, context.undefined, handle));
  return {
    handleOf: (value: Plain): QuickJSHandle => {
      if (typeof value === 'string') {
        if (!value.includes('\0') && value.isWellFormed()) return context.newString(value);
        return convert(parse, context.newString(JSON.stringify(value)));
      }
      const { buffer, byteOffset, byteLength } = value;
      return context.newArrayBuffer(buffer.slice(byteOffset, byteOffset + byteLength));
    },
    /** @throws when it is neither text nor bytes. */
    plainOf: (handle: QuickJSHandle): Plain => {
      if (context.typeof(handle) === 'string') {
        const text = context.getString(handle);
        if (text.length === context.getLength(handle)) return text;
        return JSON.parse(context.getString(convert(stringify, handle)));
      }
      // A copy: the bytes of the sandbox change, or move, as soon as it goes on.
      return context.getArrayBuffer(handle).consume(({ value: bytes }) => bytes.slice());
    },
  };
}
