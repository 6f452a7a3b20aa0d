// `gatehouse script test`: the script of a connection, by hand, while a server runs and while none does.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { type Provider, startProvider } from '../scripts/support.ts';
import { CLI, runServer, runToEnd, type ServerProcess } from '../support/process.ts';

describe('gatehouse script test', function () {
  this.timeout(90_000);
  let cwd: string;
  let provider: Provider;
  let server: ServerProcess | undefined;
  before(async () => {
    provider = await startProvider();
    cwd = mkdtempSync(join(tmpdir(), 'gatehouse-script-'));
    mkdirSync(join(cwd, 'config'));
    const connection = (name: string, fetchUserProfile?: string) => ({
      name,
      strategy: 'oauth2',
      enabled_clients: [],
      options: {
        authorizationURL: `${provider.url}/authorize`,
        tokenURL: `${provider.url}/token`,
        client_id: 'us',
        configuration: { prefix: 'p-' },
        scripts: { fetchUserProfile },
      },
    });
    const source = `function (token, context, cb) {
      console.log('asked by', context.connection, context.extra);
      request.get({ url: '${provider.url}/userinfo', headers: { Authorization: 'Bearer ' + token }, json: true }, (e, r, b) => {
        if (r.statusCode !== 200) return cb(new Error('status ' + r.statusCode));
        cb(null, { user_id: configuration.prefix + b.sub, email: b.email });
      });
    }`;
    // YAML includes JSON.
    const tenant = { connections: [connection('with-script', source), connection('without-script')] };
    writeFileSync(join(cwd, 'config/tenant.yaml'), JSON.stringify(tenant));
  });
  after(async () => {
    await server?.end('SIGKILL');
    await provider.stop();
    rmSync(cwd, { recursive: true, force: true });
  });

  const test = (...args: string[]) =>
    runToEnd({ cwd, command: [process.execPath, CLI, 'script', 'test', ...args] });
  const PROFILE =
    /^profile:\n\{\n {2}"user_id": "p-248289761001",\n {2}"email": "jane@example.test"\n\}\nlog:\n {2}info {2}asked by with-script more\nused:\n {2}time +\d+ of 20000 ms\n {2}processor +\d+ of 5000 ms\n {2}memory +\d+ of 64 MiB\n {2}output +\d+ of 100000 bytes\n {2}requests +1 of 10\n$/;
  const works = async () => {
    const context = JSON.stringify({ extra: 'more' });
    const { code, stdout, stderr } = await test('with-script', '--token', 'token', '--context', context);
    expect(stderr).to.equal('');
    expect(stdout).to.match(PROFILE);
    expect(code).to.equal(0);
  };

  it('prints the profile, the log and what was used, while the server runs', async () => {
    server = await runServer({ cwd });
    await works();
  });

  it('says how it failed, and exits with 1', async () => {
    const { code, stdout, stderr } = await test('with-script', '--token', 'wrong');
    expect(stderr).to.equal('');
    expect(stdout).to.match(/^failed \(script\): status 401\n/);
    expect(code).to.equal(1);
  });

  it('names a connection that is not there, or has no script', async () => {
    expect(await test('nobody', '--token', 'x')).to.deep.include({
      code: 1,
      stderr: 'there is no connection nobody\n',
    });
    expect((await test('without-script', '--token', 'x')).stderr).to.equal(
      'the connection without-script has no script fetchUserProfile\n',
    );
  });

  it('prints the same while no server runs', async () => {
    await server?.end('SIGTERM');
    server = undefined;
    await works();
  });
});
