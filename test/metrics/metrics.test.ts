// The metrics for Prometheus: off by default, and with labels that a client cannot multiply.
import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { rotateSigningKeys } from '../../src/capabilities/signing/signing-key-list.ts';
import { createAgent } from '../support/agent.ts';
import { logIn, spaTokens, tenant, token, USER, webRequest } from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { startMailServer } from '../support/smtp.ts';
import { every, until } from '../support/wait-until.ts';

const TOKEN = 'a-token-of-twenty-two-characters';

/** Returns the value of the line whose labels include all of these. */
function sampleOf(text: string, name: string, labels: Record<string, string> = {}): number | undefined {
  const line = text
    .split('\n')
    .find(
      (one) =>
        (one.startsWith(`${name}{`) || one.startsWith(`${name} `)) &&
        Object.entries(labels).every(([key, value]) => one.includes(`${key}="${value}"`)),
    );
  return line === undefined ? undefined : Number(line.split(' ').at(-1));
}

async function readMetrics(server: TestServer): Promise<string> {
  const answer = await createAgent(server).get('/metrics', { authorization: `Bearer ${TOKEN}` });
  expect(answer.status).to.equal(200);
  expect(answer.headers['content-type']).to.contain('text/plain');
  return answer.text;
}

describe('metrics', () => {
  it('are not served by default', async () => {
    const server = await startServer({ tenant });
    try {
      const answer = await createAgent(server).get('/metrics', { authorization: `Bearer ${TOKEN}` });
      expect(answer.status).to.equal(404);
      expect(server.metricsPort).to.equal(undefined);
    } finally {
      await server.stop();
    }
  });

  describe('with a token, at the public server', () => {
    let server: TestServer;
    let receiver: http.Server;
    let receiverAnswers = 503;
    before(async () => {
      receiver = http.createServer((request, response) => {
        request.resume().once('end', () => response.writeHead(receiverAnswers).end());
      });
      receiver.listen(0, '127.0.0.1');
      await once(receiver, 'listening');
      const httpEndpoint = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;
      server = await startServer({
        tenant: { ...tenant, logStreams: [{ name: 'Receiver', type: 'http', sink: { httpEndpoint } }] },
        env: { METRICS_TOKEN: TOKEN },
        realHashes: true,
      });
    });
    after(async () => {
      await server.stop();
      receiver.close();
    });

    for (const [what, headers] of Object.entries({
      'without a token': {},
      'with another token': { authorization: `Bearer ${TOKEN}x` },
      'with a token that only begins the same': { authorization: `Bearer ${TOKEN.slice(0, -1)}` },
      'without the scheme': { authorization: TOKEN },
    })) {
      it(`are refused ${what}`, async () => {
        const answer = await createAgent(server).get('/metrics', headers as Record<string, string>);
        expect(answer.status).to.equal(401);
        expect(answer.headers['www-authenticate']).to.equal('Bearer');
        expect(answer.text).not.to.contain('gatehouse_');
      });
    }

    it('count requests by declared route, not by the path that was sent', async () => {
      const agent = createAgent(server);
      await agent.get('/readyz');
      await agent.get('/no/such/path-of-a-stranger');
      await agent.request('/u/login/../another', { method: 'PROPFIND' });
      const text = await readMetrics(server);
      expect(
        sampleOf(text, 'gatehouse_http_requests_total', { method: 'GET', route: '/readyz', status: '200' }),
      ).to.equal(1);
      expect(sampleOf(text, 'gatehouse_http_requests_total', { route: 'none', status: '404' })).to.equal(1);
      expect(text).not.to.contain('stranger').and.not.contain('PROPFIND');
      expect(sampleOf(text, 'gatehouse_http_request_duration_seconds_count', { route: '/readyz' })).to.equal(
        1,
      );
      expect(sampleOf(text, 'gatehouse_http_requests_in_flight')).to.equal(1);
    });

    it('have the pattern of a path that contains an identifier', async () => {
      await createAgent(server).get('/api/v2/users/some%7Cidentifier');
      const text = await readMetrics(server);
      expect(
        sampleOf(text, 'gatehouse_http_requests_total', { route: '/api/v2/users/:id', status: '401' }),
      ).to.equal(1);
      expect(text).not.to.contain('identifier');
    });

    it('count logins by way and outcome, and token responses by grant', async () => {
      const agent = createAgent(server);
      await spaTokens(agent, server, {});
      await logIn(createAgent(server), server, webRequest({}), { ...USER, password: 'Wrong-Horse-1' });
      const refused = await token(agent, { grant_type: 'no-such-grant', client_id: 'spa' });
      expect(refused.status).to.be.above(399);
      const text = await readMetrics(server);
      const logins = { way: 'login', strategy: 'auth0' };
      expect(sampleOf(text, 'gatehouse_logins_total', { ...logins, outcome: 'success' })).to.equal(1);
      expect(sampleOf(text, 'gatehouse_logins_total', { ...logins, outcome: 'failure' })).to.equal(1);
      expect(
        sampleOf(text, 'gatehouse_token_responses_total', { grant_type: 'authorization_code' }),
      ).to.equal(1);
      expect(text).not.to.contain('no-such-grant');
      expect(sampleOf(text, 'gatehouse_log_events_total', { type: 's' })).to.equal(1);
    });

    it('measure hashes and the store, and have the age of the signing key', async () => {
      await logIn(createAgent(server), server, webRequest({}), USER);
      const text = await readMetrics(server);
      expect(sampleOf(text, 'gatehouse_password_hash_wait_seconds_count')).to.be.above(0);
      expect(sampleOf(text, 'gatehouse_password_hash_queue_length')).to.equal(0);
      expect(
        sampleOf(text, 'gatehouse_store_operation_duration_seconds_count', { operation: 'get' }),
      ).to.be.above(0);
      expect(sampleOf(text, 'nodejs_eventloop_lag_seconds')).to.be.a('number');
      const before = sampleOf(text, 'gatehouse_signing_key_age_seconds', { alg: 'RS256' }) ?? Number.NaN;
      server.tick(3_600_000);
      const later = await readMetrics(server);
      const age = sampleOf(later, 'gatehouse_signing_key_age_seconds', { alg: 'RS256' });
      expect((age ?? Number.NaN) - before).to.be.within(3_600, 3_700);
      const now = Date.now() + 3_600_000;
      // The next key is as old, but has not signed yet.
      await rotateSigningKeys(server.store, () => now);
      const rotated = await readMetrics(server);
      expect(sampleOf(rotated, 'gatehouse_signing_key_age_seconds', { alg: 'RS256' })).to.be.below(60);
    });

    it('count events that receivers of log streams accept, and failures', async () => {
      const failures = 'gatehouse_log_stream_failures_total';
      const events = 'gatehouse_log_stream_events_total';
      const record = () =>
        logIn(createAgent(server), server, webRequest({}), { ...USER, password: 'Wrong-1' });
      const above = (name: string) => async () => (sampleOf(await readMetrics(server), name) ?? 0) > 0;
      await record();
      await until(above(failures), every(50));
      expect(sampleOf(await readMetrics(server), events)).to.equal(0);
      expect(sampleOf(await readMetrics(server), 'gatehouse_log_streams_failing')).to.equal(1);
      receiverAnswers = 200;
      server.tick(3_600_000);
      await record();
      await until(above(events), every(50));
      expect(sampleOf(await readMetrics(server), 'gatehouse_log_streams_failing')).to.equal(0);
    });

    it('count requests that limits refuse, and messages', async () => {
      const agent = createAgent(server);
      const body = { client_id: 'spa', connection: 'users', email: USER.email };
      expect((await agent.request('/dbconnections/change_password', { json: body })).status).to.equal(200);
      for (let n = 0; n < 1000; n += 1) {
        const { status } = await agent.request('/dbconnections/change_password', { json: body });
        if (status === 429) break;
      }
      await server.tenant.close();
      const text = await readMetrics(server);
      expect(
        sampleOf(text, 'gatehouse_messages_total', {
          kind: 'reset_email',
          channel: 'email',
          outcome: 'sent',
        }),
      ).to.be.above(0);
      expect(sampleOf(text, 'gatehouse_limited_total')).to.be.above(0);
    });
  });

  it('count tries to send that fail, and what waits to be sent', async () => {
    const mail = await startMailServer();
    mail.behave({ code: 451 });
    const env = { METRICS_TOKEN: TOKEN, SMTP_URL: mail.url, MAIL_FROM: 'login@example.test' };
    const pause = Promise.withResolvers<void>();
    const server = await startServer({ tenant, env, pause: () => pause.promise });
    try {
      const tries = async () =>
        sampleOf(await readMetrics(server), 'gatehouse_message_tries_failed_total', { channel: 'email' });
      expect(await tries()).to.equal(0);
      const json = { client_id: 'spa', connection: 'users', email: USER.email };
      await createAgent(server).request('/dbconnections/change_password', { json });
      await until(async () => (await tries()) === 1, every(20));
      expect(sampleOf(await readMetrics(server), 'gatehouse_deliveries_waiting')).to.be.above(0);
      expect(server.logged()).to.contain('a try to send a message failed');
      mail.behave('accept');
      pause.resolve();
      await until(
        async () => sampleOf(await readMetrics(server), 'gatehouse_deliveries_waiting') === 0,
        every(20),
      );
    } finally {
      pause.resolve();
      await server.stop();
      await mail.stop();
    }
  });

  describe('with a port of their own', () => {
    it('are served only there, on the loopback address by default', async () => {
      const server = await startServer({ tenant, env: { METRICS_PORT: '0' } });
      try {
        const at = `http://127.0.0.1:${server.metricsPort}`;
        const answer = await fetch(`${at}/metrics`);
        expect(answer.status).to.equal(200);
        expect(await answer.text()).to.contain('gatehouse_build_info{version=');
        expect((await fetch(`${at}/userinfo`)).status).to.equal(404);
        expect((await fetch(`${at}/metrics`, { method: 'POST' })).status).to.equal(404);
        expect((await createAgent(server).get('/metrics')).status).to.equal(404);
      } finally {
        await server.stop();
      }
    });

    it('require the token there, too, if there is one', async () => {
      const server = await startServer({ tenant, env: { METRICS_PORT: '0', METRICS_TOKEN: TOKEN } });
      try {
        const at = `http://127.0.0.1:${server.metricsPort}/metrics`;
        expect((await fetch(at)).status).to.equal(401);
        expect((await fetch(at, { headers: { authorization: `Bearer ${TOKEN}` } })).status).to.equal(200);
        const main = await createAgent(server).get('/metrics', { authorization: `Bearer ${TOKEN}` });
        expect(main.status).to.equal(404);
      } finally {
        await server.stop();
      }
    });

    it('are no longer served once the server has stopped', async () => {
      const server = await startServer({ tenant, env: { METRICS_PORT: '0' } });
      await server.stop();
      const failed = await fetch(`http://127.0.0.1:${server.metricsPort}/metrics`).catch((error) => error);
      expect(failed).to.be.instanceOf(TypeError);
    });

    it('end the start with the name of the setting when the port is in use', async () => {
      const other = await startServer({ tenant, env: { METRICS_PORT: '0' } });
      try {
        const started = await startServer({
          tenant,
          env: { METRICS_PORT: String(other.metricsPort) },
        }).catch((error: Error) => error);
        expect(started).to.be.instanceOf(Error);
        expect((started as Error).message).to.match(/^METRICS_HOST, METRICS_PORT: cannot listen/);
      } finally {
        await other.stop();
      }
    });
  });
});
