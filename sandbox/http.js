// http and https, only the clients: `request` and `get`, with the events that scripts use.
(module, load) => {
  const { Buffer } = load('buffer');
  const { URL } = load('url');

  class Emitter {
    #listeners = new Map();
    on(event, listener) {
      this.#listeners.set(event, [...(this.#listeners.get(event) ?? []), listener]);
      return this;
    }
    once(event, listener) {
      let isDone = false;
      return this.on(event, (...args) => {
        if (isDone) return;
        isDone = true;
        listener.apply(this, args);
      });
    }
    emit(event, ...args) {
      const listeners = this.#listeners.get(event) ?? [];
      for (const listener of listeners) listener.apply(this, args);
      return listeners.length > 0;
    }
    setEncoding() {
      return this;
    }
    setTimeout(_ms, listener) {
      return listener ? this.on('timeout', listener) : this;
    }
  }
  Emitter.prototype.addListener = Emitter.prototype.on;

  /** The response; its body is one chunk. */
  class IncomingMessage extends Emitter {
    #encoding;
    #bytes;
    constructor({ status, statusText, headers }, content) {
      super();
      this.statusCode = status;
      this.statusMessage = statusText;
      this.headers = {};
      for (const [name, value] of headers) {
        if (name === 'set-cookie') this.headers[name] = [...(this.headers[name] ?? []), value];
        else this.headers[name] = name in this.headers ? `${this.headers[name]}, ${value}` : value;
      }
      this.#bytes = Buffer.from(content);
    }
    setEncoding(encoding = 'utf8') {
      this.#encoding = encoding;
      return this;
    }
    resume() {
      return this;
    }
    #piece() {
      return this.#encoding === undefined ? this.#bytes : this.#bytes.toString(this.#encoding);
    }
    flow() {
      if (this.#bytes.length > 0) this.emit('data', this.#piece());
      this.complete = true;
      this.emit('end');
      this.emit('close');
    }
    async *[Symbol.asyncIterator]() {
      if (this.#bytes.length > 0) yield this.#piece();
    }
  }

  class ClientRequest extends Emitter {
    #asked;
    #body = [];
    #isOver = false;
    constructor(asked) {
      super();
      this.#asked = asked;
    }
    setHeader(name, value) {
      this.#asked.headers[name] = value;
      return this;
    }
    write(chunk, encoding) {
      this.#body.push(typeof chunk === 'string' ? Buffer.from(chunk, encoding) : chunk);
      return true;
    }
    destroy(error) {
      if (this.#isOver) return this;
      this.#isOver = true;
      if (error) this.emit('error', error);
      return this;
    }
    abort() {
      this.destroy();
    }
    end(chunk, encoding) {
      if (this.#isOver) return this;
      if (chunk !== undefined && typeof chunk !== 'function') this.write(chunk, encoding);
      const { headers, ...asked } = this.#asked;
      const pairs = Object.entries(headers).flatMap(([name, value]) =>
        [value].flat().map((one) => [name, String(one)]),
      );
      const body = this.#body.length > 0 ? load('buffer').plain(Buffer.concat(this.#body)) : undefined;
      load('fetch').send({ ...asked, headers: pairs, body, redirect: 'manual' }, (error, answer, content) => {
        if (this.#isOver) return;
        this.#isOver = true;
        if (error) {
          this.emit('error', error);
          return;
        }
        const message = new IncomingMessage(answer, content);
        this.emit('response', message);
        message.flow();
      });
      return this;
    }
  }

  const addressOf = (options, protocol) => {
    const scheme = options.protocol ?? protocol;
    const host = options.hostname ?? options.host ?? 'localhost';
    const port = options.port === undefined || options.port === null ? '' : `:${options.port}`;
    const path = options.path ?? '/';
    return `${scheme}//${/:\d+$/.test(host) ? host : `${host}${port}`}${path.startsWith('/') ? path : `/${path}`}`;
  };

  const over = (protocol) => {
    const request = (...given) => {
      const listener = given.find((one) => typeof one === 'function');
      const [first, second] = given.filter((one) => typeof one !== 'function');
      const isAddress = typeof first === 'string' || first instanceof URL;
      const options = { ...(isAddress ? second : first) };
      const address = isAddress ? String(first) : addressOf(options, protocol);
      const headers = { ...options.headers };
      if (options.auth) headers.authorization ??= `Basic ${Buffer.from(options.auth).toString('base64')}`;
      const method = String(options.method ?? 'GET').toUpperCase();
      const asked = new ClientRequest({ url: address, method, headers, timeout: options.timeout });
      return listener ? asked.on('response', listener) : asked;
    };
    const get = (...given) => request(...given).end();
    return { request, get, Agent: class Agent {}, IncomingMessage, ClientRequest };
  };
  module.exports = { ...over('http:'), over };
};
