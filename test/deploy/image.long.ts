// The container image, made without an engine and run by one, as deploy/README.md says: a user of its own, no
// capabilities, a root file system that nobody can write to.
import { randomBytes } from 'node:crypto';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { imageConfiguration } from '../../build/image/configuration.ts';
import { writeImage } from '../../build/image/image.ts';
import { localCertificate } from '../../src/capabilities/tls/authority.ts';
import { createAgent } from '../support/agent.ts';
import { type ContainerEngine, hasEngine, startEngine } from '../support/container-engine.ts';
import { type Edge, startEdge } from '../support/edge.ts';
import { payload, spaTokens, tenant, USER } from '../support/flows.ts';
import { freePort } from '../support/free-port.ts';
import { every, until } from '../support/wait-until.ts';

const NAME = 'gatehouse';
/** In production no users are in the file. */
const TENANT = {
  clients: tenant.clients.filter(({ client_id }) => client_id === 'spa'),
  databases: [{ name: 'users', enabled_clients: ['spa'] }],
};
/** How the container may be run; the network is this machine's, so that the test reaches it. */
const RESTRICTED = [
  ...['--read-only', '--read-only-tmpfs=false', '--tmpfs=/tmp', '--cap-drop=ALL'],
  ...['--security-opt=no-new-privileges', '--network=host', '--cgroups=disabled'],
  // A machine may not let even its administrator raise these.
  ...['--ulimit=nofile=4096:4096', '--ulimit=nproc=4096:4096'],
];

