// FormData, Blob and File, and the encoding of forms with files (multipart/form-data).
(module, load) => {
  const { Buffer } = load('buffer');

  /** The bytes of a part of a blob. */
  const bytesOf = (part) => {
    if (part instanceof Blob) return part._bytes;
    if (part instanceof ArrayBuffer) return Buffer.from(part);
    if (ArrayBuffer.isView(part)) return Buffer.from(part.buffer, part.byteOffset, part.byteLength);
    return Buffer.from(String(part));
  };

  class Blob {
    constructor(parts = [], { type = '' } = {}) {
      Object.defineProperty(this, '_bytes', { value: Buffer.concat([...parts].map(bytesOf)) });
      this.type = String(type).toLowerCase();
      this.size = this._bytes.length;
    }
    async arrayBuffer() {
      return new Uint8Array(this._bytes).buffer;
    }
    async bytes() {
      return new Uint8Array(this._bytes);
    }
    async text() {
      return this._bytes.toString('utf8');
    }
    slice(begin, end, type = '') {
      return new Blob([this._bytes.slice(begin, end)], { type });
    }
  }

  class File extends Blob {
    constructor(parts, name, { lastModified = Date.now(), ...options } = {}) {
      super(parts, options);
      Object.assign(this, { name: String(name), lastModified });
    }
  }

  /** The value of an entry: text, or a file with a name. */
  const entryOf = (value, filename) => {
    if (!(value instanceof Blob)) return String(value);
    if (value instanceof File && filename === undefined) return value;
    return new File([value], filename ?? 'blob', { type: value.type });
  };

  class FormData {
    #entries = [];
    append(name, value, filename) {
      this.#entries.push([String(name), entryOf(value, filename)]);
    }
    set(name, value, filename) {
      const at = this.#entries.findIndex(([one]) => one === String(name));
      this.delete(name);
      this.#entries.splice(at < 0 ? this.#entries.length : at, 0, [String(name), entryOf(value, filename)]);
    }
    get(name) {
      return this.getAll(name)[0] ?? null;
    }
    getAll(name) {
      return this.#entries.filter(([one]) => one === String(name)).map(([, value]) => value);
    }
    has(name) {
      return this.getAll(name).length > 0;
    }
    delete(name) {
      this.#entries = this.#entries.filter(([one]) => one !== String(name));
    }
    forEach(run, self) {
      for (const [name, value] of this) run.call(self, value, name, this);
    }
    entries() {
      return this.#entries[Symbol.iterator]();
    }
    keys() {
      return this.#entries.map(([name]) => name)[Symbol.iterator]();
    }
    values() {
      return this.#entries.map(([, value]) => value)[Symbol.iterator]();
    }
    [Symbol.iterator]() {
      return this.entries();
    }
  }

  const quoted = (name) => name.replace(/\r\n|\r|\n/g, '%0D%0A').replace(/"/g, '%22');

  /** Encodes a form (RFC 7578). */
  const multipart = (form) => {
    const boundary = `----form-${load('crypto').randomUUID()}`;
    const parts = [...form].flatMap(([name, value]) => {
      const head = `--${boundary}\r\nContent-Disposition: form-data; name="${quoted(name)}"`;
      if (typeof value === 'string') return [`${head}\r\n\r\n${value}\r\n`];
      const type = value.type || 'application/octet-stream';
      return [`${head}; filename="${quoted(value.name)}"\r\nContent-Type: ${type}\r\n\r\n`, value, '\r\n'];
    });
    const body = new Blob([...parts, `--${boundary}--\r\n`])._bytes;
    return { body, type: `multipart/form-data; boundary=${boundary}` };
  };

  module.exports = { Blob, File, FormData, multipart };
};
