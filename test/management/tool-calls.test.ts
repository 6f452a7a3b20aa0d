// The command-line tools of the hosted service: after each of their calls, what they read back is what they sent.
import { expect } from 'chai';
import { parse } from 'yaml';
import type { TestServer } from '../support/server.ts';
import { EXAMPLE } from './example.ts';
import { authorizeAs, managementToken, startManaged } from './support.ts';
import { TOOL_RUNS, type ToolCall } from './tool-calls.ts';

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

  for (const run of TOOL_RUNS) {
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
        for (const [path, value] of leaves(filled(call.body ?? {}))) {
          if (run.unread?.includes(path) !== true)
            expect(at(seen, path) ?? null, `what is read of ${path}`).to.deep.equal(value);
        }
        for (const [path, value] of Object.entries(run.expects ?? {}))
          expect(at(seen, path), `what is read of ${path}`).to.deep.equal(value);
        for (const path of run.lacks ?? [])
          expect(at(seen, path), `what is read of ${path}`).to.equal(undefined);
      }
    });
  }
});
