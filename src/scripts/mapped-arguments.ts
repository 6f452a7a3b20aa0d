// A fault of the engine (quickjs-ng 0.12.1, mended in 0.13, with which this file goes): its garbage collector follows the
// `arguments` of a function that is not strict to its parameters, which are no objects of the collector until the function
// has returned.

/** The words of what the engine knows of a class: its number, its name, what frees and what follows one, how it is called, its accessors. */
const CLASS = { words: 6, name: 1, free: 2, follow: 3, accessors: 5 };
/** Numbers of classes, which begin at 1: of arrays, and of `arguments` in strict functions and in others. */
const ARRAY = 2;
const ARGUMENTS = 8;
const MAPPED_ARGUMENTS = 9;
/** Classes that are looked at. */
const CLASSES = 40;
/** Of the runtime, where the address of its classes is among the first: what is looked at, words. */
const RUNTIME_WORDS = 64;

/**
 * Has the collector not follow such `arguments`. It then takes what their parameters hold for something in use, also where only
 * a cycle with them holds it: that is freed with the sandbox.
 * @param runtime the address of the engine's runtime.
 * @throws Error for an engine that is not as this expects it: it is another version.
 */
export function leaveMappedArguments(wasmMemory: WebAssembly.Memory, runtime: number): void {
  const words = new Uint32Array(wasmMemory.buffer);
  const own = words.subarray(runtime / 4, runtime / 4 + RUNTIME_WORDS);
  const found = [...own].filter((address) => areClasses(words, address));
  const [classes] = found;
  if (classes === undefined || found.length > 1) {
    throw new Error('the classes of the engine of scripts are not where they were: it is another version');
  }
  words[classes / 4 + MAPPED_ARGUMENTS * CLASS.words + CLASS.follow] = 0;
}

/** Whether the engine's classes are there: by their numbers, and by what is known of those of `arguments`. */
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
