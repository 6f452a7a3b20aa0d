// lodash: the functions that scripts use most, without chains.
// docs/understand/decisions/actions-scripts.md#requirelodash-gives-our-127-functions-not-the-package
(module) => {
  const isObject = (value) => value !== null && (typeof value === 'object' || typeof value === 'function');
  const isPlainObject = (value) =>
    isObject(value) && [Object.prototype, null].includes(Object.getPrototypeOf(value));
  const isNil = (value) => value === null || value === undefined;
  const identity = (value) => value;
  const pathOf = (path) =>
    Array.isArray(path)
      ? path
      : String(path)
          .replace(/\[["']?([^[\]]*?)["']?\]/g, '.$1')
          .split('.')
          .filter((part) => part !== '');
  const isUnsafe = (key) => ['__proto__', 'constructor', 'prototype'].includes(String(key));

  const has = (object, path) => {
    let at = object;
    for (const key of pathOf(path)) {
      if (isNil(at) || !Object.hasOwn(Object(at), key)) return false;
      at = at[key];
    }
    return true;
  };
  const get = (object, path, fallback) => {
    let at = object;
    for (const key of Object.hasOwn(Object(object), path) ? [path] : pathOf(path)) {
      if (isNil(at)) return fallback;
      at = at[key];
    }
    return at === undefined ? fallback : at;
  };
  const set = (object, path, value) => {
    const keys = pathOf(path);
    let at = object;
    for (const [index, key] of keys.entries()) {
      if (isUnsafe(key) || !isObject(at)) return object;
      if (index === keys.length - 1) at[key] = value;
      else if (!isObject(at[key])) at[key] = /^\d+$/.test(keys[index + 1]) ? [] : {};
      at = at[key];
    }
    return object;
  };
  const unset = (object, path) => {
    const keys = pathOf(path);
    const owner = keys.length === 1 ? object : get(object, keys.slice(0, -1));
    return isObject(owner) ? delete owner[keys.at(-1)] : true;
  };
  const isEqual = (a, b, seen = new Map()) => {
    if (Object.is(a, b) || a === b) return true;
    if (!isObject(a) || !isObject(b) || Object.getPrototypeOf(a) !== Object.getPrototypeOf(b)) return false;
    if (a instanceof Date) return +a === +b;
    if (a instanceof RegExp) return String(a) === String(b);
    if (seen.get(a) === b) return true;
    seen.set(a, b);
    if (a instanceof Map || a instanceof Set) return isEqual([...a], [...b], seen);
    const keys = Object.keys(a);
    return (
      keys.length === Object.keys(b).length &&
      keys.every((key) => Object.hasOwn(b, key) && isEqual(a[key], b[key], seen))
    );
  };
  const isMatch = (object, source) =>
    Object.keys(source).every((key) =>
      isObject(source[key])
        ? isObject(object?.[key]) && isMatch(object[key], source[key])
        : isEqual(object?.[key], source[key]),
    );
  /** Converts an iteratee: a function, a path, a pair, or an object to match. */
  const iteratee = (given) => {
    if (isNil(given)) return identity;
    if (typeof given === 'function') return given;
    if (Array.isArray(given)) return (value) => isEqual(get(value, given[0]), given[1]);
    if (isObject(given)) return (value) => isMatch(value, given);
    return (value) => get(value, given);
  };
  const isList = (value) => !isNil(value) && typeof value !== 'function' && Number.isInteger(value.length);
  const entries = (value) => {
    if (isNil(value)) return [];
    return isList(value) ? Array.from(value, (one, at) => [at, one]) : Object.entries(value);
  };
  const values = (value) => entries(value).map(([, one]) => one);
  const map = (all, run) => entries(all).map(([key, value]) => iteratee(run)(value, key, all));
  const filter = (all, run) =>
    entries(all)
      .filter(([key, value]) => iteratee(run)(value, key, all))
      .map(([, value]) => value);
  const reject = (all, run) => filter(all, (...args) => !iteratee(run)(...args));
  const find = (all, run) => entries(all).find(([key, value]) => iteratee(run)(value, key, all))?.[1];
  const forEach = (all, run) => {
    for (const [key, value] of entries(all)) if (run(value, key, all) === false) break;
    return all;
  };
  const collect = (all, run, put) => {
    const made = {};
    for (const value of values(all)) {
      const key = iteratee(run)(value);
      if (!isUnsafe(key)) put(made, key, value);
    }
    return made;
  };
  const pickBy = (object, run = identity) =>
    Object.fromEntries(Object.entries(object ?? {}).filter(([key, value]) => iteratee(run)(value, key)));
  const pick = (object, ...paths) => {
    const made = {};
    for (const path of paths.flat(2)) if (has(object, path)) set(made, path, get(object, path));
    return made;
  };
  const cloneDeep = (value, seen = new Map()) => {
    if (!isObject(value) || typeof value === 'function') return value;
    if (seen.has(value)) return seen.get(value);
    if (value instanceof Date) return new Date(value);
    if (value instanceof RegExp) return new RegExp(value);
    if (value instanceof Map) return new Map(cloneDeep([...value], seen));
    if (value instanceof Set) return new Set(cloneDeep([...value], seen));
    if (ArrayBuffer.isView(value)) return value.slice();
    const made = Array.isArray(value) ? [] : Object.create(Object.getPrototypeOf(value));
    seen.set(value, made);
    for (const key of Object.keys(value)) if (key !== '__proto__') made[key] = cloneDeep(value[key], seen);
    return made;
  };
  const omit = (object, ...paths) => {
    const made = cloneDeep(object ?? {});
    for (const path of paths.flat(2)) unset(made, path);
    return made;
  };
  const merge = (target, ...sources) => {
    for (const source of sources) {
      for (const key of Object.keys(source ?? {})) {
        if (isUnsafe(key)) continue;
        const value = source[key];
        const isDeep = Array.isArray(value) || isPlainObject(value);
        if (isDeep)
          target[key] = merge(isObject(target[key]) ? target[key] : Array.isArray(value) ? [] : {}, value);
        else if (value !== undefined || !(key in target)) target[key] = value;
      }
    }
    return target;
  };
  const uniqBy = (all, run) => {
    const seen = new Set();
    return values(all).filter((value) => {
      const key = iteratee(run)(value);
      return !seen.has(key) && seen.add(key);
    });
  };
  const orderBy = (all, runs = [identity], orders = []) => {
    const by = [].concat(runs).map(iteratee);
    const ways = [].concat(orders);
    return values(all).sort((a, b) => {
      for (const [at, run] of by.entries()) {
        const [x, y] = [run(a), run(b)];
        if (x !== y) return (x < y ? -1 : 1) * (ways[at] === 'desc' ? -1 : 1);
      }
      return 0;
    });
  };
  const extreme = (isBetter) => (all, run) => {
    let best;
    for (const value of values(all)) {
      const is = iteratee(run)(value);
      if (!isNil(is) && (best === undefined || isBetter(is, best.is))) best = { is, value };
    }
    return best?.value;
  };
  const [max, min] = [extreme((a, b) => a > b), extreme((a, b) => a < b)];
  const words = (text) =>
    String(text ?? '')
      .replace(/['’]/g, '')
      .match(/\p{Lu}{2,}(?!\p{Ll})|\p{Lu}?\p{Ll}+|\p{Lu}|\d+|\p{Lo}+/gu) ?? [];
  const upperFirst = (text) => String(text ?? '').replace(/^./u, (c) => c.toUpperCase());
  const lowerFirst = (text) => String(text ?? '').replace(/^./u, (c) => c.toLowerCase());
  const capitalize = (text) => upperFirst(String(text ?? '').toLowerCase());
  let lastId = 0;

  const lodash = {
    // objects
    get,
    set,
    unset,
    has,
    pick,
    omit,
    pickBy,
    merge,
    cloneDeep,
    hasIn: (object, path) => get(object, path) !== undefined,
    omitBy: (object, run) => pickBy(object, (...args) => !iteratee(run)(...args)),
    assign: Object.assign,
    extend: Object.assign,
    defaults: (target, ...sources) => {
      for (const source of sources)
        for (const [key, value] of Object.entries(source ?? {}))
          if (target[key] === undefined && !isUnsafe(key)) target[key] = value;
      return target;
    },
    clone: (value) =>
      Array.isArray(value) ? [...value] : isPlainObject(value) ? { ...value } : cloneDeep(value),
    keys: (object) => Object.keys(object ?? {}),
    values,
    toPairs: (object) => Object.entries(object ?? {}),
    entries: (object) => Object.entries(object ?? {}),
    fromPairs: (pairs) => Object.fromEntries(pairs ?? []),
    mapValues: (object, run) =>
      Object.fromEntries(
        Object.entries(object ?? {}).map(([key, value]) => [key, iteratee(run)(value, key, object)]),
      ),
    mapKeys: (object, run) =>
      Object.fromEntries(
        Object.entries(object ?? {}).map(([key, value]) => [iteratee(run)(value, key, object), value]),
      ),
    invert: (object) => Object.fromEntries(Object.entries(object ?? {}).map(([key, value]) => [value, key])),
    findKey: (object, run) => Object.keys(object ?? {}).find((key) => iteratee(run)(object[key], key)),
    // types
    isArray: Array.isArray,
    isPlainObject,
    isNil,
    isEqual: (a, b) => isEqual(a, b),
    isMatch,
    isObject,
    isString: (value) => typeof value === 'string' || value instanceof String,
    isNumber: (value) => typeof value === 'number',
    isInteger: Number.isInteger,
    isFinite: Number.isFinite,
    isNaN: (value) => typeof value === 'number' && Number.isNaN(value),
    isBoolean: (value) => value === true || value === false,
    isFunction: (value) => typeof value === 'function',
    isUndefined: (value) => value === undefined,
    isNull: (value) => value === null,
    isDate: (value) => value instanceof Date,
    isRegExp: (value) => value instanceof RegExp,
    isError: (value) => value instanceof Error,
    isEmpty: (value) => {
      if (value instanceof Map || value instanceof Set) return value.size === 0;
      return entries(isObject(value) || typeof value === 'string' ? value : {}).length === 0;
    },
    // lists and similar values
    map,
    filter,
    reject,
    find,
    forEach,
    each: forEach,
    reduce: (all, run, ...start) =>
      entries(all)
        .map(([key, value]) => ({ key, value }))
        .reduce(
          start.length > 0
            ? (made, { key, value }) => run(made, value, key, all)
            : (made, { key, value }, at) =>
                at === 1 ? run(made.value, value, key, all) : run(made, value, key, all),
          ...start,
        ),
    some: (all, run) => entries(all).some(([key, value]) => iteratee(run)(value, key)),
    every: (all, run) => entries(all).every(([key, value]) => iteratee(run)(value, key)),
    includes: (all, value) => (typeof all === 'string' ? all.includes(value) : values(all).includes(value)),
    size: (all) => entries(all).length,
    groupBy: (all, run) =>
      collect(all, run, (made, key, value) => {
        if (!Object.hasOwn(made, key)) made[key] = [];
        made[key].push(value);
      }),
    keyBy: (all, run) =>
      collect(all, run, (made, key, value) => {
        made[key] = value;
      }),
    countBy: (all, run) =>
      collect(all, run, (made, key) => {
        made[key] = (made[key] ?? 0) + 1;
      }),
    sortBy: (all, ...runs) => orderBy(all, runs.flat().length === 0 ? [identity] : runs.flat()),
    orderBy,
    partition: (all, run) => [filter(all, run), reject(all, run)],
    findIndex: (list, run) => (list ?? []).findIndex((value, at) => iteratee(run)(value, at)),
    indexOf: (list, value) => (list ?? []).indexOf(value),
    head: (list) => list?.[0],
    first: (list) => list?.[0],
    last: (list) => list?.at(-1),
    nth: (list, at) => list?.at(at),
    tail: (list) => (list ?? []).slice(1),
    initial: (list) => (list ?? []).slice(0, -1),
    take: (list, count = 1) => (list ?? []).slice(0, count),
    drop: (list, count = 1) => (list ?? []).slice(count),
    slice: (list, ...args) => (list ?? []).slice(...args),
    concat: (list, ...more) => [].concat(list ?? [], ...more),
    flatten: (list) => (list ?? []).flat(),
    flattenDeep: (list) => (list ?? []).flat(Infinity),
    compact: (list) => (list ?? []).filter(Boolean),
    uniq: (list) => [...new Set(list ?? [])],
    uniqBy,
    without: (list, ...out) => (list ?? []).filter((value) => !out.includes(value)),
    difference: (list, ...others) => (list ?? []).filter((value) => !others.flat().includes(value)),
    intersection: (list, ...others) =>
      [...new Set(list ?? [])].filter((value) => others.every((one) => one.includes(value))),
    union: (...lists) => [...new Set(lists.flat())],
    zipObject: (keys, list) => Object.fromEntries(keys.map((key, at) => [key, list?.[at]])),
    zip: (...lists) =>
      Array.from({ length: Math.max(0, ...lists.map(({ length }) => length)) }, (_, at) =>
        lists.map((list) => list[at]),
      ),
    chunk: (list, size = 1) =>
      Array.from({ length: Math.ceil((list ?? []).length / size) }, (_, at) =>
        list.slice(at * size, at * size + size),
      ),
    reverse: (list) => list.reverse(),
    join: (list, separator) => (list ?? []).join(separator),
    castArray: (value) => (Array.isArray(value) ? value : [value]),
    // numbers
    sum: (list) => (list ?? []).reduce((sum, value) => sum + value, 0),
    sumBy: (list, run) => (list ?? []).reduce((sum, value) => sum + iteratee(run)(value), 0),
    max,
    min,
    maxBy: max,
    minBy: min,
    clamp: (value, low, high) => Math.min(Math.max(value, low), high),
    range: (from, to, step = 1) => {
      const [low, high] = to === undefined ? [0, from] : [from, to];
      return Array.from({ length: Math.max(0, Math.ceil((high - low) / step)) }, (_, at) => low + at * step);
    },
    random: (low = 0, high = 1) => low + Math.floor(Math.random() * (high - low + 1)),
    toNumber: Number,
    toInteger: (value) => Math.trunc(Number(value) || 0),
    // text
    words,
    upperFirst,
    lowerFirst,
    capitalize,
    camelCase: (text) => lowerFirst(words(text).map(capitalize).join('')),
    snakeCase: (text) =>
      words(text)
        .map((word) => word.toLowerCase())
        .join('_'),
    kebabCase: (text) =>
      words(text)
        .map((word) => word.toLowerCase())
        .join('-'),
    startCase: (text) => words(text).map(upperFirst).join(' '),
    toLower: (text) => String(text ?? '').toLowerCase(),
    toUpper: (text) => String(text ?? '').toUpperCase(),
    trim: (text) => String(text ?? '').trim(),
    toString: (value) => (isNil(value) ? '' : String(value)),
    startsWith: (text, start) => String(text ?? '').startsWith(start),
    endsWith: (text, end) => String(text ?? '').endsWith(end),
    split: (text, ...args) => String(text ?? '').split(...args),
    replace: (text, ...args) => String(text ?? '').replace(...args),
    padStart: (text, ...args) => String(text ?? '').padStart(...args),
    padEnd: (text, ...args) => String(text ?? '').padEnd(...args),
    repeat: (text, times) => String(text ?? '').repeat(times),
    truncate: (text, { length = 30, omission = '...' } = {}) =>
      text.length <= length ? text : text.slice(0, length - omission.length) + omission,
    escapeRegExp: (text) => String(text).replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'),
    // functions
    identity,
    noop: () => undefined,
    constant: (value) => () => value,
    now: () => Date.now(),
    times: (count, run = identity) => Array.from({ length: count }, (_, at) => run(at)),
    once: (run) => {
      let done = false;
      let value;
      return (...args) => {
        if (!done) value = run(...args);
        done = true;
        return value;
      };
    },
    attempt: (run, ...args) => {
      try {
        return run(...args);
      } catch (error) {
        return error;
      }
    },
    uniqueId: (prefix = '') => `${prefix}${++lastId}`,
  };
  module.exports = lodash;
};
