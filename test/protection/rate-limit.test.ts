import { expect } from 'chai';
import { createAgent } from '../support/agent.ts';
import { logIn, pkce, spaRequest, tenant, token, USER } from '../support/flows.ts';
import { connect } from '../support/raw.ts';
import { startServer, type TestServer } from '../support/server.ts';

describe('rate limits', () => {
  let server: TestServer;
  afterEach(() => server.stop());
  const start = async (rateLimits: object, protection: object = {}) => {
    server = await startServer({ tenant: { ...tenant, attackProtection: { rateLimits, ...protection } } });
  };
  const signUp = () => createAgent(server).request('/dbconnections/signup', { json: {} });
  const password = (username: string, guess = 'Wrong-Guess-1') =>
    token(createAgent(server), {
      grant_type: 'password',
      client_id: 'web',
      client_secret: 'web-secret',
      username,
      password: guess,
    });

  it('accept exactly as many of fifty concurrent requests as the bucket has tokens', async () => {
    await start({ signup: { capacity: 10, perMinute: 1 } });
    const answers = await Promise.all(Array.from({ length: 50 }, signUp));
    expect(answers.filter(({ status }) => status !== 429)).to.have.length(10);
  });

  it('send headers with the tokens left and the time when the bucket is full again', async () => {
    await start({ signup: { capacity: 3, perMinute: 1 } });
    const { headers } = await signUp();
    expect(headers).to.include({ 'x-ratelimit-limit': '3', 'x-ratelimit-remaining': '2' });
    expect(Number(headers['x-ratelimit-reset'])).to.be.closeTo(Date.now() / 1000 + 60, 3);
    await signUp();
    await signUp();
    const refused = await signUp();
    expect(refused.status).to.equal(429);
    expect(refused.headers).to.include({ 'x-ratelimit-limit': '3', 'x-ratelimit-remaining': '0' });
    expect(Number(refused.headers['retry-after'])).to.be.within(55, 60);
    expect(refused.json().description).to.contain('X-RateLimit-Remaining');
  });

  it('send the headers in lower case, as in HTTP/2, because one SDK finds no others', async () => {
    await start({ signup: { capacity: 1, perMinute: 1 } });
    await signUp();
    const connection = await connect(server);
    connection.send('POST /dbconnections/signup HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n');
    const head = await connection.has('\r\n\r\n', 20_000);
    connection.end();
    for (const name of ['x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset', 'retry-after'])
      expect(head).to.match(new RegExp(`\r\n${name}: \\d+\r\n`));
  });

  it('refill one token per interval, up to the capacity', async () => {
    await start({ signup: { capacity: 2, perMinute: 1 } });
    await signUp();
    await signUp();
    expect((await signUp()).status).to.equal(429);
    server.tick(59_000);
    expect((await signUp()).status).to.equal(429);
    server.tick(2_000);
    expect((await signUp()).status).to.equal(400);
    expect((await signUp()).status).to.equal(429);
    server.tick(3_600_000);
    expect((await signUp()).headers).to.include({ 'x-ratelimit-remaining': '1' });
  });

  it("can be set by the deploy tool's throttling settings, and are rejected when invalid", async () => {
    const signUps = { 'pre-user-registration': { max_attempts: 7, rate: 1000 } };
    await start({}, { suspiciousIpThrottling: { stage: signUps } });
    expect((await signUp()).headers).to.include({ 'x-ratelimit-limit': '7' });
    const senseless = { attackProtection: { rateLimits: { signup: { capacity: -1, perMinute: 'many' } } } };
    const fault = await startServer({ tenant: { ...tenant, ...senseless } }).catch((thrown) => thrown);
    expect(JSON.stringify(fault)).to.contain('attackProtection.rateLimits.signup.capacity');
  });

  it("limit guesses at one user's password from one address, and not at other users'", async () => {
    // Blocks come sooner by default; test/protection/attempts.test.ts tests them.
    await start({}, { bruteForceProtection: { enabled: false } });
    for (let i = 0; i < 20; i++) expect((await password(USER.email)).status).to.equal(403);
    const locked = await password(USER.email.toUpperCase(), USER.password);
    expect(locked.status).to.equal(429);
    expect(locked.json()).to.have.property('error', 'too_many_requests');
    expect((await password('staff@example.test')).status).to.equal(403);
    server.tick(60_000);
    expect((await password(USER.email, USER.password)).status).to.equal(200);
  });

  it('are shared by the token endpoint and the hosted page', async () => {
    await start({ login: { capacity: 2, perMinute: 1 } });
    await password(USER.email);
    await password(USER.email);
    const page = await logIn(createAgent(server), server, spaRequest(pkce().challenge));
    expect(page.status).to.equal(429);
    expect(page.text).to.contain('role="alert"');
  });

  it('store no address or user name', async () => {
    await start({});
    await password(USER.email);
    const { records } = await server.store.collection('limits').list();
    expect(records.length).to.be.above(0);
    expect(JSON.stringify(records)).not.to.match(/ada@|example\.test|127\.0\.0\.1/);
  });
});
