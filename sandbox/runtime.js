// The runtime of the sandbox: finds and starts a script, and has `require`, timers, `console`, and globals that are
// made when they are first used. It runs inside the sandbox with the script, so it is no security boundary: the limits
// are outside.
// docs/understand/decisions/actions-scripts.md#the-api-that-scripts-see-is-javascript-that-runs-with-them-in-the-sandbox
(native) => {
  const stringify = JSON.stringify;
  /** Calls the host. All texts are passed in one, after their lengths: each conversion takes as long as that of all. */
  const host = (name, ...args) => {
    let head = name;
    let texts = '';
    for (const one of args) {
      if (typeof one !== 'string') return native(name, ...args);
      head += `,${one.length}`;
      texts += one;
    }
    return native(`${head};${texts}`);
  };
  const loaded = new Map();
  const pending = new Map();
  /** The wrappers by name, made once. */
  const prepared = new Map();
  let lastId = 0;

  /** The callbacks of pending requests to the host. */
  const expect = (onAnswer) => {
    const id = String(++lastId);
    pending.set(id, onAnswer);
    return id;
  };

  function load(name) {
    let module = loaded.get(name);
    if (module === undefined) {
      module = { exports: {} };
      loaded.set(name, module);
      const shim = (0, eval)(host('shim', name));
      shim(module, load, host, expect);
    }
    return module.exports;
  }

  // Files of packages, if the run has any: `link` returns the file that a name means.
  const packaged = new Map();
  const NONE = 'none';
  const processOfPackages = {
    env: { NODE_ENV: 'production' },
    argv: [],
    browser: true,
    platform: 'browser',
    version: '',
    versions: {},
    cwd: () => '/',
    nextTick: (run, ...args) => void Promise.resolve().then(() => run(...args)),
  };
  function loadFile(path) {
    // The package declares that this module has no code here.
    if (path === '') return {};
    let module = packaged.get(path);
    if (module !== undefined) return module.exports;
    module = { id: path, exports: {} };
    packaged.set(path, module);
    try {
      const source = host('file', path);
      const make = (0, eval)(
        `(function (module, exports, require, __filename, __dirname, process) {${source}\n})`,
      );
      const directory = `/${path.slice(0, Math.max(0, path.lastIndexOf('/')))}`;
      const requires = (given) => requireFrom(path, given);
      make.call(module.exports, module, module.exports, requires, `/${path}`, directory, processOfPackages);
    } catch (thrown) {
      packaged.delete(path);
      throw thrown;
    }
    return module.exports;
  }
  function requireFrom(path, given) {
    const file = host('link', path, String(given));
    return file === NONE ? requireStandIn(given) : loadFile(file);
  }

  function withoutVersion(name) {
    // The scope of a package begins with the same character: @scope/name@1.
    const at = name.indexOf('@', Math.max(1, name.lastIndexOf('/') + 1));
    return at < 0 ? name : name.slice(0, at);
  }

  function require(given) {
    // With or without a version.
    const names = [String(given), withoutVersion(String(given))];
    const file = names.map((name) => host('link', '', name)).find((found) => found !== NONE);
    return file === undefined ? requireStandIn(given) : loadFile(file);
  }

  function requireStandIn(given) {
    // Scripts of the hosted service name versions: require('axios@0.22.0').
    const name = withoutVersion(String(given).replace(/^node:/, ''));
    const known = host('modules').split(',');
    if (known.includes(name)) return load(name);
    const error = new Error(`Cannot find module '${given}': scripts have ${known.join(', ')}`);
    error.code = 'MODULE_NOT_FOUND';
    throw error;
  }

  // Each run begins with the same memory, so the engine's own random numbers would be the same in each.
  let numbers = [];
  const random = () => {
    if (numbers.length === 0) numbers = Array.from(new Uint32Array(host('random', '512')));
    return (numbers.pop() * 2097152 + (numbers.pop() >>> 11)) / 9007199254740992;
  };
  Object.defineProperty(Math, 'random', {
    value: random,
    writable: true,
    configurable: true,
    enumerable: false,
  });

  // Timers: the host only knows when the next one is due.
  const timers = new Map();
  const wake = () => {
    let due = Infinity;
    for (const timer of timers.values()) due = Math.min(due, timer.due);
    host('wake', due === Infinity ? '' : String(Math.max(0, due - Date.now())));
  };
  const setTimer = (run, ms, args, every) => {
    if (typeof run !== 'function') throw new TypeError('a timer takes a function');
    const id = ++lastId;
    const delay = Math.min(Math.max(Number(ms) || 0, every ? 1 : 0), 2147483647);
    timers.set(id, { due: Date.now() + delay, run, args, every: every ? delay : undefined });
    wake();
    return id;
  };
  const clearTimer = (id) => {
    if (timers.delete(id)) wake();
  };
  const runTimers = () => {
    const now = Date.now();
    const due = [...timers].filter(([, timer]) => timer.due <= now).sort(([, a], [, b]) => a.due - b.due);
    for (const [id, timer] of due) {
      if (!timers.has(id)) continue;
      if (timer.every === undefined) timers.delete(id);
      else timer.due = now + timer.every;
      timer.run(...timer.args);
    }
    wake();
  };

  const define = (name, value) =>
    Object.defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: false });
  const lazy = (name, make) =>
    Object.defineProperty(globalThis, name, {
      configurable: true,
      get() {
        define(name, make());
        return globalThis[name];
      },
      set: (value) => define(name, value),
    });
  delete globalThis.SharedArrayBuffer;
  define('global', globalThis);
  define('setTimeout', (run, ms, ...args) => setTimer(run, ms, args, false));
  define('setInterval', (run, ms, ...args) => setTimer(run, ms, args, true));
  define('setImmediate', (run, ...args) => setTimer(run, 0, args, false));
  for (const name of ['clearTimeout', 'clearInterval', 'clearImmediate']) define(name, clearTimer);
  const log =
    (level) =>
    (...values) => {
      const plain = values.every((value) => typeof value === 'string' && !value.includes('%'));
      host('log', level, plain ? values.join(' ') : load('util').format(...values));
    };
  define('console', {
    log: log('info'),
    info: log('info'),
    debug: log('debug'),
    trace: log('debug'),
    warn: log('warn'),
    error: log('error'),
    dir: log('info'),
  });
  for (const [name, hasCode] of [
    ['UnauthorizedError', false],
    ['ValidationError', true],
    ['WrongUsernameOrPasswordError', true],
  ]) {
    define(
      name,
      class extends Error {
        constructor(...args) {
          // ValidationError(code, message), WrongUsernameOrPasswordError(user, message); others may have a code, too.
          super(hasCode ? args[1] : args.at(-1));
          this.name = name;
          if (hasCode ? args[0] != null : args.length > 1) this.code = args[0];
        }
      },
    );
  }
  lazy('request', () => load('request'));
  lazy('crypto', () => load('crypto'));
  for (const [module, names] of Object.entries({
    buffer: ['Buffer', 'atob', 'btoa'],
    text: ['TextEncoder', 'TextDecoder', 'structuredClone'],
    url: ['URL', 'URLSearchParams'],
    'form-data': ['FormData', 'Blob', 'File'],
    fetch: ['fetch', 'Headers', 'Request', 'Response', 'AbortController', 'AbortSignal'],
  })) {
    for (const name of names) lazy(name, () => load(module)[name]);
  }

  // A script may be an expression (a function, an assignment, a call that returns a function, a bundle), or the text of
  // a module.
  const compile = (code) => {
    try {
      return (0, eval)(code);
    } catch (error) {
      error.isOfSource = true;
      throw error;
    }
  };
  const wrapped = (body) => `(function (module, exports, require, __filename, __dirname) {${body}\n})`;
  function evaluate(source, entry) {
    let trimmed = source.trim();
    while (trimmed.endsWith(';')) trimmed = trimmed.slice(0, -1).trim();
    const module = { exports: {} };
    let wrapper;
    try {
      wrapper = compile(wrapped(`return (${trimmed}\n)`));
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      const named = /^[A-Za-z_$][\w$]*$/.test(entry)
        ? `typeof ${entry} === 'function' ? ${entry} : undefined`
        : '0';
      wrapper = compile(wrapped(`${source}\n;return ${named}`));
    }
    const value = wrapper.call(module.exports, module, module.exports, require, 'script.js', '/');
    const found = [value, module.exports, globalThis];
    if (typeof value === 'function') return value;
    for (const one of found) {
      if (typeof one === 'function') return one;
      for (const name of [entry, 'default']) {
        if (one !== null && typeof one === 'object' && typeof one[name] === 'function') return one[name];
      }
    }
    throw Object.assign(new TypeError(`the script gives no function ${entry}`), { isOfSource: true });
  }

  let answered = false;
  /** The first answer counts: the callback, a thrown error, or the promise. */
  function succeed(value) {
    if (answered) return;
    let text;
    try {
      text = stringify(value);
    } catch (error) {
      fail(new TypeError(`the result cannot be written as JSON: ${error.message}`));
      return;
    }
    answered = true;
    host('succeed', text === undefined ? 'null' : text);
  }
  function fail(thrown) {
    if (answered) return;
    answered = true;
    const isObject = typeof thrown === 'object' && thrown !== null;
    const name = isObject && typeof thrown.name === 'string' ? thrown.name : 'Error';
    let message = isObject ? (thrown.message ?? thrown.error_description ?? thrown.description) : thrown;
    if (typeof message !== 'string') message = isObject ? stringify(thrown) : String(message);
    const code = isObject && typeof thrown.code === 'string' ? thrown.code : '';
    host('fail', name, String(message), thrown?.isOfSource === true ? 'syntax' : 'script', code);
  }
  const guarded = (work) => {
    try {
      work();
    } catch (thrown) {
      fail(thrown);
    }
  };

  return {
    /** Loads modules and wrappers once for all runs. */
    load: () => {
      for (const name of host('modules').split(',')) load(name);
      for (const name of host('wrappers').split(',')) {
        const make = evaluate(host('shim', name), name);
        prepared.set(name, make(JSON.parse(host('prepared'))));
      }
      // Globals that are defined lazily are read, so that runs find values.
      for (const name of ['Buffer', 'URL', 'TextEncoder', 'fetch', 'FormData', 'request', 'crypto'])
        void globalThis[name];
    },
    /** Starts the run of a script, or of a wrapper. */
    start: (source, entry, args, globals, around) =>
      guarded(() => {
        for (const [name, value] of Object.entries(JSON.parse(globals))) define(name, value);
        const given = JSON.parse(args);
        const run = around === '' ? evaluate(source, entry) : prepared.get(around);
        const callback = (error, value) => (error ? fail(error) : succeed(value));
        const returned = run(...given, callback);
        if (typeof returned?.then !== 'function') return;
        // The promise of a function that takes the callback only counts when it rejects.
        const isAnswer = run.length <= given.length;
        returned.then((value) => {
          if (isAnswer && value !== undefined) succeed(value);
        }, fail);
      }),
    /** Delivers an answer of the host; with the id `timers`, runs the timers that are due. */
    deliver: (id, ...answer) =>
      guarded(() => {
        if (id === 'timers') return runTimers();
        const onAnswer = pending.get(id);
        pending.delete(id);
        onAnswer?.(...answer);
      }),
  };
};
