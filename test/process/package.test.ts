// The published package: packed, put into an empty folder, started there with npx.
import { execFileSync, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { tenant } from '../connections/passwordless/tenant.ts';
import { createAgent } from '../support/agent.ts';
import { runServer } from '../support/process.ts';
import { startTwilio, TWILIO } from '../support/twilio.ts';

/** With the Node.js that runs the tests first. */
const PATH = `${dirname(process.execPath)}${delimiter}${process.env.PATH}`;

const REPOSITORY = fileURLToPath(new URL('../../', import.meta.url));

/** What the package may contain. Further files need a reason: everybody who installs it waits for them. */
const CONTENTS = [
  'CHANGELOG.md',
  'LICENSE',
  'README.md',
  'config',
  'dist',
  'package.json',
  'sandbox',
  'views',
];
// The languages of the pages are 0.8 MB of it, and 3.7 MB when unpacked.
const MAX_PACKED_BYTES = 3_500_000;
const MAX_UNPACKED_BYTES = 14_500_000;
/** The packages that are installed with it, theirs included, on all machines together. */
const MAX_PACKAGES = 135;

/** Packages whose code is in its files, with what they need. The bill of materials lists all (test/deploy/sbom.test.ts). */
const BUNDLED = [
  '@koa/bodyparser',
  'commander',
  'diff',
  'hash-wasm',
  'intl-messageformat',
  'libphonenumber-js',
  'otpauth',
  'p-queue',
  'pino',
  'prom-client',
  'qrcode',
  'tldts',
  'twilio',
  'yaml',
];
const MAX_BUNDLED = 85;

const manifestIn = (directory: string) => JSON.parse(readFileSync(join(directory, 'package.json'), 'utf8'));

describe('the published package', () => {
  let folder: string;
  let packed: { filename: string; size: number; unpackedSize: number };

  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'gatehouse-package-'));
    [packed] = JSON.parse(
      execFileSync('npm', ['pack', '--json', '--pack-destination', folder], {
        cwd: REPOSITORY,
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'ignore'],
      }),
    );
    // As `npm install <tarball>` would do, without a registry: what it declares is taken from the checkout.
    const modules = join(folder, 'node_modules');
    mkdirSync(join(modules, '.bin'), { recursive: true });
    execFileSync('tar', ['xzf', join(folder, packed.filename), '-C', modules]);
    execFileSync('mv', [join(modules, 'package'), join(modules, 'gatehouse')]);
    rmSync(join(folder, packed.filename));
    const { bin, dependencies } = manifestIn(join(modules, 'gatehouse'));
    for (const name of Object.keys(dependencies)) {
      mkdirSync(dirname(join(modules, name)), { recursive: true });
      symlinkSync(join(REPOSITORY, 'node_modules', name), join(modules, name));
    }
    const command = join(modules, 'gatehouse', bin.gatehouse);
    chmodSync(command, 0o755);
    symlinkSync(command, join(modules, '.bin/gatehouse'));
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  it('contains what it needs to run, as JavaScript, and nothing else', () => {
    expect(readdirSync(join(folder, 'node_modules/gatehouse')).sort()).to.deep.equal(CONTENTS);
    const all = globSync('dist/**/*.*', { cwd: join(folder, 'node_modules/gatehouse') });
    // The documents as a site (test/site).
    const files = all.filter((file) => !file.startsWith('dist/site/'));
    expect(all).to.include('dist/site/index.html');
    const others = files.filter((file) => !file.endsWith('.js'));
    expect(others.filter((file) => !file.endsWith('.d.ts'))).to.deep.equal(['dist/LICENSES.txt']);
    // Those of the entry point, and what they import.
    expect(others).to.have.lengthOf.below(10);
  });

  it('stays small', () => {
    expect(packed.size).to.be.below(MAX_PACKED_BYTES);
    expect(packed.unpackedSize).to.be.below(MAX_UNPACKED_BYTES);
    const { packages } = JSON.parse(readFileSync(join(REPOSITORY, 'package-lock.json'), 'utf8'));
    const installed = Object.entries<{ dev?: boolean }>(packages).filter(
      ([place, { dev }]) => place !== '' && dev !== true,
    );
    expect(installed).to.have.lengthOf.below(MAX_PACKAGES);
  });

  it('contains few packages, with their licences', () => {
    const licences = readFileSync(join(folder, 'node_modules/gatehouse/dist/LICENSES.txt'), 'utf8');
    const named = [...licences.matchAll(/^(@?[a-z][\w./-]*) \d+\.\d+\.\d+ \(.+\)$/gm)].map(
      ([, name = '']) => name,
    );
    const { devDependencies } = manifestIn(REPOSITORY);
    expect(named.filter((name) => name in devDependencies)).to.deep.equal(BUNDLED);
    expect(named).to.have.lengthOf.below(MAX_BUNDLED);
    expect(licences).to.contain('Twilio, Inc').and.not.contain('no licence named');
  });

  it('offers a server for the tests of applications, with its types', () => {
    const script = `
      import { startGatehouse } from 'gatehouse/testing';
      const server = await startGatehouse({ tenant: { databases: [{ name: 'people' }] } });
      const user = await server.users.create({ email: 'ada@example.test', password: 'A-good-Passw0rd' });
      await server.stop();
      console.log(user.id.startsWith('auth0|') && server.url.startsWith('https://localhost:'));
    `;
    const printed = execFileSync(process.execPath, ['--input-type=module', '-e', script], {
      cwd: folder,
      encoding: 'utf8',
    });
    expect(printed.trim()).to.equal('true');
  });

  it('has types for strict programs that check those of their packages, too', () => {
    writeFileSync(
      join(folder, 'use.mts'),
      `import { startGatehouse, type TestGatehouse } from 'gatehouse/testing';
      const server: TestGatehouse = await startGatehouse({ tenant: {} });
      const account = { email: 'ada@example.test', password: 'A-good-Passw0rd' };
      export const { id } = await server.users.create({ ...account, profile: { name: 'Ada' } });
      // @ts-expect-error The URL is a string.
      export const url: number = server.url;
      // @ts-expect-error A name is a string.
      await server.users.create({ ...account, profile: { name: 1 } });`,
    );
    const options = ['--noEmit', '--strict', '--module', 'nodenext', '--types', '', 'use.mts'];
    const { stdout, status } = spawnSync(join(REPOSITORY, 'node_modules/.bin/tsc'), options, {
      cwd: folder,
      encoding: 'utf8',
      env: { PATH },
    });
    expect(stdout).to.equal('');
    expect(status).to.equal(0);
  });

  it('starts in an empty folder, and stops on SIGTERM', async () => {
    const server = await runServer({
      ownKeys: true,
      cwd: folder,
      command: [join(folder, 'node_modules/.bin/gatehouse')],
      env: { PATH },
    });
    expect(existsSync(join(folder, 'config/tenant.yaml')), 'wrote an example tenant').to.equal(true);
    const agent = createAgent(server);
    expect((await agent.get('/healthz')).json()).to.deep.equal({ status: 'ok' });
    expect((await agent.get('/')).text).to.contain('example-spa');
    expect(await server.end('SIGTERM')).to.equal(0);
  });

  it("sends SMS with Twilio's client", async () => {
    const twilio = await startTwilio();
    const cwd = join(folder, 'with-sms');
    mkdirSync(join(cwd, 'config'), { recursive: true });
    // YAML includes JSON.
    writeFileSync(join(cwd, 'config/tenant.yaml'), JSON.stringify(tenant));
    const server = await runServer({
      ownKeys: true,
      cwd,
      command: [join(folder, 'node_modules/.bin/gatehouse')],
      env: {
        PATH,
        TWILIO_ACCOUNT_SID: TWILIO.accountSid,
        TWILIO_AUTH_TOKEN: TWILIO.authToken,
        TWILIO_FROM: '+15005550006',
        TWILIO_API_URL: twilio.url,
      },
    });
    try {
      const { status } = await createAgent(server).request('/passwordless/start', {
        json: {
          client_id: 'web',
          client_secret: 'web-secret',
          connection: 'sms',
          phone_number: '+16505551234',
        },
      });
      expect(status).to.equal(200);
      expect(twilio.messages.map(({ To }) => To)).to.deep.equal(['+16505551234']);
    } finally {
      await server.end('SIGTERM');
      await twilio.stop();
    }
  });

  it('starts with npx, without a request to a registry, and stops as at a terminal', async () => {
    const server = await runServer({
      ownKeys: true,
      cwd: folder,
      command: ['npx', '--no-install', 'gatehouse'],
      // Nothing answers there, so that any request to a registry fails.
      env: { PATH, npm_config_registry: 'http://127.0.0.1:9/' },
      detached: true,
    });
    expect((await createAgent(server).get('/healthz')).json()).to.deep.equal({ status: 'ok' });
    // A terminal signals the whole process group. The output ends with the last of its processes.
    const ended = once(server.child, 'close');
    process.kill(-Number(server.child.pid), 'SIGINT');
    await ended;
    expect(server.lines.at(-1)).to.contain('"signal":"SIGINT"');
  });
});
