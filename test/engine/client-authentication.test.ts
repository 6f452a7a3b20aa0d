// Client authentication at our own endpoints, by the module that they share.
import { createPrivateKey, generateKeyPairSync, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { SignJWT } from 'jose';
import Koa from 'koa';
import { createChallenges } from '../../src/capabilities/protection/challenges.ts';
import { createLoginTickets } from '../../src/capabilities/protection/login-tickets.ts';
import { createEventBudget } from '../../src/capabilities/protection/rate-limit.ts';
import { createSigning } from '../../src/capabilities/signing/signing.ts';
import { createEngine } from '../../src/engine/provider/provider.ts';
import { createLogoutChannels } from '../../src/engine/session/logout-channels.ts';
import { oauthShape, toAuthError } from '../../src/http/errors.ts';
import { readBody } from '../../src/http/server/body.ts';
import { createLog } from '../../src/runtime/log.ts';
import { correlation } from '../../src/runtime/requester.ts';
import { systemRandom } from '../../src/runtime/secrets.ts';
import { openConfig } from '../../src/tenant/config.ts';
import { createEvents } from '../../src/tenant/events.ts';
import { NO_CERTIFICATES, NO_DELEGATED_LOGINS, NO_SECOND_FACTOR } from '../support/engine-stubs.ts';
import { tenant } from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';

const keys = generateKeyPairSync('rsa', {
  modulusLength: 2048,
  publicKeyEncoding: { type: 'spki', format: 'pem' },
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
});

describe('client authentication at our own endpoints', () => {
  let server: TestServer;
  let endpoint: http.Server;
  let url: string;

  before(async () => {
    server = await startServer({
      tenant: {
        ...tenant,
        clients: [
          ...tenant.clients,
          {
            client_id: 'key-client',
            name: 'Private key',
            app_type: 'regular_web',
            client_authentication_methods: {
              private_key_jwt: { credentials: [{ alg: 'RS256', pem: keys.publicKey }] },
            },
          },
        ],
      },
    });
    const log = createLog('silent');
    const challenges = createChallenges({ store: server.store, clock: Date.now, random: systemRandom });
    const config = await openConfig(server.store);
    const engine = await createEngine({
      baseUrl: server.settings.baseUrl,
      issuer: server.settings.issuer,
      store: server.store,
      config,
      signing: createSigning({ store: server.store, config, clock: Date.now, commonName: 'localhost' }),
      users: server.users,
      clock: Date.now,
      wallClock: Date.now,
      random: systemRandom,
      correlation,
      log,
      challenges,
      tickets: createLoginTickets(challenges, systemRandom),
      grants: [],
      events: createEvents({
        store: server.store,
        clock: Date.now,
        random: systemRandom,
        log,
        budget: createEventBudget(Date.now),
      }),
      ...NO_SECOND_FACTOR,
      ...NO_CERTIFICATES,
      ...NO_DELEGATED_LOGINS,
      connectionFault: async () => undefined,
      errorPage: async () => {},
      logoutChannels: createLogoutChannels([], log),
    });
    const app = new Koa();
    app.use((ctx, next) => next().catch((thrown: unknown) => oauthShape(ctx, toAuthError(thrown, log))));
    app.use(readBody(100_000));
    app.use(async (ctx) => {
      ctx.body = { client: await engine.authenticateClient(ctx) };
    });
    endpoint = http.createServer(app.callback());
    endpoint.listen(0, '127.0.0.1');
    await once(endpoint, 'listening');
    url = `http://127.0.0.1:${(endpoint.address() as AddressInfo).port}/anything`;
  });
  after(async () => {
    endpoint?.close();
    await server?.stop();
  });

  const ask = async (body: Record<string, unknown>, headers: Record<string, string> = {}) => {
    const answer = await fetch(url, {
      method: 'POST',
      body: JSON.stringify(body),
      headers: { 'content-type': 'application/json', ...headers },
    });
    return { status: answer.status, body: (await answer.json()) as Record<string, string> };
  };
  const assertion = (claims: Record<string, unknown> = {}) =>
    new SignJWT({
      iss: 'key-client',
      sub: 'key-client',
      aud: server.issuer,
      jti: randomUUID(),
      exp: Date.now() / 1000 + 60,
      ...claims,
    })
      .setProtectedHeader({ alg: 'RS256' })
      .sign(createPrivateKey(keys.privateKey));

  it('accepts a public client by its client_id', async () => {
    expect(await ask({ client_id: 'spa' })).to.deep.equal({ status: 200, body: { client: 'spa' } });
  });

  it('accepts a confidential client by its secret, in JSON or by Basic', async () => {
    expect((await ask({ client_id: 'web', client_secret: 'web-secret' })).body).to.deep.equal({
      client: 'web',
    });
    const basic = `Basic ${Buffer.from('code-only:code-secret').toString('base64')}`;
    expect((await ask({}, { authorization: basic })).body).to.deep.equal({ client: 'code-only' });
  });

  it('accepts a client with a key by an assertion, once', async () => {
    const sent = {
      client_id: 'key-client',
      client_assertion: await assertion(),
      client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
    };
    expect((await ask(sent)).body).to.deep.equal({ client: 'key-client' });
    expect(await ask(sent)).to.deep.equal({
      status: 401,
      body: { error: 'invalid_client', error_description: 'Unauthorized' },
    });
  });

  for (const [what, body] of [
    ['a wrong secret', { client_id: 'web', client_secret: 'wrong' }],
    ['a confidential client without its secret', { client_id: 'web' }],
    ['an unknown client', { client_id: 'nobody' }],
    ['a client with a key that names itself only', { client_id: 'key-client' }],
  ] as const) {
    it(`refuses ${what} with the same error as any other fault`, async () => {
      expect(await ask(body)).to.deep.equal({
        status: 401,
        body: { error: 'invalid_client', error_description: 'Unauthorized' },
      });
    });
  }

  it('names the missing parameter when the request names no client', async () => {
    expect(await ask({})).to.deep.equal({
      status: 400,
      body: { error: 'invalid_request', error_description: 'Missing required parameter: client_id' },
    });
  });
});