describe('the container image', () => {
  let directory: string;
  let digest: string;
  let edge: Edge;
  let ca: string;
  let engine: ContainerEngine;
  let image: string;
  const podman = async (...args: string[]) => {
    const { code, stdout, stderr } = await engine.podman(...args);
    expect(code, `podman ${args.join(' ')}: ${stderr}`).to.equal(0);
    return stdout.trim();
  };
  /** Runs a script of Node.js in the container. */
  const inside = (script: string) => podman('exec', NAME, 'node', '-e', script);
  const inspect = (format: string) => podman('inspect', '--format', format, NAME);
  const browser = () => createAgent({ url: edge.url, ca });
  const check = async () => (await engine.podman('healthcheck', 'run', NAME)).code === 0;
  /** @throws Error with its log when the container ends. */
  const healthy = () =>
    until(async () => {
      if ((await inspect('{{.State.Status}}')) === 'running') return check();
      const { stdout, stderr } = await engine.podman('logs', NAME);
      throw new Error(`the container has ended: ${stdout}${stderr}`);
    }, every(200));

  before(async function () {
    if (!hasEngine()) return this.skip();
    directory = mkdtempSync(join(tmpdir(), 'gatehouse-image-'));
    digest = await writeImage(join(directory, 'made'));
    engine = await startEngine(join(directory, 'engine'));
    const { cert, key, caFile } = await localCertificate(join(directory, 'edge'), ['localhost'], Date.now);
    ca = readFileSync(caFile, 'utf8');
    edge = await startEdge({ cert, key, clientCa: ca, apiKey: '' });
    edge.target = await freePort();
    writeFileSync(join(directory, 'tenant.yaml'), JSON.stringify(TENANT));
    chmodSync(directory, 0o755);
    // Images in OCI's format have no health checks for podman.
    await podman('pull', `docker-archive:${directory}/made/gatehouse-image.tar`);
    image = await podman('images', '--quiet');
    const env = {
      BASE_URL: edge.url,
      TRUSTED_PROXIES: '127.0.0.1',
      HOST: '127.0.0.1',
      PORT: String(edge.target),
      SMTP_URL: 'smtp://127.0.0.1:1',
      MAIL_FROM: 'login@example.test',
      SECRETS_KEY: randomBytes(32).toString('base64'),
    };
    await podman(
      ...['run', '--detach', '--name', NAME, ...RESTRICTED],
      ...Object.entries(env).flatMap(([name, value]) => ['--env', `${name}=${value}`]),
      ...['--volume', 'data:/data', '--volume', `${directory}/tenant.yaml:/config/tenant.yaml:ro`],
      image,
    );
    await healthy();
    const signup = { client_id: 'spa', connection: 'users', ...USER };
    expect((await browser().request('/dbconnections/signup', { json: signup })).status).to.equal(200);
  });
  after(async () => {
    edge?.stop();
    await engine?.stop();
    if (directory !== undefined) rmSync(directory, { recursive: true, force: true });
  });

  it('is the same, byte for byte, when it is made again', async () => {
    const again = join(directory, 'again');
    expect(await writeImage(again)).to.equal(digest);
    for (const file of ['gatehouse-image.tar', 'gatehouse-image.cdx.json'])
      expect(
        readFileSync(join(again, file)).equals(readFileSync(join(directory, 'made', file))),
        file,
      ).to.equal(true);
    rmSync(again, { recursive: true });
  });

  it('is read by an engine as it was meant', async () => {
    const { User, Env, Entrypoint, Cmd, WorkingDir, Volumes, ExposedPorts, Labels, StopSignal } =
      imageConfiguration();
    const [{ Config }] = JSON.parse(await podman('image', 'inspect', image));
    expect(Config).to.deep.include({ User, Env, Entrypoint, Cmd, WorkingDir, Volumes, ExposedPorts });
    expect(Config).to.deep.include({ Labels, StopSignal });
  });

  it('has less than 60 MB beside the runtime', async () => {
    const [, ...others] = JSON.parse(await podman('history', '--format', 'json', image)).reverse();
    const size = others.reduce((sum: number, layer: { size: number }) => sum + layer.size, 0);
    expect(size).to.be.within(1e6, 60e6);
  });

  it('logs a user in behind a proxy', async () => {
    const tokens = await spaTokens(browser(), edge);
    expect(payload(tokens.id_token)).to.include({ iss: `${edge.url}/`, email: USER.email });
  });

  it('runs as a user without privileges', async () => {
    const status = readFileSync(`/proc/${await inspect('{{.State.Pid}}')}/status`, 'utf8');
    expect(status).to.match(/^Uid:\s+1000\s+1000\s+1000\s+1000$/m);
    expect(status).to.match(/^Gid:\s+1000\s+1000\s+1000\s+1000$/m);
    for (const set of ['Inh', 'Prm', 'Eff', 'Bnd', 'Amb'])
      expect(status).to.match(new RegExp(`^Cap${set}:\\s+0+$`, 'm'));
    expect(status)
      .to.match(/^NoNewPrivs:\s+1$/m)
      .and.match(/^Seccomp:\s+2$/m);
  });

  it('can write to its data and to temporary files only', async () => {
    const tried = await inside(`
      const wrong = (place) => { try { fs.writeFileSync(place + '/probe', ''); fs.rmSync(place + '/probe'); return ''; }
        catch (error) { return error.code; } };
      const places = ['/data', '/tmp', '/', '/app', '/app/dist', '/config', '/etc', '/usr/local/bin', '/usr/lib'];
      console.log(JSON.stringify(Object.fromEntries(places.map((place) => [place, wrong(place)]))));`);
    const { '/data': data, '/tmp': temporary, ...others } = JSON.parse(tried);
    expect([data, temporary]).to.deep.equal(['', '']);
    for (const [place, error] of Object.entries(others)) expect(error, place).to.equal('EROFS');
    expect(await inside('console.log((fs.statSync("/data").mode & 0o777).toString(8))')).to.equal('700');
  });

  it('has nothing that its user could write to, even if the root were writable', async () => {
    const found = await inside(`
      const found = [];
      const visit = (place) => { for (const entry of fs.readdirSync(place, { withFileTypes: true })) {
        const path = require('node:path').join(place, entry.name);
        if (entry.isSymbolicLink() || ['/proc', '/sys', '/dev', '/data', '/tmp', '/run'].includes(path)) continue;
        const { uid, mode } = fs.statSync(path);
        if (uid !== 0 || (mode & 0o6022) !== 0) found.push(path);
        if (entry.isDirectory()) visit(path);
      } };
      visit('/');
      console.log(JSON.stringify(found));`);
    expect(JSON.parse(found)).to.deep.equal([]);
  });

  it('has no shell and no package manager', async () => {
    for (const program of ['sh', 'bash', '/bin/sh', 'npm', 'apt-get'])
      expect((await engine.podman('exec', NAME, program)).code, program).to.equal(127);
    expect(await inside('console.log(fs.readdirSync("/usr/local/bin").join())')).to.equal('node');
  });

  it('names all that is in it, in its bill of materials', async () => {
    const bill = JSON.parse(readFileSync(join(directory, 'made/gatehouse-image.cdx.json'), 'utf8'));
    const names: string[] = bill.components.map(({ purl }: { purl: string }) => purl);
    expect(await inside('process.stdout.write(fs.readFileSync("/app/sbom.cdx.json"))')).to.equal(
      JSON.stringify(bill, null, 2),
    );
    expect(names).to.include(`pkg:generic/node@${process.versions.node}`);
    const installed = JSON.parse(
      await inside('console.log(JSON.stringify(fs.readdirSync("/var/lib/dpkg/status.d")))'),
    );
    for (const name of installed)
      expect(names.some((one) => one.startsWith(`pkg:deb/debian/${encodeURIComponent(name)}@`))).to.equal(
        true,
      );
    const licences = await inside('process.stdout.write(fs.readFileSync("/app/LICENSES.txt"))');
    const bundled = [...licences.matchAll(/^(\S+) (\d\S*) \(.+\)$/gm)].map(
      ([, name = '', version]) => `pkg:npm/${name.replace('@', '%40')}@${version}`,
    );
    expect(bundled.length).to.be.above(50);
    expect(bundled.filter((one) => !names.includes(one))).to.deep.equal([]);
  });

  it('passes the checks of the doctor, which is in it', async () => {
    const { code, stdout } = await engine.podman('exec', NAME, 'node', '/app/dist/cli.js', 'doctor');
    expect(stdout).not.to.equal('');
    expect(code, stdout).to.be.oneOf([0, 1]);
  });

  it('ends with 0 when it is stopped, and has its data when it starts again', async () => {
    const keys = async () => (await browser().get('/.well-known/jwks.json')).text;
    const before = await keys();
    await podman('stop', NAME);
    expect(await inspect('{{.State.ExitCode}} {{.State.Status}}')).to.equal('0 exited');
    expect(await check()).to.equal(false);
    await podman('start', NAME);
    await healthy();
    expect(await keys()).to.equal(before);
    expect(await spaTokens(browser(), edge)).to.include.keys('id_token');
  });
});
