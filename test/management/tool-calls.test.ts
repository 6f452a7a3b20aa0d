// The command-line tools of the hosted service: after each of their calls, what they read back is what they sent.
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { parse } from 'yaml';
import { startDns, type TestDns } from '../support/dns.ts';
import type { TestServer } from '../support/server.ts';
import { CLI_RUNS } from './cli-calls.ts';
import { EXAMPLE } from './example.ts';
import { PROVIDER_RUNS } from './provider-calls.ts';
import { PROVIDER_FACTORS, PROVIDER_READINGS } from './provider-readings.ts';
import { authorizeAs, managementToken, startManaged } from './support.ts';
import { TOOL_RUNS, type ToolCall, type ToolRun } from './tool-calls.ts';

type Json = Record<string, unknown>;

/** Returns the value at a path of an answer, such as `options.scope`; undefined if there is none. */
const at = (answer: unknown, path: string): unknown =>
  path.split('.').reduce<unknown>((value, name) => (value as Json | undefined)?.[name], answer);

/** Returns the paths and values of a body, without those inside arrays. */
function leaves(body: unknown, prefix = ''): [string, unknown][] {
  return Object.entries(body as Json).flatMap(([name, value]): [string, unknown][] => {
    const isObject = value !== null && typeof value === 'object' && !Array.isArray(value);
    return isObject && Object.keys(value).length > 0
      ? leaves(value, `${prefix}${name}.`)
      : [[`${prefix}${name}`, value]];
  });
}

/** Checks that what is read has everything that was sent. A tool compares lists without their order. */
function readsBack({ unread = [] }: ToolRun, seen: unknown, sent: unknown): void {
  for (const [path, value] of leaves(sent)) {
    if (unread.some((one) => path === one || path.startsWith(`${one}.`))) continue;
    const read = at(seen, path) ?? null;
    if (Array.isArray(value)) expect(read, `what is read of ${path}`).to.have.deep.members(value);
    else expect(read, `what is read of ${path}`).to.deep.equal(value);
  }
}

