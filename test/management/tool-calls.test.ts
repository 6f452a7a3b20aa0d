// The command-line tools of the hosted service: after each of their calls, what they read back is what they sent.
import { expect } from 'chai';
import { parse } from 'yaml';
import type { TestServer } from '../support/server.ts';
import { EXAMPLE } from './example.ts';
import { PROVIDER_RUNS } from './provider-calls.ts';
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
  before(async () => {
    server = await startManaged({
      ...(parse(EXAMPLE) as object),
      attackProtection: { rateLimits: { management: { capacity: 1e6, perMinute: 1e6 } } },
    });
    token = await managementToken(server);
  });
  after(() => server.stop());

  for (const run of [...TOOL_RUNS, ...PROVIDER_RUNS]) {
    it(`leave an empty plan: ${run.name}`, async () => {
      const known = new Map([['management', `${server.issuer}api/v2/`]]);
      const fill = (text: string) =>
        text.replaceAll(/\{(\w+)\}/g, (all, name: string) => known.get(name) ?? all);
      const filled = <T>(value: T): T => JSON.parse(fill(JSON.stringify(value))) as T;
      const send = async ({ method, path, body, keep = {} }: ToolCall) => {
        const response = await authorizeAs(server, token, method, fill(path), body && filled(body));
        const text = await response.text();
        expect(response.status, `${method} ${path} ${text}`).to.be.within(200, 299);
        const answer = text === '' ? {} : (JSON.parse(text) as Json);
        for (const [name, member] of Object.entries(keep)) known.set(name, String(at(answer, member)));
        return answer;
      };
      for (const call of run.before ?? []) await send(call);
      for (const call of run.calls) {
        const answer = await send(call);
        for (const [path, value] of Object.entries(call.expects ?? {}))
          expect(at(answer, path), `${call.path} ${path}`).to.deep.equal(value);
        for (const path of call.lacks ?? [])
          expect(at(answer, path), `${call.path} ${path}`).to.equal(undefined);
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
      if (run.after !== undefined) {
        const response = await authorizeAs(server, token, 'GET', fill(run.read));
        if (run.holds === undefined) expect(response.status, `GET ${run.read} once removed`).to.equal(404);
        else expect(await response.text()).not.to.include(fill(run.holds));
      }
    });
  }
});
