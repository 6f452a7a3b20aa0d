// What `gatehouse move out` writes about the tenant: the hosted service's deploy tool takes it, and Gatehouse takes it back.
import { generateKeyPairSync } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { parse } from 'yaml';
import { FORMATS, type Format } from '../../src/moving/leaving-layout.ts';
import { tenantFileSchema } from '../../src/records/tenant/tenant.ts';
import { runCommand } from '../support/command.ts';
import { readByTool } from '../support/deploy-tool.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { order } from '../support/tenant-folder.ts';
import { EVERYTHING } from '../tenant/everything.ts';

const vapid = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const { x = '', y = '', d = '' } = vapid.privateKey.export({ format: 'jwk' });
const point = Buffer.concat([Buffer.from([4]), Buffer.from(x, 'base64url'), Buffer.from(y, 'base64url')]);

/** A tenant with all sections that the store can have. */
const WHOLE = {
  ...EVERYTHING,
  customClaims: [{ claim: 'https://a.example/plan', value: 'user.app_metadata.plan', to: ['id_token'] }],
  emailProvider: {
    name: 'smtp',
    default_from_address: 'a@example.test',
    credentials: {
      smtp_host: 'smtp.example.test',
      smtp_port: 2525,
      smtp_user: 'u',
      smtp_pass: 'of-the-mail',
    },
  },
  guardianPhoneFactorMessageTypes: { message_types: ['sms', 'voice', 'pigeon'] },
  managementApi: { token_lifetime: 1800 },
  webPush: { subject: 'mailto:a@example.test', public_key: point.toString('base64url'), private_key: d },
};

/** Where the tenant is in the output. */
const TENANT: Readonly<Record<Format, string>> = { yaml: 'tenant.yaml', directory: 'tenant' };

describe('the tenant that moves out', () => {
  let folder: string;
  const servers: TestServer[] = [];
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'gatehouse-out-'));
  });
  afterEach(async () => {
    for (const server of servers.splice(0)) await server.stop();
  });
  after(() => rm(folder, { recursive: true }));

  const start = async (tenant: object) => {
    const server = await startServer({ tenant });
    servers.push(server);
    return server;
  };
  let count = 0;
  /** @returns the folder that the command has written, and what it said */
  const moveOut = async (server: TestServer, format: Format) => {
    const output = join(folder, `out-${++count}`);
    const { code, stdout, stderr } = await runCommand({
      cwd: folder,
      env: { DATA_DIR: server.dataDir },
      args: ['move', 'out', '--output', output, '--format', format],
    });
    expect(code, stdout + stderr).to.equal(0);
    return { output, tenant: join(output, TENANT[format]), stdout, stderr };
  };

  for (const format of FORMATS)
    it(`is read by the deploy tool, and is no change here: ${format}`, async () => {
      const server = await start(WHOLE);
      const { tenant, output } = await moveOut(server, format);
      const [read] = await readByTool([tenant]);
      expect(Object.keys(read ?? {})).to.include.members([
        'clients',
        'databases',
        'actions',
        'organizations',
      ]);
      expect(await order(server, 'plan', { path: tenant })).to.deep.equal([]);
      for (const entry of readdirSync(output, { recursive: true, withFileTypes: true })) {
        const { mode } = statSync(join(entry.parentPath, entry.name));
        expect(mode & 0o777, entry.name).to.equal(entry.isDirectory() ? 0o700 : 0o600);
      }
    });

  it('is the same to the deploy tool in both formats', async () => {
    const server = await start(WHOLE);
    const paths: string[] = [];
    for (const format of FORMATS) paths.push((await moveOut(server, format)).tenant);
    const [yaml = {}, directory = {}] = (await readByTool(paths)).map(sorted);
    // What the tool wants in a folder, or adds when it reads one.
    const { breachedPasswordDetection: _, ...protection } = Object(directory.attackProtection);
    const { screenRenderers: _none, ...prompts } = Object(directory.prompts);
    expect({ ...directory, attackProtection: protection, prompts }).to.deep.include(withoutEmpty(yaml));
  });

  it('has every section that the store can have, in one of its two parts', async () => {
    const server = await start(WHOLE);
    const { tenant } = await moveOut(server, 'yaml');
    const theirs = Object.keys(parse(readFileSync(tenant, 'utf8')));
    const own = parse(readFileSync(join(tenant, '../gatehouse-only.yaml'), 'utf8'));
    const written = new Set([...theirs, ...Object.keys(own.members), ...Object.keys(own.items)]);
    const missing = Object.keys(tenantFileSchema.shape).filter((section) => !written.has(section));
    // Users of the tenant file are for development alone; `unmanaged` is of a file, not of a tenant.
    expect(missing).to.have.members(['users', 'unmanaged']);
  });

  it('is written byte for byte the same again', async () => {
    const server = await start(WHOLE);
    for (const format of FORMATS) {
      const [first, second] = [await moveOut(server, format), await moveOut(server, format)];
      expect(contentsOf(second.output)).to.deep.equal(contentsOf(first.output));
    }
  });
});

function contentsOf(folder: string): Record<string, string> {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
  return Object.fromEntries(
    entries.sort().map((path) => [path.slice(folder.length), readFileSync(path, 'utf8')]),
  );
}

/** Returns what the tool read with the items of lists in an order of their own. */
function sorted(sections: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(sections).map(([name, value]) => [
      name,
      Array.isArray(value)
        ? [...value].sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1))
        : value,
    ]),
  );
}

const withoutEmpty = (sections: Record<string, unknown>) =>
  Object.fromEntries(
    Object.entries(sections).filter(([, value]) => !Array.isArray(value) || value.length > 0),
  );
