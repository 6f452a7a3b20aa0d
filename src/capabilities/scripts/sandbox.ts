// A sandbox: QuickJS in a WebAssembly instance. Its memory, which holds all of its state, is restored before each run
// to what it was when the sandbox was made; where that is not possible, a new sandbox is made.
// docs/understand/decisions/actions-scripts.md#scripts-run-in-quickjs-compiled-to-webassembly-in-threads
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
import { INITIAL_MEMORY_BYTES, MAX_REUSED_BYTES, WASM_PAGE } from './limits.ts';
import type { Wrapper } from './scripts-messages.ts';
import { type Pages, snapshot } from './scripts-snapshot.ts';
import { BUILT_IN_MODULES } from './stand-ins.ts';

/** Further shims, which the globals and the modules are made of. */
const PARTS = ['fetch', 'form-data', 'text'];
const WRAPPERS: readonly Wrapper[] = ['action', 'rule'];

// The package's types describe its CommonJS form.
const variant = quickjs.default as unknown as QuickJSSyncVariant;

/**
 * Deepest stack of a script, bytes. It is below the size of the WebAssembly stack, so that too deep a recursion ends in
 * an error of the script.
 */
const MAX_STACK_BYTES = 256 * 1024;

const shims = new Map<string, string>();

/** Returns the text of a shim, which is read once. */
function textOf(name: string): string {
  let text = shims.get(name);
  if (text === undefined) {
    text = readFileSync(new URL(`../../../sandbox/${name}.js`, import.meta.url), 'utf8');
    shims.set(name, text);
  }
  return text;
}

/** An error that nothing in the sandbox caught. */
export interface Uncaught {
  name: string;
  message: string;
}

export interface Sandbox {
  /** Undoes everything that a run did. @returns false when that is not possible: the sandbox must not be used again. */
  reset(): boolean;
  /** Calls a function of the runtime, then all pending promise jobs. @returns the error that was not caught, if any. */
  call(name: 'start' | 'deliver', args: readonly Plain[]): Uncaught | undefined;
  memoryBytes(): number;
  /** How much memory of the process the sandbox takes, bytes, whichever run needed it. */
  heldBytes(): number;
  /** Whether it has nearly all the memory that it may have, which grows in steps. */
  isFull(): boolean;
  /** Whether the run asked for more memory than there is. The script may have continued without it. */
  wasShort(): boolean;
}

interface SandboxOptions {
  wasmModule: WebAssembly.Module;
  memoryBytes: number;
  /** Answers calls of the shims with text, bytes or nothing. An error that it throws becomes one of the script. */
  host(name: string, args: readonly Plain[]): Plain | undefined;
  /** @param more bytes. */
  mayGrow(more: number): boolean;
  /** Called again and again while the sandbox runs: reports whether to interrupt it. */
  isOver(): boolean;
  /** Arguments for the wrappers, when the sandbox is made. @see ThreadData.prepared */
  prepared: readonly string[];
  /** The memory pages that the sandboxes of a thread share. */
  pages: Pages;
}

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
  runtime.setMaxStackSize(MAX_STACK_BYTES);
  // biome-ignore lint/complexity/useLiteralKeys: the type keeps the address to itself
  ignoreMappedArguments(wasmMemory, runtime['rt'].value);
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
  // A call that ended in a failure of the engine itself leaves its stack in a state that is not in the memory.
  let isBroken = false;
  return {
    reset: () => {
      shortage.was = false;
      return !isBroken && memory.restore();
    },
    wasShort: () => shortage.was,
    // Memory below this amount may have been needed by an earlier run, which this one must not learn of.
    memoryBytes: () => Math.max(MAX_REUSED_BYTES, wasmMemory.buffer.byteLength),
    heldBytes: () => wasmMemory.buffer.byteLength,
    isFull: () => wasmMemory.buffer.byteLength > 0.75 * memoryBytes,
    call: (name, args) => {
      isBroken = true;
      const handles = args.map((one) => texts.handleOf(one));
      const outcome = context.callFunction(functions[name], context.undefined, ...handles);
      let error = outcome.error;
      while (error === undefined && runtime.hasPendingJob() && !isOver()) {
        error = runtime.executePendingJobs().error;
      }
      const thrown = error === undefined ? undefined : uncaughtOf(context, error);
      isBroken = false;
      return thrown;
    },
  };
}

/** The functions by which the engine's interface writes text. */
interface TextWriter {
  lengthBytesUTF8(text: string): number;
  stringToUTF8(text: string, at: number, most: number): number;
}

/**
 * Replaces the functions that write text by those of Node.js: the interface writes character by character, which takes
 * ten times as long.
 */
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

/** Answers a call of the sandbox: with a shim, or with what the host returns. */
function hostAnswer(
  host: SandboxOptions['host'],
  prepared: readonly string[],
  name: string,
  args: readonly Plain[],
): Plain | undefined {
  if (name === 'modules') return BUILT_IN_MODULES.join(',');
  if (name === 'wrappers') return WRAPPERS.join(',');
  if (name === 'prepared') return JSON.stringify(prepared);
  if (name !== 'shim') return host(name, args);
  const [module = ''] = args;
  if (
    typeof module !== 'string' ||
    ![...BUILT_IN_MODULES, ...PARTS, ...(WRAPPERS as string[])].includes(module)
  )
    throw new Error('there is no such shim');
  return textOf(module);
}

/** The message of the engine's error, and of the host's, when no memory is left. */
export const NO_MEMORY = 'out of memory';
/** The replacement character, which half of a surrogate pair arrives as. */
const REPLACEMENT_CHARACTER = '\u{fffd}';

