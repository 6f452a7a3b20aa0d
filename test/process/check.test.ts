// `gatehouse check`: what it names, and that it changes nothing.
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { CLI, runToEnd } from '../support/process.ts';

describe('gatehouse check', () => {
  let cwd: string;
  beforeEach(() => {
    cwd = mkdtempSync(join(tmpdir(), 'gatehouse-check-'));
  });
  afterEach(() => rmSync(cwd, { recursive: true, force: true }));

  const check = (env: Record<string, string> = {}) =>
    runToEnd({ cwd, env, command: [process.execPath, CLI, 'check'] });

  it('says in an empty folder what the first start does, and does not do it', async () => {
    const { code, stdout } = await check();
    expect(code).to.equal(0);
    expect(stdout).to.contain('config/tenant.yaml is not there: the first start writes the example');
    expect(readdirSync(cwd)).to.deep.equal([]);
  });

  it('names the faults of the settings and those of the tenant file together', async () => {
    writeFileSync(join(cwd, 'tenant.yaml'), 'clients: [{ client_id: x }]');
    const { code, stderr } = await check({ TLS: 'maybe', TENANT_FILE: 'tenant.yaml' });
    expect(code).to.equal(1);
    expect(stderr).to.contain('- TLS: ').and.contain('- clients.0.name: ');
  });

  it("refuses in production what would not start there, and names the file's unknown keys all the same", async () => {
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
    expect(stdout).to.contain('warning: moon');
    expect(stderr).to.contain("clients: x has the example's secret");
    expect(stderr).to.contain('SMTP_URL: required in production');
  });
});
