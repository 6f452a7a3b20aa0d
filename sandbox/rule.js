// The wrapper of a rule in the sandbox: `auth0`, the globals of rules, and the callback. The next rule gets the `user`
// and `context` that this one leaves. Nothing here is a security boundary: the server checks what it asks for.
() => (user, context, domain, code) =>
  new Promise((resolve, reject) => {
    const updates = [];
    const update =
      (member) =>
      (id, metadata = {}, done = undefined) => {
        const isOwn = id === user.user_id;
        const fault = isOwn ? null : new Error('a rule updates the metadata of its user only');
        if (isOwn) updates.push({ member, metadata });
        if (typeof done === 'function') done(fault, user);
        return isOwn ? Promise.resolve(user) : Promise.reject(fault);
      };
    globalThis.auth0 = {
      domain,
      users: {
        updateUserMetadata: update('user_metadata'),
        updateAppMetadata: update('app_metadata'),
      },
    };
    let script = code.trim();
    while (script.endsWith(';')) script = script.slice(0, -1).trim();
    const make = (0, eval)(`(function (module, exports, require) { return (${script}\n) })`);
    const module = { exports: {} };
    // A script may require what its wrapper may.
    const rule = make.call(module.exports, module, module.exports, require);
    if (typeof rule !== 'function') throw new TypeError('the rule is no function');
    const callback = (error, givenUser, givenContext) =>
      error ? reject(error) : resolve({ user: givenUser ?? user, context: givenContext ?? context, updates });
    const names = {
      _: 'lodash',
      jwt: 'jsonwebtoken',
      bcrypt: 'bcrypt',
      pbkdf2: 'pbkdf2',
      querystring: 'querystring',
      uuid: 'uuid',
    };
    for (const [name, of] of Object.entries(names))
      Object.defineProperty(globalThis, name, { configurable: true, writable: true, value: require(of) });
    const returned = rule(user, context, callback);
    // The promise of an async rule: it answers through the callback, too.
    returned?.then?.(undefined, reject);
  });
