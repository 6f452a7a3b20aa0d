// `gatehouse move in` and `move out`: a tenant of the hosted service with its users, without a running server and with one.
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { gzipSync } from 'node:zlib';
import bcrypt from 'bcryptjs';
import { expect } from 'chai';
import { parse } from 'yaml';
import { createAgent } from '../support/agent.ts';
import { runCommand } from '../support/command.ts';
import { runServer } from '../support/process.ts';
import { SCRATCH } from '../support/scratch-directory.ts';
import { serveFolder } from '../support/server.ts';
import { until } from '../support/wait-until.ts';

const TENANT = `
tenant: { default_directory: people }
clients:
  - name: Web
    app_type: regular_web
    grant_types: [password, client_credentials]
    token_endpoint_auth_method: client_secret_post
databases:
  - name: people
    strategy: auth0
    enabled_clients: [Web]
connections:
  - name: google-oauth2
    strategy: google-oauth2
    options: { client_id: there, client_secret: there }
    enabled_clients: [Web]
  - name: sms
    strategy: sms
    enabled_clients: [Web]
resourceServers:
  - name: API
    identifier: https://api.example.test
    enforce_policies: true
    token_dialect: access_token_authz
    scopes: [{ value: 'read:all' }, { value: 'write:all' }]
roles:
  - name: Editor
    permissions: [{ resource_server_identifier: https://api.example.test, permission_name: 'write:all' }]
  - name: Reader
organizations:
  - name: acme
    display_name: Acme
`;

const TOTP = 'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP';
const DATES = { created_at: '2021-11-01T09:00:00.000Z', updated_at: '2026-06-20T09:00:00.000Z' };
const [ADA, BOB] = ['5f7c8ec7c33c6c004bbafe82', '5f7c8ec7c33c6c004bbafe83'];
const own = (user_id: string) => ({ connection: 'people', provider: 'auth0', user_id, isSocial: false });
const ofGoogle = (user_id: string | number) => ({
  connection: 'google-oauth2',
  provider: 'google-oauth2',
  user_id,
  isSocial: true,
});

/** As the hosted service exports them. */
const ada = {
  ...DATES,
  user_id: `auth0|${ADA}`,
  email: 'Ada@Example.test',
  email_verified: true,
  name: 'Ada',
  family_name: null,
  company: 'Analytical',
  user_metadata: { city: 'London' },
  app_metadata: { plan: 'gold' },
  multifactor: ['guardian'],
  last_login: '2026-06-20T09:00:00.000Z',
  last_ip: '203.0.113.7',
  logins_count: 7,
  identities: [
    own(ADA),
    {
      ...ofGoogle(104),
      profileData: {
        email: 'ada@gmail.test',
        email_verified: true,
        name: 'Ada L.',
        locale: { language: 'en' },
      },
    },
  ],
};
const cleo = {
  ...DATES,
  user_id: 'google-oauth2|105',
  email: 'cleo@gmail.test',
  email_verified: true,
  blocked: true,
  identities: [
    ofGoogle('105'),
    { ...own(BOB), profileData: { email: 'bob@example.test', email_verified: true } },
  ],
};
const dan = {
  ...DATES,
  user_id: 'sms|60aa',
  phone_number: '+4915112345678',
  phone_verified: true,
  identities: [{ connection: 'sms', provider: 'sms', user_id: '60aa', isSocial: false }],
};

const lines = (values: readonly object[]) => values.map((value) => `${JSON.stringify(value)}\n`).join('');
const parsed = (text: string) =>
  text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Record<string, unknown>);

/** A user of the database. */
const user = (id: string, more: object = {}) => ({
  ...DATES,
  user_id: `auth0|${id}`,
  email: `${id}@example.test`,
  identities: [own(id)],
  ...more,
});

/** Returns the hash of a user in import files. */
function hashIn(imports: ReadonlyMap<unknown, Record<string, unknown>>, id: string): string {
  const { custom_password_hash: hash } = imports.get(id) ?? {};
  return (hash as { hash: { value: string } }).hash.value;
}

