// The process: its start, its output, its stop, and its recovery after a kill.
import { once } from 'node:events';
import { cpSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { parse } from 'yaml';
import { createAgent } from '../support/agent.ts';
import { runCommand } from '../support/command.ts';
import { header, logIn, responseOf } from '../support/flows.ts';
import { runServer, runToEnd } from '../support/process.ts';
import { serveFolder, type TestServer } from '../support/server.ts';
import { stopwatch } from '../support/timing.ts';

const DATABASE = 'Username-Password-Authentication';
const web = { client_id: 'example-web', client_secret: 'example-web-secret' };
const password = (username: string, pass: string) => ({
  ...web,
  grant_type: 'password',
  username,
  password: pass,
  scope: 'openid',
});
const cli = (cwd: string, ...args: string[]) => runCommand({ cwd, args });

describe('the process', () => {
  let cwd: string;
  /** As after a first start, with ready-made keys. */
  let started: string;
  const afterStart = () => cpSync(started, cwd, { recursive: true });
  before(async () => {
    started = mkdtempSync(join(tmpdir(), 'gatehouse-process-'));
    await (await serveFolder(started)).stop();
  });
  after(() => rmSync(started, { recursive: true, force: true }));
  beforeEach(() => {
    cwd = mkdtempSync(join(tmpdir(), 'gatehouse-process-'));
  });
  afterEach(() => rmSync(cwd, { recursive: true, force: true }));

  it('starts in an empty folder, logs JSON lines, and makes its files readable by its owner only', async () => {
    const server = await runServer({ cwd, ownKeys: true });
    expect((await createAgent(server).get('/readyz')).json()).to.deep.equal({ status: 'ok' });
    expect(await server.end('SIGTERM')).to.equal(0);
    const lines = server.lines.map((line) => JSON.parse(line));
    expect(lines.map(({ msg }) => msg)).to.include('listening');
    for (const file of ['tls/ca-key.pem', 'tls/key.pem']) {
      expect(statSync(join(cwd, 'data', file)).mode & 0o777, file).to.equal(0o600);
    }
    expect(statSync(join(cwd, 'data/store')).mode & 0o777).to.equal(0o700);
  });

  it('finishes the requests in flight when it is stopped', async () => {
    const server = await runServer({ cwd });
    const agent = createAgent(server);
    const logins = Array.from({ length: 6 }, () =>
      agent.request('/oauth/token', { json: password('user@example.test', 'Gatehouse-1') }),
    );
    // Once the first is answered the others are in flight.
    await Promise.race(logins);
    const code = server.end('SIGTERM');
    const answers = await Promise.allSettled(logins);
    expect(answers.filter((a) => a.status === 'fulfilled' && a.value.status === 200)).to.have.length(6);
    expect(await code).to.equal(0);
  });

  it('does not wait for connections that clients keep open', async () => {
    const server = await runServer({ cwd });
    const agent = new https.Agent({ keepAlive: true, ca: server.ca });
    // A request in flight when the signal comes; its connection is idle only afterwards.
    const request = https.request(`${server.url}/dbconnections/signup`, {
      agent,
      method: 'POST',
      headers: { 'content-type': 'application/json', expect: '100-continue' },
    });
    request.flushHeaders();
    await once(request, 'continue');
    const time = stopwatch(Number(server.child.pid));
    const looks = setInterval(time, 50);
    const code = server.end('SIGTERM');
    request.end(
      JSON.stringify({
        email: 'late@example.test',
        password: 'Kill-Nine-9',
        connection: DATABASE,
        client_id: 'example-web',
      }),
    );
    const [answer] = (await once(request, 'response')) as [http.IncomingMessage];
    answer.resume();
    expect(answer.statusCode).to.equal(200);
    expect(await code).to.equal(0);
    // Without that, the process would end at the server's keep-alive timeout, after five seconds.
    clearInterval(looks);
    expect(time()).to.be.below(4_000);
    agent.destroy();
  });

  it('logs JSON lines without the secrets of a login and its exchange', async () => {
    const server = await runServer({ cwd, env: { LOG_LEVEL: 'trace' } });
    const agent = createAgent(server);
    const redirect_uri = 'http://localhost:3001/callback';
    const request = { client_id: web.client_id, response_type: 'code', redirect_uri, state: 'the-state' };
    const back = await logIn(
      agent,
      server,
      { ...request, scope: 'openid offline_access', audience: 'https://api.example.test/' },
      { email: 'user@example.test', password: 'Gatehouse-1' },
    );
    const { code = '' } = responseOf(back);
    const exchange = { ...web, grant_type: 'authorization_code', code, redirect_uri };
    const tokens = (await agent.request('/oauth/token', { json: exchange })).json();
    const { refresh_token } = tokens;
    const renewed = (
      await agent.request('/oauth/token', { json: { ...web, grant_type: 'refresh_token', refresh_token } })
    ).json();
    // Refused requests are what logs are read for: a used code, a wrong password.
    expect((await agent.request('/oauth/token', { json: exchange })).status).to.equal(400);
    await agent.request('/oauth/token', { json: password('user@example.test', 'Wrong-Guess-1') });
    const cookies = agent.cookies().map(({ value }) => value);
    expect(await server.end('SIGTERM')).to.equal(0);

    const log = server.lines.join('\n');
    for (const line of server.lines) expect(JSON.parse(line)).to.include.keys('level', 'time', 'msg');
    const secrets = [
      'Gatehouse-1',
      'Wrong-Guess-1',
      web.client_secret,
      code,
      tokens.access_token,
      tokens.id_token,
      refresh_token,
      renewed.access_token,
      ...cookies,
    ];
    for (const secret of secrets) {
      expect(secret).to.be.a('string').and.have.length.above(8);
      expect(log.includes(secret), `${secret.slice(0, 8)}… is in the log`).to.equal(false);
    }
  });

  it('loses no acknowledged user when it is killed', async () => {
    const acknowledged: string[] = [];
    for (let round = 0; round < 3; round++) {
      const server = await runServer({ cwd });
      const agent = createAgent(server);
      const requests = Array.from({ length: 12 }, async (_, i) => {
        const email = `user-${round}-${i}@example.test`;
        const answer = await agent.request('/dbconnections/signup', {
          json: { email, password: 'Kill-Nine-9', connection: DATABASE, client_id: 'example-web' },
        });
        if (answer.status === 200) acknowledged.push(email);
        if (acknowledged.length === 4 * (round + 1)) server.child.kill('SIGKILL');
      });
      await Promise.allSettled(requests);
      await server.end('SIGKILL').catch(() => {});
    }
    expect(acknowledged.length).to.be.at.least(12);
    const server = await serveFolder(cwd);
    const agent = createAgent(server);
    for (const email of acknowledged) {
      const answer = await agent.request('/oauth/token', { json: password(email, 'Kill-Nine-9') });
      expect(answer.status, email).to.equal(200);
    }
    await server.stop();
  });

  it('reports in one line that its port is in use', async () => {
    const taken = http.createServer();
    await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
    const { port } = taken.address() as AddressInfo;
    const { code, stderr } = await runToEnd({ cwd, env: { PORT: String(port) } });
    taken.close();
    expect(code).to.equal(1);
    expect(stderr).to.equal(`port ${port} on 127.0.0.1 is in use: stop what listens there, or set PORT\n`);
  });

  it('reports that another process has the data directory open', async () => {
    const server = await serveFolder(cwd);
    const second = await runToEnd({ cwd, env: { PORT: '0' } });
    await server.stop();
    expect(second.code).to.equal(1);
    expect(second.stderr).to.contain('is in use').and.not.contain('    at ');
  });

  it('refuses the example tenant in production', async () => {
    afterStart();
    const { code, stderr } = await runToEnd({
      cwd,
      env: {
        NODE_ENV: 'production',
        TLS: 'proxy',
        TRUSTED_PROXIES: '127.0.0.1',
        BASE_URL: 'https://id.example',
        PORT: '0',
      },
    });
    expect(code).to.equal(1);
    expect(stderr).to.contain("example's secret").and.contain('development users');
  });

  describe('gatehouse', () => {
    it('check names the faults of a tenant file, and its unknown keys', async () => {
      afterStart();
      expect(await cli(cwd, 'check')).to.deep.include({ code: 0, stderr: '' });
      const file = join(cwd, 'config/tenant.yaml');
      const text = readFileSync(file, 'utf8');
      writeFileSync(
        file,
        text.replace('friendly_name: Gatehouse', 'friendly_name: Gatehouse\n  moon_phase: full'),
      );
      expect((await cli(cwd, 'check')).stdout).to.contain('tenant.moon_phase');
      writeFileSync(file, text.replace('app_type: spa', 'app_type: toaster'));
      const wrong = await cli(cwd, 'check');
      expect(wrong.code).to.equal(1);
      expect(wrong.stderr).to.contain('clients.0.app_type');
    });

    it('apply and export work on the file, and the export applies to the same', async () => {
      afterStart();
      const file = join(cwd, 'config/tenant.yaml');
      writeFileSync(file, readFileSync(file, 'utf8').replace('name: Example web app', 'name: Renamed'));
      expect((await cli(cwd, 'apply')).code).to.equal(0);
      const exported = (await cli(cwd, 'export')).stdout;
      expect(exported).to.contain('name: Renamed').and.not.contain('gatehouse-try-login');
      writeFileSync(file, exported);
      expect(await cli(cwd, 'apply')).to.include({ code: 0, stderr: '' });
      expect(parse((await cli(cwd, 'export')).stdout)).to.deep.equal(parse(exported));
    });

    it('repair makes a damaged store fit to be served, without what was damaged', async () => {
      afterStart();
      const database = join(cwd, 'data/store/gatehouse.db');
      const bytes = readFileSync(database);
      writeFileSync(database, bytes.subarray(0, bytes.length - 8192));
      const refused = await runToEnd({ cwd, env: { PORT: '0' } });
      expect(refused).to.include({ code: 1 });
      expect(refused.stderr).to.match(/gatehouse\.db: .*\n$/);
      const { code, stdout } = await cli(cwd, 'repair');
      expect(code).to.equal(0);
      expect(stdout).to.match(/gatehouse\.db: .*kept \d+ records/);
      const server = await serveFolder(cwd);
      expect((await createAgent(server).get('/readyz')).json()).to.deep.equal({ status: 'ok' });
      await server.stop();
      expect((await cli(cwd, 'repair')).stdout).to.contain('nothing in the store');
    });

    it('keys rotate leaves tokens of the former key valid', async () => {
      const login = async (server: { url: string; ca: string }) =>
        (
          await createAgent(server).request('/oauth/token', {
            json: { ...password('user@example.test', 'Gatehouse-1'), audience: 'https://api.example.test/' },
          })
        ).json();
      const BASE_URL = 'https://localhost';
      const at = ({ ca, settings }: TestServer) => ({ ca, url: `https://localhost:${settings.port}` });
      const first = await serveFolder(cwd, { BASE_URL });
      const before = await login(at(first));
      await first.stop();
      expect((await cli(cwd, 'keys', 'rotate')).code).to.equal(0);
      const second = await serveFolder(cwd, { BASE_URL });
      const after = await login(at(second));
      const { keys } = (await createAgent(at(second)).get('/.well-known/jwks.json')).json();
      const profile = await createAgent(at(second)).get('/userinfo', {
        authorization: `Bearer ${before.access_token}`,
      });
      await second.stop();
      expect(header(after.id_token).kid).not.to.equal(header(before.id_token).kid);
      expect(keys.map(({ kid }: { kid: string }) => kid)).to.include.members([
        header(after.id_token).kid,
        header(before.id_token).kid,
      ]);
      expect(profile.status).to.equal(200);
    });
  });
});
