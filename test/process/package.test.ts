// The published package: packed, put into an empty folder, started there with npx.
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { createAgent } from '../support/agent.ts';
import { runServer } from '../support/process.ts';

/** With the Node.js that runs the tests first. */
const PATH = `${dirname(process.execPath)}${delimiter}${process.env.PATH}`;

const REPOSITORY = fileURLToPath(new URL('../../', import.meta.url));

/** Returns the packages that a file of declarations imports, directly or through other files of ours. */
function packagesOf(file: string, seen = new Set<string>()): string[] {
  if (seen.has(file)) return [];
  seen.add(file);
  const imported = [...readFileSync(file, 'utf8').matchAll(/(?:from|import) '([^']+)'/g)].map(
    ([, name = '']) => name,
  );
  const found = imported.flatMap((name) =>
    name.startsWith('.')
      ? packagesOf(join(dirname(file), name.replace(/\.ts$/, '.d.ts')), seen)
      : name.startsWith('node:')
        ? []
        : [name],
  );
  return [...new Set(found)].sort();
}

describe('the published package', () => {
  let folder: string;

  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'gatehouse-package-'));
    const [packed] = JSON.parse(
      execFileSync('npm', ['pack', '--json', '--pack-destination', folder], {
        cwd: REPOSITORY,
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'ignore'],
      }),
    );
    // As `npm install <tarball>` would do, without a registry: the dependencies are those of the checkout.
    const modules = join(folder, 'node_modules');
    mkdirSync(join(modules, '.bin'), { recursive: true });
    execFileSync('tar', ['xzf', join(folder, packed.filename), '-C', modules]);
    execFileSync('mv', [join(modules, 'package'), join(modules, 'gatehouse')]);
    rmSync(join(folder, packed.filename));
    for (const name of readdirSync(join(REPOSITORY, 'node_modules'))) {
      if (!name.startsWith('.')) symlinkSync(join(REPOSITORY, 'node_modules', name), join(modules, name));
    }
    const { bin } = JSON.parse(readFileSync(join(modules, 'gatehouse/package.json'), 'utf8'));
    const command = join(modules, 'gatehouse', bin.gatehouse);
    chmodSync(command, 0o755);
    symlinkSync(command, join(modules, '.bin/gatehouse'));
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  it('contains what it needs to run, as JavaScript, and no tests', () => {
    const files = readdirSync(join(folder, 'node_modules/gatehouse'));
    expect(files).to.include.members([
      'dist',
      'views',
      'sandbox',
      'config',
      'README.md',
      'LICENSE',
      'CHANGELOG.md',
      'package.json',
    ]);
    for (const name of ['test', 'src', 'bench', 'node_modules', 'data']) expect(files).not.to.include(name);
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
    const { exports } = JSON.parse(readFileSync(join(folder, 'node_modules/gatehouse/package.json'), 'utf8'));
    const types = join(folder, 'node_modules/gatehouse', exports['./testing'].types);
    expect(readFileSync(types, 'utf8')).to.contain('export interface TestGatehouse');
    // Types of other packages would be errors for users who check declarations.
    expect(packagesOf(types)).to.deep.equal(['zod']);
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
