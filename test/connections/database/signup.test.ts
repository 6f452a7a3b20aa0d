import { expect } from 'chai';
import { createAgent } from '../../support/agent.ts';
import { tenant, token } from '../../support/flows.ts';
import { startServer, type TestServer } from '../../support/server.ts';
import { keptBy } from '../../support/store.ts';

const database = (name: string, options: object) => ({ name, enabled_clients: ['web'], options });

describe('POST /dbconnections/signup', () => {
  let server: TestServer;
  before(async () => {
    server = await startServer({
      realHashes: true,
      tenant: {
        ...tenant,
        attackProtection: { rateLimits: { signup: { capacity: 10_000, perMinute: 1 } } },
        databases: [
          ...tenant.databases,
          database('none', { passwordPolicy: 'none' }),
          database('low', { passwordPolicy: 'low' }),
          database('fair', { passwordPolicy: 'fair' }),
          database('excellent', { passwordPolicy: 'excellent' }),
          database('long', { passwordPolicy: 'low', password_complexity_options: { min_length: 20 } }),
          database('strict', {
            passwordPolicy: 'low',
            password_dictionary: { enable: true, dictionary: ['Gatehouse'] },
            password_no_personal_info: { enable: true },
          }),
          database('closed', { disable_signup: true }),
          database('named', {
            requires_username: true,
            validation: { username: { min: 3, max: 8 } },
            passwordPolicy: 'none',
          }),
        ],
        connections: [{ name: 'mail', strategy: 'email', enabled_clients: ['web'] }],
      },
    });
  });
  after(() => server.stop());

  let count = 0;
  const fresh = () => `user${++count}@example.test`;
  const signUp = (over: Record<string, unknown> = {}, target = server) =>
    createAgent(target).request('/dbconnections/signup', {
      json: { client_id: 'web', connection: 'users', email: fresh(), password: 'Good-Enough-1', ...over },
    });

  it('returns exactly the documented result', async () => {
    const answer = await signUp({ email: 'first@example.test' });
    expect(answer.status).to.equal(200);
    expect(answer.headers['content-type']).to.equal('application/json; charset=utf-8');
    expect(answer.json()).to.have.all.keys('_id', 'email', 'email_verified');
    expect(answer.json()).to.include({ email: 'first@example.test', email_verified: false });
    expect(answer.json()._id).to.match(/^[0-9a-f]{24}$/);
  });

  it('returns and stores what was sent', async () => {
    const profile = {
      given_name: 'Ada',
      family_name: 'Lovelace',
      name: 'Ada Lovelace',
      nickname: 'countess',
      picture: 'https://example.test/ada.png',
      user_metadata: { plan: 'gold' },
    };
    const answer = await signUp(profile);
    expect(answer.json()).to.deep.include(profile);
    expect(await server.users.get(`auth0|${answer.json()._id}`)).to.deep.include(profile);
  });

  it('accepts a form, and a request without client_id', async () => {
    const email = fresh();
    const answer = await createAgent(server).request('/dbconnections/signup', {
      form: {
        connection: 'users',
        email,
        password: 'Good-Enough-1',
        nickname: 'ada',
        'user_metadata[plan]': 'gold',
      },
    });
    expect(answer.status).to.equal(200);
    const { _id, ...rest } = answer.json();
    expect(_id).to.match(/^[0-9a-f]{24}$/);
    expect(rest).to.deep.equal({
      email,
      email_verified: false,
      nickname: 'ada',
      user_metadata: { plan: 'gold' },
    });
  });

  it('returns a username in lower case, as it is stored', async () => {
    const answer = await signUp({ connection: 'staff', username: ' NewHand ' });
    expect(answer.json()).to.have.all.keys('_id', 'email', 'email_verified', 'username');
    expect(answer.json().username).to.equal('newhand');
  });

  it('ignores members that only the server or an administrator may set', async () => {
    const answer = await signUp({
      email_verified: true,
      _id: 'f'.repeat(24),
      app_metadata: { role: 'admin' },
      permissions: [{ resource_server_identifier: 'guarded-api', permission_name: 'admin' }],
      blocked: true,
      logins_count: 99,
      identities: [],
    });
    expect(answer.json()).to.have.all.keys('_id', 'email', 'email_verified');
    const user = await server.users.get(`auth0|${answer.json()._id}`);
    expect(user).to.deep.include({ email_verified: false, app_metadata: {}, logins_count: 0 });
    expect(user).not.to.have.any.keys('permissions', 'blocked');
    expect(await server.users.identitiesOf(user?.id ?? '')).to.have.length(1);
  });

  it('creates a user who can log in, whichever Unicode form the password has', async () => {
    const email = fresh();
    await signUp({ email, password: 'Zürich-Åre-1'.normalize('NFD') });
    const logIn = (password: string) =>
      token(createAgent(server), {
        grant_type: 'password',
        client_id: 'web',
        client_secret: 'web-secret',
        username: email,
        password,
      });
    expect((await logIn('Zürich-Åre-1'.normalize('NFC'))).status).to.equal(200);
    expect((await logIn('Zürich-Åre-1'.normalize('NFD'))).status).to.equal(200);
    expect((await logIn('Zurich-Are-1')).status).to.equal(403);
  });

  it('treats an address in another case or with surrounding spaces as the same', async () => {
    expect((await signUp({ email: '  MiXed@Example.Test ' })).json()).to.include({
      email: 'mixed@example.test',
    });
    expect((await signUp({ email: 'mixed@example.test' })).json()).to.include({ code: 'invalid_signup' });
  });

  // H with a line below exists in lower case only, so the order of folding and composing matters.
  for (const [one, other] of [
    ['zo\u00eb', 'zoe\u0308'],
    ['\u1e96ana', 'H\u0331ana'],
    ['\u212bsa', '\u00e5sa'],
  ] as const) {
    it(`treats an address in composed and decomposed form as the same: ${one}`, async () => {
      expect((await signUp({ email: `${one}@example.test` })).status).to.equal(200);
      expect((await signUp({ email: `${other}@example.test` })).json()).to.include({
        code: 'invalid_signup',
      });
    });
  }

  it('accepts an address once in each connection', async () => {
    const email = fresh();
    expect((await signUp({ email })).status).to.equal(200);
    expect((await signUp({ email, connection: 'none' })).status).to.equal(200);
  });

  it('does not reveal that an address is taken', async () => {
    const email = fresh();
    await signUp({ email });
    const again = await signUp({ email });
    expect(again.status).to.equal(400);
    expect(again.json()).to.deep.equal({
      name: 'BadRequestError',
      code: 'invalid_signup',
      description: 'Invalid sign up',
      error_description: 'Invalid sign up',
      statusCode: 400,
    });
  });

  it('says that an address is taken if the tenant chooses to', async () => {
    const open = await startServer({
      tenant: {
        ...tenant,
        tenant: { ...tenant.tenant, flags: { enable_public_signup_user_exists_error: true } },
      },
    });
    try {
      expect((await signUp({ email: 'ada@example.test' }, open)).json()).to.include({
        code: 'user_exists',
        description: 'The user already exists.',
      });
      const name = await signUp({ connection: 'staff', username: 'STAFF1' }, open);
      expect(name.json()).to.include({ code: 'username_exists' });
    } finally {
      await open.stop();
    }
  });

  it('gives an address to one of twenty concurrent sign-ups, and stores nothing of the others', async () => {
    const email = fresh();
    const users = await server.store.collection('users').count();
    const answers = await Promise.all(Array.from({ length: 20 }, () => signUp({ email })));
    expect(answers.filter(({ status }) => status === 200)).to.have.length(1);
    expect(await server.store.collection('users').count()).to.equal(users + 1);
    expect(await server.store.collection('credentials').count()).to.equal(
      await server.store.collection('users').count(),
    );
  });

  it('writes argon2id hashes to disk and log, never a password', async () => {
    const { _id } = (await signUp({ password: 'Never-On-Disk-1' })).json();
    await signUp({ password: 'Never-Refused-1', user_metadata: 'wrong' });
    const hash = (await server.store.collection('credentials').get(`auth0|${_id}`))?.passwordHash ?? '';
    expect(hash).to.match(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
    const kept = await keptBy(server);
    expect(kept.filter((text) => text.includes(hash)).length, 'the hash is there').to.be.above(0);
    for (const text of [...kept, server.logged()]) {
      expect(text.includes('Never-On-Disk-1')).to.equal(false);
      expect(text.includes('Never-Refused-1')).to.equal(false);
    }
    expect(server.logged().includes('$argon2id$'), 'a hash in the log').to.equal(false);
  });

  describe('limits of fields', () => {
    const metadata = (properties: number, name = 1, value = 1) =>
      Object.fromEntries(
        Array.from({ length: properties }, (_, i) => [`${i}`.padStart(name, 'n'), 'v'.repeat(value)]),
      );
    for (const [what, over] of [
      ['ten properties of metadata', { user_metadata: metadata(10) }],
      ['a name of 100 characters in metadata', { user_metadata: metadata(1, 100) }],
      ['a value of 500 characters', { user_metadata: metadata(1, 1, 500) }],
      [
        'names and values counted in code points',
        {
          user_metadata: { ['😀'.repeat(100)]: '😀'.repeat(500) },
        },
      ],
      ['an empty metadata value', { user_metadata: { empty: '' } }],
      ['a name of 300 characters', { given_name: 'n'.repeat(300), family_name: 'n'.repeat(300) }],
      ['a picture of 2048 characters', { picture: `https://x.test/${'p'.repeat(2033)}` }],
      ['the shortest username by default', { connection: 'staff', username: 'q' }],
      ['the longest username by default', { connection: 'staff', username: 'u'.repeat(15) }],
      ['null in place of absent fields', { username: null, user_metadata: null, picture: null }],
      ['a username of the shortest length', { connection: 'named', username: 'abc', password: 'x' }],
      ['a username of the longest length', { connection: 'named', username: 'abcdefgh', password: 'x' }],
      ['a password of 512 bytes', { password: `Aa1${'x'.repeat(509)}` }],
    ] as const) {
      it(`allow ${what}`, async () => {
        expect((await signUp(over)).status).to.equal(200);
      });
    }

    for (const [what, over, fault] of [
      ['eleven properties of metadata', { user_metadata: metadata(11) }, /user_metadata.*10 properties/],
      ['a name of 101 characters', { user_metadata: metadata(1, 101) }, /user_metadata.*100 characters/],
      ['a value of 501 characters', { user_metadata: metadata(1, 1, 501) }, /user_metadata\.0.*500/],
      [
        'a value that is no string',
        { user_metadata: { n: 1 } },
        /^invalid user_metadata\.n type \(only strings are allowed\)$/,
      ],
      [
        'metadata that is no object',
        { user_metadata: 'x' },
        /^invalid user_metadata type \(expected object\)$/,
      ],
      [
        'a value of 501 characters of four bytes',
        { user_metadata: { n: '😀'.repeat(501) } },
        /^user_metadata\.n must be at most 500 characters$/,
      ],
      ['a null in metadata', { user_metadata: { n: null } }, /^invalid user_metadata\.n type/],
      ['an array as metadata', { user_metadata: ['a'] }, /^invalid user_metadata type \(expected object\)$/],
      ['an array as address', { email: ['a@example.test'] }, /^invalid email type \(expected string\)$/],
      ['an object as password', { password: { $ne: '' } }, /password/],
      ['null as address', { email: null }, /^email is required$/],
      ['an empty connection', { connection: '' }, /^connection is required$/],
      ['a client_id that is no string', { client_id: ['web'] }, /client_id/],
      ['a name of 301 characters', { nickname: 'n'.repeat(301) }, /^nickname .*300/],
      ['a picture of 2049 characters', { picture: `https://x.test/${'p'.repeat(2034)}` }, /^picture .*2048/],
      ['a relative picture', { picture: '/ada.png' }, /^picture must be a URI$/],
      ['a picture that holds its data', { picture: 'data:image/png;base64,AAAA' }, /^picture must be a URI$/],
      ['no username at the staff connection', { connection: 'staff' }, /^missing username for staff /],
      ['an empty username', { connection: 'staff', username: '' }, /^missing username for staff /],
      ['a username of spaces', { connection: 'staff', username: '   ' }, /username/],
      ['a username of 16 characters', { connection: 'staff', username: 'u'.repeat(16) }, /username.*1 to 15/],
      ['a picture that is no URI', { picture: 'nothing' }, /picture/],
      ['a picture that is a script', { picture: 'javascript:alert(1)' }, /picture/],
      ['a name that is no string', { given_name: 5 }, /given_name/],
      ['no address', { email: undefined }, /email is required/],
      ['no password', { password: undefined }, /password is required/],
      ['no connection', { connection: undefined }, /connection is required/],
      ['an invalid address', { email: 'not-an-address' }, /email/],
      ['an address that is too long', { email: `${'a'.repeat(250)}@example.test` }, /email/],
      ['an address with a line break', { email: 'a@b.test\nBcc: c@d.test' }, /email/],
      ['a username at a connection without usernames', { username: 'someone' }, /username is not allowed/],
      [
        'no username at a connection that requires one',
        { connection: 'named', password: 'x' },
        /^missing username for named connection with requires_username enabled$/,
      ],
      ['a username that is too short', { connection: 'named', username: 'ab', password: 'x' }, /username/],
      [
        'a username that is too long',
        { connection: 'named', username: 'abcdefghi', password: 'x' },
        /username/,
      ],
      [
        'a username that is an address',
        { connection: 'named', username: 'a@b.c', password: 'x' },
        /username/,
      ],
      ['a username with a space', { connection: 'named', username: 'a b c', password: 'x' }, /username/],
    ] as const) {
      it(`reject ${what}, naming the field`, async () => {
        const answer = await signUp(over);
        expect(answer.status).to.equal(400);
        expect(answer.json().error).to.match(fault);
      });
    }

    it('reject a name that would change a prototype', async () => {
      const body = `{"connection":"users","email":"${fresh()}","password":"Good-Enough-1","user_metadata":{"__proto__":{"x":"y"},"plan":"gold"}}`;
      const answer = await createAgent(server).request('/dbconnections/signup', {
        method: 'POST',
        body,
        headers: { 'content-type': 'application/json', 'content-length': String(body.length) },
      });
      expect(({} as Record<string, unknown>).x).to.equal(undefined);
      expect(answer.status).to.equal(400);
    });

    it('name all invalid fields of a request', async () => {
      const answer = await signUp({ email: undefined, picture: 'x', user_metadata: { n: 1 } });
      expect(answer.json().error).to.contain('email').and.contain('picture').and.contain('user_metadata.n');
    });
  });

  for (const [what, over] of [
    ['an unknown connection', { connection: 'nowhere' }],
    [
      'a connection not enabled for the application',
      { connection: 'staff', client_id: 'spa', username: 'abc' },
    ],
    ['a connection that is not a database', { connection: 'mail' }],
    ['an unknown application', { client_id: 'nobody' }],
  ] as const) {
    it(`rejects ${what}`, async () => {
      const answer = await signUp(over);
      expect(answer.status).to.equal(400);
      expect(answer.json()).to.include({ error: 'connection not found', code: 'connection_not_found' });
    });
  }

  it('rejects a sign-up if the connection has disabled it', async () => {
    const answer = await signUp({ connection: 'closed' });
    expect(answer.status).to.equal(400);
    expect(answer.json()).to.deep.equal({
      error: 'public signup is disabled',
      error_description: 'public signup is disabled',
    });
  });

  for (const [what, body, type] of [
    ['broken JSON', '{"email":', 'application/json'],
    ['an array', '[1]', 'application/json'],
    ['an empty body', '', 'application/json'],
    ['a huge body', JSON.stringify({ email: 'x'.repeat(100_000) }), 'application/json'],
  ] as const) {
    it(`returns a 4xx error for ${what}`, async () => {
      const answer = await createAgent(server).request('/dbconnections/signup', {
        method: 'POST',
        body,
        headers: { 'content-type': type, 'content-length': String(body.length) },
      });
      expect(answer.status).to.be.within(400, 499);
      expect(answer.json().error).to.be.a('string');
    });
  }

  describe('password policies', () => {
    const verdict = async (connection: string, password: string, over: object = {}) => {
      const answer = await signUp({ connection, password, ...over });
      return answer.status === 200 ? 'taken' : answer.json().name;
    };

    for (const [connection, taken, refused] of [
      ['none', 'x', undefined],
      ['low', 'abcdef', 'abcde'],
      ['fair', 'abcdeF12', 'abcdef12'],
      ['users', 'abcdeF12', 'abcdef12'],
      ['users', 'abcdef1!', 'abcdeF1'],
      ['excellent', 'abcdefgH1x', 'abcdefgH1'],
      ['excellent', 'abcdefgHH1', 'abcdefHHH1'],
      ['long', 'x'.repeat(20), 'x'.repeat(19)],
    ] as const) {
      it(`of ${connection} allow ${taken}${refused === undefined ? '' : ` and reject ${refused}`}`, async () => {
        expect(await verdict(connection, taken)).to.equal('taken');
        if (refused !== undefined)
          expect(await verdict(connection, refused)).to.equal('PasswordStrengthError');
      });
    }

    it("list the rules and which of them failed, in the hosted service's format", async () => {
      const answer = await signUp({ password: 'abc' });
      expect(answer.status).to.equal(400);
      expect(answer.json()).to.deep.equal({
        name: 'PasswordStrengthError',
        code: 'invalid_password',
        message: 'Password is too weak',
        description: {
          rules: [
            {
              code: 'lengthAtLeast',
              message: 'At least %d characters in length',
              format: [8],
              verified: false,
            },
            {
              code: 'containsAtLeast',
              message: 'Contain at least %d of the following %d types of characters:',
              format: [3, 4],
              items: [
                { code: 'lowerCase', message: 'lower case letters (a-z)', verified: true },
                { code: 'upperCase', message: 'upper case letters (A-Z)', verified: false },
                { code: 'numbers', message: 'numbers (i.e. 0-9)', verified: false },
                { code: 'specialCharacters', message: 'special characters (e.g. !@#$%^&*)', verified: false },
              ],
              verified: false,
            },
          ],
          verified: false,
        },
        policy: [
          '* At least 8 characters in length',
          '* Contain at least 3 of the following 4 types of characters:',
          ' * lower case letters (a-z)',
          ' * upper case letters (A-Z)',
          ' * numbers (i.e. 0-9)',
          ' * special characters (e.g. !@#$%^&*)',
        ].join('\n'),
        statusCode: 400,
      });
    });

    it('reject common passwords, built-in and of the connection, in any case', async () => {
      for (const password of ['password1', 'PassWord1', 'gateHOUSE']) {
        expect(await verdict('strict', password), password).to.equal('PasswordDictionaryError');
      }
    });

    it("reject a password that contains the user's name or address", async () => {
      expect(await verdict('strict', 'xx-lovelace-xx', { email: 'lovelace@example.test' })).to.equal(
        'PasswordNoUserInfoError',
      );
      expect(await verdict('strict', 'xx-ADA-xx', { name: 'Ada Byron' })).to.equal('PasswordNoUserInfoError');
    });

    it('reject more than 512 bytes', async () => {
      expect(await verdict('none', 'x'.repeat(513))).to.equal('PasswordStrengthError');
    });
  });
});