describe('gatehouse move', () => {
  let cwd: string;
  let secrets: object[];
  const access = [
    { user_id: ada.user_id, organization: 'acme', roles: ['Reader'] },
    { user_id: ada.user_id, roles: ['Editor'] },
    {
      user_id: cleo.user_id,
      permissions: [{ resource_server_identifier: 'https://api.example.test', permission_name: 'read:all' }],
    },
  ];

  before(async () => {
    cwd = mkdtempSync(join(SCRATCH, 'gatehouse-move-'));
    writeFileSync(join(cwd, 'export.yaml'), TENANT);
    writeFileSync(join(cwd, 'users.ndjson.gz'), gzipSync(lines([ada, cleo, dan])));
    secrets = [
      {
        _id: { $oid: ADA },
        email: 'ada@example.test',
        email_verified: true,
        passwordHash: await bcrypt.hash('Analytical-1', 4),
        password_set_date: { $date: '2022-10-06T15:30:15.000Z' },
        tenant: 'somebody',
        connection: 'people',
        _tmp_is_unique: true,
      },
      { user_id: ADA, mfa_factors: [{ totp: { secret: TOTP } }] },
      // A linked identity's.
      { _id: { $oid: 'other' }, alt_id: BOB, email: null, passwordHash: await bcrypt.hash('Bob-1', 4) },
      // Of a user whom the export does not have.
      {
        _id: { $oid: '5f7c8ec7c33c6c004bbafe84' },
        passwordHash: (await bcrypt.hash('Eve-1', 4)).replace('$2b$', '$2y$'),
        connection: 'people',
        identifiers: [{ type: 'email', value: 'eve@example.test', verified: true }],
      },
    ];
    writeFileSync(join(cwd, 'hashes.ndjson'), lines(secrets));
    writeFileSync(join(cwd, 'memberships.ndjson'), lines(access));
  });
  after(() => rmSync(cwd, { recursive: true, force: true }));

  const envOf = (data: string) => ({ TENANT_FILE: 'export.yaml', DATA_DIR: data });
  const run = (data: string, ...args: string[]) => runCommand({ cwd, env: envOf(data), args });
  const FILES = {
    users: ['--users', 'users.ndjson.gz'],
    others: ['--hashes', 'hashes.ndjson', '--memberships', 'memberships.ndjson'],
  };
  const USERS = [...FILES.users, ...FILES.others];
  const read = (path: string) => readFileSync(join(cwd, path), 'utf8');
  let outs = 0;
  /** Returns the users of a store by their ids, and everything else that leaves with them. */
  const usersOf = async (data: string) => {
    outs += 1;
    const out = `out-${outs}`;
    const { code, stderr } = await run(data, 'move', 'out', '-o', out);
    expect(code, stderr).to.equal(0);
    const imports = readdirSync(join(cwd, out, 'import')).flatMap(
      (name) => JSON.parse(read(`${out}/import/${name}`)) as Record<string, unknown>[],
    );
    const memberships = `${out}/memberships.ndjson`;
    return {
      out,
      users: new Map(parsed(read(`${out}/users.ndjson`)).map((one) => [one.user_id, one])),
      imports: new Map(imports.map((one) => [one.user_id, one])),
      access: existsSync(join(cwd, memberships)) ? parsed(read(memberships)) : [],
    };
  };

  it('moves configuration and users with their ids, passwords, factors, roles and memberships', async () => {
    const moved = await run('one', 'move', 'in', 'export.yaml', ...USERS);
    expect(moved.stderr).to.equal('');
    expect(moved.stdout).to.contain('+ organizations.acme');
    expect(moved.stdout).to.contain('4 users: 4 new, 0 changed, 0 as they were, 0 refused');
    expect(moved.code).to.equal(0);
    expect(moved.stdout).not.to.match(/\$2b\$|JBSW/);
    expect(readdirSync(cwd).filter((name) => name.startsWith('refused'))).to.deep.equal([]);
    const { users, imports, access: given } = await usersOf('one');
    const { multifactor: _, family_name: _1, identities, ...members } = ada;
    expect(users.get(ada.user_id)).to.deep.include({
      ...members,
      email: 'ada@example.test',
      last_password_reset: '2022-10-06T15:30:15.000Z',
    });
    const google = { ...identities[1], user_id: '104' };
    expect(users.get(ada.user_id)?.identities).to.deep.equal([own(ADA), google]);
    expect(users.get(cleo.user_id)).to.deep.include({ ...cleo, logins_count: 0 });
    expect(users.get(dan.user_id)).to.deep.include(dan);
    expect(users.get('auth0|5f7c8ec7c33c6c004bbafe84')).to.deep.include({
      email: 'eve@example.test',
      email_verified: true,
    });
    expect(imports.get(ADA)?.mfa_factors).to.deep.equal([{ totp: { secret: TOTP } }]);
    expect(given).to.have.deep.members(access);
  });

  it('changes nothing when it is repeated, with a running server', async () => {
    const before = await usersOf('one');
    const server = await serveFolder(cwd, envOf('one'));
    try {
      const again = await run('one', 'move', 'in', 'export.yaml', ...USERS);
      expect(again.stdout, again.stderr).to.contain('configuration: 0 changes');
      expect(again.stdout).to.contain('4 users: 0 new, 0 changed, 4 as they were, 0 refused');
    } finally {
      await server.stop();
    }
    const after = await usersOf('one');
    for (const name of ['users.ndjson', 'memberships.ndjson', 'tenant.yaml'])
      expect(read(`${after.out}/${name}`)).to.equal(read(`${before.out}/${name}`));
    expect([...after.imports]).to.deep.equal([...before.imports]);
  });

  it('moves out what can be moved in again, and leaves equal', async () => {
    const { out } = await usersOf('one');
    const imports = readdirSync(join(cwd, out, 'import')).map((name) => `import/${name}`);
    const all = ['tenant.yaml', 'users.ndjson', 'memberships.ndjson', ...imports];
    for (const name of all) expect(statSync(join(cwd, out, name)).mode & 0o777, name).to.equal(0o600);
    const moved = await run(
      'two',
      ...['move', 'in', `${out}/tenant.yaml`, '--users', `${out}/users.ndjson`],
      ...[
        '--memberships',
        `${out}/memberships.ndjson`,
        '--hashes',
        ...imports.map((name) => `${out}/${name}`),
      ],
    );
    expect(moved.stdout, moved.stderr).to.contain('4 users: 4 new');
    const second = await usersOf('two');
    for (const name of all) expect(read(`${second.out}/${name}`), name).to.equal(read(`${out}/${name}`));
    const there = await run('two', 'move', 'out', '-o', out);
    expect(there.stderr).to.contain(`${out} is there already`);
    expect(there.code).to.equal(1);
  });

  it('writes import files that have nothing but what the hosted service takes', async () => {
    const { imports } = await usersOf('one');
    const allowed = new Set(
      'email email_verified phone_number phone_verified user_id username given_name family_name name nickname picture blocked custom_password_hash app_metadata user_metadata mfa_factors'.split(
        ' ',
      ),
    );
    expect(imports.size).to.equal(3);
    for (const [id, { email, custom_password_hash, ...others }] of imports) {
      expect(Object.keys(others).filter((member) => !allowed.has(member))).to.deep.equal([]);
      expect(email).to.be.a('string');
      expect(id).not.to.contain('|');
      const { algorithm, hash, ...more } = custom_password_hash as { algorithm: string; hash: object };
      expect(more).to.deep.equal({});
      expect(algorithm).to.equal('bcrypt');
      expect(Object.keys(hash)).to.deep.equal(['value', 'encoding']);
    }
  });

  it('lets users in with their old passwords, roles and second factors, and exports ours as argon2', async () => {
    const server = await serveFolder(cwd, envOf('one'));
    try {
      const { clients } = parse((await run('one', 'export')).stdout) as {
        clients: { name: string; client_id: string; client_secret: string }[];
      };
      const { client_id, client_secret } = clients.find(({ name }) => name === 'Web') ?? {};
      const agent = createAgent(server);
      const token = async (username: string, password: string) => {
        const form = { grant_type: 'password', client_id, client_secret, username, password };
        const response = await agent.request('/oauth/token', {
          json: { ...form, audience: 'https://api.example.test' },
        });
        return response.json() as { access_token?: string; error?: string };
      };
      expect((await token('eve@example.test', 'Eve-2')).error).to.equal('invalid_grant');
      expect((await token('eve@example.test', 'Eve-1')).access_token).to.be.a('string');
      // The linked identity of a user who was blocked.
      expect((await token('bob@example.test', 'Bob-1')).error).to.be.oneOf([
        'unauthorized',
        'access_denied',
        'invalid_grant',
      ]);
      const { access_token = '' } = await token('ada@example.test', 'Analytical-1');
      const claims = JSON.parse(Buffer.from(access_token.split('.')[1] ?? '', 'base64url').toString());
      expect(claims).to.deep.include({ sub: ada.user_id, permissions: ['write:all'] });
      // A repeated move takes nothing back of what the logins changed.
      const again = await run('one', 'move', 'in', ...USERS);
      expect(again.stdout, again.stderr).to.contain('4 users: 0 new, 0 changed, 4 as they were');
    } finally {
      await server.stop();
    }
    const { imports, users } = await usersOf('one');
    expect(hashIn(imports, '5f7c8ec7c33c6c004bbafe84')).to.match(/^\$argon2id\$/);
    expect(users.get('auth0|5f7c8ec7c33c6c004bbafe84')?.logins_count).to.equal(1);
  });

  it('takes over what was changed at the old tenant since, and keeps what was changed here', async () => {
    const newer = { ...ada, name: 'Countess', updated_at: '2026-07-01T00:00:00.000Z', logins_count: 9 };
    const older = { ...cleo, name: 'Nobody', updated_at: '2020-01-01T00:00:00.000Z' };
    writeFileSync(join(cwd, 'newer.ndjson'), lines([newer, older]));
    const passwordHash = await bcrypt.hash('Countess-2', 4);
    const setAt = (date: string) => ({ passwordHash, password_set_date: { $date: date } });
    writeFileSync(
      join(cwd, 'newer-hashes.ndjson'),
      // The second was set before what is here.
      lines([
        { ...secrets[0], ...setAt('2026-06-30T00:00:00.000Z') },
        { ...secrets[2], ...setAt('2019-06-30T00:00:00.000Z') },
      ]),
    );
    const before = await usersOf('two');
    const files = ['--users', 'newer.ndjson', '--hashes', 'newer-hashes.ndjson'];
    const moved = await run('two', 'move', 'in', ...files);
    expect(moved.stdout, moved.stderr).to.contain('2 users: 0 new, 1 changed, 1 as they were');
    const { users, imports, access: given } = await usersOf('two');
    expect(users.get(ada.user_id)).to.deep.include({ name: 'Countess', logins_count: 9 });
    expect(users.get(cleo.user_id)).to.deep.equal(before.users.get(cleo.user_id));
    expect(hashIn(imports, ADA)).to.equal(passwordHash);
    expect(hashIn(imports, BOB)).not.to.equal(passwordHash);
    expect(given).to.have.deep.members(access);
  });

  describe('refuses', () => {
    /** Moves in lines of which some are refused. @returns the reasons. */
    const refusedOf = async (
      users: readonly object[],
      hashes: readonly object[] = [],
      given: readonly object[] = [],
    ) => {
      writeFileSync(join(cwd, 'bad.ndjson'), lines(users));
      writeFileSync(join(cwd, 'bad-hashes.ndjson'), lines(hashes));
      writeFileSync(join(cwd, 'bad-access.ndjson'), lines(given));
      const others = ['--hashes', 'bad-hashes.ndjson', '--memberships', 'bad-access.ndjson'];
      const { code, stdout, stderr } = await run('one', 'move', 'in', '--users', 'bad.ndjson', ...others);
      expect(code, stdout + stderr).to.equal(1);
      const all = ['users', 'memberships']
        .map((kind) => join(cwd, `refused-${kind}.ndjson`))
        .flatMap((file) => (existsSync(file) ? parsed(readFileSync(file, 'utf8')) : []));
      expect(JSON.stringify(all)).not.to.contain('$2b$');
      return all.map(({ refused }) => (refused as { message: string }[])[0]?.message ?? '');
    };
    const cases: [string, object, RegExp][] = [
      [
        'an id that is not that of an identity',
        user('x1', { user_id: 'auth0|x2' }),
        /none of them is auth0\|x2/,
      ],
      [
        'a connection that is not here',
        user('x1', { identities: [{ ...own('x1'), connection: 'nowhere' }] }),
        /no connection nowhere/,
      ],
      [
        'an identity of another strategy than its connection',
        user('x1', { user_id: 'github|x1', identities: [{ ...own('x1'), provider: 'github' }] }),
        /is auth0 here, and not github/,
      ],
      [
        'a user of the administrators',
        user('x1', {
          user_id: 'gatehouse|x1',
          identities: [{ connection: 'administrators', provider: 'gatehouse', user_id: 'x1' }],
        }),
        /no connection administrators/,
      ],
      ['an id without a strategy', user('x1', { user_id: 'x1' }), /no strategy, bar and id/],
      ['the e-mail address of another user', user('x1', { email: 'ada@example.test' }), /same email/],
      [
        'an identity of another user',
        user('x1', { identities: [own('x1'), ofGoogle('105')] }),
        /belongs to another user here/,
      ],
      [
        'the id of a linked identity, whose password is here',
        user('x1', { user_id: `auth0|${BOB}`, identities: [own(BOB)] }),
        /belongs to another user here|had a password here/,
      ],
      [
        'a name that is an address of others',
        user('x1', { username: 'ada@example.test' }),
        /no e-mail address or phone/,
      ],
      ['a user without an address', user('x1', { email: null }), /One of email, username, phone_number/],
      ['what is no e-mail address', user('x1', { email: 'nobody' }), /no e-mail address/],
      ['a date that is none', user('x1', { created_at: 'yesterday' }), /is no date/],
      ['too much metadata', user('x1', { user_metadata: { a: 'x'.repeat(300_000) } }), /metadata/],
      ['other types', user('x1', { app_metadata: 'gold' }), /record|object/i],
    ];
    for (const [what, value, message] of cases)
      it(what, async () => {
        const [reason, ...others] = await refusedOf([value]);
        expect(reason).to.match(message);
        expect(others).to.deep.equal([]);
      });

    it('hashes that cost too much or are none, with their users, and writes no hash into the file', async () => {
      const expensive = `$2b$20$${'a'.repeat(53)}`;
      const rotated = { algorithm: 'rot13', hash: { value: 'x' } };
      const reasons = await refusedOf(
        [user('x1'), user('x2')],
        [
          { _id: { $oid: 'x1' }, passwordHash: expensive },
          { user_id: 'x2', custom_password_hash: rotated },
        ],
      );
      expect(reasons[0]).to.contain('The cost is too high');
      expect(reasons[1]).to.contain('algorithm must be one of');
    });

    it('roles and organizations that are not here; the mended lines complete it', async () => {
      const reasons = await refusedOf(
        [],
        [],
        [
          { user_id: ada.user_id, roles: ['Lost'] },
          { user_id: dan.user_id, organization: 'nowhere' },
          { user_id: 'auth0|nobody', roles: ['Reader'] },
          { roles: ['Reader'] },
        ],
      );
      expect(reasons).to.have.members([
        'there is no role Lost here',
        'there is no organization nowhere here',
        'There is no such user here',
        'it names no user',
      ]);
      const file = 'refused-memberships.ndjson';
      expect(statSync(join(cwd, file)).mode & 0o777).to.equal(0o600);
      const [lost] = parsed(read(file)).filter(({ user_id }) => user_id === ada.user_id);
      writeFileSync(join(cwd, 'mended.ndjson'), lines([{ ...lost, roles: ['Reader'] }]));
      const again = await run('one', 'move', 'in', '--memberships', 'mended.ndjson');
      expect(again.stdout, again.stderr).to.contain('1 users: 0 new, 1 changed');
      expect(existsSync(join(cwd, file))).to.equal(false);
      const { access: given } = await usersOf('one');
      expect(given).to.deep.include({ user_id: ada.user_id, roles: ['Editor', 'Reader'] });
    });

    it('a user with tokens of a provider, which the file of refused lines does not have', async () => {
      const tokens = {
        access_token: 'ya29.secret-of-google',
        access_token_secret: 'secret-of-twitter',
        refresh_token: '1//secret-of-google',
      };
      const identities = [{ provider: 'google-oauth2', connection: 'nowhere', user_id: '1', ...tokens }];
      await refusedOf([user('t1', { user_id: 'google-oauth2|1', identities })]);
      const [line] = parsed(read('refused-users.ndjson'));
      expect(line).to.include({ user_id: 'google-oauth2|1' });
      expect(line?.identities).to.deep.equal([
        { provider: 'google-oauth2', connection: 'nowhere', user_id: '1' },
      ]);
    });

    it('one user of a batch, and moves all others; the mended line completes it', async () => {
      const many = Array.from({ length: 60 }, (_, n) =>
        user(`m${n}`, n === 33 ? { email: 'm1@example.test' } : {}),
      );
      expect(await refusedOf(many)).to.have.length(1);
      const [line] = parsed(read('refused-users.ndjson'));
      writeFileSync(join(cwd, 'mended.ndjson'), lines([{ ...line, email: 'm33@example.test' }]));
      // That file is replaced, and would be lost.
      const same = await run('one', 'move', 'in', '--users', './refused-users.ndjson');
      expect(same.stderr).to.contain('give the mended file another name');
      expect(parsed(read('refused-users.ndjson'))).to.have.length(1);
      const again = await run('one', 'move', 'in', '--users', 'mended.ndjson');
      expect(again.stdout, again.stderr).to.contain('1 users: 1 new');
      const { users } = await usersOf('one');
      for (const n of [32, 33, 34, 59]) expect(users.has(`auth0|m${n}`)).to.equal(true);
      expect(users.get('auth0|m33')).not.to.have.property('refused');
    });

    it('lines that are no JSON, and goes on', async () => {
      const torn = `${JSON.stringify(user('t1'))}\n{"user_id":"auth0|t2","em\n${JSON.stringify(user('t3'))}\n`;
      writeFileSync(join(cwd, 'torn.ndjson'), torn);
      const { code, stdout } = await run('one', 'move', 'in', '--users', 'torn.ndjson');
      expect(code).to.equal(1);
      expect(stdout).to.contain('2 users: 2 new');
      expect(parsed(read('refused-users.ndjson'))).to.have.length(1);
    });

    it('files that are not there or of no known form, before anything is written', async () => {
      writeFileSync(join(cwd, 'words.txt'), 'name,email\nAda,ada@example.test\n');
      for (const [file, message] of [
        ['nowhere.ndjson', /nowhere\.ndjson cannot be read \(there is no such file\)/],
        ['words.txt', /has no column user_id/],
      ] as const) {
        const { code, stdout, stderr } = await run('three', 'move', 'in', 'export.yaml', '--hashes', file);
        expect([code, stdout]).to.deep.equal([1, '']);
        expect(stderr).to.match(message);
      }
      expect(existsSync(join(cwd, 'three/store'))).to.equal(false);
      const nothing = await run('three', 'move', 'in');
      expect(nothing.stderr).to.contain('there is nothing to move');
    });
  });

  it('reads users as a JSON array, over several lines, and as CSV', async () => {
    expect((await run('forms', 'move', 'in', 'export.yaml')).code).to.equal(0);
    writeFileSync(join(cwd, 'array.json'), JSON.stringify([user('a1'), user('a2')], null, 2));
    writeFileSync(
      join(cwd, 'users.csv'),
      [
        'user_id,email,email_verified,identities[0].connection,identities[0].user_id,user_metadata.city,"nickname"',
        `"'auth0|c1","'c1@example.test",true,"'people","'c1","'Zürich, ""alt""\nstadt","'=c1"`,
        '',
      ].join('\r\n'),
    );
    const { stdout, stderr } = await run('forms', 'move', 'in', '--users', 'array.json', 'users.csv');
    expect(stdout, stderr).to.contain('3 users: 3 new');
    expect((await usersOf('forms')).users.get('auth0|c1')).to.deep.include({
      email_verified: true,
      nickname: '=c1',
      user_metadata: { city: 'Zürich, "alt"\nstadt' },
    });
  });

  it('keeps ids and secrets that only the old Management API has', async () => {
    const web = { client_id: 'old-client-id', client_secret: 'old-secret-of-web', name: 'Web' };
    writeFileSync(join(cwd, 'clients.json'), JSON.stringify({ clients: [web] }));
    writeFileSync(
      join(cwd, 'lists.json'),
      JSON.stringify([
        { id: 'org_OldAcme', name: 'acme' },
        { id: 'rol_OldReader', name: 'Reader' },
        { id: 'con_OldPeople', name: 'people', strategy: 'auth0' },
      ]),
    );
    const files = ['--identifiers', 'clients.json', 'lists.json'];
    const moved = await run('ids', 'move', 'in', 'export.yaml', ...files);
    expect(moved.code, moved.stderr).to.equal(0);
    expect(moved.stdout).not.to.contain(web.client_secret);
    const { stdout } = await run('ids', 'export');
    for (const id of ['old-client-id', 'old-secret-of-web', 'org_OldAcme', 'rol_OldReader', 'con_OldPeople'])
      expect(stdout).to.contain(id);
    writeFileSync(join(cwd, 'strange.json'), '{"name":"x"}');
    const strange = await run('ids', 'move', 'in', 'export.yaml', '--identifiers', 'strange.json');
    expect(strange.stderr).to.contain('strange.json: object 1 is no application');
  });

  it('names the applications whose ids no file has, and which of them to delete once their ids are known', async () => {
    const unnamed = await run('made', 'move', 'in', 'export.yaml');
    expect(unnamed.stdout, unnamed.stderr).to.match(
      /ids that were made here, .*: Web \(export with AUTH0_EXPORT_IDENTIFIERS=true, or give --identifiers or --from\)/,
    );
    const { clients } = parse((await run('made', 'export')).stdout) as { clients: { client_id: string }[] };
    const made = clients[0]?.client_id;
    const web = { client_id: 'given-later', client_secret: 'old-secret-of-web', name: 'Web' };
    writeFileSync(join(cwd, 'later.json'), JSON.stringify([web]));
    const args = ['move', 'in', 'export.yaml', '--identifiers', 'later.json'];
    const known = `clients.given-later is a second application of the name Web: delete ${made}, whose id was made here`;
    const later = await run('made', ...args);
    expect(later.stdout, later.stderr).to.contain('+ clients.given-later').and.to.contain(known);
    expect(later.stdout).not.to.contain('ids that were made here,');
    // What the line says is no change.
    const again = await run('made', ...args);
    expect(again.stdout).to.contain(known).and.to.contain('configuration: 0 changes');
  });

  it('gives a client grant the id of the export, unless it is there under another', async () => {
    const grant =
      "clientGrants: [{ id: cgr_there, client_id: Web, audience: 'https://api.example.test', scope: [] }]";
    writeFileSync(join(cwd, 'grants.yaml'), `${TENANT}${grant}\n`);
    writeFileSync(join(cwd, 'nothing.yaml'), '{}\n');
    const at = (data: string, file: string, ...args: string[]) =>
      runCommand({ cwd, env: { TENANT_FILE: file, DATA_DIR: data }, args });
    expect((await at('grants', 'nothing.yaml', 'move', 'in', 'grants.yaml')).code).to.equal(0);
    expect((await at('grants', 'grants.yaml', 'plan')).stdout).to.contain('no changes');
    // Applied with another id before, it keeps that; and a grant of somebody else with this id stays.
    const other = grant.replace('cgr_there', 'cgr_here');
    const strange = "{ id: cgr_there, client_id: Other, audience: 'https://api.example.test', scope: [] }";
    writeFileSync(
      join(cwd, 'before.yaml'),
      `${TENANT.replace('clients:', 'clients:\n  - name: Other')}${other.replace('[', `[${strange}, `)}\n`,
    );
    expect((await at('granted', 'before.yaml', 'apply')).code).to.equal(0);
    const moved = await at('granted', 'before.yaml', 'move', 'in', 'grants.yaml');
    expect(moved.code, moved.stderr).to.equal(0);
    expect((await at('granted', 'before.yaml', 'plan')).stdout).to.contain('no changes');
  });

  it('adds to a tenant and removes nothing of it', async () => {
    writeFileSync(join(cwd, 'other.yaml'), 'clients: [{ name: Mine }]\ndatabases: [{ name: mine }]\n');
    const other = { cwd, env: { TENANT_FILE: 'other.yaml', DATA_DIR: 'added' } };
    expect((await runCommand({ ...other, args: ['apply'] })).code).to.equal(0);
    expect((await run('added', 'move', 'in', 'export.yaml')).code).to.equal(0);
    const { stdout } = await run('added', 'export');
    for (const name of ['Mine', 'mine', 'Web', 'people']) expect(stdout).to.contain(`name: ${name}\n`);
  });
});

describe('gatehouse move in, with a server that is killed meanwhile', () => {
  it('has moved each user completely or not at all, and is completed by the same command', async () => {
    const cwd = mkdtempSync(join(SCRATCH, 'gatehouse-move-killed-'));
    const env = { TENANT_FILE: 'export.yaml' };
    const run = (...args: string[]) => runCommand({ cwd, env, args });
    writeFileSync(join(cwd, 'export.yaml'), TENANT);
    const count = 800;
    const passwordHash = await bcrypt.hash('Analytical-1', 4);
    const ids = Array.from({ length: count }, (_, n) => `user-${String(n).padStart(4, '0')}`);
    const write = (name: string, lineOf: (id: string) => object) =>
      writeFileSync(join(cwd, name), lines(ids.map(lineOf)));
    write('users.ndjson', (id) => user(id));
    write('hashes.ndjson', (id) => ({
      _id: { $oid: id },
      passwordHash,
      mfa_factors: [{ totp: { secret: TOTP } }],
    }));
    write('memberships.ndjson', (id) => ({
      user_id: `auth0|${id}`,
      organization: 'acme',
      roles: ['Reader'],
    }));
    const files = ['users', 'hashes', 'memberships'].flatMap((name) => [`--${name}`, `${name}.ndjson`]);
    expect((await run('move', 'in', 'export.yaml')).code).to.equal(0);
    const server = await runServer({ cwd, env });
    let whole = 0;
    try {
      const moving = run('move', 'in', ...files);
      const database = new DatabaseSync(join(cwd, 'data/store/gatehouse.db'), { readOnly: true });
      const users = database.prepare('SELECT count(*) AS n FROM users');
      await until(() => Number(users.get()?.n) >= 50);
      await server.end('SIGKILL');
      const { code, stderr } = await moving;
      expect(code).to.equal(1);
      expect(stderr).to.contain('the server ended before it was done');
      const counts = ['users', 'identities', 'credentials', 'memberships', 'authenticators'].map((name) =>
        Number(database.prepare(`SELECT count(*) AS n FROM ${name}`).get()?.n),
      );
      database.close();
      whole = counts[0] ?? 0;
      expect(whole).to.be.within(50, count - 1);
      expect(new Set(counts).size, counts.join()).to.equal(1);
    } finally {
      server.child.kill('SIGKILL');
    }
    const again = await run('move', 'in', ...files);
    expect(again.stdout, again.stderr).to.contain(
      `${count} users: ${count - whole} new, 0 changed, ${whole} as they were, 0 refused`,
    );
    rmSync(cwd, { recursive: true, force: true });
  });
});
