// `attributes` of a database connection: the identifiers by which its users sign up and log in.
import { expect } from 'chai';
import { type Agent, createAgent, readForm } from '../../support/agent.ts';
import { follow, responseOf } from '../../support/flows.ts';
import { messagesTo, nextMessageTo } from '../../support/inbox.ts';
import { startServer, type TestServer } from '../../support/server.ts';
import { openPage, withDatabases } from './support.ts';

const active = { identifier: { active: true } };
const optional = { ...active, signup: { status: 'optional' } };
const required = { ...active, signup: { status: 'required' }, profile_required: true };

const DATABASES = {
  any: { attributes: { email: optional, phone_number: optional, username: optional } },
  phones: { attributes: { phone_number: required } },
  'names-only': {
    attributes: {
      username: { ...required, validation: { min_length: 3, max_length: 20 } },
      email: { identifier: { active: false }, unique: false, signup: { status: 'optional' } },
    },
  },
  'any-format': {
    attributes: {
      username: {
        ...required,
        validation: { max_length: 50, allowed_types: { email: true, phone_number: true } },
      },
    },
  },
  both: { attributes: { email: required, phone_number: required } },
  locked: { attributes: { email: optional, phone_number: optional, username: optional } },
};
type Name = keyof typeof DATABASES;

const PASSWORD = 'A-good-Passw0rd';

