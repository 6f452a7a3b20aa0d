// axios, the part that scripts use.
(module, load) => {
  class AxiosError extends Error {
    constructor(message, code, config, request, response) {
      super(message);
      Object.assign(this, { name: 'AxiosError', isAxiosError: true, code, config, request, response });
      if (response) this.status = response.status;
    }
    toJSON() {
      return { message: this.message, name: this.name, code: this.code, status: this.status };
    }
  }

  const withoutSlashes = (text) => {
    let end = text.length;
    while (text[end - 1] === '/') end--;
    return text.slice(0, end);
  };

  const addressOf = ({ url = '', baseURL, params }) => {
    const isAbsolute = /^[a-z][a-z\d+.-]*:\/\//i.test(url);
    const text =
      baseURL && !isAbsolute
        ? url
          ? `${withoutSlashes(baseURL)}/${url.replace(/^\/+/, '')}`
          : baseURL
        : url;
    const address = new URL(text);
    if (params instanceof URLSearchParams) {
      for (const [name, value] of params) address.searchParams.append(name, value);
      return address;
    }
    for (const [name, value] of Object.entries(params ?? {})) {
      if (value === null || value === undefined) continue;
      const isList = Array.isArray(value);
      for (const one of isList ? value : [value]) {
        const plain =
          one instanceof Date ? one.toISOString() : typeof one === 'object' ? JSON.stringify(one) : one;
        address.searchParams.append(isList ? `${name}[]` : name, plain);
      }
    }
    return address;
  };

  const METHODS = ['common', 'get', 'delete', 'head', 'options', 'post', 'put', 'patch'];
  const headersOf = ({ headers: given }, method) => {
    const plain = given?.toJSON ? given.toJSON() : { ...given };
    const headers = new Headers();
    for (const group of [plain.common, plain[method.toLowerCase()], plain]) {
      for (const [name, value] of Object.entries(group ?? {})) {
        if (group === plain && METHODS.includes(name)) continue;
        if (value !== undefined && value !== null && value !== false) headers.set(name, value);
      }
    }
    return headers;
  };

  const contentOf = (data, headers) => {
    if (data === undefined || data === null) return undefined;
    const has = (type) => {
      if (!headers.has('content-type')) headers.set('content-type', type);
    };
    const isForm = (headers.get('content-type') ?? '').startsWith('application/x-www-form-urlencoded');
    if (
      data instanceof URLSearchParams ||
      (isForm && typeof data === 'object' && !ArrayBuffer.isView(data))
    ) {
      has('application/x-www-form-urlencoded;charset=utf-8');
      return data instanceof URLSearchParams ? data.toString() : load('querystring').stringify(data);
    }
    if (typeof data === 'string') {
      has('application/x-www-form-urlencoded');
      return data;
    }
    if (data instanceof ArrayBuffer || ArrayBuffer.isView(data)) return load('fetch').contentOf(data).body;
    has('application/json');
    return JSON.stringify(data);
  };

  const dataOf = (content, responseType) => {
    if (responseType === 'arraybuffer') return load('buffer').Buffer.from(content);
    const text = typeof content === 'string' ? content : load('buffer').Buffer.from(content).toString();
    if (responseType === 'text') return text;
    try {
      return JSON.parse(text);
    } catch {
      return text;
    }
  };

  const dispatch = (config) =>
    new Promise((resolve, reject) => {
      const method = String(config.method ?? 'get').toUpperCase();
      const headers = headersOf(config, method);
      if (!headers.has('accept')) headers.set('accept', 'application/json, text/plain, */*');
      const body = ['GET', 'HEAD'].includes(method) ? undefined : contentOf(config.data, headers);
      const { auth, signal } = config;
      if (auth) {
        const both = load('buffer')
          .Buffer.from(`${auth.username ?? ''}:${auth.password ?? ''}`)
          .toString('base64');
        headers.set('authorization', `Basic ${both}`);
      }
      const cancel = () => reject(new AxiosError('canceled', 'ERR_CANCELED', config));
      if (signal?.aborted) return cancel();
      signal?.addEventListener('abort', cancel);
      const url = addressOf(config).href;
      const redirect = config.maxRedirects === 0 ? 'manual' : 'follow';
      const timeout = config.timeout > 0 ? config.timeout : undefined;
      load('fetch').send(
        { url, method, headers: [...headers], body, redirect, timeout },
        (error, answer, content) => {
          const request = { path: new URL(url).pathname, method };
          if (error) {
            const code = error.code === 'ETIMEDOUT' ? 'ECONNABORTED' : (error.code ?? 'ERR_NETWORK');
            return reject(
              Object.assign(new AxiosError(error.message, code, config, request), { cause: error }),
            );
          }
          const { status, statusText } = answer;
          const data = dataOf(content, config.responseType);
          const found = Object.fromEntries(answer.headers);
          Object.defineProperty(found, 'get', { value: (name) => found[String(name).toLowerCase()] });
          const response = { data, status, statusText, headers: found, config, request };
          const isValid =
            config.validateStatus === undefined ? (one) => one >= 200 && one < 300 : config.validateStatus;
          if (!isValid || isValid(status)) return resolve(response);
          const code = status >= 500 ? 'ERR_BAD_RESPONSE' : 'ERR_BAD_REQUEST';
          reject(
            new AxiosError(`Request failed with status code ${status}`, code, config, request, response),
          );
        },
      );
    });

  const interceptors = () => {
    const list = [];
    return { list, use: (done, failed) => list.push([done, failed]) - 1, eject: (at) => delete list[at] };
  };
  const create = (base = {}) => {
    const defaults = { ...base, headers: { common: {}, ...base.headers } };
    const merge = (config) => ({
      ...defaults,
      ...config,
      headers: { ...defaults.headers, ...config.headers },
    });
    const hooks = { request: interceptors(), response: interceptors() };
    const axios = (first, second) => {
      const config = typeof first === 'string' ? { ...second, url: first } : { ...first };
      let work = Promise.resolve(merge(config));
      for (const hook of [...hooks.request.list].reverse()) if (hook) work = work.then(...hook);
      work = work.then(dispatch);
      for (const hook of hooks.response.list) if (hook) work = work.then(...hook);
      return work;
    };
    for (const method of ['get', 'delete', 'head', 'options']) {
      axios[method] = (url, config) => axios({ ...config, method, url });
    }
    for (const method of ['post', 'put', 'patch']) {
      axios[method] = (url, data, config) => axios({ ...config, method, url, data });
      axios[`${method}Form`] = (url, data, config) =>
        axios({
          ...config,
          method,
          url,
          data,
          headers: { ...config?.headers, 'content-type': 'application/x-www-form-urlencoded' },
        });
    }
    return Object.assign(axios, {
      defaults,
      interceptors: hooks,
      request: axios,
      create: (config) =>
        create({ ...defaults, ...config, headers: { ...defaults.headers, ...config?.headers } }),
      getUri: (config) => addressOf(merge(config)).href,
      isAxiosError: (value) => value?.isAxiosError === true,
      isCancel: (value) => value?.code === 'ERR_CANCELED',
      all: (list) => Promise.all(list),
      spread: (run) => (list) => run(...list),
      AxiosError,
    });
  };
  module.exports = create();
  module.exports.default = module.exports;
  module.exports.axios = module.exports;
};
