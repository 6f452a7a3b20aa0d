// Every method of the published management clients, of three major versions. The methods are found in the clients, so
// that none is missed. Each is called once, except those that would end the test (`SPARED`; they have tests of their
// own), and must reach a route, unless it is left out (`LEFT_OUT`;
// docs/understand/decisions/management-api.md#resources-that-do-not-exist-here-are-answered-404). The responses are not
// checked here.
import { ManagementClient as Client7 } from 'auth0';
import { ManagementClient as Client4 } from 'auth0-4';
import { ManagementClient as Client5 } from 'auth0-5';
import { expect } from 'chai';
import { parse } from 'yaml';
import type { TestServer } from '../support/server.ts';
import { EXAMPLE } from './example.ts';
import { managementToken, startManaged } from './support.ts';

type Method = (...given: unknown[]) => PromiseLike<unknown>;

/** Members that are not calls of the API. */
const OWN = /^(constructor|request|fetch|create_?headers|.*Passthrough.*|_.*)$/i;

/** Methods that would end the token of this test, never return, or need a file. */
const SPARED =
  /(^keys\.(signing\.)?(rotate|revoke)$|events\.subscribe|jobs\.(usersImports\.create|importUsers)$)/;

/** Paths that Gatehouse does not have. */
const LEFT_OUT = [
  /^\/(agents|blacklists|events|experimentation|groups|verifiable-credentials)(\/|$)/,
  /^\/attack-protection\/phone-provider-protection$/,
  /^\/actions\/modules\/[^/]+\/(actions|rollback|versions\/)/,
  /^\/branding\/phone\/\w+\/[^/]+\/(try|reset)$/,
  /^\/(clients\/cimd|(organizations|resource-servers)\/search)/,
  /^\/(user-attribute|connection)-profiles\/templates/,
  /^\/connections\/[^/]+\/directory-provisioning\/synchronizations/,
  /^\/custom-domains\/[^/]+\/test$/,
  /^\/event-streams\/[^/]+\//,
  /^\/flows\/[^/]+\/executions/,
  /^\/guardian\/(settings|factors\/(email|phone)\/settings)/,
  /^\/keys\/(encryption|custom-signing|network-acls)/,
  /^\/organizations\/[^/]+\/(groups|roles|organization-templates|members\/[^/]+\/effective-roles)/,
  /^\/roles\/[^/]+\/groups$/,
  /^\/self-service-profiles\/[^/]+\/sso-ticket/,
  /^\/users\/[^/]+\/(effective-|federated-|groups|risk-assessments)/,
];

/** Returns each method below a client, with its path. */
function methodsOf(value: object, path: string[] = [], seen = new Set<object>()): [string, Method][] {
  if (seen.has(value) || path.length > 6) return [];
  seen.add(value);
  const found: [string, Method][] = [];
  for (let from: object = value; from !== Object.prototype; from = Object.getPrototypeOf(from) as object) {
    for (const [name, descriptor] of Object.entries(Object.getOwnPropertyDescriptors(from))) {
      if (OWN.test(name) || found.some(([known]) => known === [...path, name].join('.'))) continue;
      if (typeof descriptor.value === 'function' && path.length > 0)
        found.push([[...path, name].join('.'), (descriptor.value as Method).bind(value)]);
      const member = descriptor.get === undefined ? descriptor.value : descriptor.get.call(value);
      if (isManager(member)) found.push(...methodsOf(member, [...path, name], seen));
    }
  }
  return found;
}

/** Managers are instances of classes; values are plain objects. */
function isManager(value: unknown): value is object {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const prototype = Object.getPrototypeOf(value) as object | null;
  return (
    prototype !== null &&
    prototype !== Object.prototype &&
    /Manager|Client|\b/.test(prototype.constructor.name)
  );
}

/** An argument for any method: each of its members is a text. */
const ANYTHING = new Proxy(
  {},
  {
    get: (_target, name) =>
      typeof name === 'string' && !['then', 'toJSON'].includes(name) ? 'unknown' : undefined,
  },
);

describe('every method of the published management clients', () => {
  let server: TestServer;
  let token: string;

  before(async () => {
    const wide = { capacity: 1e6, perMinute: 1e6 };
    server = await startManaged({
      ...(parse(EXAMPLE) as object),
      attackProtection: { rateLimits: { management: wide } },
    });
    token = await managementToken(server);
  });
  after(() => server.stop());

  const VERSIONS: [string, new (options: never) => object, unknown[]][] = [
    ['4', Client4 as never, [ANYTHING, {}]],
    ['5', Client5 as never, ['unknown', 'unknown', 'unknown']],
    ['7', Client7 as never, ['unknown', 'unknown', 'unknown']],
  ];

  for (const [version, Client, given] of VERSIONS) {
    it(`reaches a route in version ${version}`, async () => {
      const asked: { request: string; path: string; status: number; message: string }[] = [];
      const { fetch: real } = globalThis;
      // The clients use the global `fetch`; version 5 accepts no other.
      globalThis.fetch = async (input, init) => {
        const response = await real(input, init);
        const message = response.ok ? '' : await response.clone().text();
        const { pathname } = new URL(String(input));
        const path = pathname.slice('/api/v2'.length);
        asked.push({ request: `${init?.method} ${path}`, path, status: response.status, message });
        return response;
      };
      const client = new Client({
        domain: new URL(server.url).host,
        token,
        retry: { enabled: false },
        maxRetries: 0,
      } as never);
      const faults: string[] = [];
      let count = 0;
      try {
        for (const [name, method] of methodsOf(client)) {
          if (SPARED.test(name)) continue;
          asked.length = 0;
          // Calls may fail, because no such record exists; only the responses are checked.
          await (async () => method(...given))().catch(() => undefined);
          for (const { request, path, status, message } of asked) {
            count += 1;
            const isNowhere = status === 405 || message.includes('There is nothing here');
            if (status >= 500 || (isNowhere && !LEFT_OUT.some((one) => one.test(path))))
              faults.push(`${name}: ${request} ${status} ${message}`);
          }
        }
      } finally {
        globalThis.fetch = real;
      }
      expect(faults).to.deep.equal([]);
      expect(count, 'requests').to.be.at.least(150);
    });
  }
});
