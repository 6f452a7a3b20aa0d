// A primary that ends in the middle of a login, and a standby that takes over at the same address.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { openStore } from '../../src/store/open.ts';
import { rejection } from '../store/contract.ts';
import { type Agent, createAgent } from '../support/agent.ts';
import {
  authorize,
  follow,
  pkce,
  responseOf,
  SPA_CALLBACK,
  spaRequest,
  spaTokens,
  submitLogin,
  tenant,
  token,
} from '../support/flows.ts';
import { type Cluster, startCluster } from '../support/postgres.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { startBalancer } from '../support/several.ts';
import { expectBusy } from './busy.ts';

const portOf = (cluster: Cluster) => Number(new URL(cluster.url()).port);

describe('a server whose PostgreSQL fails over', () => {
  let primary: Cluster;
  let standby: Cluster;
  let balancer: Awaited<ReturnType<typeof startBalancer>>;
  let dataDir: string;
  let server: TestServer;
  let agent: Agent;
  before(async () => {
    // Every acknowledged write is on both.
    primary = await startCluster({ durable: true, settings: ['synchronous_standby_names=*'] });
    await primary.halt('fast');
    standby = await startCluster({ durable: true, standbyOf: primary });
    await primary.start();
    balancer = await startBalancer();
    balancer.to([portOf(primary)]);
    dataDir = mkdtempSync(join(tmpdir(), 'gatehouse-failover-'));
    server = await startServer({ tenant, dataDir, env: { DATABASE_URL: addressed(), METRICS_PORT: '0' } });
    agent = createAgent(server);
  });
  after(async () => {
    await server.stop();
    balancer.stop();
    await standby.stop();
    await primary.stop();
    rmSync(dataDir, { recursive: true, force: true });
  });
  const addressed = () => {
    const url = new URL(primary.url());
    url.port = String(balancer.port);
    return url.href;
  };
  const refresh = (refresh_token: string) =>
    token(agent, { grant_type: 'refresh_token', client_id: 'spa', refresh_token });

  it('refuses to start on a standby, and says so', async () => {
    const opened = openStore({ dataDir, databaseUrl: standby.url(), clock: Date.now });
    expect(String(await rejection(opened))).to.contain('it is a standby');
  });

  it('answers 503 until the standby has taken over, and then goes on with the login and everything that was acknowledged', async () => {
    const tokens = await spaTokens(agent, server, { scope: 'openid offline_access' });
    const person = createAgent(server);
    const { verifier, challenge } = pkce();
    const page = await follow(person, await authorize(person, spaRequest(challenge)), server.url);
    const expectBoth = async () => {
      expectBusy(await submitLogin(person, server, page), 'the password');
      expectBusy(await refresh(tokens.refresh_token), 'a refresh');
    };
    await primary.halt('kill');
    await expectBoth();
    // Metrics are served without it.
    const metrics = await fetch(`http://127.0.0.1:${server.metricsPort}/metrics`);
    expect(metrics.status).to.equal(200);
    expect(await metrics.text())
      .to.match(/^gatehouse_http_requests_total\{.*status="503"/m)
      .and.match(/^gatehouse_deliveries_waiting (?:Nan|NaN)$/m);
    // The address leads to the standby before it has been promoted.
    balancer.to([portOf(standby)]);
    await expectBoth();
    expect((await agent.get('/readyz')).status).to.equal(503);
    await standby.query('SELECT pg_promote(true)');
    const { code } = responseOf(await submitLogin(person, server, page));
    const exchanged = await token(person, {
      grant_type: 'authorization_code',
      client_id: 'spa',
      code,
      code_verifier: verifier,
      redirect_uri: SPA_CALLBACK,
    });
    expect(exchanged.status, exchanged.text).to.equal(200);
    expect((await refresh(tokens.refresh_token)).status).to.equal(200);
    expect((await agent.get('/readyz')).status).to.equal(200);
  });
});
