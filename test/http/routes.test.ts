// The router: which requests it answers, and how many at once.
import { once } from 'node:events';
import http from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import Koa from 'koa';
import { z } from 'zod';
import { AuthError, oauthShape } from '../../src/http/errors.ts';
import { httpLimits, limitsOf } from '../../src/http/limits.ts';
import { readBody } from '../../src/http/server/body.ts';
import { bindRoutes, createRouter, type Route, route } from '../../src/http/server/router.ts';
import { createLog } from '../../src/runtime/log.ts';
import { tenant } from '../support/flows.ts';
import { startServer } from '../support/server.ts';

const limits = limitsOf({
  token: { capacity: 1, perMinute: 1, per: 'address', where: '/t' },
  people: { capacity: 1, perMinute: 1, per: 'address', where: '/people' },
  all: { capacity: 1, perMinute: 1, per: 'address', where: '/people' },
});
const common = { limit: httpLimits.other, cors: 'none', errors: oauthShape } as const;

describe('the router', () => {
  const servers: http.Server[] = [];
  /** The lines that were logged. */
  let lines: string[] = [];
  beforeEach(() => {
    lines = [];
  });
  afterEach(() => {
    for (const server of servers.splice(0)) server.close().closeAllConnections();
  });

  /** Starts a server with routes. @returns its port. */
  const listening = async (routes: Route[], maxConcurrent: number): Promise<number> => {
    const app = new Koa();
    app.use(
      createRouter(routes, {
        log: createLog('info', { write: (line) => void lines.push(line) }),
        isOpenToStrangers: () => false,
        isApplicationOrigin: async (origin) => origin === 'https://app.example',
        errorPage: (ctx, error) => {
          ctx.status = error.status;
          ctx.type = 'html';
          ctx.body = `<p>${error.error}`;
        },
        guard: () => undefined,
        takeLimit: async (ctx, { name }) => ctx.append('X-Limit', name),
        readBody: () => readBody(1_000),
        maxConcurrent,
      }),
    );
    const server = http.createServer(app.callback()).listen(0, '127.0.0.1');
    servers.push(server);
    await once(server, 'listening');
    return (server.address() as AddressInfo).port;
  };
  const served = async (routes: Route[], maxConcurrent = 10) => {
    const port = await listening(routes, maxConcurrent);
    return (path: string, init: RequestInit = {}) => fetch(`http://127.0.0.1:${port}${path}`, init);
  };
  const echo =
    (name: string): Route['handle'] =>
    (ctx) => {
      ctx.body = { name, params: ctx.params };
    };

  it('prefers a literal segment to a parameter, and falls back to the parameter', async () => {
    const ask = await served([
      { ...common, methods: ['GET'], path: '/a/:x', handle: echo('a :x') },
      { ...common, methods: ['GET'], path: '/a/list', handle: echo('a list') },
      { ...common, methods: ['GET'], path: '/a/:x/b', handle: echo('a :x b') },
      { ...common, methods: ['GET'], path: '/a/list/c', handle: echo('a list c') },
      { ...common, methods: ['GET'], path: '/', handle: echo('root') },
    ]);
    for (const [path, expected] of [
      ['/a/1', { name: 'a :x', params: { x: '1' } }],
      ['/a/list', { name: 'a list', params: {} }],
      ['/a/LIST', { name: 'a :x', params: { x: 'LIST' } }],
      ['/a/list/b', { name: 'a :x b', params: { x: 'list' } }],
      ['/a/list/c', { name: 'a list c', params: {} }],
      ['/a/%2e%2e%2fb', { name: 'a :x', params: { x: '../b' } }],
      ['/a/x%7Cy?q', { name: 'a :x', params: { x: 'x|y' } }],
      ['/', { name: 'root', params: {} }],
    ] as const) {
      expect(await (await ask(path)).json(), path).to.deep.equal(expected);
    }
    for (const path of ['/a', '/a/', '/a/1/', '/a/1/c', '/a/list/d', '/a/%ff', '/A/1', '//', '/a/1/b/c']) {
      expect((await ask(path)).status, path).to.equal(404);
    }
  });

  it("takes from the path's limit before it checks the method, and from the common limit for an unknown path", async () => {
    const ask = await served([
      { ...common, limit: limits.token, methods: ['POST'], path: '/t', handle: echo('t') },
      { ...common, limit: 'unlimited', methods: ['GET'], path: '/free', handle: echo('free') },
    ]);
    for (const [path, method, status, limit] of [
      ['/t', 'POST', 200, 'token'],
      ['/t', 'GET', 405, 'token'],
      ['/x', 'GET', 404, 'other'],
      ['/free', 'GET', 200, null],
    ] as const) {
      const answer = await ask(path, { method });
      expect([answer.status, answer.headers.get('x-limit')], path).to.deep.equal([status, limit]);
    }
  });

  it('answers OPTIONS by the CORS rule of the path', async () => {
    const ask = await served([
      { ...common, cors: 'applications', methods: ['POST'], path: '/api', handle: echo('api') },
      { ...common, methods: ['GET', 'HEAD'], path: '/page', handle: echo('page') },
    ]);
    const preflight = (path: string, origin: string) =>
      ask(path, {
        method: 'OPTIONS',
        headers: { origin, 'access-control-request-method': 'POST' },
      });
    const allowed = await preflight('/api', 'https://app.example');
    expect([allowed.status, allowed.headers.get('access-control-allow-origin')]).to.deep.equal([
      204,
      'https://app.example',
    ]);
    const refused = await preflight('/api', 'https://evil.example');
    expect([refused.status, refused.headers.get('access-control-allow-origin')]).to.deep.equal([204, null]);
    const options = await ask('/api', { method: 'OPTIONS' });
    expect([options.status, options.headers.get('allow')]).to.deep.equal([204, 'POST, OPTIONS']);
    const page = await preflight('/page', 'https://app.example');
    expect([page.status, page.headers.get('allow')]).to.deep.equal([405, 'GET, HEAD']);
  });

  it('throws for declarations that contradict one another', () => {
    const both = (one: Partial<Route>, other: Partial<Route>) => () =>
      createRouter(
        [one, other].map((route) => ({
          ...common,
          methods: ['GET'],
          path: '/a',
          handle: echo('a'),
          ...route,
        })),
        {
          maxConcurrent: 1,
          readBody: () => echo(''),
        } as never,
      );
    expect(both({}, {})).to.throw('GET /a is declared twice');
    expect(both({}, { methods: ['POST'], cors: 'any' })).to.throw('/a has two rules for other origins');
    expect(() => bindRoutes({ 'BREW /a': { ...common, handle: echo('a') } } as never, {})).to.throw(
      'BREW /a is no method and path',
    );
    expect(both({ path: '/:x' }, { path: '/:y/b' })).to.throw('this segment is called :x elsewhere');
  });

  it('checks a declared body before the handler, and reports its faults', async () => {
    const body = z.object({ name: z.string().min(1), age: z.number().optional() });
    const ask = await served(
      bindRoutes(
        {
          'POST /people': route({
            ...common,
            limit: limits.people,
            furtherLimits: [limits.all],
            body,
            handle: (_deps, ctx, { body: { name } }) => {
              ctx.body = { name };
            },
          }),
        },
        {},
      ),
    );
    const post = (sent: unknown) =>
      ask('/people', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(sent),
      });
    const taken = await post({ name: 'Ada', age: null, more: 1 });
    expect([taken.headers.get('x-limit'), await taken.json()]).to.deep.equal([
      'people, all',
      { name: 'Ada' },
    ]);
    for (const [sent, description] of [
      [{}, 'Missing required parameter: name'],
      [{ name: '' }, 'Missing required parameter: name'],
      [{ name: null }, 'Missing required parameter: name'],
      [{ name: 5 }, 'Invalid parameter: name'],
      [{ name: 'Ada', age: 'old' }, 'Invalid parameter: age'],
      [['name'], 'The request body must be an object.'],
    ] as const) {
      const refused = await post(sent);
      expect([refused.status, await refused.json()]).to.deep.equal([
        400,
        { error: 'invalid_request', error_description: description },
      ]);
    }
  });

  /** Sends a body whose end waits for a promise. */
  const slowBody = (until: Promise<void>) =>
    new ReadableStream<Uint8Array>({
      start: async (controller) => {
        controller.enqueue(new TextEncoder().encode('{"a":'));
        await until;
        controller.enqueue(new TextEncoder().encode('1}'));
        controller.close();
      },
    });

  it('admits a request again after its body if that had not arrived before', async () => {
    let admitted = 0;
    const seen = Promise.withResolvers<void>();
    const ask = await served([
      {
        ...common,
        methods: ['POST'],
        path: '/',
        admit: async () => {
          admitted += 1;
          seen.resolve();
          if (admitted > 1) throw new AuthError(401, 'invalid_token', 'revoked');
        },
        handle: echo('written'),
      },
    ]);
    const answer = await ask('/', {
      method: 'POST',
      body: slowBody(seen.promise),
      duplex: 'half',
    } as RequestInit);
    expect([answer.status, admitted]).to.deep.equal([401, 2]);
  });

  it('gives the handler what the last admission found, and nothing of the one before the body', async () => {
    let admitted = 0;
    const seen = Promise.withResolvers<void>();
    const declared = route({
      ...common,
      admit: async () => {
        admitted += 1;
        seen.resolve();
        return { session: admitted };
      },
      handle: (_deps: object, ctx, { admitted: found }) => {
        ctx.body = found;
      },
    });
    const ask = await served(bindRoutes({ 'POST /': declared }, {}));
    const init = { method: 'POST', body: slowBody(seen.promise), duplex: 'half' };
    expect(await (await ask('/', init as RequestInit)).json()).to.deep.equal({ session: 2 });
  });

  it('admits a request once if its whole body arrives while it is admitted', async () => {
    let admitted = 0;
    const ask = await served([
      {
        ...common,
        methods: ['POST'],
        path: '/',
        admit: async ({ req }) => {
          admitted += 1;
          while (!req.complete) await new Promise((resolve) => setImmediate(resolve));
        },
        handle: echo('written'),
      },
    ]);
    const answer = await ask('/', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"a":1}',
    });
    expect([answer.status, admitted]).to.deep.equal([200, 1]);
  });

  it('logs the cause of a 503 of what the server depends on, and not that the server is busy', async () => {
    const cause = new Error('the directory is down');
    const ask = await served([
      {
        ...common,
        methods: ['GET'],
        path: '/down',
        handle: () => {
          throw new AuthError(503, 'temporarily_unavailable', 'Not now.', { cause });
        },
      },
    ]);
    const answer = await ask('/down');
    expect([answer.status, answer.headers.get('retry-after')]).to.deep.equal([503, '1']);
    expect(lines).to.have.length(1);
    expect(lines[0]).to.contain('the directory is down').and.not.to.contain('the server is busy');
  });

  it('limits the requests handled at once, and answers others with 503 and Retry-After', async () => {
    const gate = Promise.withResolvers<void>();
    let running = 0;
    const ask = await served(
      [
        {
          ...common,
          methods: ['GET'],
          path: '/slow',
          handle: async (ctx) => {
            running += 1;
            await gate.promise;
            ctx.body = 'done';
          },
        },
        { ...common, methods: ['GET'], path: '/page', errors: 'page', handle: echo('page') },
        { ...common, limit: 'unlimited', methods: ['GET'], path: '/probe', handle: echo('probe') },
        {
          ...common,
          methods: ['GET'],
          path: '/fails',
          handle: () => {
            throw new AuthError(400, 'invalid_request', 'no');
          },
        },
      ],
      2,
    );
    for (let i = 0; i < 3; i++) expect((await ask('/fails')).status, 'failures leave room').to.equal(400);
    const slow = [ask('/slow'), ask('/slow')];
    while (running < 2) await new Promise((resolve) => setImmediate(resolve));
    const refused = await ask('/slow');
    expect([refused.status, refused.headers.get('retry-after')]).to.deep.equal([503, '1']);
    expect(await refused.json()).to.have.property('error', 'temporarily_unavailable');
    const page = await ask('/page');
    expect([page.status, page.headers.get('content-type')]).to.deep.equal([503, 'text/html; charset=utf-8']);
    expect((await ask('/probe')).status).to.equal(200);
    // Many refusals are one line, and none of the requests has one of its own.
    expect(lines.filter((line) => line.includes('the server is busy'))).to.have.length(1);
    expect(lines).to.have.length(1);
    gate.resolve();
    expect((await Promise.all(slow)).map(({ status }) => status)).to.deep.equal([200, 200]);
    expect((await ask('/page')).status).to.equal(200);
  });

  it('handles other requests while a body is still arriving', async () => {
    const ask = await served([{ ...common, methods: ['POST'], path: '/', handle: echo('posted') }], 1);
    const trickle = new ReadableStream({
      start: (controller) => controller.enqueue(new TextEncoder().encode('{"a":')),
    });
    const abort = new AbortController();
    const slow = ask('/', {
      method: 'POST',
      body: trickle,
      duplex: 'half',
      signal: abort.signal,
    } as RequestInit);
    slow.catch(() => undefined);
    for (let i = 0; i < 3; i++) expect((await ask('/', { method: 'POST', body: '' })).status).to.equal(200);
    abort.abort();
  });

  it('answers every request of the server alike, in whatever order its routes are declared', async () => {
    const server = await startServer({ tenant });
    const declared = server.tenant.routes.map((route) => ({
      ...route,
      limit: httpLimits.other,
      body: undefined,
      handle: echo(`${route.methods.join('|')} ${route.path}`),
    }));
    await server.stop();
    const lengthOf = (path: string) => path.split('/').length;
    const paths = Map.groupBy(
      declared.map(({ path }) => path.split('/')),
      ({ length }) => length,
    );
    const requests = new Set(
      declared.flatMap(({ methods, path }) =>
        samplesOf(path, paths.get(lengthOf(path)) ?? []).flatMap((sample) =>
          methods.filter((method) => method !== 'HEAD').map((method) => `${method} ${sample}`),
        ),
      ),
    );
    // All requests at once over one connection, which ends with the last response.
    const pipelined = [...requests].map((request) => `${request} HTTP/1.1\r\nHost: x\r\n`).join('\r\n');
    const answers = async (routes: Route[]) => {
      const socket = connect(await listening(routes, requests.size), '127.0.0.1');
      socket.write(`${pipelined}Connection: close\r\n\r\n`);
      const all = (await text(socket)).split(/(?=HTTP\/1\.1 )/);
      expect(all.length).to.equal(requests.size);
      // Keeps the status and the body.
      return all.map((answer) => answer.replace(/^HTTP\S+ (\d+).*?\r\n\r\n/s, '$1 '));
    };
    const expected = await answers(declared);
    expect(expected.filter((answer) => answer.startsWith('200 ')).length).to.be.above(100);
    // Reversed, the other one of any two routes comes first.
    expect(await answers([...declared].reverse())).to.deep.equal(expected);
  });
});

/**
 * Returns sample paths of a route. Its parameters are filled with any text, and with the literal segments of other
 * routes that might match the same path.
 * @param all the segments of all paths with the same length.
 */
function samplesOf(path: string, all: readonly string[][]): string[] {
  const own = path.split('/');
  const mayMatch = (one: string, other = '') => one === other || one.startsWith(':') || other.startsWith(':');
  const others = all.filter((segments) => segments.every((one, index) => mayMatch(one, own[index])));
  let samples = [''];
  for (const [index, segment] of own.entries()) {
    if (index === 0) continue;
    const spelled = others.map((segments) => segments[index] ?? '').filter((name) => !name.startsWith(':'));
    const values = segment.startsWith(':') ? ['x', ...new Set(spelled)] : [segment];
    samples = samples.flatMap((sample) => values.map((value) => `${sample}/${value}`));
  }
  return samples;
}
