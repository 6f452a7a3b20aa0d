// `gatehouse users import` and `export`, while no server runs.
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import bcrypt from 'bcryptjs';
import { expect } from 'chai';
import { CLI, runToEnd } from '../support/process.ts';

const TENANT = 'databases:\n  - name: people\n';
const TOTP = 'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP';

describe('gatehouse users', () => {
  let cwd: string;
  before(() => {
    cwd = mkdtempSync(join(tmpdir(), 'gatehouse-users-'));
    writeFileSync(join(cwd, 'tenant.yaml'), TENANT);
  });
  after(() => rmSync(cwd, { recursive: true, force: true }));

  const run = (data: string, ...args: string[]) =>
    runToEnd({
      cwd,
      env: { TENANT_FILE: 'tenant.yaml', DATA_DIR: join(cwd, data) },
      command: [process.execPath, CLI, ...args],
    });
  const linesOf = (text: string) =>
    text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>);

  it('come in with their hashes and second factors, and go out the same', async () => {
    const users = [
      {
        user_id: 'ada',
        email: 'Ada@Example.test',
        email_verified: true,
        password_hash: await bcrypt.hash('Analytical-1', 10),
        app_metadata: { plan: 'gold' },
        mfa_factors: [{ totp: { secret: TOTP } }],
      },
      {
        user_id: 'auth0|bob',
        email: 'bob@example.test',
        custom_password_hash: {
          algorithm: 'md5',
          hash: { value: '25ccb8d8aabea7418c6651751a8c3801', encoding: 'hex' },
        },
      },
      { email: 'nobody' },
    ];
    writeFileSync(join(cwd, 'in.json'), JSON.stringify(users));
    expect((await run('one', 'apply')).code).to.equal(0);
    const imported = await run('one', 'users', 'import', 'in.json');
    expect(imported.stdout).to.contain('3 users: 2 inserted, 0 updated, 1 failed');
    expect(imported.code).to.equal(1);
    expect(linesOf(imported.stderr).at(-1)).to.deep.include({ user: { email: 'nobody' } });

    const plain = await run('one', 'users', 'export');
    expect(plain.stdout).not.to.match(/hash|secret|mfa_factors/i);
    const out = await run('one', 'users', 'export', '--with-hashes', '-o', 'out.json');
    expect(out.code, out.stderr).to.equal(0);
    expect(statSync(join(cwd, 'out.json')).mode & 0o777).to.equal(0o600);
    const [ada, bob] = linesOf(readFileSync(join(cwd, 'out.json'), 'utf8'));
    expect(ada).to.deep.include({ ...users[0], email: 'ada@example.test' });
    expect(bob).to.deep.include({ ...users[1], user_id: 'bob' });

    expect((await run('two', 'apply')).code).to.equal(0);
    const again = await run('two', 'users', 'import', 'out.json');
    expect(again.stdout).to.contain('2 users: 2 inserted, 0 updated, 0 failed');
    const same = await run('two', 'users', 'export', '--with-hashes');
    expect(linesOf(same.stdout)).to.deep.equal([ada, bob]);
  });

  it("take the hosted service's own export of hashes as it comes", async () => {
    const passwordHash = await bcrypt.hash('Hosted-1', 10);
    const line = (more: object) =>
      JSON.stringify({
        _id: { $oid: '5f7c8ec7c33c6c004bbafe82' },
        email: 'hosted@example.test',
        email_verified: true,
        passwordHash,
        password_set_date: { $date: '2020-10-06T15:30:15.000Z' },
        tenant: 'somebody',
        connection: 'Username-Password-Authentication',
        _tmp_is_unique: true,
        ...more,
      });
    const other = line({
      _id: { $oid: '5f7c8ec7c33c6c004bbafe83' },
      alt_id: 'mine',
      email: null,
      email_verified: null,
      identifiers: [{ type: 'email', value: 'alt@example.test', verified: false }],
    });
    writeFileSync(join(cwd, 'hosted.json'), `${line({})}\n${other}\n`);
    expect((await run('three', 'apply')).code).to.equal(0);
    const imported = await run('three', 'users', 'import', 'hosted.json');
    expect(imported.stdout, imported.stderr).to.contain('2 users: 2 inserted');
    const out = await run('three', 'users', 'export', '--with-hashes');
    expect(linesOf(out.stdout)).to.deep.equal([
      {
        user_id: '5f7c8ec7c33c6c004bbafe82',
        email: 'hosted@example.test',
        email_verified: true,
        user_metadata: {},
        app_metadata: {},
        password_hash: passwordHash,
      },
      {
        user_id: 'mine',
        email: 'alt@example.test',
        email_verified: false,
        user_metadata: {},
        app_metadata: {},
        password_hash: passwordHash,
      },
    ]);
  });

  it('refuse what is no file of users, and a connection that is not there', async () => {
    writeFileSync(join(cwd, 'broken.json'), '[{"email":');
    expect((await run('one', 'users', 'import', 'broken.json')).stderr).to.contain('neither a JSON array');
    expect((await run('one', 'users', 'import', 'in.json', '-c', 'nowhere')).stderr).to.contain('nowhere');
  });
});
