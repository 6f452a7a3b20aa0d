// Every kind of script that a tenant can have, run by the server's own code for it. The escape suite runs over all of
// them.
import { createActions } from '../../src/capabilities/actions/actions.ts';
import { TRIGGER_METHODS } from '../../src/capabilities/actions/commands.ts';
import { runAction } from '../../src/capabilities/actions/run-action.ts';
import type { Scripts } from '../../src/capabilities/scripts/scripts.ts';
import {
  type CustomDatabases,
  customDatabases,
} from '../../src/features/connections/database/custom/database-custom.ts';
import { scriptRunner } from '../../src/features/connections/redirect.ts';
import { AuthError } from '../../src/http/errors.ts';
import type { Connection } from '../../src/records/collections.ts';
import { continueEntry, TRIGGER_ENTRIES, type Trigger } from '../../src/records/tenant/actions.ts';

/** The secret that scripts are given, which must not appear anywhere. */
export const SECRET = 'a "secret" of the tenant';

/** The outcome of a run. */
export interface Ran {
  /** The result that the server uses, if the script did not fail. */
  result?: unknown;
  /** Everything that answers and the log say about a failure. */
  told: string;
}

export interface Kind {
  name: string;
  /** Returns the source of a script. @param body statements that call `answer(text)`, or end in any other way. */
  source(body: string): string;
  /** Runs a script. @returns its outcome, with a result where it did not fail. */
  run(scripts: Scripts, source: string): Promise<Ran>;
}

const CONFIGURATION = { nested: { KEY: SECRET } };

const connection = (options: object) =>
  ({
    id: 'con_1',
    name: 'hostile',
    strategy: 'auth0',
    options,
    enabled_clients: [],
  }) as unknown as Connection;

/** Collects what is reported about failures. */
async function watched(work: (events: { record(event: object): void }) => Promise<unknown>): Promise<Ran> {
  const told: unknown[] = [];
  try {
    const result = await work({ record: (event) => void told.push(event) });
    return { result, told: JSON.stringify(told) };
  } catch (thrown) {
    if (!(thrown instanceof AuthError)) throw thrown;
    return { told: JSON.stringify([...told, thrown.error, thrown.error_description]) };
  }
}

const connectionKind = (name: 'fetchUserProfile' | 'getLogoutUrl', parameters: string): Kind => ({
  name: `connection ${name}`,
  source: (body) => `async function ${name}(${parameters}, callback) {
    const secret = configuration.nested.KEY;
    const answer = (text) => callback(null, { user_id: text });
    ${body}
  }`,
  run: (scripts, source) =>
    watched(() =>
      scriptRunner(scripts)({
        connection: connection({ configuration: CONFIGURATION }),
        clientId: 'web',
        name,
        source,
        arguments: name === 'getLogoutUrl' ? [{}] : ['token', {}],
        secrets: [],
      }),
    ),
});

type Asked = Parameters<CustomDatabases['login']>[0];

const DATABASE: Record<
  string,
  { parameters: string; ask(all: CustomDatabases, asked: Asked): Promise<unknown> }
> = {
  login: {
    parameters: 'email, secret',
    ask: async (all, asked) => {
      const answer = await all.login(asked, SECRET);
      if (typeof answer === 'string') throw new AuthError(403, answer, answer);
      return answer;
    },
  },
  get_user: { parameters: 'email', ask: (all, asked) => all.find(asked) },
  create: { parameters: 'user', ask: (all, asked) => all.create(asked, { password: SECRET }) },
  verify: { parameters: 'email', ask: (all, asked) => all.change(asked, 'verify', ['a@b.test']) },
  change_password: { parameters: 'email, secret', ask: (all, asked) => all.changePassword(asked, SECRET) },
  change_email: {
    parameters: 'email, to, verified',
    ask: (all, asked) => all.change(asked, 'change_email', ['a@b.test', 'c@d.test', true]),
  },
  change_username: {
    parameters: 'from, to',
    ask: (all, asked) => all.change(asked, 'change_username', ['a', 'b']),
  },
  delete: { parameters: 'id', ask: (all, asked) => all.change(asked, 'delete', ['1']) },
};

