// Results of the scripts of a custom database: second factors, messages for the log, and invalid users.
import { expect } from 'chai';
import { codeOf, factors, MFA_GRANTS } from '../../factors/tenant.ts';
import { callsWith, type ManagementCall, managementToken, startManaged } from '../../management/support.ts';
import { createAgent, readForm } from '../../support/agent.ts';
import {
  authorize,
  tenant as base,
  follow,
  payload,
  submitLogin,
  token,
  webRequest,
} from '../../support/flows.ts';
import { nextMessageTo } from '../../support/inbox.ts';
import type { TestServer } from '../../support/server.ts';
import { until } from '../../support/wait-until.ts';

const REALM = 'http://auth0.com/oauth/grant-type/password-realm';
const SECRET = 'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP';
const OLD = 'the-old-password';

/** JavaScript expressions that `login` and `get_user` return, by the local part of the e-mail address. */
const ANSWERS: Readonly<Record<string, string>> = {
  'an-array': '[{ user_id: 1, email }]',
  'a-text': 'email',
  'a-number': '7',
  true: 'true',
  'a-function': '() => ({ user_id: 1, email })',
  'no-id': '{ email }',
  'empty-id': "{ user_id: '', email }",
  'id-that-is-an-object': '{ user_id: { toString: () => "1" }, email }',
  'id-that-is-a-list': "{ user_id: ['1'], email }",
  'id-too-long': "{ user_id: 'x'.repeat(256), email }",
  'id-with-a-line-break': "{ user_id: 'a\\nb', email }",
  'id-that-was-rounded': '{ user_id: 9007199254740993, email }',
  'no-address': "{ user_id: 'no-address' }",
  'several-addresses': "{ user_id: 'several', email: [email] }",
  'too-large': "{ user_id: 'large', email, text: 'x'.repeat(100000) }",
  'no-json': "(() => { const user = { user_id: 'circle', email }; user.user = user; return user; })()",
  'factors-that-are-none': "{ user_id: 'bad-1', email, mfa_factors: 'totp' }",
  'a-factor-of-another-kind': "{ user_id: 'bad-2', email, mfa_factors: [{ push: { token: 'x' } }] }",
  'a-secret-that-is-none': "{ user_id: 'bad-3', email, mfa_factors: [{ totp: { secret: 'not base32!' } }] }",
  'two-in-one': `{ user_id: 'bad-4', email, mfa_factors: [{ totp: { secret: '${SECRET}' }, phone: { value: '+1555' } }] }`,
  'too-many':
    "{ user_id: 'bad-5', email, mfa_factors: Array(11).fill({ phone: { value: '+15551234567' } }) }",
};

const profile = (more: string) => `{ user_id: email.split('@')[0], email, email_verified: true, ${more} }`;
const TOTP = `mfa_factors: [{ totp: { secret: '${SECRET}' } }]`;
const PEOPLE: Readonly<Record<string, string>> = {
  app: profile(TOTP),
  both: profile(`mfa_factors: [{ totp: { secret: '${SECRET}' } }, { phone: { value: '+15551234567' } }]`),
  none: profile('mfa_factors: []'),
  late: profile(TOTP),
  seen: profile(TOTP),
  growing: profile("mfa_factors: [], user_metadata: { ['at' + Date.now()]: 'x'.repeat(90_000) }"),
  own: profile(`constructor: 'c', prototype: 'p', toString: 't', blocked: true, roles: ['admin'], logins_count: 99,
    created_at: '2001-01-01', identities: [{ user_id: 'x' }], multifactor: ['guardian'], sub: 'auth0|other',
    app_metadata: JSON.parse('{"__proto__":{"isAdmin":true},"constructor":{"prototype":{"x":1}},"plan":"gold"}'),
    user_metadata: ['no', 'object']`),
};

const table = (answers: Readonly<Record<string, string>>) =>
  `({ ${Object.entries(answers)
    .map(([name, value]) => `'${name}': () => (${value})`)
    .join(', ')} })`;

const LOGIN = `async function login(email, password, callback) {
  const name = email.split('@')[0];
  if (name === 'nobody') return callback(new WrongUsernameOrPasswordError(null, 'Not in the old table'));
  if (password !== '${OLD}') return callback(new WrongUsernameOrPasswordError(email, 'It was ' + password));
  if (name === 'silent') return callback(new WrongUsernameOrPasswordError(email));
  const answer = ${table({ ...ANSWERS, ...PEOPLE })}[name];
  if (answer === undefined) throw new WrongUsernameOrPasswordError(email);
  callback(null, answer());
}`;
const GET_USER = `function getByEmail(email, callback) {
  const name = email.split('@')[0];
  if (name === 'late' || name === 'seen') return callback(null, { user_id: name, email, email_verified: true });
  callback(null, (${table({ ...ANSWERS, ...PEOPLE })}[name] ?? (() => null))());
}`;
const CREATE = `function create(user, callback) { callback(new ValidationError('user_exists')); }`;