describe('the calls of published command-line tools', () => {
  let server: TestServer;
  let token: string;
  let dns: TestDns;
  let documents: Server;
  let document: string;
  before(async () => {
    dns = await startDns();
    documents = createServer((_, response) =>
      response.setHeader('content-type', 'application/json').end(
        JSON.stringify({
          client_id: document,
          client_name: 'Agent',
          redirect_uris: ['https://agent.example.test/callback'],
        }),
      ),
    ).listen(0, '127.0.0.1');
    await once(documents, 'listening');
    document = `http://127.0.0.1:${(documents.address() as AddressInfo).port}/client.json`;
    server = await startManaged(
      {
        ...(parse(EXAMPLE) as object),
        attackProtection: { rateLimits: { management: { capacity: 1e6, perMinute: 1e6 } } },
      },
      undefined,
      { DNS_SERVERS: dns.address },
    );
    token = await managementToken(server);
  });
  after(async () => {
    await server?.stop();
    documents?.close();
    dns?.stop();
  });

  /** Publishes the record that an answer asks for to prove a domain. */
  const prove = ({ verification }: Json) => {
    const { methods: [method] = [] } = (verification ?? {}) as { methods?: Record<string, string>[] };
    if (method?.domain !== undefined) dns.records.set(method.domain, [String(method.record)]);
  };

  for (const run of [
    ...TOOL_RUNS,
    ...PROVIDER_RUNS,
    ...PROVIDER_FACTORS,
    ...PROVIDER_READINGS,
    ...CLI_RUNS,
  ]) {
    it(`leave an empty plan: ${run.name}`, async () => {
      const known = new Map([
        ['management', `${server.issuer}api/v2/`],
        ['document', document],
      ]);
      const fill = (text: string, written = (value: string) => value) =>
        text.replaceAll(/\{(\w+)\}/g, (all, name: string) => {
          const value = known.get(name);
          return value === undefined ? all : written(value);
        });
      const filled = <T>(value: T): T => JSON.parse(fill(JSON.stringify(value))) as T;
      const send = async ({ method, path, body, keep = {}, status }: ToolCall) => {
        const response = await authorizeAs(
          server,
          token,
          method,
          fill(path, encodeURIComponent),
          body && filled(body),
        );
        const text = await response.text();
        expect(response.status, `${method} ${path} ${text}`).to.be.within(status ?? 200, status ?? 299);
        const answer = text === '' ? {} : (JSON.parse(text) as Json);
        prove(answer);
        for (const [name, member] of Object.entries(keep)) known.set(name, String(at(answer, member)));
        return answer;
      };
      const check = (call: ToolCall, answer: Json) => {
        for (const [path, value] of Object.entries(filled(call.expects ?? {})))
          expect(at(answer, path), `${call.path} ${path}`).to.deep.equal(value);
        for (const path of call.lacks ?? [])
          expect(at(answer, path), `${call.path} ${path}`).to.equal(undefined);
        for (const text of call.holds ?? []) expect(JSON.stringify(answer), call.path).to.include(fill(text));
      };
      for (const call of run.before ?? []) await send(call);
      for (const call of run.calls) {
        check(call, await send(call));
        if (run.read === undefined) continue;
        const seen = await send({ method: 'GET', path: run.read });
        if (run.isWhole === true) expect(seen).to.deep.equal(call.body);
        else readsBack(run, seen, filled(call.body ?? {}));
        for (const [path, value] of Object.entries(filled(run.expects ?? {})))
          expect(at(seen, path), `what is read of ${path}`).to.deep.equal(value);
        for (const path of run.lacks ?? [])
          expect(at(seen, path), `what is read of ${path}`).to.equal(undefined);
        if (run.holds !== undefined) expect(JSON.stringify(seen)).to.include(fill(run.holds));
      }
      if (run.warns !== undefined) expect(server.logged()).to.include(run.warns);
      for (const call of run.after ?? []) await send(call);
      if (run.after !== undefined && run.read !== undefined) {
        const response = await authorizeAs(server, token, 'GET', fill(run.read, encodeURIComponent));
        if (run.holds === undefined) expect(response.status, `GET ${run.read} once removed`).to.equal(404);
        else expect(await response.text()).not.to.include(fill(run.holds));
      }
    });
  }
});

describe('unknown members of a tenant file', () => {
  it('are not in answers of the Management API, whose calls refuse them: a tool sends back what it reads', async () => {
    const server = await startManaged({
      clients: [{ client_id: 'app', name: 'App', sparkle: true }],
      databases: [{ name: 'users', sparkle: true }],
      connections: [{ name: 'mail', strategy: 'email', sparkle: true }],
      resourceServers: [{ name: 'API', identifier: 'https://api.test/', sparkle: true }],
      clientGrants: [{ client_id: 'app', audience: 'https://api.test/', sparkle: true }],
      organizations: [{ id: 'org_one', name: 'one', sparkle: true }],
      roles: [{ name: 'reader', sparkle: true }],
    });
    try {
      const token = await managementToken(server);
      const read = async (path: string) => (await authorizeAs(server, token, 'GET', path)).json();
      const sections = [
        'clients',
        'connections',
        'resource-servers',
        'client-grants',
        'organizations',
        'roles',
      ];
      for (const section of sections) {
        const records = (await read(`/${section}`)) as { id?: string; client_id?: string }[];
        expect(records, section).not.to.have.lengthOf(0);
        for (const record of records) {
          const one = await read(`/${section}/${encodeURIComponent(record.id ?? record.client_id ?? '')}`);
          for (const shown of [record, one]) expect(shown, section).not.to.have.property('sparkle');
        }
      }
      const rotated = await authorizeAs(server, token, 'POST', '/clients/app/rotate-secret');
      expect(await rotated.json())
        .to.include({ name: 'App' })
        .and.not.have.property('sparkle');
    } finally {
      await server.stop();
    }
  });
});
