// What is around a rule in the sandbox: `auth0`, the names that rules find, and the callback. What a rule leaves of `user`
// and `context` goes to the rule after it. Nothing here protects anybody: what it asks for is checked by the server.
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
    // What a script of a run may require is what its wrapper may.
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
    // That of an async rule: it answers by the callback, too.
    returned?.then?.(undefined, reject);
  });
