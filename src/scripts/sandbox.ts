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
import { LITTLE_BYTES } from './limits.ts';
import { leaveMappedArguments } from './mapped-arguments.ts';
import type { Wrapper } from './messages.ts';
import { openMemory } from './sandbox-memory.ts';
import { type Pages, snapshot } from './snapshot.ts';
import { STAND_INS } from './stand-ins.ts';

/** What those and the globals are made of besides. */
const PARTS = ['fetch', 'form-data', 'text'];
/** What is around scripts of a kind. */
const WRAPPERS: readonly Wrapper[] = ['action', 'rule'];

// Its types are those of the CommonJS form.
const variant = quickjs.default as unknown as QuickJSSyncVariant;

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
  /** What it takes of the process, whoever needed it. Bytes. */
  heldBytes(): number;
  /** Whether it has nearly all the memory that it may have: it grows in steps. */
  isFull(): boolean;
  /** Whether the run asked for more memory than there is: the script may have gone on without. */
  wasShort(): boolean;
}

interface SandboxOptions {
  wasmModule: WebAssembly.Module;
  memoryBytes: number;
  /** What the shims call; answers with text, bytes or nothing. An Error that it throws is one of the script. */
  host(name: string, args: readonly Plain[]): Plain | undefined;
  /** Whether there is room for it to grow. @param more bytes. */
  mayGrow(more: number): boolean;
  /** Asked again and again while something runs: whether to end it. */
  isOver(): boolean;
  /** What wrappers are given when they are made. */
  prepared: readonly string[];
  /** Those of the other sandboxes of the thread. */
  pages: Pages;
}

