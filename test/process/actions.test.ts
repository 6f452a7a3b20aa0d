// `gatehouse actions test`: runs an action with a saved event, with a running server and without.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { runCommand } from '../support/command.ts';
import { CLI, runToEnd } from '../support/process.ts';
import { serveFolder, type TestServer } from '../support/server.ts';

const CODE = `exports.onExecutePostLogin = async (event, api) => {
  console.log('for', event.user.email, event.secrets.KEY);
  if (event.user.email === 'bad@example.test') throw new Error('no key ' + event.secrets.KEY);
  api.idToken.setCustomClaim('https://example.test/plan', event.user.app_metadata?.plan ?? null);
  api.user.setAppMetadata('key', event.secrets.KEY);
  if (event.user.email === 'wrong@example.test') api.idToken.setCustomClaim('Sub', 1).accessToken.setCustomClaim('email', 1);
  if (event.user.email === 'wrong@example.test') api.redirect.sendUserTo('http://plain.example.test/');
};
exports.onContinuePostLogin = async (event, api) => { api.authentication.recordMethod('https://example.test/form'); };`;

describe('gatehouse actions test', () => {
  let cwd: string;
  let server: TestServer | undefined;
  before(() => {
    cwd = mkdtempSync(join(tmpdir(), 'gatehouse-actions-'));
    mkdirSync(join(cwd, 'config'));
    const action = (name: string, more: object) => ({
      name,
      code: CODE,
      secrets: [{ name: 'KEY', value: 'a-secret-of-it' }],
      supported_triggers: [{ id: 'post-login' }],
      ...more,
    });
    const actions = [
      action('Plan', { deployed: true }),
      action('Draft', {}),
      action('Stream', { deployed: true, supported_triggers: [{ id: 'event-stream' }] }),
    ];
    // YAML includes JSON.
    writeFileSync(join(cwd, 'config/tenant.yaml'), JSON.stringify({ actions }));
    const event = (email: string) => JSON.stringify({ user: { email, app_metadata: { plan: 'gold' } } });
    for (const name of ['good', 'bad', 'wrong'])
      writeFileSync(join(cwd, `${name}.json`), event(`${name}@example.test`));
    writeFileSync(join(cwd, 'list.json'), '[]');
  });
  after(async () => {
    await server?.stop();
    rmSync(cwd, { recursive: true, force: true });
  });

  const test = (...args: string[]) => runCommand({ cwd, args: ['actions', 'test', ...args] });
  const works = async () => {
    const { code, stdout, stderr } = await test('Plan', '--event', 'good.json');
    expect(stderr).to.equal('');
    expect(stdout).to.match(
      /^asked for:\n {2}idToken\.setCustomClaim\("https:\/\/example\.test\/plan", "gold"\)\n {2}user\.setAppMetadata\("key", "\*\*\*"\)\nlog:\n {2}info {2}for good@example\.test \*\*\*\nused:\n {2}time +\d+ of 20000 ms\n/,
    );
    expect(code).to.equal(0);
  };

  it('prints the recorded calls, the log and the usage, while the server runs', async () => {
    server = await serveFolder(cwd);
    await works();
  });

  it('prints why an action failed, or what would be refused, and exits with 1', async () => {
    // In a process of its own, as operators run it.
    const command = [process.execPath, CLI, 'actions', 'test', 'Plan', '--event', 'bad.json'];
    const failed = await runToEnd({ cwd, command });
    expect(failed.stdout).to.match(
      /^failed: script: no key \*\*\*\nlog:\n {2}info {2}for bad@example\.test \*\*\*\n/,
    );
    expect(failed.code).to.equal(1);
    const refused = await test('Plan', '--event', 'wrong.json');
    expect(refused.stdout).to.contain('\nrefused: redirect.sendUserTo, idToken.setCustomClaim("Sub")\n');
    expect(refused.code).to.equal(1);
  });

  it('runs drafts, and continuations after a redirect, on request', async () => {
    const draft = await test('Draft', '--event', 'good.json', '--draft');
    expect(draft.stdout).to.contain('"gold"');
    const continued = await test('Plan', '--event', 'good.json', '--continue');
    expect(continued.stdout).to.contain('authentication.recordMethod("https://example.test/form")');
    expect([draft.code, continued.code]).to.deep.equal([0, 0]);
  });

  it('names an action or file that does not exist', async () => {
    const said = async (...args: string[]) => {
      const { code, stderr } = await test(...args);
      expect(code).to.equal(1);
      return stderr;
    };
    expect(await said('Nothing', '--event', 'good.json')).to.equal('there is no action Nothing\n');
    expect(await said('Draft', '--event', 'good.json')).to.match(/was not deployed yet/);
    expect(await said('Stream', '--event', 'good.json')).to.match(/do not run here/);
    expect(await said('Plan', '--event', 'list.json')).to.equal('the event has to be a JSON object\n');
    expect(await said('Plan', '--event', 'missing.json')).to.equal(
      'the event missing.json cannot be read (ENOENT)\n',
    );
    expect(await said('Plan', '--event', 'config')).to.equal(
      'the event config cannot be read (it is a folder)\n',
    );
  });

  it('prints the same without a running server, in the given folder', async () => {
    await server?.stop();
    server = undefined;
    await works();
    const elsewhere = join(cwd, 'nothing');
    const { code, stderr } = await test('Plan', '--event', 'good.json', '--data-dir', elsewhere);
    expect(code).to.equal(1);
    expect(stderr).not.to.equal('');
  });
});
