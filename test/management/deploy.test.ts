// The deploy tool that people keep their tenants with, unmodified: both of its formats, with everything that it knows.
import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { listAll } from '../../src/store/list-all.ts';
import { APPLIED } from '../../src/tenant/wanted.ts';
import type { TestServer } from '../support/server.ts';
import { SECRETS, writeSample } from './sample-tenant.ts';
import { ADMIN, startManaged } from './support.ts';

const run = promisify(execFile);

/** What is another with each deployment, and what says when something was written. */
const OF_WRITING = new Set(['updated_at', 'created_at', 'built_at', 'deployed_version', 'versions']);

describe('the deploy tool', function () {
  // It paces itself, and checks what it reads for half a minute of a busy machine's time.
  this.timeout(600_000);
  const servers: TestServer[] = [];
  let folder: string;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'gatehouse-deploy-'));
  });
  after(async () => {
    for (const server of servers) await server.stop();
    await rm(folder, { recursive: true });
  });

  const start = async (tenant?: object) => {
    const server = await startManaged(tenant);
    servers.push(server);
    return server;
  };

  /** Runs the tool. @returns what it printed. @throws Error with that. */
  const tool = async (server: TestServer, ...args: string[]) => {
    const { stdout, stderr } = await run(
      process.execPath,
      ['--import', './test/support/quick-clock.ts', 'node_modules/auth0-deploy-cli/lib/index.js', ...args],
      {
        maxBuffer: 50_000_000,
        env: {
          PATH: process.env.PATH,
          AUTH0_DOMAIN: new URL(server.url).host,
          AUTH0_CLIENT_ID: ADMIN.client_id,
          AUTH0_CLIENT_SECRET: ADMIN.client_secret,
          NODE_EXTRA_CA_CERTS: server.caFile,
        },
      },
    ).catch((thrown: { stdout?: string; stderr?: string; message: string }) => {
      throw new Error(`${thrown.message}\n${thrown.stdout}\n${thrown.stderr}`);
    });
    return stdout + stderr;
  };

  const exportTo = async (server: TestServer, name: string) => {
    const output = join(folder, name);
    await tool(server, 'export', '--format', 'directory', '--output_folder', output);
    return output;
  };

  const importFrom = (server: TestServer, input: string) => tool(server, 'import', '--input_file', input);

  it('writes every kind of setting, moves a tenant to an empty one, and a second import changes nothing', async () => {
    const full = await start();
    await importFrom(full, await writeSample(join(folder, 'sample')));
    const exported = await exportTo(full, 'exported');
    const files = await filesOf(exported);
    for (const kind of EVERY_KIND)
      expect(
        Object.keys(files).filter((name) => name.startsWith(kind)),
        kind,
      ).not.to.deep.equal([]);
    for (const secret of Object.values(SECRETS)) expect(JSON.stringify(files)).not.to.contain(secret);

    const empty = await start({});
    await importFrom(empty, exported);
    expect(await filesOf(await exportTo(empty, 'moved'))).to.deep.equal(files);

    const records = await recordsOf(full);
    for (const secret of Object.values(SECRETS)) expect(JSON.stringify(records)).to.contain(secret);
    const printed = await importFrom(full, exported);
    expect(printed).not.to.match(/Created \[|Deleted \[/);
    expect(await recordsOf(full)).to.deep.equal(records);
  });
});

/** Files and folders of an export, one for each kind of setting. */
const EVERY_KIND = [
  'action-modules/',
  'actions/',
  'attack-protection/',
  'branding/',
  'clients/',
  'connection-profiles/',
  'connections/',
  'custom-domains',
  'database-connections/',
  'emails/',
  'event-streams/',
  'flow-vault-connections/',
  'flows/',
  'forms/',
  'grants/',
  'guardian/factors/',
  'guardian/policies',
  'guardian/templates/',
  'hooks/',
  'log-streams/',
  'network-acls/',
  'organizations/',
  'pages/',
  'phone-providers/',
  'phone-templates/',
  'prompts/',
  'rate-limit-policies/',
  'resource-servers/',
  'risk-assessment/',
  'roles/',
  'rules/',
  'self-service-profiles/',
  'supplemental-signals',
  'tenant.json',
  'themes/',
  'token-exchange-profiles/',
  'triggers/',
  'user-attribute-profiles/',
];

/** All files below a folder: JSON as values, in which the order of members means nothing. */
async function filesOf(folder: string): Promise<Record<string, unknown>> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = await Promise.all(
    entries
      .filter((entry) => entry.isFile())
      .map(async (entry) => {
        const path = join(entry.parentPath, entry.name);
        const text = await readFile(path, 'utf8');
        return [path.slice(folder.length + 1), path.endsWith('.json') ? JSON.parse(text) : text] as const;
      }),
  );
  return Object.fromEntries(files.sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** All records of the configuration, without when they were written. */
async function recordsOf({ store }: TestServer): Promise<unknown> {
  const all: Record<string, unknown> = {};
  for (const name of APPLIED) {
    const records = (await listAll(store.collection(name) as never)) as { id: string }[];
    all[name] = records.sort((a, b) => (a.id < b.id ? -1 : 1));
  }
  return JSON.parse(
    JSON.stringify(all, (name, value: unknown) => (OF_WRITING.has(name) ? undefined : value)),
  );
}
