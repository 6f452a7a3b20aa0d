// `gatehouse move in` whose process is killed: the same command completes the move, as if it had never been interrupted.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import bcrypt from 'bcryptjs';
import { expect } from 'chai';
import { stringify } from 'yaml';
import { runCommand } from '../support/command.ts';
import { CLI, environment } from '../support/process.ts';
import { SCRATCH } from '../support/scratch-directory.ts';
import { serveFolder } from '../support/server.ts';
import { until } from '../support/wait-until.ts';

const [CONFIGURED, USERS] = [80, 2500];
/** A user whom the move refuses: when the line is in its file of refused lines, the move has come as far as that. */
const REFUSED = 1000;
const MOVED = USERS - 1;
const numbered = <T>(count: number, make: (n: string) => T): T[] =>
  Array.from({ length: count }, (_, n) => make(String(n).padStart(4, '0')));

/** Everything has its id and secret, so that two moves of it can be compared. */
const TENANT = stringify({
  tenant: { default_directory: 'people' },
  clients: numbered(CONFIGURED, (n) => ({
    name: `App ${n}`,
    client_id: `app${n}`,
    client_secret: `secret-of-application-${n}-${'x'.repeat(20)}`,
    app_type: 'regular_web',
  })),
  databases: [{ id: 'con_people', name: 'people', strategy: 'auth0' }],
  connections: [
    {
      id: 'con_google',
      name: 'google-oauth2',
      strategy: 'google-oauth2',
      options: { client_id: 'a', client_secret: 'b' },
    },
  ],
  roles: [
    { id: 'rol_Reader', name: 'Reader' },
    { id: 'rol_Editor', name: 'Editor' },
  ],
  organizations: numbered(CONFIGURED, (n) => ({ id: `org_${n}`, name: `org-${n}` })),
});

const identity = (id: string) => [
  { connection: 'people', provider: 'auth0', user_id: id, isSocial: false },
  { connection: 'google-oauth2', provider: 'google-oauth2', user_id: `g${id}`, isSocial: true },
];

/** The collections of the configuration whose records are counted to see how far a move is. */
type Counted = 'clients' | 'organizations';

/** Returns how many records a file of the configuration has; none before it is there. */
function countIn(data: string, name: Counted): number {
  try {
    return JSON.parse(readFileSync(join(data, 'store', `${name}.json`), 'utf8')).records.length;
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === 'ENOENT') return 0;
    throw thrown;
  }
}

/** Returns how many lines of a file are complete; none before it is there. */
function linesIn(file: string): number {
  return existsSync(file) ? readFileSync(file, 'utf8').split('\n').length - 1 : 0;
}

/** The tables with one record a user, apart from identities, of which each has two. */
const OF_USERS = ['users', 'credentials', 'memberships', 'authenticators'];