const CHANGE = `function changePassword(email, password, callback) { callback(null, true); }`;

describe('results of the scripts of a custom database', () => {
  let server: TestServer;
  let call: ManagementCall;
  before(async () => {
    const generous = { capacity: 10_000, perMinute: 10_000 };
    const database = (name: string, import_mode: boolean) => ({
      name,
      enabled_clients: ['web'],
      options: {
        enabledDatabaseCustomization: true,
        import_mode,
        customScripts: { login: LOGIN, get_user: GET_USER, create: CREATE, change_password: CHANGE },
        authentication_methods: { password: { enabled: true }, passkey: { enabled: true } },
      },
    });
    server = await startManaged({
      ...base,
      users: [],
      guardianFactors: factors('otp', 'sms'),
      guardianPolicies: { policies: ['all-applications'] },
      attackProtection: {
        rateLimits: {
          ...base.attackProtection.rateLimits,
          customDatabase: generous,
          changePassword: generous,
        },
        bruteForceProtection: { enabled: false },
        suspiciousIpThrottling: { enabled: false },
      },
      clients: base.clients.map((one) =>
        one.client_id === 'web' ? { ...one, grant_types: [...one.grant_types, REALM, ...MFA_GRANTS] } : one,
      ),
      databases: [
        ...base.databases.filter(({ name }) => name !== 'users'),
        database('users', true),
        database('stays', false),
      ],
    });
    call = callsWith(server, await managementToken(server));
  });
  after(() => server?.stop());

  const addressOf = (name: string) => `${name}@example.test`;
  const ask = (fields: Record<string, string>) =>
    token(createAgent(server), { client_id: 'web', client_secret: 'web-secret', scope: 'openid', ...fields });
  const grant = (name: string, realm = 'users', password = OLD) =>
    ask({ grant_type: REALM, username: addressOf(name), password, realm });
  /** Returns the description of a user's newest failure, once there are `count` failures; they are recorded in the background. */
  const eventOf = async (name: string, count = 1) => {
    let newest: unknown[] = [];
    await until(async () => {
      const { records } = await server.store.collection('logs').list({ limit: 1000 });
      const theirs = records.filter((one) => one.user_name === addressOf(name) && /^f[pu]?$/.test(one.type));
      const { type, description } = theirs.at(-1) ?? {};
      newest = [type, description];
      return theirs.length >= count;
    });
    return newest;
  };
  const authenticatorsOf = (id: string) => server.store.collection('authenticators').findBy('user', id);

  describe('with mfa_factors', () => {
    for (const [realm, name, prefix] of [
      ['users', 'app', 'auth0|'],
      ['stays', 'both', 'auth0|'],
    ] as const) {
      it(`import them at the first login, and require them at once, of users who ${realm === 'users' ? 'move here' : 'stay there'}`, async () => {
        const first = await grant(name, realm);
        expect([first.status, first.json().error], first.text).to.deep.equal([403, 'mfa_required']);
        const id = `${prefix}${name}`;
        const authenticators = await authenticatorsOf(id);
        expect(authenticators.map(({ kind }) => kind).sort()).to.deep.equal(
          name === 'app' ? ['otp'] : ['otp', 'sms'],
        );
        expect((await grant(name, realm)).json().error).to.equal('mfa_required');
        expect((await authenticatorsOf(id)).length).to.equal(authenticators.length);
        const done = await ask({
          grant_type: 'http://auth0.com/oauth/grant-type/mfa-otp',
          mfa_token: first.json().mfa_token,
          otp: codeOf(SECRET),
        });
        expect(done.status, done.text).to.equal(200);
        expect(payload(done.json().id_token).sub).to.equal(id);
        const shown = await call('GET', `/users/${encodeURIComponent(id)}`);
        expect(shown.text).not.to.include('mfa_factors').and.not.include(SECRET);
        const identities = await server.store.collection('identities').findBy('user', id);
        expect(JSON.stringify(identities)).not.to.include(SECRET);
      });
    }

    it('require them at the hosted page, too', async () => {
      const agent = createAgent(server);
      const page = await follow(
        agent,
        await authorize(agent, webRequest({ connection: 'users' })),
        server.url,
      );
      const next = await submitLogin(agent, server, page, { email: addressOf('app'), password: OLD });
      expect(readForm(next, 'code').fields).to.be.an('object');
    });

    it('import them with the older password of a user whom get_user created without', async () => {
      await createAgent(server).request('/dbconnections/change_password', {
        json: { connection: 'users', email: addressOf('late') },
      });
      await nextMessageTo(server, addressOf('late'), 1, 'link');
      expect(await server.users.get('auth0|late')).to.not.equal(undefined);
      expect(await authenticatorsOf('auth0|late')).to.deep.equal([]);
      const answers = await Promise.all(Array.from({ length: 5 }, () => grant('late')));
      // Second factors are checked after the password, so a login that began before the import needs them, too.
      expect(new Set(answers.map(({ status }) => status))).to.deep.equal(new Set([403]));
      expect((await authenticatorsOf('auth0|late')).map(({ kind }) => kind)).to.deep.equal(['otp']);
    });

    it("import them at the first login of a user who stays there and was created by a stranger's reset request without", async () => {
      const askForLink = () =>
        createAgent(server).request('/dbconnections/change_password', {
          json: { connection: 'stays', email: addressOf('seen') },
        });
      await askForLink();
      await nextMessageTo(server, addressOf('seen'), 1, 'link');
      expect(await authenticatorsOf('auth0|seen')).to.deep.equal([]);
      const answers = await Promise.all(Array.from({ length: 5 }, () => grant('seen', 'stays')));
      expect(new Set(answers.map(({ status }) => status))).to.deep.equal(new Set([403]));
      const [authenticator, ...more] = await authenticatorsOf('auth0|seen');
      expect([authenticator?.kind, more]).to.deep.equal(['otp', []]);
      // A factor that is removed here is not imported again.
      await server.store.collection('authenticators').delete(authenticator?.id ?? '');
      await grant('seen', 'stays');
      await askForLink();
      await grant('seen', 'stays');
      expect(await authenticatorsOf('auth0|seen')).to.deep.equal([]);
    });

    it('accept an empty list', async () => {
      expect((await grant('none')).json().error).to.equal('mfa_required');
      expect(await authenticatorsOf('auth0|none')).to.deep.equal([]);
    });
  });

  it('appear in the log only, for a wrong password', async () => {
    const wrong = await grant('app', 'stays', 'guess');
    const unknown = await grant('nobody', 'stays');
    const silent = await grant('silent', 'stays');
    for (const one of [unknown, silent])
      expect([one.status, one.text]).to.deep.equal([wrong.status, wrong.text]);
    expect(await eventOf('app')).to.deep.equal(['fp', 'It was ***']);
    expect(await eventOf('nobody')).to.deep.equal(['fu', 'Not in the old table']);
    expect(await eventOf('silent')).to.deep.equal(['fp', undefined]);
  });

  for (const name of Object.keys(ANSWERS)) {
    it(`log in and create nobody if they are not a valid user: ${name}`, async () => {
      for (const [index, realm] of ['users', 'stays'].entries()) {
        // Failures for unknown users are recorded ten times, and then once in ten minutes.
        server.tick(600_000);
        const answer = await grant(name, realm);
        expect([answer.status, answer.json().error_description]).to.deep.equal([
          403,
          'Wrong email or password.',
        ]);
        const [type, description] = await eventOf(name, index + 1);
        expect(type).to.equal('f');
        expect(description).to.match(/script failed: ./);
        if (/factor|secret|two-in|many/.test(name))
          expect(description).to.equal('The login script failed: Unable to import MFA factors.');
      }
      expect(await server.store.collection('users').findBy('email', addressOf(name))).to.deep.equal([]);
    });
  }

  it('cannot fill the metadata of a user login by login', async () => {
    for (let left = 4; left > 0; left--) {
      expect((await grant('growing', 'stays')).status).to.be.below(500);
      server.tick(1_000);
    }
    const [stored] = await server.users.withEmail(addressOf('growing'));
    expect(JSON.stringify(stored?.user_metadata).length).to.be.within(90_000, 262_144);
    expect((await eventOf('growing'))[1]).to.contain('user_metadata would have more than 262144 characters');
  });

  it('cannot set members of the record that only the server may set', async () => {
    for (const realm of ['users', 'stays']) {
      const name = 'own';
      const answer = await grant(name, realm);
      // The user id belongs to one connection.
      expect(answer.json().error).to.equal(realm === 'users' ? 'mfa_required' : 'invalid_grant');
    }
    const shown = (await call('GET', '/users/auth0%7Cown')).json();
    expect(shown).to.include({ user_id: 'auth0|own', logins_count: 0 });
    expect(shown.app_metadata).to.deep.equal({ constructor: { prototype: { x: 1 } }, plan: 'gold' });
    expect(shown.user_metadata ?? {}).to.deep.equal({});
    expect(shown.identities).to.have.length(1);
    expect(shown).not.to.have.any.keys('blocked', 'roles', 'prototype');
    expect(({} as { isAdmin?: true }).isAdmin).to.equal(undefined);
  });

  it('mean an existing user by a ValidationError with the code user_exists', async () => {
    const answer = await createAgent(server).request('/dbconnections/signup', {
      json: {
        client_id: 'web',
        connection: 'stays',
        email: 'new@example.test',
        password: 'New-Words-Here-1',
      },
    });
    expect(answer.json()).to.include({ code: 'invalid_signup' });
    expect(answer.text).not.to.include('user_exists');
  });

  it('do not allow passkeys here', async () => {
    const answer = await createAgent(server).request('/passkey/register', {
      json: {
        client_id: 'web',
        client_secret: 'web-secret',
        realm: 'users',
        user_profile: { email: 'new@example.test' },
      },
    });
    expect(answer.status).to.be.within(400, 403);
  });
});