describe('identifiers of a database connection', () => {
  let server: TestServer;
  before(async () => {
    const liftedLimits = ['signup', 'hosted', 'token', 'changePassword'];
    server = await startServer({ tenant: withDatabases(DATABASES, { liftedLimits, attempts: 4 }) });
  });
  after(() => server.stop());

  let count = 0;
  const phone = () => `+1415555${String(1000 + ++count)}`;
  const signUp = async (connection: Name, typed: object, password = PASSWORD) => {
    const answer = await createAgent(server).request('/dbconnections/signup', {
      json: { client_id: 'web', connection, password, ...typed },
    });
    return { status: answer.status, body: answer.json(), text: answer.text };
  };
  const logIn = async (realm: Name, username: string, password = PASSWORD) => {
    const answer = await createAgent(server).request('/oauth/token', {
      json: {
        grant_type: 'http://auth0.com/oauth/grant-type/password-realm',
        client_id: 'web',
        client_secret: 'web-secret',
        realm,
        username,
        password,
        scope: 'openid',
      },
    });
    return { status: answer.status, text: answer.text };
  };
  const statusOf = async (...args: Parameters<typeof logIn>) => (await logIn(...args)).status;

  it('log in by any of their kinds, however they are typed', async () => {
    const number = phone();
    const created = await signUp('any', {
      email: 'Any@Example.Test',
      phone_number: number,
      username: 'AnyOne',
    });
    expect(created.body).to.include({ email: 'any@example.test', phone_number: number, username: 'anyone' });
    expect(created.body).to.include({ phone_verified: false, email_verified: false });
    for (const name of [
      'ANY@example.test',
      number,
      `${number.slice(0, 2)} (415) ${number.slice(5)}`,
      ' anyone ',
    ])
      expect(await statusOf('any', name), name).to.equal(200);
    expect(await statusOf('any', number.slice(1))).to.equal(403);
  });

  it('must be given at a sign-up if required, and are rejected if the connection does not have that kind', async () => {
    const fault = async (...args: Parameters<typeof signUp>) => (await signUp(...args)).body.error;
    expect(await fault('phones', { email: 'x@example.test' })).to.equal('phone_number is required');
    expect(await fault('phones', { phone_number: phone(), email: 'x@example.test' })).to.equal(
      'email is not allowed for the phones connection',
    );
    expect(await fault('phones', { phone_number: '12345' })).to.equal(
      'phone_number format validation failed',
    );
    expect(await fault('phones', {})).to.equal('email is required');
    expect(await fault('both', { email: 'both@example.test' })).to.equal('phone_number is required');
    expect(await fault('names-only', { email: 'x@example.test' })).to.equal('username is required');
    expect(await fault('names-only', { username: 'ab' })).to.match(/^invalid username: 3 to 20/);
    expect(await fault('any', {})).to.equal('email is required');
    // A phone number that is not an identifier alone would not allow another login.
    expect((await signUp('phones', { phone_number: phone() })).status).to.equal(200);
  });

  it('reject a new username that looks like another, or like none', async () => {
    const refused = {
      'zero width': 'ad\u200ba',
      'a filler that is a letter': 'ada\u3164',
      'a mark of direction': 'ada\u202e',
      'an old jamo': '\u1112\u1161',
      'full width': '\uff41da',
      'a ligature': '\ufb01na',
      'both directions': 'ada\u05d0',
      'a figure before letters from the right': '1\u05d0\u05d1',
    };
    for (const [what, username] of Object.entries(refused)) {
      expect((await signUp('names-only', { username: `${username}-1` })).status, what).to.equal(400);
      expect((await signUp('any', { username })).status, what).to.equal(400);
    }
    for (const username of ['\u05d0\u05d1\u05d2', 'jos\u00e9', '\ud55c\uad6d\uc5b4', '\u738b\u5c0f\u660e'])
      expect((await signUp('any', { username })).status, username).to.equal(200);
  });

  it('reject a username in the form of an e-mail address or phone number that others could log in with', async () => {
    const username = async (connection: Name, name: string) =>
      (await signUp(connection, { username: name })).status;
    expect(await username('any', 'owner@example.test')).to.equal(400);
    expect(await username('any', '+14155550199')).to.equal(400);
    expect(await username('names-only', 'owner@x.test')).to.equal(400);
    expect(await username('any-format', 'owner@example.test')).to.equal(200);
    expect(await username('any-format', '+14155550199')).to.equal(200);
    expect(await statusOf('any-format', 'owner@example.test')).to.equal(200);
  });

  it('do not log in by a kind that the connection does not use as identifier', async () => {
    const email = 'shared@example.test';
    for (const username of ['first-one', 'second-one'])
      expect((await signUp('names-only', { username, email })).status, username).to.equal(200);
    expect(await statusOf('names-only', email)).to.equal(403);
    expect(await statusOf('names-only', 'second-one')).to.equal(200);
  });

  it('are unique: of ten concurrent sign-ups with one phone number one succeeds', async () => {
    const number = phone();
    const all = await Promise.all(
      Array.from({ length: 10 }, (_, i) => signUp('any', { phone_number: number, username: `racer-${i}` })),
    );
    expect(all.filter(({ status }) => status === 200)).to.have.length(1);
    const refused = all.filter(({ status }) => status !== 200);
    expect(new Set(refused.map(({ body }) => body.code))).to.deep.equal(new Set(['invalid_signup']));
    expect(await statusOf('any', number)).to.equal(200);
  });

  it('do not reveal whether there is an account', async () => {
    const number = phone();
    await signUp('any', { phone_number: number });
    const [known, unknown] = await Promise.all([
      logIn('any', number, 'wrong'),
      logIn('any', phone(), 'wrong'),
    ]);
    expect(known).to.deep.equal(unknown);
    const [taken, takenName] = await Promise.all([
      signUp('any', { phone_number: number }),
      signUp('any', { username: 'racer-x', phone_number: number }),
    ]);
    expect(taken.text).to.equal(takenName.text);
  });

  describe('share one count of wrong passwords', () => {
    const wrong = async (name: string, times: number) => {
      const messages: string[] = [];
      for (let i = 0; i < times; i += 1) messages.push((await logIn('locked', name, 'wrong')).text);
      return messages;
    };

    it('whichever of them is typed', async () => {
      const number = phone();
      const names = { email: 'lock@example.test', phone_number: number, username: 'lock-me' };
      await signUp('locked', names);
      await wrong(names.email, 2);
      await wrong(number, 2);
      // The right password is rejected as a wrong one, so that another identifier does not reveal it.
      const right = await logIn('locked', 'lock-me');
      expect(right.status).to.equal(403);
      expect(right.text).to.equal((await logIn('locked', 'nobody-at-all')).text);
    });

    it('however a phone number is written, also from a known address', async () => {
      const number = phone();
      await signUp('locked', { phone_number: number });
      expect(await statusOf('locked', number)).to.equal(200);
      for (const space of [' ', '  ', '-', '.']) await wrong(number.replace('+1', `+1${space}`), 1);
      expect((await logIn('locked', number)).text).to.include('too_many_attempts');
    });

    it('without revealing that two of them belong to one user', async () => {
      const names = { email: 'told@example.test', username: 'told-me' };
      await signUp('locked', names);
      const ofOne = [...(await wrong(names.email, 5)), ...(await wrong(names.username, 5))];
      const ofTwo = [...(await wrong('nobody-1@example.test', 5)), ...(await wrong('nobody-2', 5))];
      expect(ofOne).to.deep.equal(ofTwo);
      expect(ofOne[4]).to.include('too_many_attempts');
    });
  });

  describe('on the login page', () => {
    const open = (connection: Name, over: object = {}) => openPage(server, { connection, ...over });
    const submit = async (
      agent: Agent,
      page: Awaited<ReturnType<typeof open>>['page'],
      typed: object,
      button = 'password',
    ) => {
      const { action, fields } = readForm(page, button);
      return follow(agent, await agent.request(action, { form: { ...fields, ...typed } }), server.url);
    };

    it("have a field that names their kinds in the page's language", async () => {
      const label = async (connection: Name, ui_locales?: string) => {
        const { page } = await open(connection, ui_locales === undefined ? {} : { ui_locales });
        return [
          /<label for="username">([^<]+)</.exec(page.text)?.[1],
          /id="username"[^>]* type="(\w+)"/.exec(page.text)?.[1],
        ];
      };
      expect(await label('any')).to.deep.equal(['Username, email or phone number', 'text']);
      expect(await label('phones')).to.deep.equal(['Phone number', 'tel']);
      expect(await label('names-only')).to.deep.equal(['Username', 'text']);
      expect(await label('both', 'de')).to.deep.equal(['E-Mail oder Telefonnummer', 'text']);
      expect((await label('both', 'ar'))[0]).to.equal('البريد الإلكتروني أو رقم الهاتف');
    });

    it('log in, and an error does not name the wrong one', async () => {
      const number = phone();
      await signUp('phones', { phone_number: number });
      const { agent, page } = await open('phones');
      const refused = await submit(agent, page, { username: number, password: 'wrong' });
      expect(refused.text).to.include('These details or the password are wrong.');
      const end = await submit(agent, refused, { username: number, password: PASSWORD });
      expect(responseOf(end)).to.have.property('code');
    });

    it('have fields in the sign-up form, which marks a missing one', async () => {
      const { agent, page } = await open('both', { screen_hint: 'signup' });
      expect(page.text)
        .to.include('id="phone"')
        .and.include('autocomplete="tel"')
        .and.not.include('id="username"');
      const email = 'by-page@example.test';
      const refused = await submit(agent, page, { email, phone: '', password: PASSWORD });
      expect(refused.status).to.equal(400);
      expect(refused.text).to.include('id="phone-fault"');
      const number = phone();
      const end = await submit(agent, refused, { email, phone: number, password: PASSWORD });
      expect(responseOf(end)).to.have.property('code');
      expect(await statusOf('both', number)).to.equal(200);
    });

    it('request a reset link, which goes to the e-mail address of the account whichever is typed', async () => {
      const number = phone();
      const email = 'forgetful@example.test';
      await signUp('any', { email, phone_number: number });
      await nextMessageTo(server, email);
      const { agent, page } = await open('any');
      const forgot = await agent.get(/href="([^"]*forgot-password)"/.exec(page.text)?.[1] ?? '');
      expect(forgot.text).to.include('Username, email or phone number');
      await submit(agent, forgot, { email: number }, 'email');
      expect((await nextMessageTo(server, email, 2)).link).to.include('/u/reset-password');
      const sentPage = await submit(agent, forgot, { email: phone() }, 'email');
      expect(sentPage.status).to.equal(200);
      expect(await messagesTo(server, email)).to.have.length(2);
    });
  });
});
