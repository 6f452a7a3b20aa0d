// `gatehouse users import` and `export`, without a running server and with one.
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import http from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import bcrypt from 'bcryptjs';
import { expect } from 'chai';
import { usersOf } from '../../src/users/transfer/whole-file.ts';
import { runCommand } from '../support/command.ts';
import { CLI, runServer, runToEnd } from '../support/process.ts';
import { serveFolder } from '../support/server.ts';
import { until } from '../support/wait-until.ts';

const TENANT = 'databases:\n  - name: people\n';
const TOTP = 'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP';

describe('gatehouse users', () => {
  let cwd: string;
  before(() => {
    cwd = mkdtempSync(join(tmpdir(), 'gatehouse-users-'));
    writeFileSync(join(cwd, 'tenant.yaml'), TENANT);
  });
  after(() => rmSync(cwd, { recursive: true, force: true }));

  const envOf = (data: string) => ({ TENANT_FILE: 'tenant.yaml', DATA_DIR: data });
  const run = (data: string, ...args: string[]) => runCommand({ cwd, env: envOf(data), args });
  const linesOf = (text: string) =>
    text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>);

  /** Requests all users, and ends the request when they are there. @returns the answer as sent. */
  const slowly = async (socket: string) => {
    const connection = connect(socket).setEncoding('utf8');
    connection.write(
      'POST /users?transfer=%7B%22command%22%3A%22export%22%2C%22withHashes%22%3Afalse%7D HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n',
    );
    let answer = '';
    for await (const piece of connection) {
      answer += piece;
      if (piece.includes('"over"')) connection.write('0\r\n\r\n');
    }
    return answer;
  };

  it('imports hashes and second factors, and exports the same', async () => {
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
    // In a process of its own, as operators run it.
    const command = [process.execPath, CLI, 'users', 'import', 'in.json'];
    const imported = await runToEnd({ cwd, env: envOf('one'), command });
    expect(imported.stdout).to.contain('3 users: 2 inserted, 0 updated, 1 failed');
    expect(imported.code).to.equal(1);
    expect(linesOf(imported.stderr).at(-1)).to.deep.include({ user: { email: 'nobody' } });

    const plain = await runToEnd({
      cwd,
      env: envOf('one'),
      command: [process.execPath, CLI, 'users', 'export'],
    });
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

  it("imports the hosted service's own export of hashes unchanged", async () => {
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

  it('refuses a file that has no users, and a connection that does not exist', async () => {
    writeFileSync(join(cwd, 'broken.json'), '[{"email":');
    expect((await run('one', 'users', 'import', 'broken.json')).stderr).to.contain('neither a JSON array');
    for (const args of [['import', 'in.json'], ['export']]) {
      const { code, stdout, stderr } = await run('one', 'users', ...args, '-c', 'nowhere');
      expect([code, stdout], args[0]).to.deep.equal([1, '']);
      expect(stderr).to.match(/there is no (database )?connection nowhere: people/);
    }
  });

  it('exports to a file that gets its name only when it is complete', async () => {
    const path = join(cwd, 'kept.json');
    writeFileSync(path, 'of yesterday');
    // The answer of a server that is killed during the export.
    const place = join(cwd, 'ending/run');
    mkdirSync(place, { recursive: true, mode: 0o700 });
    let beside: { code: number | null; stderr: string } | undefined;
    const ending = http.createServer((request, response) => {
      request.resume();
      response.write('{"lines":"{}\\n"}\n', async () => {
        const command = [process.execPath, CLI, 'users', 'export', '-o', path];
        beside = await runToEnd({ cwd, env: envOf('one'), command });
        request.socket.destroy();
      });
    });
    await once(ending.listen(join(place, 'gatehouse.sock')), 'listening');
    const failed = await run('ending', 'users', 'export', '-o', path);
    ending.close();
    expect(failed.code).to.equal(1);
    expect(failed.stderr).to.contain('the server ended before it was done');
    expect(beside?.code).to.equal(1);
    expect(beside?.stderr).to.contain('kept.json.unfinished: another command is writing it');
    expect(readFileSync(path, 'utf8')).to.equal('of yesterday');
    expect(existsSync(`${path}.unfinished`)).to.equal(false);
    // A file that was cut short, which no command is writing.
    writeFileSync(`${path}.unfinished`, 'cut short');
    expect((await run('one', 'users', 'export', '-o', path)).code).to.equal(0);
    expect(linesOf(readFileSync(path, 'utf8'))).to.have.length(2);
    expect(statSync(path).mode & 0o777).to.equal(0o600);
    expect(existsSync(`${path}.unfinished`)).to.equal(false);
  });

  it('exports to a named pipe, which stays one', async () => {
    const pipe = join(cwd, 'pipe');
    execFileSync('mkfifo', [pipe]);
    const [text, out] = await Promise.all([
      readFile(pipe, 'utf8'),
      run('one', 'users', 'export', '-o', pipe),
    ]);
    expect(out.code, out.stderr).to.equal(0);
    expect(linesOf(text)).to.have.length(2);
    expect(statSync(pipe).isFIFO()).to.equal(true);
  });

  it('imports and exports with the same answers while the server runs', async () => {
    const server = await serveFolder(cwd, envOf('live'));
    try {
      const imported = await run('live', 'users', 'import', 'in.json');
      expect(imported.stdout, imported.stderr).to.contain('3 users: 2 inserted, 0 updated, 1 failed');
      expect(imported.code).to.equal(1);
      expect(linesOf(imported.stderr).at(-1)).to.deep.include({ user: { email: 'nobody' } });
      const out = await run('live', 'users', 'export', '--with-hashes');
      const before = await run('two', 'users', 'export', '--with-hashes');
      expect(linesOf(out.stdout)).to.deep.equal(linesOf(before.stdout));
      expect(await slowly(join(cwd, 'live/run/gatehouse.sock'))).to.match(/"over":true.*\r\n0\r\n\r\n$/s);
      const wrong = await run('live', 'users', 'import', 'in.json', '-c', 'nowhere');
      expect(wrong.code).to.equal(1);
      expect(wrong.stderr).to.contain('there is no database connection nowhere');
      const again = await run('live', 'users', 'import', 'in.json', '--upsert');
      expect(again.stdout).to.contain('3 users: 0 inserted');
    } finally {
      await server.stop();
    }
  });

  it('imports nothing from a truncated file, however long it is', async () => {
    const many = Array.from({ length: 3000 }, (_, i) => JSON.stringify({ email: `many-${i}@example.test` }));
    writeFileSync(join(cwd, 'long.json'), `[${many.join(',')}`);
    expect((await run('four', 'apply')).code).to.equal(0);
    expect((await run('four', 'users', 'import', 'long.json')).code).to.equal(1);
    expect((await run('four', 'users', 'export')).stdout).to.equal('');
    writeFileSync(join(cwd, 'long.json'), `[${many.join(',\n  ')}]`);
    expect((await run('four', 'users', 'import', 'long.json')).stdout).to.contain('3000 inserted');
  });
});

describe('gatehouse users import, with a server that is killed meanwhile', () => {
  it('imports each user completely or not at all, and is completed by the same command', async () => {
    const cwd = mkdtempSync(join(tmpdir(), 'gatehouse-users-killed-'));
    const env = { TENANT_FILE: 'tenant.yaml' };
    const run = (...args: string[]) => runCommand({ cwd, env, args });
    writeFileSync(join(cwd, 'tenant.yaml'), TENANT);
    const password_hash = await bcrypt.hash('Analytical-1', 4);
    const users = Array.from({ length: 300 }, (_, n) => ({
      user_id: `user-${String(n).padStart(3, '0')}`,
      email: `user-${n}@example.test`,
      email_verified: true,
      password_hash,
      mfa_factors: [{ totp: { secret: TOTP } }],
    }));
    writeFileSync(join(cwd, 'in.json'), JSON.stringify(users));
    const exported = async () => {
      const { stdout, stderr } = await run('users', 'export', '--with-hashes');
      expect(stderr).to.equal('');
      return stdout
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line) as object);
    };
    const whole = users.map((user) => ({ user_metadata: {}, app_metadata: {}, ...user }));
    const server = await runServer({ cwd, env });
    try {
      const importing = run('users', 'import', 'in.json');
      const database = new DatabaseSync(join(cwd, 'data/store/gatehouse.db'), { readOnly: true });
      const count = database.prepare('SELECT count(*) AS n FROM users');
      await until(() => Number(count.get()?.n) >= 25);
      database.close();
      await server.end('SIGKILL');
      const { code, stderr } = await importing;
      expect(code).to.equal(1);
      expect(stderr).to.equal('the server ended before it was done\n');
    } finally {
      server.child.kill('SIGKILL');
    }
    const before = await exported();
    expect(before).to.have.length.within(25, 275);
    expect(before).to.deep.equal(whole.slice(0, before.length));
    const again = await run('users', 'import', 'in.json');
    expect(again.stdout).to.contain(
      `300 users: ${300 - before.length} inserted, 0 updated, ${before.length} failed`,
    );
    expect(await exported()).to.deep.equal(whole);
    rmSync(cwd, { recursive: true, force: true });
  });
});

describe('a file of users, read in pieces', () => {
  const read = async (text: string, size: number) => {
    const pieces = text.match(new RegExp(`[^]{1,${size}}`, 'g')) ?? [];
    const found: string[] = [];
    for await (const one of usersOf(
      (async function* () {
        yield* pieces;
      })(),
    ))
      found.push(one);
    return found;
  };
  const odd = ['{"a":"}]\\"{[,"}', '{"b":[{"c":{}},["]"]]}', '{}'];

  it('gives the same users in pieces of any size, as an array and with one user per line', async () => {
    for (const size of [1, 2, 3, 7, 1000]) {
      expect(await read(`\uFEFF [ ${odd.join(' ,\n')} ] \n`, size)).to.deep.equal(odd);
      expect(await read(`${odd.join('\n')}\n`, size)).to.deep.equal(odd);
    }
  });

  for (const text of [
    '',
    '[]',
    '[{}',
    '[{},]',
    '[,{}]',
    '[{} {}]',
    '{},{}',
    '[{}]{}',
    '[{}]]',
    '[1]',
    '"x"',
    '{"a":',
    '{}]',
    '[[{}]]',
  ]) {
    it(`is rejected: ${text}`, async () => {
      for (const size of [1, 1000]) {
        const thrown = await read(text, size).catch((error: Error) => error);
        expect(thrown).to.be.instanceOf(Error);
      }
    });
  }
});