const databaseKinds = Object.entries(DATABASE).map(
  ([name, { parameters, ask }]): Kind => ({
    name: `database ${name}`,
    source: (body) => `async function hostile(${parameters}, callback) {
      ${parameters.includes('secret') ? '' : 'const secret = configuration.nested.KEY;'}
      const answer = (text) => callback(null, ${
        ['login', 'get_user'].includes(name)
          ? "{ user_id: '1', email: 'a@b.test', name: text }"
          : 'text.length < 1000 ? true : text'
      });
      ${body}
    }`,
    run: (scripts, source) =>
      watched((events) => {
        const options = { enabledDatabaseCustomization: true, configuration: CONFIGURATION };
        const asked = {
          connection: connection({ ...options, customScripts: { [name]: source } }),
          identifier: 'a@b.test',
        };
        const rateLimits = { spend: async () => true, giveBack: async () => {}, hasLeft: async () => true };
        const packages = { filesFor: async () => undefined };
        const nobody = { login: async () => 'failed' as const, find: async () => undefined };
        const ignored = { recordRefusal: () => undefined, recordMove: () => undefined };
        const oldTenant = { isAsked: async () => false, ...nobody, ...ignored };
        const pause = async () => {};
        const deps = { rateLimits, packages, tenant: 'tenant', oldTenant, clock: Date.now, pause };
        return ask(customDatabases({ ...deps, scripts, events }), asked);
      }),
  }),
);

const EVENT = { user: { user_id: 'u', user_metadata: {}, app_metadata: {} }, transaction: { metadata: {} } };

const actionSource = (entry: string) => (body: string) =>
  `exports.${entry} = async (event, api) => {
  const secret = event.secrets.KEY;
  let end;
  const ended = new Promise((resolve) => { end = resolve; });
  const answer = (text) => { api.cache.set('answer', text); end(); };
  await (async () => { ${body} })();
  await ended;
};`;

const actionOf = (code: string) => ({
  name: 'hostile',
  code,
  dependencies: [],
  modules: [],
  secrets: { KEY: SECRET },
});

const actionKind = (trigger: Trigger): Kind => ({
  name: `action ${trigger}`,
  source: actionSource(TRIGGER_ENTRIES[trigger]),
  run: (scripts, source) => watched((events) => runActions(scripts, events, trigger, source)),
});

const execution = () => ({ id: 'e', startRun: () => () => {}, end: () => {} });

/** Runs the action of a trigger; with `rules`, a rule. */
function runActions(
  scripts: Scripts,
  events: { record(event: object): void },
  trigger: Trigger,
  source: string,
  isRule = false,
) {
  const rule = { id: 'rul_1', name: 'hostile', script: source };
  const actions = createActions({
    config: {
      actions: () => (isRule ? [] : [{ ...actionOf(source), isOptional: false }]),
      rules: () => (isRule ? { enabled: [rule], configuration: { KEY: SECRET } } : NO_RULES),
      settings: () => ({}) as never,
      customDomains: async () => [],
    },
    scripts,
    packages: { filesOf: async () => undefined, filesFor: async () => undefined },
    events,
    executions: { newId: () => 'e', start: execution },
    wallClock: Date.now,
    hostname: 'tenant.example.test',
  });
  return actions.run(trigger, EVENT, {});
}

const NO_RULES = { enabled: [], configuration: {} };

const rules: Kind = {
  name: 'rule',
  source: (body) => `function (user, context, callback) {
    const secret = configuration.KEY;
    const answer = (text) => { user.user_metadata = { text }; callback(null, user, context); };
    return (async () => { ${body} })();
  }`,
  run: (scripts, source) => watched((events) => runActions(scripts, events, 'post-login', source, true)),
};

const continuing: Kind = {
  name: `action ${continueEntry('post-login')}`,
  source: actionSource(continueEntry('post-login')),
  run: async (scripts, source) => {
    const deps = {
      scripts,
      packages: { filesOf: async () => undefined, filesFor: async () => undefined },
      wallClock: Date.now,
      hostname: 'tenant.example.test',
    };
    const how = {
      entry: continueEntry('post-login'),
      methods: TRIGGER_METHODS['post-login'],
      canRedirect: true,
      rules: [],
    };
    const { run: _, ...answer } = await runAction(deps, actionOf(source), {
      event: EVENT,
      options: how,
      cacheEntries: {},
    });
    return 'fault' in answer ? { told: answer.fault } : { result: answer, told: '' };
  },
};

/** All kinds. New triggers are included automatically. */
export const KINDS: readonly Kind[] = [
  connectionKind('fetchUserProfile', 'token, context'),
  connectionKind('getLogoutUrl', 'query'),
  ...databaseKinds,
  ...(Object.keys(TRIGGER_ENTRIES) as Trigger[]).map(actionKind),
  continuing,
  rules,
];
