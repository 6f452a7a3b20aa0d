// What is used of WebAssembly's JavaScript interface: the libraries of Node's types do not have it.
declare namespace WebAssembly {
  class Module {
    private readonly brand;
  }
  class Memory {
    constructor(limits: { initial: number; maximum: number });
    readonly buffer: ArrayBuffer;
    /** @returns the pages that it had. @throws RangeError where it may not have so many more. */
    grow(pages: number): number;
  }
  function compile(bytes: Uint8Array): Promise<Module>;
}
