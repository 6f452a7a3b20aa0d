// What `gatehouse move out` makes of what somebody has written with rights at the Management API, or put in the way of its folder.
import { mkdtemp, readdir, readFile, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { parse } from 'yaml';
import { leavingFiles } from '../../src/moving/leaving-files.ts';
import { callApi, startManaged } from '../management/support.ts';
import { runCommand } from '../support/command.ts';
import { readByTool } from '../support/deploy-tool.ts';
import type { TestServer } from '../support/server.ts';
import { order } from '../support/tenant-folder.ts';

describe('what somebody has written with rights at the Management API, when the tenant moves out', () => {
  let folder: string;
  let server: TestServer;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'gatehouse-out-hostile-'));
    server = await startManaged();
  });
  afterEach(async () => {
    await server.stop();
    await rm(folder, { recursive: true });
  });

  const moveOut = (output: string, format = 'yaml') =>
    runCommand({
      cwd: folder,
      env: { DATA_DIR: server.dataDir },
      args: ['move', 'out', '--output', output, '--format', format],
    });

  /** @returns the answer. @throws Error unless it was accepted */
  const write = async (method: string, path: string, body?: object): Promise<Record<string, any>> => {
    const response = await callApi(server, method, path, body);
    const answer = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${answer}`);
    return (answer === '' ? {} : JSON.parse(answer)) as Record<string, any>;
  };

  it('is no path when it looks like one: Gatehouse reads the text, and no file', async () => {
    const parts = { login: { 'form-content-start': './x.html', 'form-content-end': 'gatehouse-only.html' } };
    await write('PUT', '/prompts/login/partials', parts);
    // Changes of an Action that wait for their deployment are in the file of what only Gatehouse knows.
    const action = await write('POST', '/actions/actions', {
      name: 'Greet',
      code: 'exports.onExecutePostLogin = async () => {};',
      supported_triggers: [{ id: 'post-login', version: 'v3' }],
    });
    await write('POST', `/actions/actions/${action.id}/deploy`);
    await write('PATCH', `/actions/actions/${action.id}`, { code: './tenant.yaml' });
    for (const format of ['yaml', 'directory']) {
      const { code, stderr } = await moveOut(`out-${format}`, format);
      expect(code, stderr).to.equal(0);
      const tenant = join(folder, `out-${format}`, format === 'yaml' ? 'tenant.yaml' : 'tenant');
      expect(await order(server, 'plan', { path: tenant })).to.deep.equal([]);
    }
  });

  it('leaves the code in force to the deploy tool, and not changes that nobody has deployed', async () => {
    const written = 'exports.onExecutePostLogin = async () => { "in force"; };';
    const made = { supported_triggers: [{ id: 'post-login', version: 'v3' }], code: written };
    const secrets = [{ name: 'KEY', value: 'in-force' }];
    const used = await write('POST', '/actions/actions', { ...made, name: 'Used', secrets });
    await write('POST', `/actions/actions/${used.id}/deploy`);
    await write('PATCH', `/actions/actions/${used.id}`, {
      code: 'a draft',
      secrets: [{ name: 'KEY', value: 'of-a-draft' }],
    });
    const whole = await write('POST', '/actions/actions', { ...made, name: 'Whole' });
    await write('POST', `/actions/actions/${whole.id}/deploy`);
    await write('POST', '/actions/actions', { ...made, name: 'Never' });
    expect((await moveOut('out')).code).to.equal(0);
    const tenant = join(folder, 'out/tenant.yaml');
    const [read] = (await readByTool([tenant])) as [{ actions: Record<string, unknown>[] }];
    const actions = Object.fromEntries(read.actions.map((one) => [one.name, one]));
    expect(actions.Used).to.deep.include({ code: written, deployed: true, secrets });
    expect(actions.Whole).to.deep.include({ code: written, deployed: true });
    expect(actions.Never).to.deep.include({ deployed: false });
    expect(await order(server, 'plan', { path: tenant })).to.deep.equal([]);
  });

  it('is no application that the deploy tool takes for another one of the same name', async () => {
    const api = 'https://api.example.test/';
    const own = {
      name: 'Back office',
      app_type: 'non_interactive',
      callbacks: ['https://own.example.test/'],
    };
    const real = await write('POST', '/clients', own);
    const twin = await write('POST', '/clients', { ...own, callbacks: ['https://evil.example.test/'] });
    const ids = [real.client_id, twin.client_id];
    for (const client_id of ids)
      await write('POST', '/client-grants', { client_id, audience: api, scope: [] });
    const connection = { name: 'partners', strategy: 'auth0', enabled_clients: ids };
    await write('POST', '/connections', connection);
    const { code, stderr } = await moveOut('out');
    expect(code, stderr).to.equal(0);
    const text = await readFile(join(folder, 'out/tenant.yaml'), 'utf8');
    const { clients, clientGrants, databases } = parse(text);
    expect(clients.map(({ name }: { name: string }) => name)).not.to.include('Back office');
    expect(text).not.to.include('evil.example.test');
    for (const id of ids) {
      expect(clientGrants.map(({ client_id }: { client_id: string }) => client_id)).not.to.include(id);
      expect(text).not.to.include(id);
    }
    expect(databases.find(({ name }: { name: string }) => name === 'partners').enabled_clients).to.deep.equal(
      [],
    );
    expect(stderr.match(/clients Back office: another application has this name/g)).to.have.length(2);
    await write('PATCH', `/clients/${twin.client_id}`, { name: 'Another' });
    expect((await moveOut('renamed')).code).to.equal(0);
    expect(await order(server, 'plan', { path: join(folder, 'renamed/tenant.yaml') })).to.deep.equal([]);
  });

  it('goes to a folder that is named with a slash at its end, and never to where a link leads', async () => {
    expect((await moveOut('out/')).code).to.equal(0);
    await symlink(join(folder, 'elsewhere'), join(folder, 'link'));
    const { code, stdout, stderr } = await moveOut('link');
    expect({ code, text: stdout + stderr }).to.deep.equal({ code: 1, text: 'link is there already\n' });
    expect(await readdir(folder)).to.have.members(['out', 'link']);
  });

  it('has import files of its own for each of two connections whose names differ by case alone', async () => {
    for (const name of ['Cased', 'CASED']) {
      await write('POST', '/connections', { name, strategy: 'auth0' });
      await write('POST', '/users', {
        connection: name,
        email: `${name}@example.test`,
        password: 'Correct-horse-7!',
      });
    }
    expect((await moveOut('out')).code).to.equal(0);
    const names = (await readdir(join(folder, 'out/import'))).filter((name) => /^cased/i.test(name));
    expect(names).to.have.length(2);
    expect(new Set(names.map((name) => name.toLowerCase()))).to.have.length(2);
  });
});

describe('files of a move out', () => {
  it('that cannot be written are an error, and do not end the process', async () => {
    const missing = join(tmpdir(), 'gatehouse-no-such-folder');
    const files = leavingFiles(missing);
    const failed = await files.write({ of: 'import/Users', lines: '{}\n' }).catch((thrown) => thrown);
    expect(failed).to.have.property('code', 'ENOENT');
    await files.abandon();
  });
});
