// Variants of declared paths: whatever a router, a proxy or a file system might treat as equal is not found.
import { expect } from 'chai';
import { createAgent } from '../support/agent.ts';
import { type Requester, unlimitedServer } from '../support/requester.ts';
import { seeded } from '../support/seeded.ts';
import type { TestServer } from '../support/server.ts';

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND', 'M-SEARCH'];
describe('a request', () => {
  const started = unlimitedServer();
  let server: TestServer;
  let requester: Requester;
  before(() => {
    ({ server, requester } = started());
  });

  const ask = async (method: string, path: string, headers: Record<string, string> = {}) => {
    const answer = await requester.ask(method, path, { headers });
    return {
      status: answer.status,
      allow: String(answer.headers.allow ?? ''),
      origin: String(answer.headers['access-control-allow-origin'] ?? ''),
    };
  };
  const declared = () => Map.groupBy(server.tenant.routes, ({ path }) => path);
  const concrete = (path: string) => path.replaceAll(/:[a-z_]+/g, 'nobody');

  it('has a declared limit, except for probes and assets', () => {
    const free = server.tenant.routes.filter(({ limit }) => limit === 'unlimited');
    expect(free.map(({ path }) => path.replace(/^\/assets\/.*/, '/assets')))
      .to.include('/healthz')
      .and.satisfy((paths: string[]) => new Set(paths).size === 3);
  });

  it('with an undeclared method gets 405 and the list of methods', async () => {
    const tried = turns(6);
    for (const [path, routes] of declared()) {
      const methods = routes.flatMap((route) => [...route.methods]);
      for (const method of tried(path, METHODS)) {
        if (methods.some((one) => one === method)) continue;
        const answer = await ask(method, concrete(path));
        if (method === 'OPTIONS' && routes[0]?.cors !== 'none') {
          expect(answer.status, `${method} ${path}`).to.equal(204);
        } else {
          expect(answer.status, `${method} ${path}`).to.equal(405);
        }
        expect(answer.allow.split(', '), `${method} ${path}`).to.include.members(methods);
      }
    }
  });

  it('for another spelling of a path is not answered', async () => {
    const random = seeded(9);
    // Another value of a parameter is no other spelling.
    const patterns = [...declared().keys()].map(patternOf);
    const tried = turns(12);
    const alike = turns(2);
    for (const [path, routes] of declared()) {
      const others = alike(path, ['HEAD', 'OPTIONS']);
      for (const spelling of tried(path, spellings(concrete(path), random))) {
        if (patterns.some((pattern) => pattern.test(spelling))) continue;
        const methods = new Set([...routes.flatMap((route) => [...route.methods]), ...others]);
        await Promise.all(
          [...methods].map(async (method) => {
            const answer = await ask(method, spelling, { origin: 'http://localhost:5173' });
            expect(answer.status, `${method} ${spelling}`).to.equal(/^[^/]|[\\#]/.test(spelling) ? 400 : 404);
            expect(answer.origin, `${method} ${spelling}`).to.equal('');
          }),
        );
      }
    }
  });

  it('for an undeclared path gets the error page in a browser, and JSON elsewhere', async () => {
    const browser = { accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8' };
    for (const [headers, type] of [
      [browser, 'text/html'],
      [{ accept: 'application/json' }, 'application/json'],
      [{ accept: '*/*' }, 'application/json'],
      [{}, 'application/json'],
    ] as const) {
      const answer = await createAgent(server).get('/nowhere', headers);
      expect(answer.status).to.equal(404);
      expect(answer.headers['content-type']).to.match(new RegExp(`^${type}`));
      if (type === 'application/json') expect(answer.json()).to.have.property('error', 'not_found');
      else expect(answer.text).to.contain('<html');
    }
  });
});

/**
 * One router handles all paths, so the first path of each part is tried with all variants, and each other path with
 * some of them in turn.
 */
function turns(shares: number): <T>(path: string, all: readonly T[]) => readonly T[] {
  const parts = new Set<string | undefined>();
  let number = 0;
  return (path, all) => {
    const part = path.split('/')[1];
    number += 1;
    if (parts.has(part)) return all.filter((_, index) => index % shares === number % shares);
    parts.add(part);
    return all;
  };
}

/** Variants of a path that are not the path: the known tricks, and some at random positions. */
function spellings(path: string, random: () => number): string[] {
  const at = (text: string) => Math.floor(random() * text.length);
  const letters = [...path.matchAll(/[a-z]/g)].filter(({ index }) => !inParameter(path, index));
  const letter = letters[Math.floor(random() * letters.length)];
  const replaced = (change: (char: string) => string) =>
    letter === undefined
      ? []
      : [path.slice(0, letter.index) + change(letter[0]) + path.slice(letter.index + 1)];
  const slash = path.lastIndexOf('/', at(path));
  return [
    ...replaced((char) => char.toUpperCase()),
    ...replaced((char) => `%${char.charCodeAt(0).toString(16)}`),
    ...replaced((char) => `%25${char.charCodeAt(0).toString(16)}`),
    ...replaced((char) => `${char}%00`),
    ...replaced((char) => `${char};x=1`),
    path.toUpperCase(),
    `${path}/`,
    `${path}//`,
    `${path}/.`,
    `${path}/..`,
    `${path}/%2e%2e`,
    `${path}%2f`,
    `${path}%20`,
    `${path}.`,
    `${path}\\`,
    `${path}#x`,
    `/${path}`,
    `/.${path}`,
    `/x/..${path}`,
    `${path.slice(0, slash)}//${path.slice(slash + 1)}`,
    `${path.slice(0, slash)}/./${path.slice(slash + 1)}`,
    `${path.slice(0, slash)}%2f${path.slice(slash + 1)}`,
    `${path.slice(0, slash)}\\${path.slice(slash + 1)}`,
  ];
}

function inParameter(path: string, index: number): boolean {
  const start = path.lastIndexOf('/', index) + 1;
  return path.startsWith('nobody', start);
}

/** A request for a declared path, with values for its parameters. */
function patternOf(path: string): RegExp {
  const segments = path.split('/').map((segment) => {
    return segment.startsWith(':')
      ? String.raw`(?!(\.|%2e){1,2}(/|$))[^/\\#]+`
      : segment.replaceAll('.', String.raw`\.`);
  });
  return new RegExp(`^${segments.join('/')}$`);
}
