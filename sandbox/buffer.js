// Buffer, atob, btoa. The host converts.
(module, _load, host) => {
  const ENCODINGS = {
    utf8: 'utf8',
    'utf-8': 'utf8',
    hex: 'hex',
    base64: 'base64',
    base64url: 'base64url',
    latin1: 'latin1',
    binary: 'latin1',
    ascii: 'ascii',
    utf16le: 'utf16le',
    'utf-16le': 'utf16le',
    ucs2: 'utf16le',
    'ucs-2': 'utf16le',
  };
  const encodingOf = (name = 'utf8') => {
    const known = ENCODINGS[String(name).toLowerCase()];
    if (known === undefined) throw new TypeError(`Unknown encoding: ${name}`);
    return known;
  };
  const plain = (bytes) => bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
  const viewOf = (bytes) => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const ofText = (text, encoding) => new Buffer(host('encode', text, encodingOf(encoding)));

  class Buffer extends Uint8Array {
    static get [Symbol.species]() {
      return Buffer;
    }
    static from(value, encodingOrOffset, length) {
      if (typeof value === 'string') return ofText(value, encodingOrOffset);
      if (value instanceof ArrayBuffer) return new Buffer(value, encodingOrOffset, length);
      if (value?.type === 'Buffer' && Array.isArray(value.data)) return Buffer.from(value.data);
      if (value === null || typeof value !== 'object') throw new TypeError('Buffer.from takes text or bytes');
      const made = new Buffer(value.length ?? 0);
      for (let i = 0; i < made.length; i++) made[i] = value[i];
      return made;
    }
    static alloc(size, fill, encoding) {
      const made = new Buffer(size);
      return fill === undefined ? made : made.fill(fill, 0, size, encoding);
    }
    static allocUnsafe(size) {
      return new Buffer(size);
    }
    static isBuffer(value) {
      return value instanceof Buffer;
    }
    static isEncoding(name) {
      return ENCODINGS[String(name).toLowerCase()] !== undefined;
    }
    static byteLength(value, encoding) {
      return typeof value === 'string' ? ofText(value, encoding).length : value.byteLength;
    }
    static concat(list, total) {
      const size = total ?? list.reduce((sum, one) => sum + one.length, 0);
      const made = new Buffer(size);
      let at = 0;
      for (const one of list) {
        const part = one.subarray(0, Math.max(0, size - at));
        made.set(part, at);
        at += part.length;
      }
      return made;
    }
    static compare(a, b) {
      return Buffer.from(a).compare(b);
    }
    toString(encoding, start = 0, end = this.length) {
      return host('decode', plain(this.subarray(start, end)), encodingOf(encoding));
    }
    toJSON() {
      return { type: 'Buffer', data: [...this] };
    }
    equals(other) {
      return this.compare(other) === 0;
    }
    compare(other) {
      for (let i = 0; i < Math.min(this.length, other.length); i++) {
        if (this[i] !== other[i]) return this[i] < other[i] ? -1 : 1;
      }
      return Math.sign(this.length - other.length);
    }
    slice(start, end) {
      return this.subarray(start, end);
    }
    write(text, offset = 0, length = undefined, encoding = undefined) {
      const isEncoding = typeof offset === 'string';
      const at = isEncoding ? 0 : offset;
      const bytes = ofText(text, isEncoding ? offset : typeof length === 'string' ? length : encoding);
      const part = bytes.subarray(
        0,
        Math.min(this.length - at, typeof length === 'number' ? length : Infinity),
      );
      this.set(part, at);
      return part.length;
    }
    fill(value, start = 0, end = this.length, encoding = undefined) {
      if (typeof value !== 'string') return super.fill(value, start, end);
      const bytes = ofText(value, encoding);
      for (let i = start; i < end && bytes.length > 0; i++) this[i] = bytes[(i - start) % bytes.length];
      return this;
    }
    copy(target, at = 0, start = 0, end = this.length) {
      const part = this.subarray(start, Math.min(end, start + target.length - at));
      target.set(part, at);
      return part.length;
    }
    indexOf(value, from = 0) {
      if (typeof value === 'number') return super.indexOf(value, from);
      const wanted = typeof value === 'string' ? ofText(value) : value;
      for (let i = from; i + wanted.length <= this.length; i++) {
        if (wanted.every((byte, at) => this[i + at] === byte)) return i;
      }
      return -1;
    }
    includes(value, from) {
      return this.indexOf(value, from) !== -1;
    }
    readUInt8(at = 0) {
      return viewOf(this).getUint8(at);
    }
    readUInt16BE(at = 0) {
      return viewOf(this).getUint16(at);
    }
    readUInt16LE(at = 0) {
      return viewOf(this).getUint16(at, true);
    }
    readUInt32BE(at = 0) {
      return viewOf(this).getUint32(at);
    }
    readUInt32LE(at = 0) {
      return viewOf(this).getUint32(at, true);
    }
    readInt32BE(at = 0) {
      return viewOf(this).getInt32(at);
    }
    writeUInt8(value, at = 0) {
      viewOf(this).setUint8(at, value);
      return at + 1;
    }
    writeUInt32BE(value, at = 0) {
      viewOf(this).setUint32(at, value);
      return at + 4;
    }
  }
  // Buffer(text) and new Buffer(text) are deprecated, and in use.
  const Callable = new Proxy(Buffer, {
    apply: (_target, _self, args) =>
      typeof args[0] === 'number' ? Buffer.alloc(args[0]) : Buffer.from(...args),
    construct: (target, args, asked) =>
      typeof args[0] === 'string' || Array.isArray(args[0])
        ? Buffer.from(...args)
        : Reflect.construct(target, args, asked),
  });
  module.exports = {
    Buffer: Callable,
    plain,
    atob: (text) => {
      const clean = String(text).replace(/[\t\n\f\r ]/g, '');
      if (!/^[A-Za-z0-9+/]*={0,2}$/.test(clean) || clean.replace(/={1,2}$/, '').length % 4 === 1) {
        throw new Error('The string to be decoded is not correctly encoded.');
      }
      return Buffer.from(clean, 'base64').toString('latin1');
    },
    btoa: (text) => {
      if (/[^\0-\xff]/.test(text)) throw new Error('Invalid character');
      return Buffer.from(String(text), 'latin1').toString('base64');
    },
  };
};
