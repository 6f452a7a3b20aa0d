// The part of WebAssembly's JavaScript interface that is used here: the types of Node.js do not declare it.
declare namespace WebAssembly {
  class Module {
    private readonly brand;
  }
  class Memory {
    constructor(limits: { initial: number; maximum: number });
    readonly buffer: ArrayBuffer;
    /** @returns the pages that it had. @throws RangeError where it cannot grow so far. */
    grow(pages: number): number;
  }
  function compile(bytes: Uint8Array): Promise<Module>;
}
