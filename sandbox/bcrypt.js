// bcrypt, as scripts of databases use it: with callbacks, promises and synchronously. The host computes.
(module, load, host) => {
  const text = (value) => (typeof value === 'string' ? value : String(load('buffer').Buffer.from(value)));
  const genSaltSync = (rounds) => host('bcryptSalt', String(rounds ?? 10));
  const hashSync = (data, salt) =>
    host('bcryptHash', text(data), typeof salt === 'string' ? salt : genSaltSync(salt));
  const compareSync = (data, hash) => host('bcryptCompare', text(data), String(hash)) === 'true';
  /** The last argument may be a callback; without one a promise is returned. */
  const later =
    (compute) =>
    (...args) => {
      const done = typeof args.at(-1) === 'function' ? args.pop() : undefined;
      if (done === undefined) return new Promise((resolve) => resolve(compute(...args)));
      let result;
      let failure = null;
      try {
        result = compute(...args);
      } catch (error) {
        failure = error;
      }
      setTimeout(done, 0, failure, result);
    };
  module.exports = {
    genSaltSync,
    hashSync,
    compareSync,
    getRounds: (hash) => Number(String(hash).split('$')[2]),
    genSalt: later(genSaltSync),
    hash: later(hashSync),
    compare: later(compareSync),
  };
};
