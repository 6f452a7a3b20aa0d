// fetch, Headers, Request, Response, AbortController, AbortSignal; and `send`, which the other HTTP shims use.
(module, load, host, expect) => {
  /**
   * Sends a request through the host.
   * @param request url, method, headers (pairs), body (text or bytes), redirect, timeout (milliseconds).
   * @param done gets an error, or { status, statusText, url, headers (pairs) } and the body (text or ArrayBuffer).
   */
  const send = ({ body, ...head }, done) => {
    const id = expect((answer, content) => {
      const { error, ...response } = JSON.parse(answer);
      if (error === undefined) done(undefined, response, content);
      else done(Object.assign(new Error(error.message), { code: error.code }));
    });
    host('request', id, JSON.stringify(head), body ?? '');
  };

  class Headers {
    #map = new Map();
    constructor(init) {
      if (init === null || init === undefined) return;
      const all = typeof init[Symbol.iterator] === 'function' ? init : Object.entries(init);
      for (const [name, value] of all) this.append(name, value);
    }
    append(name, value) {
      const key = String(name).toLowerCase();
      const before = this.#map.get(key);
      this.#map.set(key, before === undefined ? String(value) : `${before}, ${value}`);
    }
    set(name, value) {
      this.#map.set(String(name).toLowerCase(), String(value));
    }
    get(name) {
      return this.#map.get(String(name).toLowerCase()) ?? null;
    }
    has(name) {
      return this.#map.has(String(name).toLowerCase());
    }
    delete(name) {
      this.#map.delete(String(name).toLowerCase());
    }
    forEach(run, self) {
      for (const [name, value] of this) run.call(self, value, name, this);
    }
    entries() {
      return [...this.#map].sort(([a], [b]) => (a < b ? -1 : 1))[Symbol.iterator]();
    }
    keys() {
      return [...this.entries()].map(([name]) => name)[Symbol.iterator]();
    }
    values() {
      return [...this.entries()].map(([, value]) => value)[Symbol.iterator]();
    }
    [Symbol.iterator]() {
      return this.entries();
    }
    /** As in node-fetch. */
    raw() {
      return Object.fromEntries([...this.#map].map(([name, value]) => [name, [value]]));
    }
  }

  // Most runs use neither, so they are loaded when one is made.
  const isForm = (body) => typeof body.getAll === 'function' && body instanceof load('form-data').FormData;
  const isBlob = (body) => typeof body.arrayBuffer === 'function' && body instanceof load('form-data').Blob;

  /** Returns a body as it is sent, and its type. */
  const contentOf = (body) => {
    if (body === null || body === undefined) return {};
    if (typeof body === 'string') return { body, type: 'text/plain;charset=UTF-8' };
    if (body instanceof load('url').URLSearchParams) {
      return { body: body.toString(), type: 'application/x-www-form-urlencoded;charset=UTF-8' };
    }
    if (body instanceof ArrayBuffer) return { body };
    if (isForm(body)) {
      const { body: bytes, type } = load('form-data').multipart(body);
      return { body: load('buffer').plain(bytes), type };
    }
    if (isBlob(body)) return { body: load('buffer').plain(body._bytes), type: body.type || undefined };
    if (ArrayBuffer.isView(body)) return { body: load('buffer').plain(body) };
    return { body: String(body), type: 'text/plain;charset=UTF-8' };
  };

  class Body {
    #content;
    bodyUsed = false;
    _init(content) {
      this.#content = content ?? '';
    }
    async #take() {
      if (this.bodyUsed) throw new TypeError('Body is unusable: Body has already been read');
      this.bodyUsed = true;
      return this.#content;
    }
    async text() {
      const content = await this.#take();
      return typeof content === 'string' ? content : host('decode', content, 'utf8');
    }
    async json() {
      return JSON.parse(await this.text());
    }
    async arrayBuffer() {
      const content = await this.#take();
      return typeof content === 'string' ? host('encode', content, 'utf8') : content;
    }
    async bytes() {
      return new Uint8Array(await this.arrayBuffer());
    }
    async buffer() {
      return load('buffer').Buffer.from(await this.arrayBuffer());
    }
    _content() {
      return this.#content;
    }
  }

  class Response extends Body {
    constructor(body = null, { status = 200, statusText = '', headers, url = '', redirected = false } = {}) {
      super();
      this._init(contentOf(body).body);
      Object.assign(this, { status, statusText, url, redirected, type: 'basic' });
      this.headers = headers instanceof Headers ? headers : new Headers(headers);
      this.ok = status >= 200 && status < 300;
    }
    static json(value, init = {}) {
      return new Response(JSON.stringify(value), {
        ...init,
        headers: { 'content-type': 'application/json', ...init.headers },
      });
    }
    clone() {
      return new Response(this._content(), this);
    }
  }

  class Request extends Body {
    constructor(input, init = {}) {
      super();
      const before = input instanceof Request ? input : {};
      this.url = input instanceof Request ? input.url : new (load('url').URL)(input).href;
      this.method = String(init.method ?? before.method ?? 'GET').toUpperCase();
      this.headers = new Headers(init.headers ?? before.headers);
      this.redirect = init.redirect ?? before.redirect ?? 'follow';
      this.signal = init.signal ?? before.signal;
      const { body, type } = contentOf(
        init.body ?? (before._content ? before._content() || undefined : undefined),
      );
      if (body !== undefined && ['GET', 'HEAD'].includes(this.method)) {
        throw new TypeError('Request with GET/HEAD method cannot have body.');
      }
      if (type !== undefined && !this.headers.has('content-type')) this.headers.set('content-type', type);
      this._init(body);
    }
  }

  const abortion = (name, message) => {
    const error = new Error(message);
    error.name = name;
    return error;
  };
  class AbortSignal {
    aborted = false;
    reason = undefined;
    onabort = null;
    #listeners = [];
    static abort(reason = abortion('AbortError', 'This operation was aborted')) {
      const signal = new AbortSignal();
      signal._abort(reason);
      return signal;
    }
    static timeout(ms) {
      const signal = new AbortSignal();
      setTimeout(
        () => signal._abort(abortion('TimeoutError', 'The operation was aborted due to timeout')),
        ms,
      );
      return signal;
    }
    static any(signals) {
      const signal = new AbortSignal();
      for (const one of signals) {
        if (one.aborted) signal._abort(one.reason);
        else one.addEventListener('abort', () => signal._abort(one.reason));
      }
      return signal;
    }
    addEventListener(_type, run) {
      this.#listeners.push(run);
    }
    removeEventListener(_type, run) {
      this.#listeners = this.#listeners.filter((one) => one !== run);
    }
    throwIfAborted() {
      if (this.aborted) throw this.reason;
    }
    _abort(reason) {
      if (this.aborted) return;
      this.aborted = true;
      this.reason = reason;
      const event = { type: 'abort', target: this };
      if (typeof this.onabort === 'function') this.onabort(event);
      for (const run of this.#listeners) run(event);
    }
  }
  class AbortController {
    signal = new AbortSignal();
    abort(reason = abortion('AbortError', 'This operation was aborted')) {
      this.signal._abort(reason);
    }
  }

  const fetch = (input, init = {}) =>
    new Promise((resolve, reject) => {
      const request = new Request(input, init);
      const { signal } = request;
      if (signal?.aborted) return reject(signal.reason);
      signal?.addEventListener('abort', () => reject(signal.reason));
      const { url, method, redirect } = request;
      const timeout = init.timeout > 0 ? init.timeout : undefined;
      const head = { url, method, redirect, timeout, headers: [...request.headers] };
      send({ ...head, body: request._content() || undefined }, (error, response, content) => {
        if (error)
          return reject(
            Object.assign(new TypeError(`fetch failed: ${error.message}`, { cause: error }), {
              code: error.code,
            }),
          );
        const isOther = response.url !== url;
        resolve(new Response(content, { ...response, redirected: isOther }));
      });
    });

  module.exports = { send, contentOf, fetch, Headers, Request, Response, AbortController, AbortSignal };
};
