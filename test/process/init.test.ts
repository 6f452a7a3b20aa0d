// `gatehouse init`: the file that it writes is served as it is, and what it prints agrees with the settings.
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { PassThrough } from 'node:stream';
import { expect } from 'chai';
import { parse } from 'yaml';
import { STARTERS } from '../../src/capabilities/quickstarts/starters.ts';
import { init } from '../../src/commands/init.ts';
import { loadTenantFile } from '../../src/tenant/load.ts';
import { createAgent } from '../support/agent.ts';
import { runCommand } from '../support/command.ts';
import { follow, logIn, payload, pkce, responseOf, submitLogin, token } from '../support/flows.ts';
import { serveFolder, type TestServer } from '../support/server.ts';

const USER = { email: 'user@example.test', password: 'Gatehouse-1' };

describe('gatehouse init', () => {
  let cwd: string;
  beforeEach(() => {
    cwd = mkdtempSync(join(tmpdir(), 'gatehouse-init-'));
  });
  afterEach(() => rmSync(cwd, { recursive: true, force: true }));

  const file = () => join(cwd, 'config/tenant.yaml');
  const run = (args: string[], env: Record<string, string> = {}) =>
    runCommand({ cwd, env, args: ['init', ...args] });
  const application = () => parse(readFileSync(file(), 'utf8')).clients[0];

  for (const { name } of STARTERS)
    it(`writes a file for ${name} that check has nothing to say about`, async () => {
      const { code, stdout, stderr } = await run([name]);
      expect(stderr).to.equal('');
      expect(code).to.equal(0);
      expect(stdout).to.contain('wrote config/tenant.yaml: ').and.to.contain(application().client_id);
      const checked = await runCommand({ cwd, args: ['check'] });
      expect(checked).to.deep.equal({
        code: 0,
        stderr: '',
        stdout: `config/tenant.yaml: 1 application, ${name === 'saml' ? '0 APIs' : '1 API'}, no faults\n`,
      });
    });

  it('never overwrites a file unless it is forced to', async () => {
    await run(['react']);
    writeFileSync(file(), 'clients: []\n');
    const refused = await run(['vue']);
    expect(refused.code).to.equal(1);
    expect(refused.stderr).to.equal(
      'config/tenant.yaml is there already: nothing was written; --force replaces it\n',
    );
    expect(refused.stdout).to.equal('');
    expect(readFileSync(file(), 'utf8')).to.equal('clients: []\n');
    expect((await run(['vue', '--force'])).code).to.equal(0);
    expect(application().client_id).to.equal('my-vue');
  });

  it('prints addresses that agree with PORT and BASE_URL, and writes the file that TENANT_FILE names', async () => {
    const env = { PORT: '3100', TENANT_FILE: 'own/tenant.yaml', DATA_DIR: 'kept' };
    const { stdout } = await run(['nextjs'], env);
    const clients = parse(readFileSync(join(cwd, 'own/tenant.yaml'), 'utf8')).clients;
    expect(clients[0].callbacks).to.deep.equal(['http://localhost:3000/auth/callback']);
    expect(stdout).to.contain('https://localhost:3100').and.to.contain(`domain: 'localhost:3100'`);
    expect(stdout).to.contain(join(cwd, 'kept/tls/ca.pem')).and.to.contain('npx next dev --port 3000');
    const { stdout: other } = await run(['vue'], { BASE_URL: 'https://127.0.0.1:4000', PORT: '4000' });
    expect(other).to.contain(`domain: '127.0.0.1:4000'`).and.not.to.contain('localhost:3000');
    const files = { TLS_CERT: 'a.pem', TLS_KEY: 'b.pem', TLS: 'files' };
    expect((await run(['react', '--force'], files)).stdout).not.to.contain('ca.pem');
  });

  it('gives the application the next port where its usual one is that of Gatehouse', async () => {
    const { stdout } = await run(['nextjs']);
    expect(application().callbacks).to.deep.equal(['http://localhost:3001/auth/callback']);
    expect(stdout).to.contain('npx next dev --port 3001');
  });

  it('takes the name and the address of the application', async () => {
    const { stdout } = await run(['react', '--name', 'Harbour "Books"', '--url', 'http://localhost:9999/']);
    expect(application()).to.deep.include({
      name: 'Harbour "Books"',
      callbacks: ['http://localhost:9999'],
      web_origins: ['http://localhost:9999'],
      allowed_logout_urls: ['http://localhost:9999'],
    });
    expect(stdout).to.contain(`redirect_uri: 'http://localhost:9999'`).and.to.contain('--port 9999');
  });

  it('writes a name as it is, also one that looks like a variable of the environment', async () => {
    const name = 'Pay ${HOME} ##PATH## @@PATH@@ \\${HOME} # "x": y';
    await run(['react', '--name', name]);
    const { tenant } = await loadTenantFile(file(), { HOME: 'hidden', PATH: 'hidden' });
    expect(tenant.clients[0]?.name).to.equal(name);
  });

  for (const [args, reason] of [
    [['cobol'], "'cobol' is not a kind of application; the kinds are react, vue, "],
    [[], 'say which kind of application, such as: gatehouse init react; the kinds are react, vue, '],
    [['react', '--url', 'localhost:5173'], '--url: localhost:5173 must be an address without a path'],
    [['react', '--url', 'http://localhost:1/a'], '--url: http://localhost:1/a must be an address without'],
    [['react', '--url', 'http://localhost:3000'], '--url: Gatehouse itself is at localhost:3000'],
    [['react', '--name', ''], 'clients.0.name: '],
    [['react', '--name', 'a\u001b[2Jb'], '--name: must have no control characters'],
  ] as const)
    it(`writes nothing when it is given ${JSON.stringify(args)}, and says why`, async () => {
      const { code, stderr } = await run([...args]);
      expect(code).to.equal(1);
      expect(stderr).to.contain(reason);
      expect(existsSync(file())).to.equal(false);
    });

  it('makes another secret each time, for its owner alone to read', async () => {
    const { stdout } = await run(['express']);
    const { client_secret: first } = application();
    expect(first).to.match(/^[\w-]{43}$/);
    expect(stdout)
      .to.contain(`CLIENT_SECRET=${first}`)
      .and.to.match(/SESSION_SECRET=[\w-]{43}\n/);
    expect(statSync(file()).mode & 0o777).to.equal(0o600);
    // Whoever could read the former file cannot read the new one.
    chmodSync(file(), 0o644);
    await run(['express', '--force']);
    expect(application().client_secret).not.to.equal(first);
    expect(statSync(file()).mode & 0o777).to.equal(0o600);
    expect(readdirSync(dirname(file()))).to.deep.equal(['tenant.yaml']);
    await run(['react', '--force']);
    expect(application()).not.to.have.property('client_secret');
  });

  describe('in a terminal without a kind', () => {
    /** Answers its questions. @returns what it asked, and its result. */
    const answer = async (...answers: string[]) => {
      const stdin = Object.assign(new PassThrough(), { isTTY: true });
      const [stdout, stderr] = [new PassThrough(), new PassThrough()];
      stdin.end(answers.map((one) => `${one}\n`).join(''));
      const env = { TENANT_FILE: file() };
      const host = { env, stdin, stdout, stderr, exit: () => undefined };
      const ran = (init.run as (...given: unknown[]) => Promise<void>)({ host }, undefined, {});
      const fault = await ran.then(
        () => undefined,
        (error: Error) => error.message,
      );
      return { asked: String(stderr.read() ?? ''), fault };
    };

    it('asks which one, and again until it is one: by number or by name', async () => {
      const { asked, fault } = await answer('0', 'nothing', '2');
      expect(fault).to.equal(undefined);
      expect(asked).to.contain('   1  React (react)\n').and.to.contain('Which kind of application? [1-18] ');
      expect(asked.match(/Which kind/g)).to.have.length(3);
      expect(application().client_id).to.equal('my-vue');
      rmSync(file());
      await answer('Spring');
      expect(application().client_id).to.equal('my-spring');
    });

    it('writes nothing when the answer is the end of the input', async () => {
      expect((await answer()).fault).to.equal('nothing was chosen, and nothing was written');
      expect(existsSync(file())).to.equal(false);
    });
  });

  describe('and a server with its file', () => {
    let running: TestServer | undefined;
    afterEach(async () => {
      await running?.stop();
      running = undefined;
    });

    /** Serves the file of a kind; the folder's server goes on with the file of the next. */
    const applied = async (name: string) => {
      await run([name, '--force']);
      running ??= await serveFolder(cwd);
      expect((await runCommand({ cwd, args: ['apply'] })).code).to.equal(0);
      return { ...application(), server: running };
    };

    it('logs a user in to each application of a browser or of a server, as its SDK does', async () => {
      for (const { name } of STARTERS.filter(({ shape }) =>
        ['spa', 'regular_web', 'native'].includes(shape),
      )) {
        const { client_id, client_secret, callbacks, server } = await applied(name);
        const agent = createAgent(server);
        const { verifier, challenge } = pkce();
        const [redirect_uri] = callbacks;
        const asked = {
          client_id,
          response_type: 'code',
          redirect_uri,
          scope: 'openid email offline_access',
          audience: 'https://api.example.test/',
          code_challenge: challenge,
          code_challenge_method: 'S256',
        };
        const back = await logIn(agent, server, asked, USER);
        expect(back.location, name).to.match(new RegExp(`^${redirect_uri}/?\\?code=`));
        const tokens = await token(agent, {
          grant_type: 'authorization_code',
          client_id,
          client_secret,
          code: responseOf(back).code,
          code_verifier: verifier,
          redirect_uri,
        });
        expect(tokens.status, `${name} ${tokens.text}`).to.equal(200);
        expect(payload(tokens.json().id_token).email).to.equal(USER.email);
        expect(tokens.json()).to.include.keys('access_token', 'refresh_token');
      }
    });

    it('gives a machine tokens for the API, and lets a device and an application with SAML begin', async () => {
      for (const name of ['machine', 'api']) {
        const { client_id, client_secret, server } = await applied(name);
        const audience = 'https://api.example.test/';
        const grant_type = 'client_credentials';
        const got = await token(createAgent(server), { grant_type, client_id, client_secret, audience });
        expect(payload(got.json().access_token), name).to.deep.include({
          aud: audience,
          scope: 'read:things',
        });
      }
      const { client_id, server } = await applied('device');
      const begun = await createAgent(server).request('/oauth/device/code', {
        json: { client_id, scope: 'openid' },
      });
      expect(begun.json()).to.include.keys('device_code', 'user_code');
      const { client_id: id, callbacks } = await applied('saml');
      const agent = createAgent(server);
      const page = await follow(agent, await agent.get(`/samlp/${id}`), server.url);
      const response = await submitLogin(agent, server, page, USER);
      expect(response.text).to.contain(`action="${callbacks[0]}"`).and.to.contain('name="SAMLResponse"');
    });
  });
});