/** Makes one. */
export async function createSandbox({
  wasmModule,
  memoryBytes,
  host,
  mayGrow,
  isOver,
  prepared,
  pages,
}: SandboxOptions): Promise<Sandbox> {
  const { wasmMemory, shortage } = openMemory(memoryBytes, mayGrow);
  const engine = await newQuickJSWASMModuleFromVariant(newVariant(variant, { wasmModule, wasmMemory }));
  // biome-ignore lint/complexity/useLiteralKeys: the type keeps the module to itself
  writeTextsAtOnce(engine['module'] as unknown as TextWriter, wasmMemory);
  const runtime = engine.newRuntime();
  runtime.setMaxStackSize(STACK);
  // biome-ignore lint/complexity/useLiteralKeys: the type keeps the address to itself
  leaveMappedArguments(wasmMemory, runtime['rt'].value);
  const context = runtime.newContext();
  const texts = conversions(context);
  const hostFunction = context.newFunction('host', (...given) => {
    try {
      const [name, ...args] = texts.callOf(given);
      const answer = hostAnswer(host, prepared, String(name), args);
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
  const memory = snapshot(wasmMemory, pages);
  // A call that ended in the engine's own failure leaves its stack behind, which is not in the memory.
  let isBroken = false;
  return {
    reset: () => {
      shortage.was = false;
      return !isBroken && memory.restore();
    },
    wasShort: () => shortage.was,
    // Below that it may be what a run before needed, which is nobody's business.
    memoryBytes: () => Math.max(LITTLE_BYTES, wasmMemory.buffer.byteLength),
    heldBytes: () => wasmMemory.buffer.byteLength,
    isFull: () => wasmMemory.buffer.byteLength > 0.75 * memoryBytes,
    call: (name, args) => {
      isBroken = true;
      const handles = args.map((one) => texts.handleOf(one));
      const called = context.callFunction(functions[name], context.undefined, ...handles);
      let error = called.error;
      while (error === undefined && runtime.hasPendingJob() && !isOver()) {
        error = runtime.executePendingJobs().error;
      }
      const thrown = error === undefined ? undefined : uncaughtOf(context, error);
      isBroken = false;
      return thrown;
    },
  };
}

/** What the engine's interface writes texts by. */
interface TextWriter {
  lengthBytesUTF8(text: string): number;
  stringToUTF8(text: string, at: number, most: number): number;
}

/** Has texts written as Node.js writes them: the interface does it character by character, which takes ten times as long. */
function writeTextsAtOnce(module: TextWriter, wasmMemory: WebAssembly.Memory): void {
  module.lengthBytesUTF8 = (text) => Buffer.byteLength(text);
  module.stringToUTF8 = (text, at, most) => {
    const bytes = Buffer.from(wasmMemory.buffer);
    const length = bytes.write(text, at, most - 1);
    bytes[at + length] = 0;
    return length;
  };
}

function uncaughtOf(context: QuickJSContext, error: QuickJSHandle): Uncaught {
  const { name = 'Error', message = '' } = (context.dump(error) ?? {}) as Partial<Uncaught>;
  return { name: String(name), message: String(message) };
}

/** Shims, or what the host gives. */
function hostAnswer(
  host: SandboxOptions['host'],
  prepared: readonly string[],
  name: string,
  args: readonly Plain[],
): Plain | undefined {
  if (name === 'modules') return STAND_INS.join(',');
  if (name === 'wrappers') return WRAPPERS.join(',');
  if (name === 'prepared') return JSON.stringify(prepared);
  if (name !== 'shim') return host(name, args);
  const [module = ''] = args;
  if (typeof module !== 'string' || ![...STAND_INS, ...PARTS, ...(WRAPPERS as string[])].includes(module))
    throw new Error('there is no such shim');
  return textOf(module);
}

/** The message of the engine's error, and ours, when there is none for what was asked. */
export const NO_MEMORY = 'out of memory';
/** What half of a surrogate pair comes as. */
const LOST = '\u{fffd}';

/** A name and texts, of `name,length,length;` and the texts. @returns undefined when not all of it came. */
function split(all: string): string[] | undefined {
  const head = all.indexOf(';');
  const [name = '', ...lengths] = all.slice(0, Math.max(head, 0)).split(',');
  const parts = [name];
  let at = head + 1;
  for (const length of lengths) {
    parts.push(all.slice(at, at + Number(length)));
    at += Number(length);
  }
  return head > 0 && at === all.length ? parts : undefined;
}

/** Text and bytes, to the sandbox and from it. */
function conversions(context: QuickJSContext) {
  // Taken before a script can replace them. Plain strings of the engine's interface end at a NUL, and know no half of a
  // surrogate pair: those pass as JSON.
  const json = context.getProp(context.global, 'JSON');
  const [parse, stringify] = [context.getProp(json, 'parse'), context.getProp(json, 'stringify')];
  const convert = (by: QuickJSHandle, handle: QuickJSHandle) =>
    context.unwrapResult(context.callFunction(by, context.undefined, handle));
  const whole = (handle: QuickJSHandle): string => {
    const text = context.getString(convert(stringify, handle));
    // JSON is never empty: there was no memory for a copy of it.
    if (text === '') throw new Error(NO_MEMORY);
    return JSON.parse(text);
  };
  const plainOf = (handle: QuickJSHandle): Plain => {
    if (context.typeof(handle) === 'string') {
      const text = context.getString(handle);
      return text.length === context.getLength(handle) && !text.includes(LOST) ? text : whole(handle);
    }
    // A copy: the bytes of the sandbox change, or move, as soon as it goes on.
    return context.getArrayBuffer(handle).consume(({ value: bytes }) => bytes.slice());
  };
  return {
    handleOf: (value: Plain): QuickJSHandle => {
      if (typeof value === 'string') {
        if (!value.includes('\0') && value.isWellFormed()) return context.newString(value);
        return convert(parse, context.newString(JSON.stringify(value)));
      }
      const { buffer, byteOffset, byteLength } = value;
      return context.newArrayBuffer(buffer.slice(byteOffset, byteOffset + byteLength));
    },
    /** A name and what it is called with: one by one, or all in one text. @throws when something is neither text nor bytes. */
    callOf: (handles: readonly QuickJSHandle[]): Plain[] => {
      const [first] = handles;
      if (first === undefined || handles.length > 1) return handles.map(plainOf);
      const text = context.getString(first);
      return (text.includes(LOST) ? undefined : split(text)) ?? split(whole(first)) ?? [];
    },
  };
}
