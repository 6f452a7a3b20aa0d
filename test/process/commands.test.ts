// Commands with a running server, through its local socket, and without one.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, lstatSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import { createAgent, readForm } from '../support/agent.ts';
import { runCommand } from '../support/command.ts';
import { payload, pkce } from '../support/flows.ts';
import { freePort } from '../support/free-port.ts';
import { CLI, environment, runServer, type ServerProcess } from '../support/process.ts';
import { serveFolder, type TestServer } from '../support/server.ts';

const cli = (cwd: string, args: string[], env: Record<string, string> = {}) => runCommand({ cwd, env, args });

/** Returns the answer of a socket. */
async function ask(socketPath: string, body: string, over: http.RequestOptions = {}) {
  const request = http.request({ socketPath, method: 'POST', path: '/', ...over });
  request.end(body);
  const [response] = (await once(request, 'response')) as [http.IncomingMessage];
  return { status: response.statusCode, text: await text(response) };
}

/** Returns a token of the Management API. */
async function adminToken(server: TestServer, id: string, secret: string) {
  return createAgent(server).request('/oauth/token', {
    json: {
      grant_type: 'client_credentials',
      client_id: id,
      client_secret: secret,
      audience: `${server.url}/api/v2/`,
    },
  });
}

/** Makes a folder for the tests of a suite. */
function folder(): string {
  const cwd = mkdtempSync(join(tmpdir(), 'gatehouse-commands-'));
  after(() => rmSync(cwd, { recursive: true, force: true }));
  return cwd;
}

/** Ends a server that a failed test has left behind. */
async function ended(server: ServerProcess | undefined): Promise<void> {
  if (server !== undefined && server.child.exitCode === null && server.child.signalCode === null)
    await server.end('SIGKILL');
}

const socketOf = (cwd: string) => join(cwd, 'data/run/gatehouse.sock');

describe('a command whose output nobody reads to the end', () => {
  it('ends without a word', async () => {
    const child = spawn(process.execPath, [CLI, 'init', '--help'], { env: environment() });
    child.stdout.destroy();
    const [errors, [code]] = await Promise.all([text(child.stderr), once(child, 'close')]);
    expect({ errors, code }).to.deep.equal({ errors: '', code: 0 });
  });
});

