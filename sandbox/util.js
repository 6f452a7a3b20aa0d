// util: the part of Node's that scripts use.
(module, load) => {
  const inspect = (value, given = {}, depth = 0, seen = []) => {
    if (typeof value === 'string') return depth === 0 ? value : `'${value.replaceAll("'", "\\'")}'`;
    if (typeof value === 'bigint') return `${value}n`;
    if (typeof value === 'function') return `[Function: ${value.name || '(anonymous)'}]`;
    if (value === null || typeof value !== 'object') return String(value);
    if (value instanceof Error)
      return value.stack ? `${value.name}: ${value.message}\n${value.stack}`.trimEnd() : String(value);
    if (value instanceof Date) return value.toISOString();
    if (value instanceof RegExp) return String(value);
    if (seen.includes(value)) return '[Circular]';
    const limit = given?.depth === null ? 100 : (given?.depth ?? 4);
    if (depth > limit) return Array.isArray(value) ? '[Array]' : '[Object]';
    const inner = (one) => inspect(one, given, depth + 1, [...seen, value]);
    if (Array.isArray(value))
      return value.length === 0 ? '[]' : `[ ${value.slice(0, 100).map(inner).join(', ')} ]`;
    if (value instanceof Map)
      return `Map { ${[...value].map(([k, v]) => `${inner(k)} => ${inner(v)}`).join(', ')} }`;
    if (value instanceof Set) return `Set { ${[...value].map(inner).join(', ')} }`;
    const name = value.constructor?.name ?? '';
    const prefix = name === 'Object' || name === '' ? '' : `${name} `;
    if (ArrayBuffer.isView(value)) return `${prefix}[ ${[...value.subarray(0, 50)].join(', ')} ]`;
    const entries = Object.entries(value).map(
      ([key, one]) => `${/^[\w$]+$/.test(key) ? key : `'${key}'`}: ${inner(one)}`,
    );
    return entries.length === 0 ? `${prefix}{}` : `${prefix}{ ${entries.join(', ')} }`;
  };
  const format = (first, ...rest) => {
    if (typeof first !== 'string') return [first, ...rest].map((one) => inspect(one)).join(' ');
    const left = [...rest];
    const text = first.replace(/%[sdifjoOc%]/g, (found) => {
      if (found === '%%') return '%';
      if (left.length === 0) return found;
      const value = left.shift();
      if (found === '%s') return typeof value === 'object' ? inspect(value) : String(value);
      if (found === '%d') return String(Number(value));
      if (found === '%i') return String(Number.parseInt(value, 10));
      if (found === '%f') return String(Number.parseFloat(value));
      if (found === '%j') return JSON.stringify(value);
      if (found === '%c') return '';
      return inspect(value);
    });
    return [text, ...left.map((one) => inspect(one))].join(' ');
  };
  const custom = Symbol.for('nodejs.util.promisify.custom');
  const promisify = (run) => {
    if (typeof run !== 'function') throw new TypeError('promisify takes a function');
    if (run[custom]) return run[custom];
    return function (...args) {
      return new Promise((resolve, reject) => {
        run.call(this, ...args, (error, value) => (error ? reject(error) : resolve(value)));
      });
    };
  };
  promisify.custom = custom;
  const callbackify = (run) =>
    function (...args) {
      const done = args.pop();
      run.apply(this, args).then(
        (value) => setTimeout(done, 0, null, value),
        (error) => setTimeout(done, 0, error),
      );
    };
  const types = {
    isPromise: (value) => value instanceof Promise,
    isDate: (value) => value instanceof Date,
    isRegExp: (value) => value instanceof RegExp,
    isNativeError: (value) => value instanceof Error,
  };
  module.exports = {
    inspect,
    format,
    promisify,
    callbackify,
    types,
    deprecate: (run) => run,
    inherits: (child, parent) => {
      Object.defineProperty(child, 'super_', { value: parent, writable: true, configurable: true });
      Object.setPrototypeOf(child.prototype, parent.prototype);
    },
    isArray: Array.isArray,
    isDeepStrictEqual: (a, b) => load('lodash').isEqual(a, b),
    get TextEncoder() {
      return load('text').TextEncoder;
    },
    get TextDecoder() {
      return load('text').TextDecoder;
    },
  };
};
