// Approval by a device: the answers of the token endpoint, and the API of the device.
import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { exportJWK, jwtVerify } from 'jose';
import { deadlineIn } from '../../src/runtime/deadline.ts';
import { createAgent } from '../support/agent.ts';
import { logIn, pkce, USER } from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { took } from '../support/timing.ts';
import { until } from '../support/wait-until.ts';
import { type Device, devicesOf } from './device.ts';
import { callsOf, tenant } from './tenant.ts';

describe('approval by a device', () => {
  let server: TestServer;
  let calls: ReturnType<typeof callsOf>;
  let people = 0;
  before(async () => {
    server = await startServer({ tenant });
    calls = callsOf(server);
  });
  after(() => server.stop());
  const someone = () => `mfa-${people++}@example.test`;

  const { sign, newKey, begin, register, enrolled, challenged, requests, answerWith, waiting } = devicesOf(
    () => ({ server, calls, someone }),
  );

  it('is enrolled by the MFA API, and confirmed by the device', async () => {
    const { body, mfa_token } = await begin(someone());
    expect(body).to.include({ authenticator_type: 'oob', oob_channels: 'auth0', oob_channel: 'auth0' });
    expect(body).not.to.have.property('binding_method');
    expect(body.barcode_uri).to.match(/^otpauth:\/\/totp\//);
    const pending = await calls.verify('oob', { mfa_token, oob_code: body.oob_code });
    expect(pending.json().error).to.equal('authorization_pending');
  });

  // 200 by the API contract; 400 for SDKs, which read a 200 as tokens.
  for (const [clientId, status] of [
    ['web', 200],
    ['leeway', 400],
  ] as const) {
    it(`answers pending, too fast, rejected and accepted with ${status} to the application ${clientId}`, async () => {
      const { user, device } = await enrolled(clientId);
      const first = await challenged(user, clientId);
      const poll = () => calls.verify('oob', first, clientId);
      const pending = await poll();
      expect(pending.status).to.equal(status);
      expect(pending.json()).to.deep.equal({
        error: 'authorization_pending',
        error_description: 'Authorization pending: please repeat the request in a few seconds.',
      });
      const fast = await poll();
      expect(fast.status).to.equal(status);
      expect(fast.json().error).to.equal('slow_down');
      server.tick(5_000);
      expect((await poll()).json().error).to.equal('authorization_pending');
      const [request] = await waiting(device);
      expect((await answerWith(device, request?.id ?? '', 'deny')).status).to.equal(204);
      for (let i = 0; i < 2; i++) {
        const rejected = await poll();
        expect(rejected.status).to.equal(status);
        expect(rejected.json()).to.deep.equal({
          error: 'invalid_grant',
          error_description: 'MFA Authorization rejected.',
        });
      }
      const second = await challenged(user, clientId);
      const [next] = await waiting(device);
      expect((await answerWith(device, next?.id ?? '', 'allow')).status).to.equal(204);
      const accepted = await calls.verify('oob', second, clientId);
      expect(accepted.status, accepted.text).to.equal(200);
      expect(accepted.json().access_token).to.be.a('string');
      expect((await calls.verify('oob', second, clientId)).status, 'once').to.equal(401);
    });
  }

  it('shows the device which application asks, and a number to compare', async () => {
    const { user, device } = await enrolled();
    await challenged(user);
    const [request] = (await requests(device)).json() as never as Record<string, unknown>[];
    expect(request).to.have.all.keys('id', 'application', 'ip', 'number', 'at', 'expires_at');
    expect(request).to.include({ application: 'Web app', ip: '127.0.0.1' });
    expect(request?.number).to.match(/^\d\d$/);
  });

  it('shows the device that nobody has verified an application of others, the hosts behind it, and its name without what is not seen', async () => {
    const own = await startServer({
      tenant: {
        ...tenant,
        tenant: { ...tenant.tenant, flags: { enable_dynamic_client_registration: true } },
        databases: tenant.databases.map((one) => ({ ...one, is_domain_connection: true })),
        clients: [
          ...tenant.clients,
          {
            client_id: 'others',
            name: 'knaB\u202e of others\u200b',
            is_first_party: false,
            token_endpoint_auth_method: 'none',
            callbacks: ['https://others.example.test/callback'],
          },
        ],
      },
    });
    try {
      const ownCalls = callsOf(own);
      const devices = devicesOf(() => ({ server: own, calls: ownCalls, someone }));
      const registered = await ownCalls.agent.request('/oidc/register', {
        json: {
          client_name: 'Your bank',
          redirect_uris: ['https://agent.example.test/callback', 'http://127.0.0.1/callback'],
          token_endpoint_auth_method: 'none',
        },
      });
      expect(registered.status, registered.text).to.equal(201);
      const { user, device } = await devices.enrolled();
      const asked = async (client_id: string, redirect_uri: string) => {
        const { challenge } = pkce();
        const login = { client_id, response_type: 'code', redirect_uri, scope: 'openid', state: 'x' };
        const proof = { code_challenge: challenge, code_challenge_method: 'S256' };
        const agent = createAgent(own);
        const page = await logIn(agent, own, { ...login, ...proof }, { ...USER, email: user });
        expect(page.text).to.contain('Waiting for your approval');
        const [request] = (await devices.requests(device)).json() as never as Record<string, unknown>[];
        const about = Object.entries(request ?? {}).filter(([name]) => name.startsWith('application'));
        return Object.fromEntries(about);
      };
      expect(await asked(registered.json().client_id, 'https://agent.example.test/callback')).to.deep.equal({
        application: 'Your bank',
        application_unverified: true,
        application_hosts: ['agent.example.test'],
      });
      own.tick(1000);
      expect(await asked('others', 'https://others.example.test/callback')).to.deep.equal({
        application: 'knaB[U+202E] of others[U+200B]',
        application_hosts: ['others.example.test'],
      });
    } finally {
      await own.stop();
    }
  });

  it('is used once: one of twenty concurrent requests gets tokens', async () => {
    const { user, device } = await enrolled();
    const challenge = await challenged(user);
    const [request] = await waiting(device);
    await answerWith(device, request?.id ?? '', 'allow');
    const answers = await Promise.all(Array.from({ length: 20 }, () => calls.verify('oob', challenge)));
    const told = answers.map((one) => one.text).join('\n');
    expect(
      answers.filter((one) => 'access_token' in one.json()),
      told,
    ).to.have.length(1);
  });

  it('is no guess when it was used: the next login is not ended by it', async () => {
    const { user, device } = await enrolled();
    const used = await challenged(user);
    const [request] = await waiting(device);
    await answerWith(device, request?.id ?? '', 'allow');
    expect((await calls.verify('oob', used)).status).to.equal(200);
    const next = await challenged(user);
    for (let i = 0; i < 12; i++)
      expect((await calls.verify('oob', { ...next, oob_code: used.oob_code })).status).to.equal(403);
    const [again] = await waiting(device);
    await answerWith(device, again?.id ?? '', 'allow');
    expect((await calls.verify('oob', next)).status).to.equal(200);
  });

  describe('wakes the device', () => {
    const vapid = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const jwk = vapid.publicKey.export({ format: 'jwk' });
    const point = Buffer.concat([
      Buffer.from([4]),
      Buffer.from(jwk.x ?? '', 'base64url'),
      Buffer.from(jwk.y ?? '', 'base64url'),
    ]);
    const webPush = {
      subject: 'mailto:push@example.test',
      public_key: point.toString('base64url'),
      private_key: String(vapid.privateKey.export({ format: 'jwk' }).d),
    };
    let service: http.Server;
    let endpoint: string;
    /** The status that the push service answers with; 0 for no answer. */
    let status: number;
    const pushed: http.IncomingMessage[] = [];
    let ordinary: [TestServer, ReturnType<typeof callsOf>];
    before(async () => {
      service = http.createServer((request, response) => {
        pushed.push(request);
        if (status !== 0) response.writeHead(status).end();
      });
      await new Promise<void>((resolve) => service.listen(0, '127.0.0.1', resolve));
      endpoint = `http://127.0.0.1:${(service.address() as AddressInfo).port}/push/abc`;
      ordinary = [server, calls];
      server = await startServer({ tenant: { ...tenant, webPush } });
      calls = callsOf(server);
    });
    after(async () => {
      await server.stop();
      [server, calls] = ordinary;
      service.close();
      service.closeAllConnections();
    });
    beforeEach(() => {
      pushed.length = 0;
      status = 201;
    });

    const subscribe = async ({ id, key }: Device, push_endpoint: unknown) =>
      calls.agent.request('/authenticator/push', {
        method: 'POST',
        headers: { authorization: `Device ${await sign(key, { sub: id, push_endpoint })}` },
      });

    it("by an empty message that is signed with the tenant's key", async () => {
      const { user, device } = await enrolled();
      expect((await subscribe(device, endpoint)).status).to.equal(204);
      await challenged(user);
      await server.tenant.close();
      const [message] = pushed;
      expect(message).to.include({ method: 'POST', url: '/push/abc' });
      expect(message?.headers).to.include({ ttl: '300', urgency: 'high', 'content-length': '0' });
      const [, t = '', k] = /^vapid t=([^,]+), k=(.+)$/.exec(message?.headers.authorization ?? '') ?? [];
      expect(k).to.equal(webPush.public_key);
      const { payload: claims } = await jwtVerify(t, vapid.publicKey, { audience: new URL(endpoint).origin });
      expect(claims.sub).to.equal(webPush.subject);
    });

    it('no more after its subscription has expired', async () => {
      const { user, device } = await enrolled();
      await subscribe(device, endpoint);
      status = 410;
      for (let i = 0; i < 2; i++) {
        await challenged(user);
        await server.tenant.close();
      }
      expect(pushed).to.have.length(1);
    });

    it('without delaying shutdown when the push service never answers', async () => {
      const { user, device } = await enrolled();
      await subscribe(device, endpoint);
      status = 0;
      await challenged(user);
      expect(await took(() => server.tenant.close(deadlineIn(500)))).to.be.below(1_500);
      // On a busy machine the delivery notices its deadline later than the shutdown.
      await until(() => server.logged().includes('what was not sent waits in the store'));
    });

    it('again when the push service was busy, and no more when it rejects', async () => {
      const { user, device } = await enrolled();
      await subscribe(device, endpoint);
      status = 503;
      await challenged(user);
      await until(() => pushed.length === 1);
      status = 201;
      await until(async () => (await server.store.collection('deliveries').count()) === 0);
      expect(pushed.length).to.be.above(1);
      pushed.length = 0;
      status = 400;
      await challenged(user);
      await until(async () => (await server.store.collection('deliveries').count()) === 0);
      expect(pushed).to.have.length(1);
    });

    it('by the next process when one ended before the push service answered', async () => {
      const own = [server, calls] as const;
      const dataDir = mkdtempSync(join(tmpdir(), 'gatehouse-push-'));
      const start = async () => {
        server = await startServer({ tenant: { ...tenant, webPush }, dataDir });
        calls = callsOf(server);
      };
      try {
        await start();
        const { user, device } = await enrolled();
        await subscribe(device, endpoint);
        status = 0;
        await challenged(user);
        await until(() => pushed.length === 1);
        await server.tenant.close(deadlineIn(100));
        await server.stop();
        status = 201;
        await start();
        // With a database, the second process cannot know that the first has stopped.
        server.tick(60_000);
        await until(() => pushed.length === 2);
        expect(pushed[1]?.url).to.equal('/push/abc');
      } finally {
        await server.stop();
        rmSync(dataDir, { recursive: true, force: true });
        [server, calls] = own;
      }
    });

    it('not on this machine when the server has a public URL, even without NODE_ENV', async () => {
      const own = [server, calls] as const;
      server = await startServer({
        tenant: { ...tenant, webPush },
        env: { BASE_URL: 'https://login.example.test' },
      });
      try {
        calls = callsOf({ url: `https://localhost:${server.settings.port}`, ca: server.ca });
        const { device } = await enrolled();
        expect((await subscribe(device, endpoint)).status).to.equal(400);
      } finally {
        await server.stop();
        [server, calls] = own;
      }
    });

    for (const address of [
      'https://evil.example/push',
      'https://fcm.googleapis.com.evil.example/',
      'https://fcm.googleapis.com:8443/x',
      'https://user@fcm.googleapis.com/x',
      'https://:password@fcm.googleapis.com/x',
      'http://fcm.googleapis.com/x',
      'http://169.254.169.254/latest/meta-data',
      'file:///etc/passwd',
      '',
      42,
    ]) {
      it(`not at ${JSON.stringify(address)}`, async () => {
        const { device } = await enrolled();
        expect((await subscribe(device, address)).status).to.equal(400);
      });
    }

    it("by a browser's service worker, which the page offers", async () => {
      const page = await calls.agent.get('/authenticator');
      expect(page.text).to.contain(`data-push-key="${webPush.public_key}"`);
      const worker = await calls.agent.get('/authenticator/worker.js');
      expect(worker.headers).to.include({ 'service-worker-allowed': '/authenticator' });
      expect(worker.text).to.contain("addEventListener('push'");
    });
  });

  describe('rejects', () => {
    it('a device that is not the enrolled one', async () => {
      const [{ user, device }, other] = [await enrolled(), await enrolled()];
      await challenged(user);
      const [request] = await waiting(device);
      const id = request?.id ?? '';
      expect((await answerWith(other.device, id, 'allow')).status).to.equal(404);
      const stolen = await sign(other.device.key, { sub: device.id, request: id, answer: 'allow' });
      expect((await answerWith(device, id, 'allow', stolen)).status).to.equal(401);
      expect(await waiting(device)).to.have.length(1);
    });

    it('an answer for another request, of another type, for another server, or not recent', async () => {
      const { user, device } = await enrolled();
      await challenged(user);
      const id = (await waiting(device))[0]?.id ?? '';
      const claims = { sub: device.id, request: id, answer: 'allow' };
      const now = Math.floor(Date.now() / 1000);
      const wrong: [string, Promise<string>][] = [
        ['another request', sign(device.key, { ...claims, request: 'x' })],
        ['another kind', sign(device.key, { ...claims, answer: 'maybe' })],
        ['no answer', sign(device.key, { sub: device.id })],
        ['another server', sign(device.key, claims, { aud: 'https://evil.example' })],
        ['old', sign(device.key, claims, { iat: now - 120 })],
        ['of the future', sign(device.key, claims, { iat: now + 120 })],
        ['no JWT', Promise.resolve('a.b.c')],
        ['unsigned', Promise.resolve(`${btoa('{"alg":"none"}')}.${btoa(JSON.stringify(claims))}.`)],
      ];
      for (const [what, jwt] of wrong) {
        const { status } = await answerWith(device, id, 'allow', await jwt);
        expect(status, what).to.be.oneOf([400, 401]);
      }
      expect(await waiting(device)).to.have.length(1);
    });

    it('a second answer', async () => {
      const { user, device } = await enrolled();
      const challenge = await challenged(user);
      const id = (await waiting(device))[0]?.id ?? '';
      await answerWith(device, id, 'deny');
      expect((await answerWith(device, id, 'allow')).status).to.equal(404);
      expect((await calls.verify('oob', challenge)).json().error_description).to.equal(
        'MFA Authorization rejected.',
      );
    });

    it('an answer after five minutes', async () => {
      const { user, device } = await enrolled();
      await challenged(user);
      const id = (await waiting(device))[0]?.id ?? '';
      server.tick(301_000);
      expect((await answerWith(device, id, 'allow')).status).to.equal(404);
    });

    it('a second device with the same QR code, and one without proof of possession of its key', async () => {
      const { ticket } = await begin(someone());
      const other = newKey();
      const foreign = await register(ticket, { public_key: await exportJWK(other.publicKey) });
      expect(foreign.answer.status).to.equal(400);
      expect((await register(ticket)).answer.status).to.equal(200);
      const again = await register(ticket);
      expect(again.answer.status).to.equal(400);
      expect(again.answer.json().error).to.equal('invalid_grant');
    });

    for (const [what, over] of [
      ['no name', { name: '' }],
      ['a key of another type', { public_key: { kty: 'RSA', n: 'x', e: 'AQAB' } }],
      [
        'a key that is not on the curve',
        { public_key: { kty: 'EC', crv: 'P-256', x: 'A'.repeat(43), y: 'A'.repeat(43) } },
      ],
      ['a symmetric key', { public_key: { kty: 'oct', k: 'secret' } }],
      ['an invalid proof', { proof: 'x' }],
      ['an invalid ticket', { enrollment_tx_id: 'x' }],
    ] as const) {
      it(`a device with ${what}`, async () => {
        const { ticket } = await begin(someone());
        expect((await register(ticket, over)).answer.status).to.equal(400);
      });
    }

    it('a request without an assertion', async () => {
      for (const path of [
        '/authenticator/requests',
        '/authenticator/events',
        '/authenticator/events?assertion=x',
      ]) {
        expect((await calls.agent.get(path)).status, path).to.equal(401);
      }
    });
  });
});
