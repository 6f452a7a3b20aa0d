// Works around a fault of the engine (quickjs-ng 0.12.1; fixed in 0.13, with which this file can be removed): for a
// function in sloppy mode, its garbage collector follows `arguments` to the parameters, which are no objects of the
// collector until the function has returned.

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