describe('gatehouse move in, killed meanwhile and repeated', function () {
  this.timeout(600_000);
  let cwd: string;

  before(async () => {
    cwd = mkdtempSync(join(SCRATCH, 'gatehouse-move-in-killed-'));
    const ids = numbered(USERS, (n) => `u${n}`);
    const write = (name: string, lineOf: (id: string) => object) =>
      writeFileSync(join(cwd, name), ids.map((id) => `${JSON.stringify(lineOf(id))}\n`).join(''));
    const passwordHash = await bcrypt.hash('Analytical-1', 4);
    const at = { created_at: '2021-11-01T09:00:00.000Z', updated_at: '2026-06-20T09:00:00.000Z' };
    const secret = 'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP';
    writeFileSync(join(cwd, 'export.yaml'), TENANT);
    const refused = ids[REFUSED];
    write('users.ndjson', (id) => ({
      ...at,
      user_id: `auth0|${id}`,
      email: `${id}@example.test`,
      identities: id === refused ? [{ user_id: id, connection: 'nowhere' }] : identity(id),
    }));
    write('hashes.ndjson', (id) => ({
      _id: { $oid: id },
      passwordHash,
      mfa_factors: [{ totp: { secret } }],
    }));
    const [, first = ''] = ids;
    write('memberships.ndjson', (id) => ({
      user_id: `auth0|${id}`,
      organization: `org-${first.slice(1)}`,
      roles: ['Reader'],
    }));
    const roles = ids.map((id) => `${JSON.stringify({ user_id: `auth0|${id}`, roles: ['Editor'] })}\n`);
    writeFileSync(join(cwd, 'roles.ndjson'), roles.join(''));
  });
  after(() => rmSync(cwd, { recursive: true, force: true }));

  const envOf = (data: string) => ({ TENANT_FILE: 'tenant.yaml', DATA_DIR: data });
  const MOVE = [
    ...['move', 'in', 'export.yaml', '--users', 'users.ndjson', '--hashes', 'hashes.ndjson'],
    ...['--memberships', 'memberships.ndjson', 'roles.ndjson'],
  ];
  const run = (data: string, ...args: string[]) => runCommand({ cwd, env: envOf(data), args });
  const rows = (data: string, table: string): number => {
    const opened = new DatabaseSync(join(cwd, data, 'store/gatehouse.db'), { readOnly: true });
    try {
      return Number(opened.prepare(`SELECT count(*) AS n FROM ${table}`).get()?.n);
    } finally {
      opened.close();
    }
  };
  /** Kills the command when a condition holds. @returns the signal that ended it, or what it said. */
  const killWhen = async (data: string, is: () => boolean) => {
    const child: ChildProcess = spawn(process.execPath, [CLI, ...MOVE], {
      cwd,
      env: environment(envOf(data)),
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    const ended = once(child, 'exit');
    let said = '';
    child.stderr?.on('data', (text) => {
      said += String(text);
    });
    rmSync(join(cwd, 'refused-users.ndjson'), { force: true });
    try {
      await until(() => is() || child.exitCode !== null);
    } finally {
      child.kill('SIGKILL');
    }
    const [, signal] = await ended;
    return signal ?? `it ended: ${said}`;
  };

  /** Returns all files of a tenant that moves out again. */
  const leaving = async (data: string) => {
    const out = `${data}-out`;
    const { code, stderr } = await run(data, 'move', 'out', '-o', out);
    expect(code, stderr).to.equal(0);
    const names = readdirSync(join(cwd, out), { recursive: true, withFileTypes: true });
    return names
      .filter((one) => one.isFile())
      .map(({ parentPath, name }) => {
        const text = readFileSync(join(parentPath, name), 'utf8');
        const values = name.endsWith('.ndjson') ? text.trim().split('\n') : [text];
        return [name, name.endsWith('.yaml') ? text : values.map((value) => JSON.parse(value))];
      })
      .sort(([a = ''], [b = '']) => (a < b ? -1 : 1));
  };

  let unbroken: ReturnType<typeof leaving> | undefined;
  /** Returns what a tenant has into which the same was moved without interruption. */
  const whole = () => {
    unbroken ??= run('unbroken', ...MOVE).then(() => leaving('unbroken'));
    return unbroken;
  };

  /** Each is a moment to kill the command at; the next one goes on where it was. */
  const moments = (data: string): [string, () => boolean][] => {
    const folder = join(cwd, data);
    return [
      ['in the middle of applications', () => countIn(folder, 'clients') >= CONFIGURED / 2],
      ['in the middle of organizations', () => countIn(folder, 'organizations') >= CONFIGURED / 2],
      ['in the middle of users', () => linesIn(join(cwd, 'refused-users.ndjson')) > 0],
    ];
  };

  const expectWholeUsers = (data: string, when: string) => {
    const counts = OF_USERS.map((table) => rows(data, table));
    expect(new Set(counts).size, `${when}: ${counts}`).to.equal(1);
    expect(rows(data, 'identities'), when).to.equal(2 * (counts[0] ?? 0));
  };

  for (const withServer of [false, true])
    it(`has the same result as one that was not killed, ${withServer ? 'with a running server' : 'without a server'}`, async () => {
      const data = withServer ? 'served' : 'alone';
      writeFileSync(join(cwd, 'tenant.yaml'), '{}\n');
      const server = withServer ? await serveFolder(cwd, envOf(data)) : undefined;
      const ends: string[] = [];
      try {
        for (const [when, is] of moments(data)) {
          ends.push(`${when}: ${await killWhen(data, is)}`);
          if (server === undefined) expectWholeUsers(data, when);
        }
        expect(ends).to.deep.equal(moments(data).map(([when]) => `${when}: SIGKILL`));
        expect(rows(data, 'users'), 'killed before it was done').to.be.within(1, MOVED - 1);
        const again = await run(data, ...MOVE);
        expect(again.stdout, again.stderr).to.match(
          new RegExp(`${USERS} users: \\d+ new, 0 changed, \\d+ as they were, 1 refused`),
        );
        expect(linesIn(join(cwd, 'refused-users.ndjson'))).to.equal(1);
        expect(rows(data, 'users')).to.equal(MOVED);
        expectWholeUsers(data, 'after the last');
      } finally {
        await server?.stop();
      }
      expect(await leaving(data)).to.deep.equal(await whole());
    });
});
