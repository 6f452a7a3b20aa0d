// request: the deprecated callback library that most scripts of the hosted service use.
(module, load) => {
  const encode = (text) => load('buffer').Buffer.from(text, 'utf8').toString('base64');

  /** Encodes nested objects as `qs` does: a[b]=c. */
  const fields = (object, prefix = '') =>
    Object.entries(object).flatMap(([key, value]) => {
      if (value === undefined) return [];
      const name = prefix === '' ? key : `${prefix}[${key}]`;
      return value !== null && typeof value === 'object' ? fields(value, name) : [[name, value ?? '']];
    });
  const formText = (form) =>
    typeof form === 'string' ? form : load('querystring').stringify(Object.fromEntries(fields(form)));

  const authorization = ({ user, username = user, pass, password = pass, bearer }) => {
    const token = typeof bearer === 'function' ? bearer() : bearer;
    return token === undefined ? `Basic ${encode(`${username ?? ''}:${password ?? ''}`)}` : `Bearer ${token}`;
  };

  const addressOf = (options) => {
    const given = options.uri ?? options.url;
    if (given === undefined) throw new Error('options.uri is a required argument');
    const text = typeof given === 'string' ? given : (given.href ?? load('url').format(given));
    const url = new URL(
      options.baseUrl === undefined
        ? text
        : `${options.baseUrl.replace(/\/$/, '')}/${text.replace(/^\//, '')}`,
    );
    if (options.qs) {
      for (const [name, value] of fields(options.qs)) url.searchParams.set(name, value);
    }
    return url;
  };

  const prepare = (options) => {
    const url = addressOf(options);
    const headers = new Headers(options.headers);
    const has = (name, value) => {
      if (!headers.has(name)) headers.set(name, value);
    };
    if (url.href.includes('@') && url.username !== '') {
      has(
        'authorization',
        `Basic ${encode(`${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`)}`,
      );
      url.username = '';
      url.password = '';
    }
    if (options.auth) headers.set('authorization', authorization(options.auth));
    let { body } = options;
    if (options.form !== undefined) {
      body = formText(options.form);
      headers.set('content-type', 'application/x-www-form-urlencoded');
    } else if (options.json !== undefined && options.json !== false) {
      if (options.json !== true) body = options.json;
      has('accept', 'application/json');
      if (body !== undefined && (typeof body === 'object' || options.json !== true)) {
        body = JSON.stringify(body);
        has('content-type', 'application/json');
      }
    }
    const method = String(options.method ?? 'GET').toUpperCase();
    const follows =
      options.followRedirect !== false &&
      (options.followAllRedirects || ['GET', 'HEAD', 'OPTIONS'].includes(method));
    return {
      url: url.href,
      method,
      headers: [...headers],
      body: load('fetch').contentOf(body).body,
      redirect: follows ? 'follow' : 'manual',
      timeout: options.timeout,
    };
  };

  const responseOf = (asked, answer, body) => {
    const headers = {};
    for (const [name, value] of answer.headers) {
      if (name === 'set-cookie') headers[name] = [...(headers[name] ?? []), value];
      else headers[name] = name in headers ? `${headers[name]}, ${value}` : value;
    }
    let request;
    const response = {
      statusCode: answer.status,
      statusMessage: answer.statusText,
      headers,
      body,
      // Few scripts read it, and parsing the address takes as long as all the rest.
      get request() {
        request ??= {
          uri: load('url').parse(answer.url),
          href: answer.url,
          method: asked.method,
          headers: Object.fromEntries(asked.headers),
        };
        return request;
      },
      set request(value) {
        request = value;
      },
    };
    response.toJSON = () => ({ statusCode: answer.status, body, headers, request: response.request });
    return response;
  };
  const bodyOf = (options, content) => {
    if (options.encoding === null) return load('buffer').Buffer.from(content);
    const text =
      typeof content === 'string'
        ? content
        : load('buffer')
            .Buffer.from(content)
            .toString(options.encoding ?? 'utf8');
    if (options.json === undefined || options.json === false) return text;
    try {
      return JSON.parse(text, options.jsonReviver);
    } catch {
      return text;
    }
  };

  const run = (options, callback) => {
    const listeners = {};
    const emit = (event, ...args) => {
      for (const one of listeners[event] ?? []) one(...args);
    };
    const asked = prepare(options);
    load('fetch').send(asked, (error, answer, content) => {
      if (error) {
        callback?.(error);
        return emit('error', error);
      }
      const body = bodyOf(options, content);
      const response = responseOf(asked, answer, body);
      emit('response', response);
      callback?.(null, response, body);
      emit('complete', response, body);
    });
    const self = {
      on(event, listener) {
        listeners[event] = [...(listeners[event] ?? []), listener];
        return self;
      },
      abort() {},
    };
    return self;
  };

  const make = (defaults) => {
    const merged = (uri, options, callback, more) => {
      const done = [uri, options, callback].find((one) => typeof one === 'function');
      const given = {
        ...(typeof uri === 'string' || uri instanceof URL
          ? { uri: String(uri) }
          : typeof uri === 'object'
            ? uri
            : {}),
        ...(options !== null && typeof options === 'object' ? options : {}),
      };
      if (given.url !== undefined && (typeof uri === 'object' || given.uri === undefined))
        given.uri = given.url;
      const headers = { ...defaults.headers, ...given.headers };
      return run({ ...defaults, ...given, headers, ...more }, done ?? given.callback);
    };
    const request = (uri, options, callback) => merged(uri, options, callback, {});
    for (const method of ['get', 'post', 'put', 'patch', 'head', 'options', 'delete']) {
      request[method] = (uri, options, callback) =>
        merged(uri, options, callback, { method: method.toUpperCase() });
    }
    request.del = request.delete;
    request.defaults = (options) =>
      make({ ...defaults, ...options, headers: { ...defaults.headers, ...options.headers } });
    request.jar = () => ({});
    return request;
  };
  module.exports = make({});
};
