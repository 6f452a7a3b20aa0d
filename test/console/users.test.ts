// The user pages of the console: finding, creating and changing users.
import { expect } from 'chai';
import type { Filter, Write } from '../../src/store/contract.ts';
import { aUser } from '../store/contract.ts';
import { createAgent } from '../support/agent.ts';
import { type ConsoleAgent, openConsole, startConsole } from '../support/console.ts';
import { databaseUser } from '../support/database-user.ts';
import { logIn, pkce, responseOf, spaRequest, tenant } from '../support/flows.ts';
import { TEXTS } from '../support/hostile-input.ts';
import { messagesTo, nextMessageTo } from '../support/inbox.ts';
import type { TestServer } from '../support/server.ts';
import { UNLIMITED } from '../support/unlimited.ts';

const USERS = '/console/users';
const PASSWORD = 'Another-Horse-2';

/** Returns the filter of a search for a prefix of any name. */
const begins = (text: string): Filter => ({
  any: ['name', 'given_name', 'family_name', 'nickname'].map((field) => ({
    index: 'search',
    prefix: `${field}\n${text}`,
    isSingle: true,
  })),
});

/** Returns the created user. */
function userOf(made: object): { id: string } {
  if (!('user' in made)) throw new Error(JSON.stringify(made));
  return made.user as { id: string };
}

/** Members that imports, scripts or the API accept, but no form has. */
const INTRUDING = {
  mfa_factors: '[{"totp":{"secret":"JBSWY3DPEHPK3PXPJBSWY3DP"}}]',
  password_hash: '$2b$10$nothing',
  custom_password_hash: '{"algorithm":"md5","hash":{"value":"x"}}',
  multifactor: '["none"]',
  identities: '[]',
  session_metadata: '{"admin":true}',
};

