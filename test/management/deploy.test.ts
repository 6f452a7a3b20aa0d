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

describe('the deploy tool', function () {
  // It paces itself: some twenty seconds a run.
  this.timeout(300_000);
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

  /** Runs the tool. @throws Error with what it printed. */
  const tool = async (server: TestServer, ...args: string[]) => {
    const { stdout, stderr } = await run(
      process.execPath,
      ['node_modules/auth0-deploy-cli/lib/index.js', ...args],
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

  const exportTo = async (server: TestServer, name: string, format = 'yaml') => {
    const output = join(folder, name);
    await tool(server, 'export', '--format', format, '--output_folder', output);
    return output;
  };

  const importFrom = (server: TestServer, input: string) => tool(server, 'import', '--input_file', input);

  it('moves the example tenant to an empty one', async () => {
    const [full, empty] = [await start(), await start({})];
    const first = await exportTo(full, 'example');
    const exported = parse(await readFile(join(first, 'tenant.yaml'), 'utf8')) as Record<
      string,
      { name: string }[]
    >;
    const names = (section: string) => exported[section]?.map(({ name }) => name);
    expect(names('clients')).to.include.members(['Example SPA', 'Example web app', 'Example machine']);
    expect(names('resourceServers')).to.deep.equal(['Example API']);
    expect(names('databases')).to.deep.equal(['Username-Password-Authentication']);
    expect(names('connections')).to.deep.equal(['email']);
    await importFrom(empty, join(first, 'tenant.yaml'));
    const second = await exportTo(empty, 'moved');
    expect(parse(await readFile(join(second, 'tenant.yaml'), 'utf8'))).to.deep.equal(exported);
  });
});
