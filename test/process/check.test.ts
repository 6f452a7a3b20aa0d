// `gatehouse check`: the faults that it names, and that it changes nothing.
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { runCommand } from '../support/command.ts';
import { CLI, runToEnd } from '../support/process.ts';

describe('gatehouse check', () => {
  let cwd: string;
  beforeEach(() => {
    cwd = mkdtempSync(join(tmpdir(), 'gatehouse-check-'));
  });
  afterEach(() => rmSync(cwd, { recursive: true, force: true }));

  const check = (env: Record<string, string> = {}) => runCommand({ cwd, env, args: ['check'] });

  it('describes in an empty folder what the first start does, without doing it', async () => {
    const { code, stdout } = await runToEnd({ cwd, command: [process.execPath, CLI, 'check'] });
    expect(code).to.equal(0);
    expect(stdout).to.contain('config/tenant.yaml is not there: the first start writes the example');
    expect(readdirSync(cwd)).to.deep.equal([]);
  });

  it('names the faults of the settings and those of the tenant file together', async () => {
    writeFileSync(join(cwd, 'tenant.yaml'), 'clients: [{ client_id: x }]');
    const { code, stderr } = await check({ TLS: 'maybe', TENANT_FILE: 'tenant.yaml' });
    expect(code).to.equal(1);
    expect(stderr)
      .to.contain('- TLS: ')
      .and.match(/- clients\.0\.name: .+ \(tenant\.yaml:1\)\n/);
  });

  it('says that issuers do not follow a custom domain, unless it is the host of BASE_URL', async () => {
    writeFileSync(
      join(cwd, 'tenant.yaml'),
      'customDomains:\n  - { domain: login.example.com, api_key: the-api-key-of-the-edge-of-login }\n',
    );
    const env = { TENANT_FILE: 'tenant.yaml', BASE_URL: 'https://id.example.com' };
    const { code, stdout } = await check(env);
    expect(code).to.equal(0);
    expect(stdout)
      .to.contain('warning: customDomains[0].domain: requests to login.example.com are answered')
      .and.contain('name https://id.example.com');
    expect((await check({ ...env, BASE_URL: 'https://login.example.com' })).stdout).not.to.contain('warning');
  });

  it('names every fault of a file with its line and cause', async () => {
    writeFileSync(
      join(cwd, 'tenant.yaml'),
      [
        'tenant:',
        '  default_directory: nowhere',
        'clients:',
        '  - { client_id: x, name: X }',
        '  - client_id: x',
        '    name: Y',
        '    callbacks:',
        '      - not a uri',
        'databases:',
        '  - name: people',
        '    enabled_clients: [nobody]',
        'users:',
        '  - email: nobody',
        `    password: ${'x'.repeat(513)}`,
        '    connection: people',
      ].join('\n'),
    );
    const { code, stderr } = await check({ TENANT_FILE: 'tenant.yaml' });
    expect(code).to.equal(1);
    expect(stderr.trimEnd().split('\n')).to.deep.equal([
      'The tenant file is wrong:',
      '  - clients[1]: x is there twice (tenant.yaml:5)',
      '  - clients[1].callbacks: not a uri is no absolute URI without a fragment (tenant.yaml:7)',
      '  - databases[0].enabled_clients: nobody is no application here (tenant.yaml:11)',
      '  - tenant.default_directory: nowhere is no connection here (tenant.yaml:2)',
      '  - users[0].email: nobody is no e-mail address (tenant.yaml:13)',
      '  - users[0].password: more than 512 bytes of UTF-8, which no login accepts (tenant.yaml:14)',
    ]);
  });

  it('names mail server and certificate settings that the start would refuse', async () => {
    const env = {
      SMTP_URL: 'smtp://',
      MAIL_FROM: 'a@b.test',
      TLS: 'files',
      TLS_CERT: 'none',
      TLS_KEY: 'none',
    };
    const settings = await check(env);
    expect(settings.code).to.equal(1);
    expect(settings.stderr).to.contain('SMTP_URL: must be').and.contain('names no host');
    const { SMTP_URL: _url, ...files } = env;
    const certificate = await check(files);
    expect(certificate.code).to.equal(1);
    expect(certificate.stderr).to.contain('TLS_CERT: none cannot be read');
  });

  it('warns of what matters first, and of all unknown keys in one line with their places', async () => {
    writeFileSync(
      join(cwd, 'tenant.yaml'),
      `moon: full
clients:
  - { name: One, tide: 1 }
  - { name: Two, tide: 2 }
connections:
  - { name: old, strategy: telegraph }
`,
    );
    const { code, stdout } = await check({ TENANT_FILE: 'tenant.yaml' });
    expect(code).to.equal(0);
    expect(stdout.split('\n').filter((line) => line.startsWith('warning'))).to.deep.equal([
      'warning: connections[0].strategy: telegraph is not built in: nobody can log in with old (tenant.yaml:6)',
      'warning: 3 members are not known here; they are kept, and have no effect: clients[].tide (line 3, 4); moon (line 1)',
    ]);
  });

  it("fails in production for what would not start there, and still names the file's unknown keys", async () => {
    writeFileSync(
      join(cwd, 'tenant.yaml'),
      'moon: full\nclients: [{ client_id: x, name: X, client_secret: example-secret }]',
    );
    const env = {
      NODE_ENV: 'production',
      TLS: 'proxy',
      TRUSTED_PROXIES: '127.0.0.1',
      BASE_URL: 'https://id.example.test',
      TENANT_FILE: 'tenant.yaml',
    };
    const { code, stdout, stderr } = await check(env);
    expect(code).to.equal(1);
    expect(stdout).to.match(/^warning: moon is not known here.* \(tenant\.yaml:1\)$/m);
    expect(stderr).to.contain("clients[0].client_secret: x has the example's secret (tenant.yaml:2)");
    expect(stderr).to.contain('SMTP_URL: required in production');
  });
});