describe('users in the console', () => {
  let server: TestServer;
  let owner: ConsoleAgent;
  let made = 0;
  before(async () => {
    server = await startConsole({
      tenant: { ...tenant, attackProtection: { rateLimits: UNLIMITED.attackProtection.rateLimits } },
    });
    owner = await openConsole(server);
  });
  after(() => server.stop());

  /** Creates a user for one test. */
  const newUser = async (more: object = {}) => {
    const email = `user${++made}@example.test`;
    const user = userOf(
      await server.users.create(databaseUser({ email, password: PASSWORD, connection: 'users' })),
    );
    await server.users.update(user.id, { email_verified: true, ...more });
    return { id: user.id, email, path: `${USERS}/${encodeURIComponent(user.id)}` };
  };
  const recordOf = async (id: string) => {
    const user = await server.users.get(id);
    if (user === undefined) throw new Error('the user is gone');
    return user;
  };
  const canLogIn = async (email: string, password = PASSWORD) => {
    const answer = await logIn(createAgent(server), server, spaRequest(pkce().challenge), {
      email,
      password,
    });
    return answer.location !== '' && responseOf(answer).code !== undefined;
  };

  describe('the list', () => {
    it('finds users by the beginning of a name or address, and by several words, without a script', async () => {
      const { path } = await newUser({ name: 'Grace Brewster Hopper', nickname: 'amazing' });
      for (const q of ['grace', 'Grace Brew', 'amazing grace', 'AMAZ', `user${made}@`, `USER${made}@`]) {
        const page = await owner.get(`${USERS}?${new URLSearchParams({ q })}`);
        expect(page.text, q).to.contain(`href="${path}"`);
      }
      expect((await owner.get(`${USERS}?q=nobody-like-this`)).text).to.contain('Nobody found');
    });

    it('accepts the search language of the API, and searches any other text as a name', async () => {
      const { path } = await newUser({ blocked: true, app_metadata: { plan: 'gold' } });
      for (const q of ['app_metadata.plan:gold', 'blocked:true AND email.domain:example.test']) {
        const page = await owner.get(`${USERS}?${new URLSearchParams({ q })}`);
        expect(page.text, q).to.contain(`href="${path}"`);
      }
      const texts = [
        ...TEXTS,
        'email:',
        'email:[a TO',
        '((((',
        'NOT',
        'a AND',
        '*',
        '***',
        '\\',
        'blocked:perhaps',
      ];
      for (const q of [...texts, '- '.repeat(900), '"'.repeat(300), 'email:a*b*c* OR '.repeat(50)]) {
        for (const filter of ['', 'blocked', 'unheard-of']) {
          const page = await owner.get(`${USERS}?${new URLSearchParams({ q, filter, page: '2' })}`);
          expect(page.status, q).to.equal(200);
          expect(page.text, q).to.contain('id="found"');
        }
      }
    });

    it('is filtered and paged, up to the last page of the API', async () => {
      const { path } = await newUser({ blocked: true });
      const blocked = await owner.get(`${USERS}?filter=blocked&connection=users`);
      expect(blocked.text).to.contain(`href="${path}"`).and.to.not.contain('ada@example.test');
      for (const query of [
        'order=name',
        'order=seen',
        'page=99999',
        'page=-1',
        'connection=nowhere',
        'q=a&q=b',
      ])
        expect((await owner.get(`${USERS}?${query}`)).status, query).to.equal(200);
    });

    it('is served to the console’s own script only', async () => {
      const headers = { 'sec-fetch-dest': 'empty', 'sec-fetch-site': 'same-origin' };
      const refused = await owner.agent.get(`${USERS}/found?q=a`, headers);
      expect(refused.status).to.equal(403);
      expect(refused.text).to.not.contain('ada@example.test');
      const page = await owner.get(USERS);
      const token = /name="console-token" content="([^"]+)"/.exec(page.text)?.[1] ?? '';
      const found = await owner.agent.get(`${USERS}/found?q=ada`, { ...headers, 'x-console-token': token });
      expect(found.text).to.contain('ada@example.test');
    });
  });

  describe('a new user', () => {
    const form = { connection: 'users', email: 'new@example.test', password: PASSWORD, name: 'New Person' };

    it('is created with the fields of the form only', async () => {
      const answer = await owner.post(`${USERS}/new`, {
        ...form,
        verified: 'yes',
        user_id: 'chosen',
        blocked: 'true',
        'app_metadata[admin]': 'yes',
        app_metadata_more: 'yes',
        ...INTRUDING,
      });
      expect(answer.status, answer.text).to.equal(303);
      const [user] = await server.users.withEmail(form.email);
      expect(user).to.include({ name: 'New Person', email_verified: true });
      expect(user?.id).to.not.contain('chosen');
      expect(user?.blocked).to.not.equal(true);
      expect(user?.app_metadata).to.deep.equal({});
      expect(user).to.not.have.any.keys(Object.keys(INTRUDING));
      expect(await server.store.collection('authenticators').findBy('user', user?.id ?? '')).to.deep.equal(
        [],
      );
      expect(await canLogIn(form.email)).to.equal(true);
    });

    it('is rejected with the fault at its field, showing the entered values without the password', async () => {
      const wrong = await owner.post(`${USERS}/new`, {
        ...form,
        email: 'no address',
        name: 'Typed "before"',
      });
      expect(wrong.status).to.equal(400);
      expect(wrong.text)
        .to.match(/id="email"[^>]*aria-invalid="true"/)
        .and.to.contain('Typed &#34;before&#34;');
      expect(wrong.text).to.not.contain(PASSWORD);
      const weak = await owner.post(`${USERS}/new`, { ...form, email: 'weak@example.test', password: 'a' });
      expect(weak.status).to.equal(400);
      expect(weak.text).to.contain('PasswordStrengthError');
      expect(await server.users.withEmail('weak@example.test')).to.deep.equal([]);
    });
  });

  describe('the profile', () => {
    it('is changed by the fields of its form only', async () => {
      const { id, path } = await newUser();
      const form = {
        name: 'Grace',
        nickname: '',
        email: 'stolen@example.test',
        blocked: 'true',
        email_verified: 'no',
        ...INTRUDING,
      };
      const answer = await owner.post(`${path}/profile`, form);
      expect(answer.status, answer.text).to.equal(303);
      const user = await recordOf(id);
      expect(user).to.include({ name: 'Grace', email_verified: true });
      expect(user.email).to.not.equal('stolen@example.test');
      expect(user).to.not.have.any.keys(Object.keys(INTRUDING));
      expect(await server.store.collection('authenticators').findBy('user', id)).to.deep.equal([]);
      expect(user.blocked).to.not.equal(true);
      const refused = await owner.post(`${path}/profile`, { picture: 'no address' });
      expect(refused.status).to.equal(400);
      expect(refused.text).to.match(/id="picture"[^>]*aria-invalid="true"/);
    });

    it('saves metadata as JSON, and rejects invalid JSON and outdated forms', async () => {
      const { id, path } = await newUser({
        user_metadata: { city: 'London', old: 1 },
        app_metadata: { plan: 'free' },
      });
      const stamps = async () => {
        const { text } = await owner.get(path);
        return Object.fromEntries(
          ['user_metadata', 'app_metadata'].map((name) => [
            `${name}_stamp`,
            new RegExp(`name="${name}_stamp" value="([^"]+)"`).exec(text)?.[1] ?? '',
          ]),
        );
      };
      const opened = await stamps();
      const saved = await owner.post(`${path}/metadata`, {
        ...opened,
        user_metadata: '{"city": "Paris", "nested": {"a": [1]}}',
        app_metadata: '{"plan": "free"}',
      });
      expect(saved.status, saved.text).to.equal(303);
      expect(await recordOf(id)).to.deep.include({
        user_metadata: { city: 'Paris', nested: { a: [1] } },
        app_metadata: { plan: 'free' },
      });
      const stale = await owner.post(`${path}/metadata`, { ...opened, user_metadata: '{"city": "Rome"}' });
      expect(stale.status).to.equal(409);
      expect(stale.text).to.contain('changed this in the meantime').and.to.contain('Rome');
      for (const [text, said] of [
        ['{\n  "a": x}', 'Line 2, column 8'],
        ['[1]', 'An object is expected'],
        ['{"__proto__": {"admin": true}}', 'not allowed'],
        [`${'{"a":'.repeat(40)}1${'}'.repeat(40)}`, 'nested too deeply'],
      ] as const) {
        const wrong = await owner.post(`${path}/metadata`, { ...(await stamps()), app_metadata: text });
        expect(wrong.status, text).to.equal(400);
        expect(wrong.text, text).to.contain(said);
        expect(wrong.text).to.match(/id="app_metadata"[^>]*aria-invalid="true"/);
      }
      await owner.post(`${path}/metadata`, { ...(await stamps()), user_metadata: '{}' });
      expect((await recordOf(id)).user_metadata).to.deep.equal({});
    });

    it('changes the address and the password', async () => {
      const { id, email, path } = await newUser();
      await owner.post(`${path}/login`, { email: `new-${email}`, verified: 'yes' });
      expect(await recordOf(id)).to.include({ email: `new-${email}`, email_verified: true });
      await owner.post(`${path}/login`, { email: `newer-${email}` });
      expect(await recordOf(id)).to.include({ email: `newer-${email}`, email_verified: false });
      const set = await owner.post(`${path}/password`, { password: 'Third-Horse-3' });
      expect(set.status, set.text).to.equal(303);
      expect(await canLogIn(`newer-${email}`, 'Third-Horse-3')).to.equal(true);
      const weak = await owner.post(`${path}/password`, { password: 'x' });
      expect(weak.status).to.equal(400);
    });
  });

  it('shows users whose names look like message keys', async () => {
    for (const name of ['t:nothing', 't:console.nav.users', 't:']) {
      const { id, path } = await newUser({ name });
      for (const address of [path, `${path}/delete`]) {
        const page = await owner.get(address);
        expect(page.status, address).to.equal(200);
        expect(page.text).to.contain(`<title>${name}`);
      }
      expect((await owner.post(`${path}/block`)).status).to.equal(303);
      expect((await recordOf(id)).blocked).to.equal(true);
    }
  });

  describe('actions on a user', () => {
    it('block, which ends sessions, and unblock', async () => {
      const { id, email, path } = await newUser();
      const agent = createAgent(server);
      await logIn(agent, server, spaRequest(pkce().challenge), { email, password: PASSWORD });
      const sessions = await owner.get(`${path}/sessions`);
      expect(sessions.text).to.contain('name="session"');
      expect((await owner.post(`${path}/block`)).status).to.equal(303);
      expect((await recordOf(id)).blocked).to.equal(true);
      expect((await owner.get(`${path}/sessions`)).text).to.contain('Not logged in anywhere');
      expect((await owner.get(path)).text)
        .to.contain('Blocked')
        .and.to.contain(`${path}/unblock`);
      await owner.post(`${path}/unblock`);
      expect(await canLogIn(email)).to.equal(true);
    });

    it('mail links to verify the address and to set a new password', async () => {
      const { email, path } = await newUser({ email_verified: false });
      expect((await owner.post(`${path}/verify`)).location).to.contain('said=console.users.said.mailSent');
      expect((await owner.post(`${path}/reset`)).status).to.equal(303);
      const mails = await nextMessageTo(server, email, 2, 'link');
      expect(mails.link).to.contain(server.url);
      const page = await owner.get(`${path}?said=console.users.said.mailSent`);
      expect(page.text).to.contain('The e-mail is on its way.');
    });

    it('mail the link of a linked account to its own address, and nothing to a namesake of the user', async () => {
      const namesake = await newUser();
      const linked = await newUser();
      const { id } = userOf(
        await server.users.create({
          identity: {
            connection: 'works',
            provider: 'oauth2',
            upstreamId: 'works-1',
            addresses: { email: namesake.email },
            unique: [],
          },
        }),
      );
      await server.users.link(id, linked.id);
      expect((await owner.post(`${USERS}/${encodeURIComponent(id)}/reset`)).status).to.equal(303);
      expect((await nextMessageTo(server, linked.email, 1, 'link')).link).to.contain(server.url);
      expect(await messagesTo(server, namesake.email)).to.deep.equal([]);
    });

    it('show a link to set a password once, and log its creation without it', async () => {
      const { path } = await newUser();
      const answer = await owner.post(`${path}/link`, { kind: 'password' });
      expect(answer.status, answer.text).to.equal(200);
      const link =
        /<code dir="ltr">(https[^<]+)<\/code>/.exec(answer.text)?.[1]?.replaceAll('&amp;', '&') ?? '';
      expect(link).to.contain('ticket=');
      expect((await createAgent(server).get(link.split('#')[0] ?? '')).text).to.contain('name="password"');
      expect((await owner.get(path)).text).to.not.contain('ticket=');
      const { records } = await server.store.collection('logs').list({ limit: 1000 });
      const logged = JSON.stringify(records);
      expect(logged).to.contain('/tickets/password-change').and.to.contain('owner@console.example.test');
      expect(logged).to.not.contain(/ticket=([^&#]+)/.exec(link)?.[1]);
    });

    it('lift lockouts', async () => {
      const { email, path } = await newUser();
      for (let tries = 0; tries < 11; tries++)
        await logIn(createAgent(server), server, spaRequest(pkce().challenge), {
          email,
          password: 'Wrong-Horse-9',
        }).catch(() => undefined);
      expect((await owner.get(path)).text).to.contain('Locked out');
      expect((await owner.post(`${path}/lockouts`)).status).to.equal(303);
      expect((await owner.get(path)).text).to.not.contain('Locked out');
      expect(await canLogIn(email)).to.equal(true);
    });

    it('delete the user after a warning', async () => {
      const { id, path } = await newUser();
      const page = await owner.get(`${path}/delete`);
      expect(page.text).to.contain('Deleted with this user').and.to.contain('1 identity');
      const done = await owner.post(`${path}/delete`);
      expect(done.location).to.equal(`${server.url}${USERS}?said=console.users.said.userDeleted`);
      expect(await server.users.get(id)).to.equal(undefined);
      expect((await owner.get(path)).status).to.equal(404);
      expect((await owner.post(`${path}/block`)).status).to.equal(404);
    });

    it('require a recent login when they could take the user over or delete them', async () => {
      const { id, path } = await newUser();
      const other = await openConsole(server);
      server.tick(11 * 60_000);
      for (const form of [
        'login',
        'password',
        'link',
        'delete',
        'identities',
        'factors',
        'roles',
        'metadata',
      ]) {
        const asked = await other.post(`${path}/${form}`, {
          password: 'Fourth-Horse-4',
          email: 'other@example.test',
        });
        expect(asked.status, form).to.equal(303);
        expect(asked.location, form).to.contain('/authorize?');
      }
      expect((await recordOf(id)).email).to.not.equal('other@example.test');
      expect((await other.post(`${path}/block`)).location).to.contain('said=console.users.said.blocked');
      owner = await openConsole(server);
    });
  });

  it('are searched by two common words up to a limit, which the page mentions', async () => {
    const users = server.store.collection('users');
    const namesake = (n: number, name: string, nickname = name): Write => ({
      collection: 'users',
      insert: {
        ...aUser(`auth0|${name}${String(n).padStart(20, '0')}`),
        ...{ name, given_name: name, family_name: name, nickname },
      },
    });
    // Each word matches these names, and together they exceed the limit of two thousand.
    const many = Array.from({ length: 520 }, (_, n) => [namesake(n, 'zora'), namesake(n, 'zyta')]).flat();
    await server.store.batch([...many, namesake(0, 'zyta the last', 'zora')]);
    const page = async (q: string) => (await owner.get(`${USERS}?${new URLSearchParams({ q })}`)).text;
    expect(await page('zora zyta')).to.contain('only the first of them were searched');
    expect(await page('zyta the last'))
      .to.contain('zyta the last')
      .and.to.not.contain('only the first');
    const rare = await page('zora the');
    expect(rare).to.contain('Nobody found').and.to.not.contain('only the first');
    // A search by the API has no such limit.
    const where = { all: ['zora', 'zyta'].map(begins) };
    const { records } = await users.list({ where, order: 'any' });
    expect(records.map(({ name }) => name)).to.deep.equal(['zyta the last']);
    const bounded = await users.list({ where, order: 'any', isBounded: true });
    expect(bounded).to.deep.include({ isCut: true });
  });
});
