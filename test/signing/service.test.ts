// SIGNING=http: a service holds the keys. Also the limits of requests to any place that keeps keys.
import { createPrivateKey, createPublicKey, type JsonWebKey, type KeyObject } from 'node:crypto';
import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { expect } from 'chai';
import { createLocalJWKSet, type JSONWebKeySet, jwtVerify } from 'jose';
import { openHolder } from '../../src/capabilities/signing/holder.ts';
import { signLocally } from '../../src/capabilities/signing/local.ts';
import { createAgent } from '../support/agent.ts';
import { API, header, PASSWORD_REQUEST, tenant, token } from '../support/flows.ts';
import { startServer } from '../support/server.ts';
import { took } from '../support/timing.ts';
import { PATIENCE } from '../support/wait-until.ts';
import { type OutsideKeys, outsideKeys } from './support.ts';

const SECRET = 'secret-of-the-signing-service';

/** A service with the keys of a directory, and with the simulated `fault` where that is set. */
async function startService({ keys }: OutsideKeys) {
  const state: { fault?: (response: http.ServerResponse) => void; seen: string[] } = { seen: [] };
  const server = http.createServer(async (request, response) => {
    const body = await buffer(request);
    state.seen.push(`${request.method} ${request.url}`);
    if (request.headers.authorization !== `Bearer ${SECRET}`) return void response.writeHead(401).end();
    if (state.fault !== undefined) return state.fault(response);
    if (request.url === '/signer/keys') {
      const published = keys.map(({ alg, kid, ...key }) => ({
        ...createPublicKey({ key: key as JsonWebKey, format: 'jwk' }).export({ format: 'jwk' }),
        alg,
        kid,
      }));
      return void response.end(
        JSON.stringify({ keys: [...published, { kty: 'oct', kid: 'x', alg: 'HS256' }] }),
      );
    }
    const { alg, kid, data } = JSON.parse(body.toString()) as { alg: 'RS256'; kid: string; data: string };
    const jwk = keys.find((key) => key.kid === kid) as JsonWebKey;
    const key = createPrivateKey({ key: jwk, format: 'jwk' });
    const signature = (await signLocally(alg, key, Buffer.from(data, 'base64'))).toString('base64');
    response.end(JSON.stringify({ signature }));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/signer/`;
  return {
    url,
    state,
    stop: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

describe('keys that a service keeps', () => {
  let outside: OutsideKeys;
  let service: Awaited<ReturnType<typeof startService>>;
  beforeEach(async () => {
    outside = outsideKeys('RS256-1', 'RS256-2');
    service = await startService(outside);
  });
  afterEach(async () => {
    await service.stop();
    outside.remove();
  });

  const start = (over: Record<string, string> = {}) =>
    startServer({
      tenant,
      ownKeys: true,
      env: { SIGNING: 'http', SIGNING_URL: service.url, SIGNING_SECRET: SECRET, ...over },
    });
  const refusal = (over: Record<string, string>) =>
    start(over).then(
      async (server) => {
        await server.stop();
        return 'it started';
      },
      (thrown: Error) => `${thrown.message} ${JSON.stringify(thrown)}`,
    );

  it('sign tokens, and an invalid answer gives a 503 without details', async () => {
    const server = await start();
    try {
      const agent = createAgent(server);
      const login = () =>
        token(agent, {
          ...PASSWORD_REQUEST,
          scope: 'openid',
          audience: API,
        });
      const { id_token, access_token } = (await login()).json();
      const keys = (await agent.get('/.well-known/jwks.json')).json() as JSONWebKeySet;
      for (const jwt of [id_token, access_token]) await jwtVerify(jwt, createLocalJWKSet(keys));
      expect(header(id_token).kid).to.equal('RS256-1');
      for (const fault of [
        (response: http.ServerResponse) => response.writeHead(500).end('hsm: slot 3 is down'),
        (response: http.ServerResponse) => response.end('{}'),
        (response: http.ServerResponse) => response.end('{"signature":"AAAA"}'),
        (response: http.ServerResponse) => response.writeHead(302, { location: '/elsewhere' }).end(),
        (response: http.ServerResponse) => response.destroy(),
      ]) {
        service.state.fault = fault;
        server.tick(6_000);
        const refused = await login();
        expect(refused.status).to.equal(503);
        expect(refused.text).not.to.match(/slot|signing service|127\.0\.0\.1/);
      }
      delete service.state.fault;
      expect((await login()).status).to.equal(200);
      expect(service.state.seen).not.to.include('GET /elsewhere');
      expect(server.logged()).not.to.contain(SECRET);
    } finally {
      await server.stop();
    }
  });

  it('are not requested at forbidden addresses, nor with a wrong or a short secret', async () => {
    expect(await refusal({ OUTBOUND_ALLOW: '192.0.2.1' })).to.match(/not a public address/);
    expect(service.state.seen).to.deep.equal([]);
    expect(await refusal({ SIGNING_SECRET: `${SECRET}-of-others` })).to.contain('401');
    expect(await refusal({ SIGNING_SECRET: 'short' })).to.contain('SIGNING_SECRET');
    for (const address of ['ftp://signer.test/', 'https://user:hush-hush@signer.test/']) {
      expect(await refusal({ SIGNING_URL: address }))
        .to.contain('SIGNING_URL: must be')
        .and.not.contain('hush');
    }
  });
});

describe('a place that keeps keys', () => {
  let outside: OutsideKeys;
  let publicKey: KeyObject;
  beforeEach(() => {
    outside = outsideKeys('ES256-1');
    publicKey = createPublicKey({ key: outside.keys[0] as JsonWebKey, format: 'jwk' });
  });
  afterEach(() => outside.remove());

  const logged: unknown[] = [];
  const holderOf = (timeout?: number) =>
    openHolder(
      { place: 'command', variables: { SIGNING_COMMAND: outside.command } },
      {
        hidden: [],
        outbound: { fetch },
        log: { error: (entry: object) => void logged.push(entry) } as never,
        clock: Date.now,
        ...(timeout !== undefined && { timeout }),
      },
    );
  const request = { alg: 'ES256', kid: 'ES256-1', data: Buffer.from('data') } as const;
  const failure = async (asked: Promise<unknown> | undefined) =>
    asked?.then(
      () => undefined,
      (thrown: { status: number; cause: Error }) => ({ status: thrown.status, cause: thrown.cause.message }),
    );

  it('has a time limit, after which it is aborted', async () => {
    outside.be('hangs');
    const ms = await took(async () => {
      const failed = await failure(holderOf(300)?.sign(request, publicKey));
      expect(failed?.status).to.equal(503);
    });
    // The program would take a minute.
    expect(ms).to.be.below(30_000);
  });

  it('has a limited number of waiting requests', async () => {
    outside.be('hangs');
    const holder = holderOf(400);
    const asked = Array.from({ length: 600 }, () => failure(holder?.sign(request, publicKey)));
    const causes = (await Promise.all(asked)).map((one) => one?.cause ?? '');
    expect(causes.filter((cause) => cause.includes('are waited for'))).to.have.length(600 - 512 - 8);
  });

  for (const [what, change] of [
    ['a kid that looks like an option', { kid: '--help' }],
    ['no kid', { kid: undefined }],
    ['a key that does not fit its algorithm', { alg: 'RS256' }],
    ['another curve', { crv: 'P-384' }],
  ] as const) {
    it(`is refused with ${what}`, async () => {
      Object.assign(outside.keys[0] ?? {}, change);
      const { writeFileSync } = await import('node:fs');
      const published = { ...publicKey.export({ format: 'jwk' }), kid: 'ES256-1', alg: 'ES256', ...change };
      const set = JSON.stringify({ keys: [published] });
      const program = `${outside.directory}/set.mjs`;
      writeFileSync(program, `process.stdout.write(${JSON.stringify(set)})`);
      const holder = openHolder(
        { place: 'command', variables: { SIGNING_COMMAND: `${process.execPath} ${program}` } },
        {
          hidden: [],
          outbound: { fetch },
          log: { error: () => undefined },
          clock: Date.now,
          timeout: PATIENCE,
        },
      );
      const refused = await holder?.keys().then(
        () => 'taken',
        (thrown: Error) => thrown.message,
      );
      expect(refused).to.match(/is not for|no kid|no public key|hyphen/);
    });
  }
});
