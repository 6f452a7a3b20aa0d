// What development leaves in a data directory, and production refuses.
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { createLog } from '../../src/runtime/log.ts';
import { systemRandom } from '../../src/runtime/secrets.ts';
import { type Running, startGatehouse } from '../../src/server/start.ts';
import { applyTenant } from '../../src/tenant/apply.ts';
import { EXAMPLE_FILE, productionFaults } from '../../src/tenant/examples.ts';
import { loadTenantFile, parseTenant, readTenant, TenantFault } from '../../src/tenant/load.ts';
import { createHasher } from '../../src/users/hashing.ts';
import { CHEAP } from '../support/server.ts';
import { fillDataDir } from '../support/template.ts';

const EXAMPLES = fileURLToPath(new URL('../../examples', import.meta.url));
const DATABASE = 'Username-Password-Authentication';
const CLEAN = {
  clients: [
    { client_id: 'example-web', name: 'Example web app', client_secret: 'a-secret-of-its-own-000' },
    { client_id: 'example-m2m', name: 'Example machine', client_secret: 'another-secret-of-its-own' },
  ],
  databases: [{ name: DATABASE, enabled_clients: ['example-web'] }],
};
const PRODUCTION = {
  NODE_ENV: 'production',
  TLS: 'proxy',
  TRUSTED_PROXIES: '127.0.0.1',
  BASE_URL: 'https://id.example.test',
  SMTP_URL: 'smtps://mail.example.test',
  MAIL_FROM: 'login@example.test',
};

describe('production on a data directory of development', () => {
  let dataDir: string;
  beforeEach(async () => {
    dataDir = mkdtempSync(join(tmpdir(), 'gatehouse-production-'));
    await fillDataDir(dataDir, true);
  });
  afterEach(() => rmSync(dataDir, { recursive: true, force: true }));

  const start = (tenant: object, env: Record<string, string>) =>
    startGatehouse({
      env: { PORT: '0', DATA_DIR: dataDir, ...env },
      log: createLog('silent'),
      loadTenant: async () => readTenant(tenant),
      hasher: createHasher({ cost: CHEAP }),
    });

  async function inDevelopment(
    tenant: object,
    work: (running: Running) => Promise<unknown> = async () => {},
  ) {
    const running = await start(tenant, {});
    await work(running);
    await running.stop();
  }

  /** Returns what production prints when it is started with a tenant file that has nothing of the example. */
  async function refusal(): Promise<string> {
    try {
      await (await start(CLEAN, PRODUCTION)).stop();
      return '';
    } catch (thrown) {
      return thrown instanceof Error ? thrown.message : String(thrown);
    }
  }

  const example = async () => parseTenant(await readFile(EXAMPLE_FILE, 'utf8'), {}).tenant;

  it("is refused because of the example's secrets and password, whatever the tenant file says now", async () => {
    await inDevelopment(await example());
    const said = await refusal();
    expect(said)
      .to.contain(`The store in ${dataDir} is not fit for production:`)
      .and.contain("- example-web has the example's secret")
      .and.contain("- example-m2m has the example's secret")
      .and.contain("- user@example.test has the example's password");
    expect(said).not.to.match(/example-web-secret|example-m2m-secret|Gatehouse-1/);
  });

  for (const name of readdirSync(EXAMPLES).filter((one) => existsSync(join(EXAMPLES, one, 'config'))))
    it(`is refused because of the published secrets of examples/${name}`, async () => {
      const { tenant } = await loadTenantFile(join(EXAMPLES, name, 'config/tenant.yaml'), {});
      const secrets = tenant.clients.flatMap(({ client_secret: secret }) => secret ?? []);
      const faults = productionFaults(tenant, {}).filter((one) => one.includes("has the example's secret"));
      expect(faults).to.have.length(secrets.length);
    });

  it('is refused because of secrets that are too short for a public server', async () => {
    const short = { clients: [{ client_id: 'web', name: 'W', client_secret: 'x'.repeat(21) }] };
    await inDevelopment(short);
    expect(await refusal()).to.contain('- web has a client_secret of fewer than 22 characters: set another');
    const fresh = await start(short, PRODUCTION).catch((thrown: unknown) => thrown);
    expect(fresh).to.be.instanceOf(TenantFault);
    expect((fresh as TenantFault).faults).to.deep.equal([
      'clients[0].client_secret: web has a client_secret of fewer than 22 characters',
    ]);
  });

  it('is no longer refused because of secrets after the tenant file was applied', async () => {
    const { users: _users, ...file } = await example();
    await inDevelopment(file, ({ store, users }) =>
      applyTenant(
        { store, users, random: systemRandom, managementAudience: 'https://localhost/api/v2/' },
        readTenant(CLEAN).tenant,
        {
          mode: 'match',
          users: false,
        },
      ),
    );
    expect(await refusal()).to.equal('');
  });

  it("starts with a user of the example's address who has another password", async () => {
    const users = [{ email: 'user@example.test', password: 'Of-Their-0wn' }];
    await inDevelopment({ ...CLEAN, users });
    expect(await refusal()).to.equal('');
  });
});
