// A development server that takes changes of its tenant file over.
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { watchTenant } from '../../src/server/watch-tenant.ts';
import { readSettings } from '../../src/settings/index.ts';
import { loadTenantFile } from '../../src/tenant/load.ts';
import { createAgent } from '../support/agent.ts';
import { pkce } from '../support/flows.ts';
import { runServer } from '../support/process.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { until } from '../support/wait-until.ts';

const FILE = `tenant: { friendly_name: Before, default_directory: people }
clients:
  - { client_id: one, name: One, app_type: spa, callbacks: [http://localhost:5173] }
  - { client_id: two, name: Two, app_type: spa }
databases:
  - { name: people, strategy: auth0, enabled_clients: [one, two] }
resourceServers:
  - { name: Things, identifier: https://api.example.test/ }
emailTemplates:
  - { template: welcome_email, enabled: true, syntax: liquid, from: a@example.test, subject: Hello, body: ./pages/welcome.html }
users:
  - { email: ada@example.test, password: A-good-Passw0rd }
`;

describe('a watched tenant file', () => {
  let cwd: string;
  let server: TestServer;
  let watch: { close(): void };
  let lines: string[];

  const file = () => join(cwd, 'config/tenant.yaml');
  const write = (text: string) => writeFileSync(file(), text);
  const edit = (from: string | RegExp, to: string) => write(readFileSync(file(), 'utf8').replace(from, to));
  /** Waits for a line of the log, and forgets it and those before it. */
  const said = async (part: string): Promise<string> => {
    await until(() => lines.some((line) => line.includes(part)));
    const at = lines.findIndex((line) => line.includes(part));
    return lines.splice(0, at + 1).at(-1) ?? '';
  };

  beforeEach(async () => {
    cwd = mkdtempSync(join(tmpdir(), 'gatehouse-watch-'));
    mkdirSync(join(cwd, 'config/pages'), { recursive: true });
    writeFileSync(join(cwd, 'config/pages/welcome.html'), '<p>First</p>');
    write(FILE);
    const files: string[] = [];
    const { tenant } = await loadTenantFile(file(), {}, (path) => files.push(path));
    server = await startServer({ tenant });
    const { follow } = server;
    if (follow === undefined) throw new Error('a single process follows');
    lines = [];
    const add = (line: unknown) => void lines.push(String(line));
    watch = watchTenant({
      file: file(),
      loaded: { tenant, files },
      load: (onFile) => loadTenantFile(file(), {}, onFile),
      follow,
      log: { info: add, warn: add, error: add } as unknown as Parameters<typeof watchTenant>[0]['log'],
    });
  });
  afterEach(async () => {
    watch.close();
    await server.stop();
    rmSync(cwd, { recursive: true, force: true });
  });

  const client = (id: string) => server.store.collection('clients').get(id);
  const connections = async () => (await server.store.collection('connections').list({ limit: 100 })).records;

  it('is in force at the next request, and one line says what changed', async () => {
    const redirect_uri = 'http://localhost:9999';
    const query = new URLSearchParams({
      client_id: 'one',
      response_type: 'code',
      redirect_uri,
      code_challenge: pkce().challenge,
      code_challenge_method: 'S256',
    });
    const status = async () => (await createAgent(server).get(`/authorize?${query}`)).status;
    expect(await status()).to.equal(400);
    edit('[http://localhost:5173]', `[http://localhost:5173, ${redirect_uri}]`);
    expect(await said('callbacks')).to.equal(`${file()}: + clients.one.callbacks[1]: "${redirect_uri}"`);
    expect(await status()).to.equal(302);
    expect(lines).to.deep.equal([]);
  });

  it('with faults changes nothing: they are shown with their places until they are corrected', async () => {
    edit('friendly_name: Before', 'friendly_name: [');
    await said('; the server runs on with what it had');
    expect(await said('not valid YAML')).to.contain(`(${file()}:`);
    write(FILE.replace('client_id: two, name: Two', 'client_id: two').replace('Before', 'After'));
    expect(await said('clients.1.name')).to.contain(`(${file()}:4)`);
    expect((await server.store.collection('tenant').get('tenant'))?.tenant.friendly_name).to.equal('Before');
    write(FILE.replace('Before', 'After'));
    await said('~ tenant.friendly_name: "Before" → "After"');
  });

  // A shell does that at once, and the command some time later: gatehouse export > tenant.yaml
  it('may be empty before it is written: nothing is removed', async () => {
    for (const text of ['', '# to be written\n']) {
      write(text);
      await said('; the server runs on with what it had');
      expect(await said('it is empty')).to.contain('write clients: []');
      expect(await client('one')).to.include({ name: 'One' });
    }
    write(FILE.replace('Before', 'After'));
    await said('~ tenant.friendly_name: "Before" → "After"');
  });

  it('may be replaced by another one, as editors do, again and again', async () => {
    for (const name of ['Second', 'Third']) {
      writeFileSync(`${file()}~`, FILE.replace('Before', name));
      renameSync(`${file()}~`, file());
      await said(`→ "${name}"`);
    }
  });

  it('may vanish together with its folder, and come back', async () => {
    rmSync(dirname(file()), { recursive: true });
    await said('is gone');
    mkdirSync(join(cwd, 'config/pages'), { recursive: true });
    writeFileSync(join(cwd, 'config/pages/welcome.html'), '<p>First</p>');
    write(FILE.replace('Before', 'Second'));
    await said('→ "Second"');
    edit('Second', 'Third');
    await said('→ "Third"');
  });

  it('is read again when a file that it names changes, also one that was missing', async () => {
    const page = join(cwd, 'config/pages/welcome.html');
    writeFileSync(page, '<p>Second</p>');
    await said('<p>Second</p>');
    edit('./pages/welcome.html', './others/welcome.html');
    await said('cannot be read');
    mkdirSync(join(cwd, 'config/others'));
    writeFileSync(join(cwd, 'config/others/welcome.html'), '<p>Third</p>');
    edit('# none', '');
    await said('<p>Third</p>');
  });

  it('leaves alone what was created, changed or deleted elsewhere, and is the same in the file', async () => {
    const one = await client('one');
    if (one === undefined) throw new Error('the file declares it');
    await server.store
      .collection('clients')
      .put({ ...one, id: 'console', client_id: 'console', name: 'Console' });
    await server.store.collection('clients').update('one', (record) => ({ ...record, name: 'Renamed' }));
    await server.store.collection('clients').delete('two');
    const [people] = await connections();
    await server.store
      .collection('connections')
      .update(String(people?.id), (record) => ({ ...record, enabled_clients: ['one', 'console'] }));
    edit('Before', 'After');
    expect(await said('After')).to.equal(`${file()}: ~ tenant.friendly_name: "Before" → "After"`);
    expect(await client('console')).not.to.equal(undefined);
    expect((await client('one'))?.name).to.equal('Renamed');
    expect(await client('two')).to.equal(undefined);
    expect((await connections())[0]?.enabled_clients).to.deep.equal(['one', 'console']);
  });

  it('removes what it no longer declares, but not what users belong to', async () => {
    write(FILE.replace(/ {2}- \{ client_id: two.*\n/, '').replace('[one, two]', '[one]'));
    await said('- clients.two');
    expect(await client('two')).to.equal(undefined);
    write(
      FILE.replace(/ {2}- \{ client_id: two.*\n/, '')
        .replace(/databases:\n.*\n/, '')
        .replace(', default_directory: people', '')
        .replace(/users:\n.*\n/, ''),
    );
    await said('connections.people stays, because users belong to it: gatehouse apply removes it');
    expect((await connections()).map(({ name }) => name)).to.deep.equal(['people']);
    expect(await server.users.findInConnection({ name: 'people' }, 'ada@example.test')).not.to.equal(
      undefined,
    );
  });

  it('creates the users that were added to it', async () => {
    edit('users:\n', 'users:\n  - { email: grace@example.test, password: A-good-Passw0rd }\n');
    await said('+ users.grace@example.test');
  });
});

describe('the watch of a tenant file', () => {
  let cwd: string;
  beforeEach(() => {
    cwd = mkdtempSync(join(tmpdir(), 'gatehouse-watch-'));
  });
  afterEach(() => rmSync(cwd, { recursive: true, force: true }));

  /** A watch whose events and pauses come from the test. */
  async function watched() {
    const file = join(cwd, 'tenant.yaml');
    const named = (name: string) => `tenant: { friendly_name: ${name} }\n`;
    writeFileSync(file, named('first'));
    const { tenant } = await loadTenantFile(file, {});
    let happens: (name?: string) => void = () => undefined;
    const pauses: (() => void)[] = [];
    const followed: string[] = [];
    const lines: string[] = [];
    const add = (line: unknown) => void lines.push(String(line));
    let closed = 0;
    const watch = watchTenant({
      file,
      loaded: { tenant, files: [file] },
      load: (onFile) => loadTenantFile(file, {}, onFile),
      follow: async (next) => {
        followed.push(String(next.tenant.friendly_name));
        return ['~ changed'];
      },
      log: { info: add, warn: add, error: add } as unknown as Parameters<typeof watchTenant>[0]['log'],
      watch: (_folder, onEvent) => {
        happens = onEvent;
        return { close: () => closed++ };
      },
      pause: () => new Promise((resolve) => pauses.push(resolve)),
    });
    return {
      file,
      named,
      followed,
      lines,
      watch,
      happens: (name?: string) => happens(name),
      closed: () => closed,
      /** Ends the pause that it is in. */
      pass: async () => {
        await until(() => pauses.length > 0);
        pauses.shift()?.();
      },
    };
  }

  it('reads a file that is written in parts when nothing happens to it any more', async () => {
    const { file, named, followed, happens, pass, lines } = await watched();
    writeFileSync(file, 'tenant: {');
    happens('tenant.yaml');
    writeFileSync(file, named('second'));
    happens('tenant.yaml');
    await pass();
    await pass();
    await until(() => followed.length > 0);
    expect(followed).to.deep.equal(['second']);
    expect(lines).to.deep.equal([`${file}: ~ changed`]);
  });

  it('reads it again after changes that came while it was read, and ignores other files', async () => {
    const { file, named, followed, happens, pass } = await watched();
    happens('other.yaml');
    happens();
    await pass();
    await until(() => followed.length > 0);
    writeFileSync(file, named('second'));
    happens('tenant.yaml');
    await pass();
    await until(() => followed.length > 1);
    expect(followed).to.deep.equal(['first', 'second']);
  });

  it('says nothing of a file that vanishes for a moment', async () => {
    const { file, named, followed, happens, pass, lines } = await watched();
    rmSync(file);
    happens('tenant.yaml');
    await pass();
    writeFileSync(file, named('second'));
    await pass();
    await pass();
    await until(() => followed.length > 0);
    expect(lines).to.deep.equal([`${file}: ~ changed`]);
  });

  it('is over when it is closed, also in a pause', async () => {
    const { watch, followed, happens, pass, closed, lines } = await watched();
    happens('tenant.yaml');
    watch.close();
    await pass();
    happens('tenant.yaml');
    expect(closed()).to.equal(1);
    expect([followed, lines]).to.deep.equal([[], []]);
  });
});

describe('WATCH_TENANT', () => {
  const watchTenantOf = (env: Record<string, string>) => readSettings(env).watchTenant;

  const faultsOf = (env: Record<string, string>): unknown => {
    try {
      return readSettings(env) && [];
    } catch (thrown) {
      return (thrown as { faults?: unknown }).faults;
    }
  };

  it('is on in a terminal in development, off in tests, and refused in production and for several processes', () => {
    expect(watchTenantOf({})).to.equal('in-terminal');
    expect(watchTenantOf({ NODE_ENV: 'test' })).to.equal('off');
    expect(watchTenantOf({ NODE_ENV: 'test', WATCH_TENANT: 'on' })).to.equal('on');
    expect(watchTenantOf({ WATCH_TENANT: 'off' })).to.equal('off');
    const production = {
      NODE_ENV: 'production',
      BASE_URL: 'https://login.example.test',
      TLS: 'files',
      TLS_CERT: 'cert.pem',
      TLS_KEY: 'key.pem',
    };
    expect(watchTenantOf(production)).to.equal('off');
    expect(faultsOf({ ...production, WATCH_TENANT: 'on' })).to.deep.equal([
      'WATCH_TENANT: for development only; in production run gatehouse apply',
    ]);
    const several = { WORKERS: '2', DATABASE_URL: 'postgres://localhost/gatehouse' };
    expect(faultsOf({ ...several, WATCH_TENANT: 'on' })).to.deep.equal([
      'WATCH_TENANT: one process takes changes over, and not several',
    ]);
    expect(faultsOf({ ...several, WATCH_TENANT: 'off' })).to.deep.equal([]);
  });

  it('lets a process take a change over, and stop as usual', async () => {
    const cwd = mkdtempSync(join(tmpdir(), 'gatehouse-watch-'));
    const server = await runServer({ cwd, env: { WATCH_TENANT: 'on' } });
    try {
      const path = join(cwd, 'config/tenant.yaml');
      writeFileSync(
        path,
        readFileSync(path, 'utf8').replace('friendly_name: Gatehouse', 'friendly_name: Harbour'),
      );
      await server.line((line) => line.includes('friendly_name') && line.includes('Harbour'));
      expect(await server.end('SIGTERM')).to.equal(0);
    } finally {
      if (server.child.exitCode === null && server.child.signalCode === null) await server.end('SIGKILL');
      rmSync(cwd, { recursive: true, force: true });
    }
  });
});
