// `gatehouse move check` with users: what it counts, whom it names, and how much memory it takes.
import { once } from 'node:events';
import { createWriteStream, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { finished } from 'node:stream/promises';
import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import type { UsersFound } from '../../src/moving/users-found.ts';
import { runCommand } from '../support/command.ts';
import { CLI, runToEnd } from '../support/process.ts';

const TENANT = `
databases: [{ name: users, strategy: auth0 }]
connections:
  - { name: google, strategy: google-oauth2, options: { client_id: a, client_secret: b } }
  - { name: email, strategy: email, options: {} }
  - { name: corp, strategy: oidc, options: { client_id: a, client_secret: b, issuer: 'https://idp.example' } }
`;
const BCRYPT = '$2b$10$CwTycUXWue0Thq9StjUM0uJ8D1kz1mH4Jc2a5r7dM1m0Qn0s6b5pO';

const user = (connection: string, provider: string, id: string, more: object = {}) => ({
  user_id: `${provider}|${id}`,
  email: `${id}@example.com`,
  email_verified: true,
  identities: [{ connection, provider, user_id: id, isSocial: provider === 'google-oauth2' }],
  ...more,
});
const lines = (all: readonly unknown[]) =>
  all.map((one) => (typeof one === 'string' ? one : JSON.stringify(one))).join('\n');

describe('gatehouse move check with users', () => {
  let cwd: string;
  beforeEach(() => {
    cwd = mkdtempSync(join(tmpdir(), 'gatehouse-move-'));
    writeFileSync(join(cwd, 'tenant.yaml'), TENANT);
  });
  afterEach(() => rmSync(cwd, { recursive: true, force: true }));

  const check = async (...args: string[]): Promise<UsersFound & { code: unknown }> => {
    const { code, stdout } = await runCommand({
      cwd,
      args: ['move', 'check', 'tenant.yaml', '--json', ...args],
    });
    return { ...(JSON.parse(stdout) as { users: UsersFound }).users, code };
  };

  it('counts them by connection, and what a move has to know of them', async () => {
    const linked = {
      identities: [
        { connection: 'users', provider: 'auth0', user_id: 'd' },
        { connection: 'google', provider: 'google-oauth2', user_id: '7' },
      ],
    };
    writeFileSync(
      join(cwd, 'users.ndjson.gz'),
      gzipSync(
        lines([
          user('users', 'auth0', 'a'),
          user('users', 'auth0', 'b', { email_verified: false, blocked: true }),
          user('users', 'auth0', 'd', linked),
          user('google', 'google-oauth2', '9', { multifactor: ['guardian'] }),
          user('email', 'email', 'e'),
          user('corp', 'oidc', 'f'),
        ]),
      ),
    );
    writeFileSync(
      join(cwd, 'hashes.ndjson'),
      lines([
        { _id: { $oid: 'a' }, passwordHash: BCRYPT },
        { _id: { $oid: 'gone' }, passwordHash: BCRYPT },
      ]),
    );
    const found = await check('--users', 'users.ndjson.gz', '--hashes', 'hashes.ndjson');
    expect(found.refused).to.deep.equal([]);
    expect(found.code).to.equal(0);
    expect(
      found.connections.map(({ connection, way, users }) => `${connection} ${way} ${users}`),
    ).to.deep.equal([
      ...['users database 3', 'google social 1', 'email passwordless 1', 'corp enterprise 1'],
    ]);
    const { users, databaseUsers, withHash, hashes, linked: joined, blocked, unverified, withFactor } = found;
    expect({ users, databaseUsers, withHash, hashes, joined, blocked, unverified, withFactor }).to.deep.equal(
      {
        ...{
          users: 6,
          databaseUsers: 3,
          withHash: 1,
          hashes: 2,
          joined: 1,
          blocked: 1,
          unverified: 1,
          withFactor: 1,
        },
      },
    );
  });

  it('names the lines that cannot be taken, and why, without what is in them', async () => {
    writeFileSync(
      join(cwd, 'users.ndjson'),
      lines([
        user('users', 'auth0', 'a'),
        '{"user_id": "auth0|broken", "email": "secret@exam',
        user('users', 'auth0', 'b', { email: 'A@example.com' }),
        { email: 'nobody@example.com' },
      ]),
    );
    writeFileSync(
      join(cwd, 'hashes.ndjson'),
      lines([
        { _id: { $oid: 'a' }, passwordHash: '$1$salt$md5crypt' },
        { user_id: 'b', custom_password_hash: { algorithm: 'rot13', hash: { value: 'x' } } },
        { passwordHash: BCRYPT },
      ]),
    );
    const { code, refused, refusedHashes, duplicates } = await check(
      '--users',
      'users.ndjson',
      '--hashes',
      'hashes.ndjson',
    );
    expect(code).to.equal(2);
    expect(refused.map((one) => one.split(':').slice(0, 2).join(':'))).to.have.members([
      ...['hashes.ndjson:1', 'hashes.ndjson:2', 'hashes.ndjson:3', 'users.ndjson:2', 'users.ndjson:4'],
      'lines 1, 3: the same e-mail address in one database',
    ]);
    expect(refusedHashes).to.deep.equal({ 'not bcrypt': 1, rot13: 1 });
    expect(duplicates).to.equal(1);
    expect(refused.join('\n')).not.to.contain('secret@exam').and.not.to.contain('md5crypt');
  });

  it('names a file that cannot be read', async () => {
    const { code, stderr } = await runCommand({
      cwd,
      args: ['move', 'check', 'tenant.yaml', '--users', 'no.ndjson'],
    });
    expect(code).to.equal(1);
    expect(stderr).to.contain('no.ndjson cannot be read (there is no such file)');
  });

  it('takes no more memory for many users', async function () {
    this.timeout(120_000);
    const file = createWriteStream(join(cwd, 'many.ndjson'));
    // 180 MB.
    const notes = 'n'.repeat(9_000);
    for (let n = 0; n < 20_000; n += 1)
      if (!file.write(`${JSON.stringify(user('users', 'auth0', `u${n}`, { user_metadata: { notes } }))}\n`))
        await once(file, 'drain');
    file.end();
    await finished(file);
    // Not `maxRSS`, which a process on Linux takes over from the one that has started it.
    const measured = `let most=0;setInterval(()=>{most=Math.max(most,process.memoryUsage.rss())},10).unref();
      process.on('exit',()=>process.stderr.write('bytes '+most))`;
    // Memory that is still in use ends the process; without limits, when garbage is collected depends on what else runs.
    const limits = ['--max-old-space-size=64', '--max-semi-space-size=4'];
    const command = [
      process.execPath,
      ...limits,
      '--import',
      `data:text/javascript,${encodeURIComponent(measured)}`,
      CLI,
    ];
    const { stdout, stderr } = await runToEnd({
      cwd,
      command: [...command, 'move', 'check', 'tenant.yaml', '--users', 'many.ndjson'],
    });
    expect(stdout).to.contain('20,000 users');
    expect(Number(/bytes (\d+)/.exec(stderr)?.[1])).to.be.within(1e6, 200e6);
  });
});
