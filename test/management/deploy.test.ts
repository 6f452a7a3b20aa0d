// The deploy tool that people keep their tenants with, unmodified.
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { parse } from 'yaml';
import type { TestServer } from '../support/server.ts';
import { ADMIN, startManaged } from './support.ts';

const run = promisify(execFile);

describe('the deploy tool', () => {
  let server: TestServer;
  let folder: string;

  before(async () => {
    server = await startManaged();
    folder = await mkdtemp(join(tmpdir(), 'gatehouse-deploy-'));
  });
  after(async () => {
    await server.stop();
    await rm(folder, { recursive: true });
  });

  const tool = (...args: string[]) =>
    run(process.execPath, ['node_modules/auth0-deploy-cli/lib/index.js', ...args], {
      env: {
        PATH: process.env.PATH,
        AUTH0_DOMAIN: new URL(server.url).host,
        AUTH0_CLIENT_ID: ADMIN.client_id,
        AUTH0_CLIENT_SECRET: ADMIN.client_secret,
        NODE_EXTRA_CA_CERTS: server.caFile,
      },
    });

  it('exports the example tenant', async function () {
    this.timeout(300_000);
    await tool('export', '--format', 'yaml', '--output_folder', folder);
    const exported = parse(await readFile(join(folder, 'tenant.yaml'), 'utf8')) as Record<
      string,
      { name: string }[]
    >;
    const names = (section: string) => exported[section]?.map(({ name }) => name);
    expect(names('clients')).to.include.members(['Example SPA', 'Example web app', 'Example machine']);
    expect(names('resourceServers')).to.deep.equal(['Example API']);
    expect(names('databases')).to.deep.equal(['Username-Password-Authentication']);
    expect(names('connections')).to.deep.equal(['email']);
  });
});
