// What is around an action in the sandbox: its module, and an `api` that records what it asks for. Nothing here protects
// anybody: what was recorded is checked by the server.
async (event, code, entry, methods, kept) => {
  const commands = [];
  const api = {};
  const at = (path) => {
    let object = api;
    for (const name of path) object = object[name] ??= {};
    return object;
  };
  for (const method of methods) {
    const path = method.split('.');
    const name = path.pop();
    at(path)[name] = (...args) => {
      commands.push({ method, args });
      return api;
    };
  }
  const cache = new Map(Object.entries(kept));
  api.cache = {
    get: (key) => cache.get(String(key)),
    set: (key, value, options = {}) => {
      const soon = Date.now() + 24 * 3600 * 1000;
      const until =
        options.expires_at ?? (options.ttl === undefined ? soon : Date.now() + Number(options.ttl));
      const record = { value: String(value), expires_at: Math.min(Number(until), soon) };
      if (!(record.expires_at > 0)) return { type: 'error', code: 'FAILED_TO_SET_CACHE' };
      cache.set(String(key), record);
      commands.push({ method: 'cache.set', args: [String(key), record.value, record.expires_at] });
      return { type: 'success', record };
    },
    delete: (key) => {
      cache.delete(String(key));
      commands.push({ method: 'cache.delete', args: [String(key)] });
      return { type: 'success' };
    },
  };
  const module = { exports: {} };
  const make = (0, eval)(`(function (module, exports, require) {${code}\n})`);
  make.call(module.exports, module, module.exports, require);
  if (typeof module.exports[entry] !== 'function') throw new TypeError(`the action exports no ${entry}`);
  await module.exports[entry](event, api);
  return commands;
};
