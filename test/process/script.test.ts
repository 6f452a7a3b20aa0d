// `gatehouse script test`: runs the script of a connection, with a running server and without.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { type Provider, startProvider } from '../scripts/support.ts';
import { runCommand } from '../support/command.ts';
import {
  elsewhereOptions,
  KEY,
  type LegacyDatabase,
  startLegacyDatabase,
} from '../support/legacy-database.ts';
import { CLI, runToEnd } from '../support/process.ts';
import { serveFolder, type TestServer } from '../support/server.ts';

describe('gatehouse script test', () => {
  let cwd: string;
  const PASSWORD = 'a-password-of-ada';
  let provider: Provider;
  let legacy: LegacyDatabase;
  let server: TestServer | undefined;
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
    legacy = await startLegacyDatabase();
    legacy.add('ada@example.test', PASSWORD, { name: `Ada of ${KEY}` });
    const talking = {
      login: `function login(email, password, callback) {
      console.log('asked for', email, 'with', password, 'by', configuration.KEY);
      return (${elsewhereOptions(legacy).customScripts.login})(email, password, callback);
    }`,
    };
    // YAML includes JSON.
    const tenant = {
      connections: [connection('with-script', source), connection('without-script')],
      databases: [{ name: 'elsewhere', options: elsewhereOptions(legacy, talking) }],
    };
    writeFileSync(join(cwd, 'config/tenant.yaml'), JSON.stringify(tenant));
  });
  after(async () => {
    await server?.stop();
    await provider.stop();
    await legacy.stop();
    rmSync(cwd, { recursive: true, force: true });
  });

  const test = (...args: string[]) => testWith(undefined, ...args);
  /** @param input the text for standard input. */
  const testWith = (input: string | undefined, ...args: string[]) =>
    runCommand({ cwd, args: ['script', 'test', ...args], ...(input !== undefined && { input }) });
  const PROFILE =
    /^profile:\n\{\n {2}"user_id": "p-248289761001",\n {2}"email": "jane@example.test"\n\}\nlog:\n {2}info {2}asked by with-script more\nused:\n {2}time +\d+ of 20000 ms\n {2}processor +\d+ of 5000 ms\n {2}memory +\d+ of 64 MiB\n {2}output +\d+ of 100000 bytes\n {2}requests +1 of 10\n$/;
  const works = async () => {
    const context = JSON.stringify({ extra: 'more' });
    const { code, stdout, stderr } = await test('with-script', '--token', 'token', '--context', context);
    expect(stderr).to.equal('');
    expect(stdout).to.match(PROFILE);
    expect(code).to.equal(0);
  };

  it('prints the profile, the log and the usage, while the server runs', async () => {
    server = await serveFolder(cwd);
    await works();
  });

  it('prints why a script failed, and exits with 1', async () => {
    const { code, stdout, stderr } = await test('with-script', '--token', 'wrong');
    expect(stderr).to.equal('');
    expect(stdout).to.match(/^failed \(script\): status 401\n/);
    expect(code).to.equal(1);
  });

  it('names a connection that does not exist, or has no script', async () => {
    expect(await test('nobody', '--token', 'x')).to.deep.include({
      code: 1,
      stderr: 'there is no connection nobody\n',
    });
    expect((await test('without-script', '--token', 'x')).stderr).to.equal(
      'the connection without-script has no script fetchUserProfile\n',
    );
  });

  it('tests a login at a custom database, and shows neither the password nor the configuration', async () => {
    const ask = (password: string) =>
      testWith(password, 'elsewhere', 'login', '--username', 'ada@example.test', '--password-stdin');
    // In a process of its own that reads its standard input, as operators run it.
    const args = [
      'script',
      'test',
      'elsewhere',
      'login',
      '--username',
      'ada@example.test',
      '--password-stdin',
    ];
    const right = await runToEnd({ cwd, command: [process.execPath, CLI, ...args], input: `${PASSWORD}\n` });
    expect(right.stderr).to.equal('');
    expect(right.stdout).to.match(/^profile:\n\{\n {2}"user_id": "1",\n {2}"email": "ada@example.test"/);
    expect(right.stdout).to.include('asked for ada@example.test with *** by ***').and.include('"Ada of ***"');
    const wrong = await ask('wrong-password');
    expect([wrong.code, wrong.stdout.split('\n')[0]]).to.deep.equal([1, 'failed (script): wrong']);
    for (const { stdout } of [right, wrong])
      expect(stdout).not.to.include(KEY).and.not.include(PASSWORD).and.not.include('wrong-password');
  });

  it('looks a user up in a custom database', async () => {
    const found = await test('elsewhere', 'get_user', '--username', 'ada@example.test');
    expect([found.code, found.stderr]).to.deep.equal([0, '']);
    expect(found.stdout).to.include('"user_id": 1');
    const nobody = await test('elsewhere', 'get_user', '--username', 'nobody@example.test');
    expect(nobody.stdout).to.match(/^profile:\nnull\n/);
  });

  it('names the options that a script needs, and runs none that changes something', async () => {
    for (const [args, why] of [
      [['with-script'], 'fetchUserProfile needs --token\n'],
      [['elsewhere', 'login', '--password-stdin'], 'login needs --username\n'],
      [['elsewhere', 'login', '--username', 'a'], 'login needs --password-stdin\n'],
      [
        ['with-script', 'login', '-u', 'a', '--password-stdin'],
        'the connection with-script has no script login\n',
      ],
    ] as const) {
      expect(await testWith('', ...args)).to.deep.include({ code: 1, stderr: why });
    }
    expect((await test('elsewhere', 'delete', '--username', 'a')).stderr).to.include('Allowed choices');
  });

  it('prints the same without a running server', async () => {
    await server?.stop();
    server = undefined;
    await works();
  });
});