/** Longest name of a function with the lengths of its arguments, characters. */
const MAX_HEAD_LENGTH = 200;

/**
 * Splits `name,length,length;` and the texts after it.
 * @returns the name and the texts; undefined when a part is missing.
 */
function split(all: string): string[] | undefined {
  const head = all.slice(0, MAX_HEAD_LENGTH).indexOf(';');
  const [name = '', ...lengths] = all.slice(0, Math.max(head, 0)).split(',');
  const parts = [name];
  let at = head + 1;
  for (const length of lengths) {
    parts.push(all.slice(at, at + Number(length)));
    at += Number(length);
  }
  return head > 0 && at === all.length ? parts : undefined;
}

/** Converts text and bytes to values of the sandbox and back. */
function conversions(context: QuickJSContext) {
  // Taken before a script can replace them. Plain strings of the engine's interface end at a NUL and cannot hold half
  // of a surrogate pair, so such strings pass as JSON.
  const json = context.getProp(context.global, 'JSON');
  const [parse, stringify] = [context.getProp(json, 'parse'), context.getProp(json, 'stringify')];
  const convert = (by: QuickJSHandle, handle: QuickJSHandle) =>
    context.unwrapResult(context.callFunction(by, context.undefined, handle));
  const textByJson = (handle: QuickJSHandle): string => {
    const text = context.getString(convert(stringify, handle));
    // JSON is never empty: there was no memory for a copy of it.
    if (text === '') throw new Error(NO_MEMORY);
    return JSON.parse(text);
  };
  const plainOf = (handle: QuickJSHandle): Plain => {
    if (context.typeof(handle) === 'string') {
      const text = context.getString(handle);
      return text.length === context.getLength(handle) && !text.includes(REPLACEMENT_CHARACTER)
        ? text
        : textByJson(handle);
    }
    // A copy, because the sandbox's memory changes, or moves, as soon as it runs again.
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
    /**
     * Returns the name and the arguments of a call, which come as several values or in one text.
     * @throws when one is neither text nor bytes.
     */
    callOf: (handles: readonly QuickJSHandle[]): Plain[] => {
      const [first] = handles;
      if (first === undefined || handles.length > 1) return handles.map(plainOf);
      const text = context.getString(first);
      return (
        (text.includes(REPLACEMENT_CHARACTER) ? undefined : split(text)) ?? split(textByJson(first)) ?? []
      );
    },
  };
}

// The memory of a sandbox, which holds all of its state.

/**
 * @param memoryBytes its largest size.
 * @param mayGrow reports whether there is room for so many bytes more.
 * @returns `shortage.was` is true once it could not grow as much as was asked.
 */
function openMemory(memoryBytes: number, mayGrow: (more: number) => boolean) {
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

// Works around a fault of the engine (quickjs-ng 0.12.1; fixed in 0.13, with which this file can be removed): for a
// function in sloppy mode, its garbage collector follows `arguments` to the parameters, which are no objects of the
// collector until the function has returned.
// docs/understand/decisions/actions-scripts.md#the-engines-garbage-collector-does-not-follow-arguments-to-parameters

/**
 * Words in the engine's record of a class: its number, its name, its finalizer, its marking function, its call
 * function, its accessors.
 */
const CLASS = { words: 6, name: 1, free: 2, follow: 3, accessors: 5 };
/**
 * Numbers of classes, which begin at 1: of arrays, of `arguments` in strict functions, and of `arguments` in sloppy
 * ones.
 */
const ARRAY = 2;
const ARGUMENTS = 8;
const MAPPED_ARGUMENTS = 9;
/** How many classes are compared. */
const CLASSES = 40;
/** How many words of the runtime's record are searched: the address of its classes is among the first. */
const RUNTIME_WORDS = 64;

/**
 * Stops the collector from following the `arguments` of sloppy functions. It then takes what their parameters hold for
 * something in use, even where only a cycle with them holds it; that is freed with the sandbox.
 * @param runtime the address of the engine's runtime.
 * @throws Error where the memory is not laid out as expected: it is another version of the engine.
 */
export function ignoreMappedArguments(wasmMemory: WebAssembly.Memory, runtime: number): void {
  const words = new Uint32Array(wasmMemory.buffer);
  const runtimeWords = words.subarray(runtime / 4, runtime / 4 + RUNTIME_WORDS);
  const found = [...runtimeWords].filter((address) => areClasses(words, address));
  const [classes] = found;
  if (classes === undefined || found.length > 1) {
    throw new Error('the classes of the engine of scripts are not where they were: it is another version');
  }
  words[classes / 4 + MAPPED_ARGUMENTS * CLASS.words + CLASS.follow] = 0;
}

/**
 * Reports whether the engine's classes are at an address: by their numbers, and by what is known of the two `arguments`
 * classes.
 */
function areClasses(words: Uint32Array, address: number): boolean {
  if (address === 0 || address % 4 !== 0) return false;
  const of = (number: number, word = 0) => words[address / 4 + number * CLASS.words + word];
  const areSame = (one: number, other: number, ...parts: (keyof typeof CLASS)[]) =>
    parts.every((part) => of(one, CLASS[part]) === of(other, CLASS[part]));
  for (let number = 1; number <= CLASSES; number++) if (of(number) !== number) return false;
  return (
    areSame(ARGUMENTS, ARRAY, 'free', 'follow') &&
    areSame(ARGUMENTS, MAPPED_ARGUMENTS, 'name', 'accessors') &&
    !areSame(MAPPED_ARGUMENTS, ARRAY, 'free') &&
    of(MAPPED_ARGUMENTS, CLASS.follow) !== 0
  );
}
