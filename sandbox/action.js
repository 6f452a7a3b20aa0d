// The wrapper of an action in the sandbox: its module, and an `api` that records what it asks for. Nothing here is a
// security boundary: the server checks what was recorded. What is the same for all runs is made once.
(prepared) => {
  /** The arguments of the run. */
  let event;
  let given;
  const commands = [];

  /** The scopes of an application's token. The resulting scopes are recorded, and visible at once. */
  const targetScopes = (record) => {
    const set = (scopes) => {
      if (!Array.isArray(scopes)) return record(scopes);
      event.transaction.target_scopes = [...new Set(scopes)];
      return record(event.transaction.target_scopes);
    };
    const now = () => event.transaction.target_scopes;
    return {
      setTargetScopes: (scopes) => set(scopes),
      addTargetScope: (scope) => set([...now(), scope]),
      removeTargetScope: (scope) => set(now().filter((one) => one !== scope)),
      clearTargetScopes: () => set([]),
    };
  };
  /** Methods that return something at once, in addition to what they record. */
  const answering = {
    redirect: () => ({
      canRedirect: () => given.canRedirect,
      encodeToken: ({ secret, payload = {}, expiresInSeconds = 900 }) => {
        const { now, issuer } = given;
        const { user, request } = event;
        const exp = now + Number(expiresInSeconds);
        const claims = { iss: issuer, iat: now, exp, sub: user.user_id, ip: request.ip };
        return require('jsonwebtoken').sign({ ...claims, ...payload }, secret, { algorithm: 'HS256' });
      },
      validateToken: ({ secret, tokenParameterName = 'session_token' }) => {
        const { now } = given;
        const { user, request } = event;
        const refuse = (why) => {
          throw new Error(`The session token is invalid: ${why}`);
        };
        const sent = { ...request.query, ...request.body };
        const token = Object.hasOwn(sent, tokenParameterName) ? sent[tokenParameterName] : undefined;
        if (typeof token !== 'string')
          throw new Error(
            `There is no parameter called '${tokenParameterName}' available in either the POST body or query string.`,
          );
        let claims;
        try {
          const how = { algorithms: ['HS256'], ignoreExpiration: true, clockTimestamp: now };
          claims = require('jsonwebtoken').verify(token, secret, how);
        } catch {
          refuse('Failed signature validation');
        }
        if (sent.state === undefined || claims.state !== sent.state)
          refuse('State in the token does not match the /continue state.');
        if (['sub', 'iss', 'exp', 'iat'].some((name) => claims[name] === undefined))
          refuse('Missing or invalid standard claims');
        if (claims.sub !== user.user_id) refuse('The sub claim does not match the user_id.');
        if (!(Number(claims.exp) > now)) refuse('Token has expired.');
        return claims;
      },
    }),
    transaction: ({ setMetadata, setTargetScopes }) => ({
      ...(setMetadata && {
        setMetadata: (key, value) => {
          const { metadata } = event.transaction;
          if (value === null) delete metadata[key];
          else metadata[key] = value;
          return setMetadata(key, value);
        },
      }),
      ...(setTargetScopes && targetScopes(setTargetScopes)),
    }),
  };

  const rolesHere = () => {
    /** A page of roles; `from` is the cursor. */
    const page = ({ take = 50, from = '0' } = {}) => {
      const { userRoles } = given;
      const [begin, most] = [Number(from), Math.min(Number(take), 100)];
      const end = begin + most;
      return {
        roles: userRoles.slice(begin, end),
        ...(end < userRoles.length && { next: String(end) }),
      };
    };
    const among = (member) => async (names) => ({
      roles: given.userRoles.filter((role) => names.includes(role[member])),
    });
    return {
      getUserEffectiveRoles: async (asked) => page(asked),
      getUserEffectiveRolesByIds: among('id'),
      getUserEffectiveRolesByNames: among('name'),
    };
  };
  const noGroups = () => {
    // docs/understand/decisions/actions-scripts.md#parts-of-the-documented-event-and-api-do-not-exist-here
    throw new Error('groups: there are none here; roles and organizations say who may do what');
  };

  let cached;
  const entries = () => {
    cached ??= new Map(Object.entries(given.cacheEntries));
    return cached;
  };
  const cache = () => ({
    get: (key) => entries().get(String(key)),
    set: (key, value, options = {}) => {
      const minute = 60 * 1000;
      const { ttl, expires_at: end } = options ?? {};
      const said = [ttl === undefined ? [] : Date.now() + Number(ttl), end === undefined ? [] : Number(end)];
      const until = Math.min(...said.flat(), Date.now() + 24 * 60 * minute);
      const expires_at = ttl === undefined && end === undefined ? Date.now() + 15 * minute : until;
      const record = { value: String(value), expires_at };
      if (!(record.expires_at > 0)) return { type: 'error', code: 'FAILED_TO_SET_CACHE' };
      entries().set(String(key), record);
      commands.push({ method: 'cache.set', args: [String(key), record.value, record.expires_at] });
      return { type: 'success', record };
    },
    delete: (key) => {
      entries().delete(String(key));
      commands.push({ method: 'cache.delete', args: [String(key)] });
      return { type: 'success' };
    },
  });

  /** Returns the `api` with these methods, names separated by spaces. */
  const apiOf = (methods) => {
    const names = methods.split(' ').filter((method) => method !== '');
    const has = (...all) => all.every((method) => names.includes(method));
    const api = {};
    const groups = {};
    for (const method of names) {
      const [group, name] = method.split('.');
      groups[group] ??= {};
      groups[group][name] = (...args) => {
        commands.push({ method, args });
        return api;
      };
    }
    for (const [group, made] of Object.entries(groups)) api[group] = { ...made, ...answering[group]?.(made) };
    if (has('user.setUserMetadata', 'redirect.sendUserTo')) {
      api.roles = rolesHere();
      api.groups = { getUserGroups: noGroups, hasGroupMembership: noGroups };
    }
    if (has('redirect.sendUserTo')) {
      api.rules = { wasExecuted: (id) => given.rules.includes(id) };
      api.prompt = {
        render: () => {
          throw new Error(
            'prompt.render: forms are not shown here; redirect.sendUserTo goes to a page of your own',
          );
        },
      };
    }
    api.cache = cache();
    return api;
  };
  const apis = new Map(prepared.map((methods) => [methods, apiOf(methods)]));

  /** Required modules, by name. */
  const loaded = new Map();
  const load = (name, source, actions) => {
    const module = { exports: {} };
    // Before it has run, as in Node: modules may require each other.
    loaded.set(name, module);
    const make = (0, eval)(`(function (module, exports, require, actions) {${source}\n})`);
    try {
      make.call(module.exports, module, module.exports, requireHere, actions);
    } catch (thrown) {
      // As in Node: a module that failed is not cached.
      loaded.delete(name);
      throw thrown;
    }
  };
  const requireHere = (id) => {
    if (!String(id).startsWith('actions:')) return require(id);
    const name = String(id).slice('actions:'.length);
    const found = given.modules.find((one) => one.name === name);
    if (found === undefined) throw new Error(`the module ${name} is none of this action`);
    if (!loaded.has(name)) load(name, found.code, { secrets: found.secrets });
    return loaded.get(name).exports;
  };

  return async (told, code, entry, methods, known) => {
    event = told;
    given = { rules: [], userRoles: [], modules: [], cacheEntries: {}, ...known };
    const module = { exports: {} };
    const make = (0, eval)(`(function (module, exports, require) {${code}\n})`);
    make.call(module.exports, module, module.exports, requireHere);
    if (typeof module.exports[entry] !== 'function') throw new TypeError(`the action exports no ${entry}`);
    await module.exports[entry](event, apis.get(methods) ?? apiOf(methods));
    return commands;
  };
};