describe('commands with a running server', () => {
  const cwd = folder();
  let server: ServerProcess;
  const file = () => join(cwd, 'config/tenant.yaml');
  const edit = (change: (yaml: string) => string) =>
    writeFileSync(file(), change(readFileSync(file(), 'utf8')));
  let exported: string;

  before(async () => {
    server = await runServer({ cwd });
  });
  after(() => ended(server));

  it('apply a file, whose callback is in force at the next request', async () => {
    const redirect_uri = 'https://new.example.test/callback';
    const query = new URLSearchParams({
      client_id: 'example-spa',
      response_type: 'code',
      redirect_uri,
      scope: 'openid',
      code_challenge: pkce().challenge,
      code_challenge_method: 'S256',
    });
    const asked = () => createAgent(server).get(`/authorize?${query}`);
    expect((await asked()).status).to.equal(400);
    edit((yaml) =>
      yaml.replace(/(client_id: example-spa[\s\S]*?callbacks:\s*\n?\s*)(\[|- )/, (_, before, sign) =>
        sign === '[' ? `${before}[${redirect_uri}, ` : `${before}- ${redirect_uri}\n      - `,
      ),
    );
    expect(await cli(cwd, ['apply'])).to.include({ code: 0, stderr: '' });
    expect((await asked()).status).to.equal(302);
  });

  /** Applies a change, with nothing to apply before and after. @param name the new name of the tenant. */
  const planAndApply = async (name: string, said: string) => {
    expect(await cli(cwd, ['plan'])).to.include({ code: 0, stdout: 'config/tenant.yaml: no changes\n' });
    edit((yaml) =>
      yaml
        .replace(/client_secret: example-\S+/, `client_secret: example-other-secret-${name}`)
        .replace(/friendly_name: .*/, `friendly_name: ${name}`),
    );
    const planned = await cli(cwd, ['plan']);
    expect(planned.code).to.equal(2);
    expect(planned.stdout).to.contain(said).and.not.contain('example-other');
    const applied = await cli(cwd, ['apply']);
    expect(applied).to.include({ code: 0, stderr: '' });
    expect(applied.stdout).to.contain('~ tenant.friendly_name: ').and.not.contain('example-other');
    expect((await cli(cwd, ['apply'])).stdout).to.equal('config/tenant.yaml: no changes\n');
    expect(await cli(cwd, ['plan'])).to.include({ code: 0 });
  };

  it('plan, apply, and then have nothing more to apply', () =>
    planAndApply('First', '"Gatehouse" → "First"'));

  it('export a file that applies to the same, byte for byte', async () => {
    const own = readFileSync(file(), 'utf8');
    exported = (await cli(cwd, ['export'])).stdout;
    writeFileSync(file(), exported);
    expect((await cli(cwd, ['apply'])).stdout).to.equal('config/tenant.yaml: no changes\n');
    expect((await cli(cwd, ['export'])).stdout).to.equal(exported);
    writeFileSync(file(), own);
  });

  it("use a socket of the server's user, which is removed at the stop", async () => {
    expect(lstatSync(socketOf(cwd)).mode & 0o777).to.equal(0o600);
    expect(lstatSync(dirname(socketOf(cwd))).mode & 0o777).to.equal(0o700);
    expect(await server.end('SIGTERM')).to.equal(0);
    expect(existsSync(dirname(socketOf(cwd)))).to.equal(false);
  });

  it('export the same after the stop', async () => {
    expect((await cli(cwd, ['export'])).stdout).to.equal(exported);
  });

  it('plan and apply after the stop, too', () => planAndApply('Second', '"First" → "Second"'));

  it('send nothing to a socket that other users could have put there', async () => {
    const stranger = join(tmpdir(), `gatehouse-${'0123456789abcdef'}`);
    rmSync(stranger, { recursive: true, force: true });
    mkdirSync(stranger, { mode: 0o777 });
    const { chmodSync } = await import('node:fs');
    chmodSync(stranger, 0o777);
    let told = '';
    const fake = http.createServer((request, response) => {
      void text(request).then((body) => {
        told += body;
        response.end('{"result":"of a stranger"}');
      });
    });
    fake.listen(join(stranger, 'gatehouse.sock'));
    await once(fake, 'listening');
    mkdirSync(join(cwd, 'data/run'), { mode: 0o700 });
    writeFileSync(join(cwd, 'data/run/socket-path'), join(stranger, 'gatehouse.sock'));
    const { code, stdout } = await cli(cwd, ['export']);
    fake.close();
    rmSync(stranger, { recursive: true, force: true });
    expect(code).to.equal(0);
    expect(stdout).to.contain('example-web');
    expect(told).to.equal('');
  });
});

describe('commands after a server was killed, and with the next one', () => {
  const cwd = folder();
  let server: TestServer;
  after(() => server?.stop());

  it('open the store themselves until the next server replaces the socket', async () => {
    await (await runServer({ cwd })).end('SIGKILL');
    expect(existsSync(socketOf(cwd))).to.equal(true);
    expect(await cli(cwd, ['export'])).to.include({ code: 0, stderr: '' });
    server = await serveFolder(cwd);
    expect((await ask(socketOf(cwd), '{"command":"export"}')).status).to.equal(200);
    expect(await cli(cwd, ['export'])).to.include({ code: 0, stderr: '' });
  });

  it('are the only messages that the socket accepts, and nothing is accepted by TCP', async () => {
    expect((await ask(socketOf(cwd), '{"command":"stop"}')).status).to.equal(400);
    expect((await ask(socketOf(cwd), '{"command":"export","more":1}')).status).to.equal(400);
    expect((await ask(socketOf(cwd), 'no JSON')).status).to.equal(400);
    expect((await ask(socketOf(cwd), '', { method: 'GET' })).status).to.equal(404);
    expect((await ask(socketOf(cwd), '', { path: '/oauth/token' })).status).to.equal(404);
    const invalid = await ask(socketOf(cwd), JSON.stringify({ command: 'apply', tenant: { clients: [{}] } }));
    expect(invalid.status).to.equal(422);
    expect(invalid.text).to.contain('clients.0.');
    const overTcp = await createAgent(server).request('/', { json: { command: 'export' } });
    expect(overTcp.status).to.be.within(400, 499);
    expect(overTcp.text).not.to.contain('example-web');
  });

  it('rotate the signing keys, and the next token is signed with another key', async () => {
    const published = async () =>
      (await createAgent(server).get('/.well-known/jwks.json')).json().keys as {
        kid: string;
      }[];
    const before = await published();
    const { stdout, code } = await cli(cwd, ['keys', 'rotate']);
    expect(code).to.equal(0);
    const after = await published();
    expect(stdout).to.equal(`from now on tokens are signed with ${before[1]?.kid}\n`);
    expect(after[0]?.kid).to.equal(before[1]?.kid);
    expect(after.map(({ kid }) => kid)).to.include(before[0]?.kid);
  });

  it('print environment lines without --json', async () => {
    const { stdout } = await cli(cwd, ['admin', 'create']);
    expect(stdout).to.match(
      /^# .*\nAUTH0_DOMAIN=localhost:\d+\nAUTH0_CLIENT_ID=[A-Za-z0-9]{32}\nAUTH0_CLIENT_SECRET=[\w-]{64}\n$/,
    );
  });

  it('invite the first owner of the console by a link, and let an owner in again who is locked out', async () => {
    const email = 'first@console.example.test';
    const make = async () => {
      const { stdout, stderr, code } = await cli(cwd, ['admin', 'create', '--email', email]);
      expect({ code, stderr }).to.deep.equal({ code: 0, stderr: '' });
      return stdout.trim().split('\n').at(-1) ?? '';
    };
    const open = async (url: string, password: string) => {
      const agent = createAgent(server);
      const page = await agent.get(url);
      if (page.status !== 200) return page.status;
      const { action, fields } = readForm(page, 'ticket');
      const form = { ...fields, name: 'First', password, repeat: password };
      return (await agent.request(action, { form })).status;
    };
    const first = await make();
    expect(first).to.match(/^https:\/\/localhost:\d+\/console\/link\?ticket=[\w-]{43}$/);
    expect(await open(first, 'Console-Horse-1')).to.equal(303);
    expect(await open(first, 'Console-Horse-1')).to.equal(400);
    expect(await open(await make(), 'Console-Horse-2')).to.equal(303);
    expect(server.logged()).not.to.contain('/console/link?ticket');
    const { code, stderr } = await cli(cwd, ['admin', 'create', '--email', 'nobody']);
    expect(code).to.equal(1);
    expect(stderr).to.contain('is no e-mail address');
  });

  for (const runs of [true, false]) {
    it(`make an application for the Management API while the server ${runs ? 'runs' : 'is down'}`, async () => {
      if (!runs) await server.stop();
      const settings: Record<string, string> = runs ? {} : { PORT: String(await freePort()) };
      const { stdout, stderr, code } = await cli(
        cwd,
        ['admin', 'create', '--name', 'Deploys', '--json'],
        settings,
      );
      expect({ code, stderr }).to.deep.equal({ code: 0, stderr: '' });
      const { client_id, client_secret, domain } = JSON.parse(stdout);
      // The grant is for the address that commands and server agree on, so the port is the same.
      if (!runs) server = await serveFolder(cwd, settings);
      expect(`https://${domain}`).to.equal(server.url);
      const answer = await adminToken(server, client_id, client_secret);
      expect(answer.status).to.equal(200);
      const { access_token } = answer.json();
      expect(payload(access_token).scope.split(' ')).to.include.members(['read:clients', 'delete:users']);
      const clients = await createAgent(server).get('/api/v2/clients', {
        authorization: `Bearer ${access_token}`,
      });
      expect(clients.json().map(({ name }: { name: string }) => name)).to.include('Deploys');
      // The secret is not in the log.
      expect(server.logged()).not.to.contain(client_secret);
      expect((await adminToken(server, client_id, 'another-secret-altogether')).status).to.equal(401);
    });
  }
});

describe('commands for a data directory whose path is too long for a socket', () => {
  const cwd = folder();
  let server: TestServer | undefined;
  after(() => server?.stop());

  it('find the server, whose socket is elsewhere', async () => {
    const long = join('d'.repeat(100), 'data');
    mkdirSync(join(cwd, 'd'.repeat(100)));
    server = await serveFolder(cwd, { DATA_DIR: long });
    const pointer = join(cwd, long, 'run/socket-path');
    const place = readFileSync(pointer, 'utf8');
    expect(lstatSync(pointer).mode & 0o777).to.equal(0o600);
    expect(lstatSync(place).mode & 0o777).to.equal(0o600);
    expect(lstatSync(dirname(place)).mode & 0o777).to.equal(0o700);
    expect(await cli(cwd, ['export'], { DATA_DIR: long })).to.include({ code: 0, stderr: '' });
    await server.stop();
    server = undefined;
    expect(existsSync(dirname(place))).to.equal(false);
    expect(await cli(cwd, ['export'], { DATA_DIR: long })).to.include({ code: 0, stderr: '' });
  });
});
