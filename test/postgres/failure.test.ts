// A database that stops, restarts or no longer answers, under a server with logins in progress.
import { expect } from 'chai';
import pg from 'pg';
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
import { until } from '../support/wait-until.ts';
import { expectBusy } from './busy.ts';

describe('a server whose PostgreSQL fails', () => {
  let cluster: Cluster;
  let server: TestServer;
  let agent: Agent;
  before(async () => {
    cluster = await startCluster({ durable: true });
    // Only waiting for a lock has a shorter limit than in production, to keep the test short; other limits stay,
    // because a busy machine is slow.
    server = await startServer({
      tenant,
      env: { DATABASE_URL: `${cluster.url()}?lock_timeout=600&statement_timeout=10000` },
    });
    agent = createAgent(server);
  });
  after(async () => {
    await server.stop();
    await cluster.stop();
  });

  const exchange = (code: string | undefined, verifier: string) =>
    token(agent, {
      grant_type: 'authorization_code',
      client_id: 'spa',
      code,
      code_verifier: verifier,
      redirect_uri: SPA_CALLBACK,
    });
  const refresh = (refresh_token: string) =>
    token(agent, { grant_type: 'refresh_token', client_id: 'spa', refresh_token });

  it('answers 503 while the database is down, and then goes on with everything that was acknowledged', async () => {
    const tokens = await spaTokens(agent, server, { scope: 'openid offline_access' });
    const other = createAgent(server);
    const { verifier, challenge } = pkce();
    const page = await follow(other, await authorize(other, spaRequest(challenge)), server.url);
    await cluster.halt('immediate');

    expectBusy(await submitLogin(other, server, page), 'the password');
    expectBusy(await authorize(createAgent(server), spaRequest(challenge)), 'an authorization');
    expectBusy(await refresh(tokens.refresh_token), 'a refresh');
    expectBusy(
      await agent.request('/userinfo', { headers: { authorization: `Bearer ${tokens.access_token}` } }),
      'userinfo',
    );
    expect((await agent.get('/readyz')).status).to.equal(503);
    expect((await agent.get('/healthz')).status).to.equal(200);

    await cluster.start();
    const { code } = responseOf(await submitLogin(other, server, page));
    expect((await exchange(code, verifier)).status).to.equal(200);
    expect((await refresh(tokens.refresh_token)).status).to.equal(200);
    expect((await agent.get('/readyz')).status).to.equal(200);
  });

  it('loses nothing that was acknowledged while its connections are terminated', async () => {
    const statuses = new Set<number>();
    const acknowledged: string[] = [];
    let ending = true;
    const end = async () => {
      while (ending) {
        await cluster.query(
          `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'gatehouse'`,
        );
      }
    };
    const logIns = async () => {
      for (let n = 0; n < 10; n++) {
        const one = createAgent(server);
        const { verifier, challenge } = pkce();
        const request = spaRequest(challenge, { scope: 'openid offline_access' });
        const page = await follow(one, await authorize(one, request), server.url);
        statuses.add(page.status);
        if (page.status !== 200) continue;
        const back = await submitLogin(one, server, page);
        statuses.add(back.status);
        if (back.status !== 302 && back.status !== 303) continue;
        const answer = await exchange(responseOf(back).code, verifier);
        statuses.add(answer.status);
        if (answer.status === 200) acknowledged.push(answer.json().refresh_token);
      }
    };
    const ended = end();
    await Promise.all([logIns(), logIns(), logIns()]);
    ending = false;
    await ended;
    expect([...statuses].filter((status) => ![200, 302, 303, 503].includes(status))).to.deep.equal([]);
    // The server notices the last terminated connections only when it uses them, or a moment later.
    const open = () => authorize(createAgent(server), spaRequest(pkce().challenge));
    await until(async () => {
      const pages = await Promise.all(Array.from({ length: 30 }, open));
      return pages.every(({ status }) => status < 400);
    });
    for (const one of acknowledged) expect((await refresh(one)).status).to.equal(200);
    expect((await spaTokens(createAgent(server), server)).id_token).to.be.a('string');
  });

  it('answers every request in time while the database does not respond, and works again afterwards', async () => {
    const locker = new pg.Client(cluster.url());
    await locker.connect();
    await locker.query('BEGIN; LOCK TABLE artifacts, clients, limits, logs IN ACCESS EXCLUSIVE MODE');
    const answers = await Promise.all(
      Array.from({ length: 60 }, () => authorize(createAgent(server), spaRequest(pkce().challenge))),
    );
    await locker.end();
    for (const answer of answers) expectBusy(answer, 'an authorization');
    expect((await spaTokens(createAgent(server), server)).id_token).to.be.a('string');
  });

  it('answers 503 to requests that a slow database has no time for, answers the others, and recovers at once', async () => {
    await cluster.query(`CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN PERFORM pg_sleep(1); RETURN NEW; END $$`);
    await cluster.query(
      'CREATE TRIGGER slow BEFORE INSERT ON artifacts FOR EACH ROW EXECUTE FUNCTION slow()',
    );
    const answers = await Promise.all(
      Array.from({ length: 100 }, () => authorize(createAgent(server), spaRequest(pkce().challenge))),
    );
    await cluster.query('DROP TRIGGER slow ON artifacts');
    const [done, busy] = [true, false].map((is) => answers.filter(({ status }) => status < 400 === is));
    expect(done, 'there was time for some').not.to.have.length(0);
    expect(busy, 'and not for all').not.to.have.length(0);
    for (const answer of busy ?? []) expectBusy(answer, 'an authorization');
    expect((await spaTokens(createAgent(server), server)).id_token).to.be.a('string');
  });
});
