// TextEncoder, TextDecoder, structuredClone.
(module, load, host) => {
  class TextEncoder {
    get encoding() {
      return 'utf-8';
    }
    encode(text = '') {
      return new Uint8Array(host('encode', String(text), 'utf8'));
    }
  }
  class TextDecoder {
    constructor(encoding = 'utf-8', { fatal = false } = {}) {
      const known = {
        'utf-8': 'utf8',
        utf8: 'utf8',
        latin1: 'latin1',
        'iso-8859-1': 'latin1',
        'utf-16le': 'utf16le',
      };
      this.encoding = String(encoding).toLowerCase();
      this.fatal = fatal;
      if (known[this.encoding] === undefined)
        throw new RangeError(`The encoding ${encoding} is not supported`);
      this.name = known[this.encoding];
    }
    decode(bytes = new Uint8Array()) {
      const { plain } = load('buffer');
      const buffer = bytes instanceof ArrayBuffer ? bytes : plain(bytes);
      const text = host('decode', buffer, this.name);
      if (this.fatal && text.includes('\ufffd')) throw new TypeError('The encoded data is not valid');
      return text.replace(/^\ufeff/, '');
    }
  }
  const clone = (value, seen) => {
    if (value === null || typeof value !== 'object') {
      if (typeof value === 'function' || typeof value === 'symbol')
        throw new TypeError('it cannot be cloned');
      return value;
    }
    if (seen.has(value)) return seen.get(value);
    if (value instanceof Date) return new Date(value);
    if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return value.slice();
    const made = Array.isArray(value)
      ? []
      : value instanceof Map
        ? new Map()
        : value instanceof Set
          ? new Set()
          : {};
    seen.set(value, made);
    if (made instanceof Map) for (const [key, one] of value) made.set(clone(key, seen), clone(one, seen));
    else if (made instanceof Set) for (const one of value) made.add(clone(one, seen));
    else for (const key of Object.keys(value)) made[key] = clone(value[key], seen);
    return made;
  };
  module.exports = { TextEncoder, TextDecoder, structuredClone: (value) => clone(value, new Map()) };
};
