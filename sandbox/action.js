// What is around an action in the sandbox: its module, and an `api` that records what it asks for. Nothing here protects
// anybody: what was recorded is checked by the server.
async (
  event,
  code,
  entry,
  methods,
  kept,
  { now, issuer, canRedirect, rules = [], userRoles = [], modules = [] } = {},
) => {
  const commands = [];
  const api = {};
  /** What of a group answers at once, beside what it records. */
  const answering = {
    redirect: () => ({
      canRedirect: () => canRedirect,
      encodeToken: ({ secret, payload = {}, expiresInSeconds = 900 }) => {
        const { user, request } = event;
        const exp = now + Number(expiresInSeconds);
        const claims = { iss: issuer, iat: now, exp, sub: user.user_id, ip: request.ip };
        return require('jsonwebtoken').sign({ ...claims, ...payload }, secret, { algorithm: 'HS256' });
      },
      validateToken: ({ secret, tokenParameterName = 'session_token' }) => {
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
  /** The scopes that a token of an application is to have: what they are in the end is recorded, and seen at once. */
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
  const groups = {};
  for (const method of methods) {
    const [group, name] = method.split('.');
    groups[group] ??= [];
    groups[group].push(name);
  }
  // Most actions use few of them: each group is made when it is first asked for.
  for (const [group, names] of Object.entries(groups)) {
    const make = () => {
      const record =
        (name) =>
        (...args) => {
          commands.push({ method: `${group}.${name}`, args });
          return api;
        };
      const made = Object.fromEntries(names.map((name) => [name, record(name)]));
      return { ...made, ...answering[group]?.(made) };
    };
    Object.defineProperty(api, group, {
      configurable: true,
      enumerable: true,
      get: () => {
        const value = make();
        Object.defineProperty(api, group, { value, writable: true, configurable: true, enumerable: true });
        return value;
      },
    });
  }
  if (methods.includes('user.setUserMetadata') && methods.includes('redirect.sendUserTo')) {
    /** A page of roles. `from` is where the page before it ended. */
    const page = ({ take = 50, from = '0' } = {}) => {
      const [begin, most] = [Number(from), Math.min(Number(take), 100)];
      const end = begin + most;
      return {
        roles: userRoles.slice(begin, end),
        ...(end < userRoles.length && { next: String(end) }),
      };
    };
    const among = (member) => async (given) => ({
      roles: userRoles.filter((role) => given.includes(role[member])),
    });
    api.roles = {
      getUserEffectiveRoles: async (asked) => page(asked),
      getUserEffectiveRolesByIds: among('id'),
      getUserEffectiveRolesByNames: among('name'),
    };
    const noGroups = () => {
      throw new Error('groups: there are none here; roles and organizations say who may do what');
    };
    api.groups = { getUserGroups: noGroups, hasGroupMembership: noGroups };
  }
  if (methods.includes('redirect.sendUserTo')) {
    api.rules = { wasExecuted: (id) => rules.includes(id) };
    api.prompt = {
      render: () => {
        throw new Error(
          'prompt.render: forms are not shown here; redirect.sendUserTo goes to a page of your own',
        );
      },
    };
  }
  const cache = new Map(Object.entries(kept));
  api.cache = {
    get: (key) => cache.get(String(key)),
    set: (key, value, options = {}) => {
      const minute = 60 * 1000;
      const { ttl, expires_at: end } = options ?? {};
      const said = [ttl === undefined ? [] : Date.now() + Number(ttl), end === undefined ? [] : Number(end)];
      const until = Math.min(...said.flat(), Date.now() + 24 * 60 * minute);
      const expires_at = ttl === undefined && end === undefined ? Date.now() + 15 * minute : until;
      const record = { value: String(value), expires_at };
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
  /** Modules that were required, by name. */
  const loaded = new Map();
  const requireHere = (id) => {
    if (!String(id).startsWith('actions:')) return require(id);
    const name = String(id).slice('actions:'.length);
    const found = modules.find((one) => one.name === name);
    if (found === undefined) throw new Error(`the module ${name} is none of this action`);
    if (!loaded.has(name)) load(name, found.code, { secrets: found.secrets });
    return loaded.get(name).exports;
  };
  const load = (name, source, actions) => {
    const module = { exports: {} };
    // There before it has run, as in Node: two may require one another.
    loaded.set(name, module);
    const make = (0, eval)(`(function (module, exports, require, actions) {${source}\n})`);
    try {
      make.call(module.exports, module, module.exports, requireHere, actions);
    } catch (thrown) {
      // As in Node: who requires it again gets no half of it.
      loaded.delete(name);
      throw thrown;
    }
  };
  const module = { exports: {} };
  const make = (0, eval)(`(function (module, exports, require) {${code}\n})`);
  make.call(module.exports, module, module.exports, requireHere);
  if (typeof module.exports[entry] !== 'function') throw new TypeError(`the action exports no ${entry}`);
  await module.exports[entry](event, api);
  return commands;
};
