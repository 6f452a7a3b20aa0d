// URL and URLSearchParams (WHATWG), and Node's older `url`. The host parses addresses.
(module, load, host) => {
  class URLSearchParams {
    #pairs = [];
    #changed = () => {};
    constructor(init = '', changed = undefined) {
      if (changed) this.#changed = changed;
      if (typeof init === 'string') {
        for (const part of init.replace(/^\?/, '').split('&')) {
          if (part === '') continue;
          const at = part.indexOf('=');
          const both = at < 0 ? [part, ''] : [part.slice(0, at), part.slice(at + 1)];
          this.#pairs.push(both.map((one) => load('querystring').unescape(one.replaceAll('+', ' '))));
        }
      } else if (init !== null && typeof init === 'object') {
        const all = typeof init[Symbol.iterator] === 'function' ? [...init] : Object.entries(init);
        for (const [key, value] of all) this.#pairs.push([String(key), String(value)]);
      }
    }
    get size() {
      return this.#pairs.length;
    }
    append(name, value) {
      this.#pairs.push([String(name), String(value)]);
      this.#changed();
    }
    set(name, value) {
      const at = this.#pairs.findIndex(([key]) => key === name);
      this.#pairs = this.#pairs.filter(([key], index) => key !== name || index === at);
      if (at < 0) this.#pairs.push([String(name), String(value)]);
      else this.#pairs.find(([key]) => key === name)[1] = String(value);
      this.#changed();
    }
    delete(name) {
      this.#pairs = this.#pairs.filter(([key]) => key !== name);
      this.#changed();
    }
    get(name) {
      return this.#pairs.find(([key]) => key === name)?.[1] ?? null;
    }
    getAll(name) {
      return this.#pairs.filter(([key]) => key === name).map(([, value]) => value);
    }
    has(name) {
      return this.#pairs.some(([key]) => key === name);
    }
    sort() {
      this.#pairs.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
      this.#changed();
    }
    forEach(run, self) {
      for (const [key, value] of this.#pairs) run.call(self, value, key, this);
    }
    *entries() {
      for (const pair of this.#pairs) yield [...pair];
    }
    *keys() {
      for (const [key] of this.#pairs) yield key;
    }
    *values() {
      for (const [, value] of this.#pairs) yield value;
    }
    [Symbol.iterator]() {
      return this.entries();
    }
    toString() {
      const encode = (text) =>
        encodeURIComponent(text)
          .replaceAll('%20', '+')
          .replace(/[!'()~]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
      return this.#pairs.map((pair) => pair.map(encode).join('=')).join('&');
    }
  }

  const PARTS = [
    'protocol',
    'username',
    'password',
    'host',
    'hostname',
    'port',
    'pathname',
    'search',
    'hash',
  ];
  /** @returns an empty string where the address is invalid. */
  const hrefOf = (address, base) => host('href', String(address), base === undefined ? '' : String(base));

  class URL {
    #href;
    /** Parsed when first used. */
    #parts;
    #params;
    constructor(address, base) {
      this.#href = hrefOf(address, base);
      if (this.#href !== '') return;
      const error = new TypeError('Invalid URL');
      error.code = 'ERR_INVALID_URL';
      throw error;
    }
    static canParse(address, base) {
      return hrefOf(address, base) !== '';
    }
    static parse(address, base) {
      try {
        return new URL(address, base);
      } catch (error) {
        if (error.code === 'ERR_INVALID_URL') return null;
        throw error;
      }
    }
    get href() {
      return this.#href;
    }
    set href(address) {
      this.#href = new URL(address).#href;
      this.#parts = undefined;
      this.#params = undefined;
    }
    get origin() {
      return this._get('origin');
    }
    get searchParams() {
      this.#params ??= new URLSearchParams(this._get('search'), () => {
        this._set('search', this.#params.toString(), true);
      });
      return this.#params;
    }
    _get(name) {
      this.#parts ??= JSON.parse(host('urlParts', this.#href));
      return this.#parts[name];
    }
    _set(name, value, keepsParams = false) {
      this.#parts = JSON.parse(host('urlWith', this.#href, name, String(value)));
      this.#href = this.#parts.href;
      if (name === 'search' && !keepsParams) this.#params = undefined;
    }
    toString() {
      return this.href;
    }
    toJSON() {
      return this.href;
    }
  }
  for (const name of PARTS) {
    Object.defineProperty(URL.prototype, name, {
      configurable: true,
      enumerable: true,
      get() {
        return this._get(name);
      },
      set(value) {
        this._set(name, value);
      },
    });
  }

  const parse = (address, parsesQuery = false) => {
    const url = URL.parse(address) ?? URL.parse(address, 'relative://relative');
    if (url === null) throw new TypeError('Invalid URL');
    const isRelative = url.protocol === 'relative:';
    const { search, pathname } = url;
    return {
      protocol: isRelative ? null : url.protocol,
      auth: url.username === '' ? null : `${url.username}${url.password === '' ? '' : `:${url.password}`}`,
      host: isRelative ? null : url.host,
      hostname: isRelative ? null : url.hostname,
      port: url.port === '' ? null : url.port,
      pathname,
      search: search === '' ? null : search,
      query: parsesQuery
        ? load('querystring').parse(search.slice(1))
        : search === ''
          ? null
          : search.slice(1),
      hash: url.hash === '' ? null : url.hash,
      path: `${pathname}${search}`,
      href: isRelative ? String(address) : url.href,
    };
  };
  const format = (given) => {
    if (typeof given === 'string' || given instanceof URL) return String(given);
    const { protocol, auth, hostname, port, hash = '', pathname = '', query, slashes } = given;
    const scheme = protocol ? (protocol.endsWith(':') ? protocol : `${protocol}:`) : '';
    const place = given.host ?? (hostname ? `${hostname}${port ? `:${port}` : ''}` : '');
    const asked =
      given.search ?? (query && Object.keys(query).length > 0 ? load('querystring').stringify(query) : '');
    const search = asked && !asked.startsWith('?') ? `?${asked}` : asked;
    const before = place !== '' || slashes ? `//${auth ? `${auth}@` : ''}${place}` : '';
    return `${scheme}${before}${place !== '' && pathname !== '' && !pathname.startsWith('/') ? '/' : ''}${pathname}${search ?? ''}${hash ?? ''}`;
  };
  module.exports = {
    URL,
    URLSearchParams,
    parse,
    format,
    resolve: (from, to) => new URL(to, from).href,
  };
};
