// Tenant files with mistakes of people and programs: each is read, or refused with sentences, in time.
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import type { TenantFile } from '../../src/records/tenant/tenant.ts';
import { EXAMPLE_FILE } from '../../src/tenant/examples.ts';
import { type LoadedTenant, parseTenant, TenantFault } from '../../src/tenant/load.ts';
import { createAgent } from '../support/agent.ts';
import { seeded } from '../support/seeded.ts';
import { startServer } from '../support/server.ts';

const EXAMPLE = readFileSync(EXAMPLE_FILE, 'utf8');
const EVERYTHING = readFileSync(new URL('./tenant.yaml', import.meta.url), 'utf8');
/** How many of the valid files each test serves. */
const SERVED = 3;
/** Replacements for a value, or lines to insert. */
const ODD = [
  '*a',
  '&a',
  '&a [*a]',
  '{ <<: *a }',
  '? x',
  '- - -',
  '[',
  '}',
  '"',
  "'",
  '!!binary x',
  '!x y',
  '|',
  '>-',
  '%YAML 9',
  '---',
  '...',
  '\t',
  '.nan',
  '.inf',
  '-1',
  '1e400',
  '0x10',
  'null',
  '~',
  'true',
  '""',
  '[]',
  '{}',
  '[[[]]]',
  '{ __proto__: { x: 1 } }',
  '__proto__',
  '"\\ud800"',
  '"\\0"',
  '${NOT_SET}',
  '${__proto__}',
  '##constructor##',
  'x'.repeat(5_000),
];

/** Replacements for a value in a generated file. */
const VALUES = [
  '-1',
  '0',
  '1e400',
  '1.5',
  '.inf',
  'null',
  'true',
  '""',
  '"\\n"',
  '"\\0"',
  '"\\ud800"',
  '[]',
  '[null]',
  '[""]',
  '{}',
  'x',
  '"a b"',
  '"{{ x"',
  '"{% if"',
  '"%"',
  'é',
  'https://',
  'http://[',
  'javascript:alert(1)',
  '9007199254740993',
  'x'.repeat(3_000),
];

/** Changes one value of a tenant that uses every member. @returns undefined when it is refused. */
function variant(random: () => number): { line: string; loaded: LoadedTenant } | undefined {
  const lines = EVERYTHING.split('\n');
  const at = Math.floor(random() * lines.length);
  const value = VALUES[Math.floor(random() * VALUES.length)];
  const line = (lines[at] ?? '').replace(/(: |- ).*/, (_, before: string) => `${before}${value}`);
  if (line === lines[at]) return undefined;
  lines[at] = line;
  try {
    return { line, loaded: parseTenant(lines.join('\n'), {}, 'tenant.yaml') };
  } catch (thrown) {
    if (thrown instanceof TenantFault) return undefined;
    throw thrown;
  }
}

/** Sends one request of each kind that applications and browsers send. */
function requestsOf({ clients, databases, connections, resourceServers }: TenantFile) {
  const [client] = clients;
  const [api] = resourceServers;
  const us = { client_id: client?.client_id ?? '', client_secret: client?.client_secret };
  const audience = api?.identifier ?? '';
  const email = 'new@example.test';
  const post = (path: string, json: object) => ({ path, options: { json } });
  const get = (path: string, query: Record<string, string> = {}) => ({
    path: `${path}?${new URLSearchParams(query)}`,
    options: {},
  });
  const start = (connection: object) => post('/passwordless/start', { ...us, ...connection, send: 'code' });
  const database = { client_id: us.client_id, connection: databases[0]?.name, email };
  return [
    get('/authorize', {
      client_id: us.client_id,
      response_type: 'code',
      redirect_uri: client?.callbacks[0] ?? '',
      scope: 'openid profile email offline_access',
      audience,
    }),
    post('/oauth/token', { ...us, grant_type: 'client_credentials', audience }),
    post('/oauth/token', {
      ...us,
      grant_type: 'password',
      username: 'user@example.test',
      password: 'Gatehouse-1',
      scope: 'openid offline_access',
      audience,
    }),
    start({ connection: connections[0]?.name, email }),
    start({ connection: connections[1]?.name, phone_number: '+16505551234' }),
    post('/dbconnections/signup', { ...database, password: 'Abcdefg-1234' }),
    post('/dbconnections/change_password', database),
    get('/.well-known/openid-configuration'),
    get('/v2/logout', { client_id: us.client_id }),
    get('/oidc/logout', { client_id: us.client_id }),
    get(`/samlp/${encodeURIComponent(us.client_id)}`),
    get(`/samlp/metadata/${encodeURIComponent(us.client_id)}`),
    get('/'),
  ];
}

/** Makes a few changes of the example. */
function changed(random: () => number): string {
  const lines = EXAMPLE.split('\n');
  const pick = <T>(all: readonly T[]): T => all[Math.floor(random() * all.length)] as T;
  for (let n = 1 + Math.floor(random() * 3); n > 0; n--) {
    const at = Math.floor(random() * lines.length);
    const line = lines[at] ?? '';
    switch (Math.floor(random() * 6)) {
      case 0:
        lines.splice(at, 1);
        break;
      case 1:
        lines.splice(at, 0, line);
        break;
      case 2:
        lines[at] = ' '.repeat(Math.floor(random() * 8)) + line.trimStart();
        break;
      case 3:
        lines[at] = line.replace(/:.*/, `: ${pick(ODD)}`);
        break;
      case 4:
        lines.splice(at, 0, `${/^ */.exec(line)?.[0] ?? ''}${pick(ODD)}`);
        break;
      default:
        lines[at] = line.replace(/\S+/, pick(ODD));
    }
  }
  return lines.join('\n');
}

describe('a tenant file that was changed at random', () => {
  for (const seed of [1, 2, 3, 4]) {
    it(`is read, or refused with sentences (seed ${seed})`, () => {
      const random = seeded(seed);
      let read = 0;
      for (let n = 0; n < 60; n++) {
        const text = changed(random);
        try {
          parseTenant(text, {}, 'tenant.yaml');
          read++;
        } catch (thrown) {
          if (!(thrown instanceof TenantFault)) throw new Error(`${thrown}\n${text}`, { cause: thrown });
          expect(thrown.faults).not.to.deep.equal([]);
          for (const fault of thrown.faults) expect(fault).to.match(/^\S.*\(tenant\.yaml(:\d+)?\)$/s);
        }
      }
      expect(read, 'not all of them are refused').to.be.above(0);
      expect(({} as { x?: unknown }).x).to.equal(undefined);
    });
  }

  for (const seed of [1, 2]) {
    it(`does not make a request fail when it is accepted (seed ${seed})`, async () => {
      const random = seeded(seed);
      let served = 0;
      while (served < SERVED) {
        const taken = variant(random);
        if (taken === undefined) continue;
        served++;
        const server = await startServer({ tenant: taken.loaded.tenant });
        try {
          const agent = createAgent(server);
          for (const { path, options } of requestsOf(taken.loaded.tenant)) {
            const { status, location } = await agent.request(path, options);
            expect(status, `${path} with ${taken.line}`).to.be.below(500);
            if (location.startsWith(`${server.url}/u/`)) {
              const page = await agent.get(location.slice(server.url.length));
              expect(page.status, `the login page with ${taken.line}`).to.be.below(500);
            }
          }
        } finally {
          await server.stop();
        }
      }
    });
  }
});
