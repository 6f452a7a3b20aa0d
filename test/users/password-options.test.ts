// `password_options` of a database connection, wherever passwords are set.
import { expect } from 'chai';
import { callApi, startManaged } from '../management/support.ts';
import { createAgent, readForm } from '../support/agent.ts';
import type { TestServer } from '../support/server.ts';

const OPTIONS = {
  'long-enough': { complexity: { min_length: 5 } },
  kinds: { complexity: { min_length: 4, character_types: ['uppercase', 'special'] } },
  'three-of-four': {
    complexity: {
      character_types: ['uppercase', 'lowercase', 'number', 'special'],
      character_type_rule: 'three_of_four',
    },
  },
  runs: { complexity: { min_length: 3, identical_characters: 'block', sequential_characters: 'block' } },
  'any-length': { complexity: { min_length: 1, max_length_exceeded: 'truncate' } },
  'often-used': { complexity: { min_length: 3 }, dictionary: { active: true, custom: ['Gatehouse'] } },
  'often-changed': { complexity: { min_length: 3 }, dictionary: { active: true, default: 'en_100k' } },
  own: {
    complexity: { min_length: 3 },
    profile_data: { active: true, blocked_fields: ['given_name', 'user_metadata.pet'] },
  },
  usual: { complexity: { min_length: 3 }, profile_data: { active: true } },
  again: { complexity: { min_length: 3 }, history: { active: true, size: 2 } },
} as const;
type Name = keyof typeof OPTIONS;

describe('password_options of a database connection', () => {
  let server: TestServer;
  const ids: Record<string, string> = {};
  const api = async (method: string, path: string, body?: unknown) => {
    const answer = await callApi(server, method, path, body);
    return { status: answer.status, body: (await answer.json()) as Record<string, any> };
  };
  before(async () => {
    server = await startManaged();
    for (const [name, password_options] of Object.entries(OPTIONS)) {
      const { status, body } = await api('POST', '/connections', {
        name,
        strategy: 'auth0',
        enabled_clients: ['example-web'],
        options: { password_options },
      });
      expect(status, JSON.stringify(body)).to.equal(201);
      ids[name] = String(body.id);
    }
  });
  after(() => server.stop());

  let people = 0;
  const address = () => `options-${++people}@example.test`;
  const signUp = async (connection: Name, password: string, over: object = {}) => {
    const answer = await createAgent(server).request('/dbconnections/signup', {
      json: { client_id: 'example-web', connection, email: address(), password, ...over },
    });
    const { name, description } = answer.json();
    const failed = (description?.rules ?? []).filter((rule: { verified: boolean }) => !rule.verified);
    return answer.status === 200 ? 'made' : failed.map(({ code }: { code: string }) => code).join() || name;
  };
  const created = async (connection: Name, password: string, over: object = {}) => {
    const { body } = await api('POST', '/users', { connection, email: address(), password, ...over });
    return String(body.user_id);
  };

  it('define the required strength, rule by rule', async () => {
    expect(await signUp('long-enough', 'four')).to.equal('lengthAtLeast');
    expect(await signUp('long-enough', 'fives')).to.equal('made');
    expect(await signUp('kinds', 'lower-case')).to.equal('shouldContain');
    expect(await signUp('kinds', 'Upper')).to.equal('shouldContain');
    expect(await signUp('kinds', 'U-and')).to.equal('made');
    expect(await signUp('three-of-four', 'lower-and')).to.equal('containsAtLeast');
    expect(await signUp('three-of-four', 'Lower-and')).to.equal('made');
    expect(await signUp('runs', 'xaaax')).to.equal('identicalChars');
    for (const run of ['x-abc', 'CBA-x', 'x345', '987'])
      expect(await signUp('runs', run), run).to.equal('sequentialChars');
    for (const none of ['abd', 'aBc', '89:', 'ab-cd', 'acegi', 'aabb'])
      expect(await signUp('runs', none), none).to.equal('made');
  });

  it('reject more than 72 bytes unless longer passwords are allowed, which then count in full', async () => {
    expect(await signUp('long-enough', 'é'.repeat(37))).to.equal('maxLength');
    expect(await signUp('long-enough', 'é'.repeat(36))).to.equal('made');
    const email = address();
    const long = `${'x'.repeat(72)}-and-more`;
    expect(await signUp('any-length', long, { email })).to.equal('made');
    expect(await signUp('any-length', 'x'.repeat(513))).to.equal('maxLength');
    const login = (password: string) =>
      createAgent(server).request('/oauth/token', {
        json: {
          grant_type: 'http://auth0.com/oauth/grant-type/password-realm',
          client_id: 'example-web',
          client_secret: 'example-web-secret',
          realm: 'any-length',
          username: email,
          password,
        },
      });
    expect((await login('x'.repeat(72))).status).to.equal(403);
    expect((await login(long)).status).to.equal(200);
  });

  it('reject words of the dictionary, simple variants with the longer one, and words of the tenant', async () => {
    for (const word of ['dragon', 'GATEHOUSE'])
      expect(await signUp('often-used', word)).to.equal('PasswordDictionaryError');
    for (const word of ['Dr4gon!', 'monkey2019', 'gatehouse-2'])
      expect(await signUp('often-used', word)).to.equal('made');
    for (const word of ['dragon', 'Dr4gon!', 'monkey2019', 'P@$$w0rd'])
      expect(await signUp('often-changed', word), word).to.equal('PasswordDictionaryError');
    expect(await signUp('often-changed', 'dragon-and-monkey')).to.equal('made');
  });

  it('reject values of the named members of the user, or of the default members', async () => {
    expect(await signUp('own', 'of-grace-1', { given_name: 'Grace' })).to.equal('PasswordNoUserInfoError');
    expect(await signUp('own', 'rex-and-i', { user_metadata: { pet: 'Rex' } })).to.equal(
      'PasswordNoUserInfoError',
    );
    expect(await signUp('own', 'of-ada-1', { name: 'Ada' })).to.equal('made');
    expect(await signUp('usual', 'of-ada-1', { name: 'Ada' })).to.equal('PasswordNoUserInfoError');
    expect(await signUp('usual', 'of-grace-1', { given_name: 'Grace' })).to.equal('made');
  });

  it('apply at the Management API: to a new user, a new password, and a used one', async () => {
    const named = { given_name: 'Grace' };
    const { body } = await api('POST', '/users', {
      connection: 'own',
      email: address(),
      password: 'of-grace-1',
      ...named,
    });
    expect(body).to.include({ statusCode: 400 });
    const user = await created('own', 'something-else', named);
    expect((await api('PATCH', `/users/${user}`, { password: 'of-grace-1' })).status).to.equal(400);
    const other = await created('again', 'first-one');
    const set = async (password: string) => (await api('PATCH', `/users/${other}`, { password })).status;
    expect([await set('first-one'), await set('second-one'), await set('first-one')]).to.deep.equal([
      400, 200, 400,
    ]);
    expect([await set('third-one'), await set('first-one')]).to.deep.equal([200, 200]);
  });

  it('apply to a reset link, whose page shows the rules', async () => {
    const user = await created('runs', 'made-with-this', { user_metadata: {} });
    const { body } = await api('POST', '/tickets/password-change', { user_id: user });
    const browser = createAgent(server);
    const { pathname, search } = new URL(String(body.ticket));
    const page = await browser.get(pathname + search);
    for (const code of ['lengthAtLeast', 'identicalChars', 'sequentialChars'])
      expect(page.text).to.include(`data-rule="${code}"`);
    const { action, fields } = readForm(page, 'password');
    const send = (password: string) =>
      browser.request(action, { form: { ...fields, password, repeat: password } });
    expect((await send('x-abc')).status).to.equal(400);
    expect((await send('x-acb')).status).to.equal(200);
  });

  it('are returned complete and without the older options, and are accepted back as returned', async () => {
    const { body } = await api('GET', `/connections/${ids.usual}`);
    expect(body.options).not.to.have.any.keys('passwordPolicy', 'password_history');
    expect(body.options.password_options).to.deep.equal({
      complexity: {
        min_length: 3,
        character_types: [],
        character_type_rule: 'all',
        identical_characters: 'allow',
        sequential_characters: 'allow',
        max_length_exceeded: 'error',
      },
      history: { active: false, size: 5 },
      dictionary: { active: false, default: 'en_10k', custom: [] },
      profile_data: { active: true, blocked_fields: [] },
    });
    const written = await api('PATCH', `/connections/${ids.usual}`, { options: body.options });
    expect(written.body.options).to.deep.equal(body.options);
  });

  it('are rejected together with the older options, and if no password could satisfy them', async () => {
    const create = async (options: object) => {
      const { status, body } = await api('POST', '/connections', {
        name: 'refused',
        strategy: 'auth0',
        options,
      });
      expect(status, JSON.stringify(options)).to.equal(400);
      return String(body.message);
    };
    expect(await create({ password_options: {}, passwordPolicy: 'good' })).to.equal(
      'Cannot set both options.password_options and options.passwordPolicy',
    );
    expect(await create({ password_options: {}, password_history: { enable: true } })).to.include(
      'password_history',
    );
    const complexity = { character_types: ['number'], character_type_rule: 'three_of_four' };
    expect(await create({ password_options: { complexity } })).to.include('all four');
    for (const bad of [
      { complexity: { min_length: 73 } },
      { complexity: { character_types: ['letters'] } },
      { history: { active: true, size: 25 } },
      { dictionary: { custom: ['x'.repeat(51)] } },
      { profile_data: { blocked_fields: Array(13).fill('name') } },
    ])
      await create({ password_options: bad });
  });

  it('are shown to login widgets as the closest level that requires no more', async () => {
    const { text } = await createAgent(server).get('/client/example-web.js');
    const setting = JSON.parse(text.slice(text.indexOf('(') + 1, text.lastIndexOf(')')));
    const all = setting.strategies.flatMap(
      ({ connections }: { connections: { name: string }[] }) => connections,
    );
    const level = (name: Name) => {
      const { passwordPolicy, password_complexity_options: more } = all.find(
        (one: { name: string }) => one.name === name,
      );
      return [passwordPolicy, more.min_length];
    };
    expect(level('kinds')).to.deep.equal(['low', 4]);
    expect(level('three-of-four')).to.deep.equal(['good', 8]);
  });
});
