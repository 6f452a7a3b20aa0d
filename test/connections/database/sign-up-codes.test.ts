// Sign-up on the hosted page of a connection that verifies addresses by codes.
import { expect } from 'chai';
import { type Answer, createAgent, readForm } from '../../support/agent.ts';
import { responseOf, webRequest } from '../../support/flows.ts';
import { messagesTo, nextMessageTo } from '../../support/inbox.ts';
import { startServer, type TestServer } from '../../support/server.ts';
import { openPage, withDatabases } from './support.ts';

const by = (verification_method: string, active = true) => ({
  identifier: { active: true },
  verification_method,
  signup: { status: 'required', verification: { active } },
});
const phone_number = {
  identifier: { active: true },
  signup: { status: 'required', verification: { active: true } },
};

const DATABASES = {
  'by-code': { attributes: { email: by('otp') } },
  'by-link': { attributes: { email: by('link') } },
  unproved: { attributes: { email: by('otp', false) } },
  'both-by-code': { attributes: { email: by('otp'), phone_number } },
};
type Name = keyof typeof DATABASES;
const PASSWORD = 'A-good-Passw0rd';

describe('sign-up with a code', () => {
  let server: TestServer;
  before(async () => {
    const liftedLimits = [
      'signup',
      'hosted',
      'passwordlessStart',
      'passwordlessDestination',
      'passwordlessResend',
    ];
    server = await startServer({ tenant: withDatabases(DATABASES, { liftedLimits, attempts: 100 }) });
  });
  after(() => server.stop());

  let people = 0;
  const address = () => `coded-${++people}@example.test`;
  const number = () => `+1415555${String(3000 + ++people)}`;
  const open = (connection: Name) => openPage(server, { connection, screen_hint: 'signup' });
  const userOf = (connection: Name, email: string) =>
    server.users.findInConnection({ name: connection }, email);
  const codeSentTo = async (to: string, count = 1) =>
    (await nextMessageTo(server, to, count, 'code')).code ?? '';
  const wrongFor = (code: string) => (code === '123456' ? '654321' : '123456');

  it('creates the user once the address is proved, and logs them in', async () => {
    const email = address();
    const { page, submit } = await open('by-code');
    const codePage = await submit(page, 'password', { email, password: PASSWORD });
    expect(codePage.text).to.include('Enter your code').and.include(email);
    expect(await userOf('by-code', email)).to.equal(undefined);
    const code = await codeSentTo(email);
    const refused = await submit(codePage, 'code', { code: wrongFor(code) });
    expect(refused.status).to.equal(400);
    const end = await submit(refused, 'code', { code: `${code.slice(0, 3)} ${code.slice(3)}` });
    expect(responseOf(end)).to.have.property('code');
    expect(await userOf('by-code', email)).to.include({ email, email_verified: true });
    expect(await messagesTo(server, email), 'no link beside it').to.have.length(1);
    const login = await createAgent(server).request('/oauth/token', {
      json: {
        grant_type: 'http://auth0.com/oauth/grant-type/password-realm',
        client_id: 'web',
        client_secret: 'web-secret',
        realm: 'by-code',
        username: email,
        password: PASSWORD,
      },
    });
    expect(login.status, login.text).to.equal(200);
  });

  it('proves an e-mail address and a phone number one after the other', async () => {
    const [email, phone] = [address(), number()];
    const { page, submit } = await open('both-by-code');
    const first = await submit(page, 'password', { email, phone, password: PASSWORD });
    const second = await submit(first, 'code', { code: await codeSentTo(email) });
    expect(second.text).to.include(phone);
    expect(await userOf('both-by-code', email)).to.equal(undefined);
    const end = await submit(second, 'code', { code: await codeSentTo(phone) });
    expect(responseOf(end)).to.have.property('code');
    expect(await userOf('both-by-code', email)).to.include({ email_verified: true, phone_verified: true });
  });

  it('says that an address is taken only after it was proved', async () => {
    const email = address();
    const first = await open('by-code');
    const signedUp = await first.submit(first.page, 'password', { email, password: PASSWORD });
    await first.submit(signedUp, 'code', { code: await codeSentTo(email) });
    const free = address();
    const [taken, untaken] = await Promise.all(
      [email, free].map(async (typed) => {
        const { page, submit } = await open('by-code');
        return { submit, codePage: await submit(page, 'password', { email: typed, password: PASSWORD }) };
      }),
    );
    const plain = (answer: Answer | undefined, typed: string) =>
      answer?.text.replaceAll(typed, '…').replace(/nonce="[^"]*"|value="[^"]*"|\/u\/[\w-]+/g, '');
    expect(plain(taken?.codePage, email)).to.equal(plain(untaken?.codePage, free));
    const code = await codeSentTo(email, 2);
    const guess = await taken?.submit(taken.codePage, 'code', { code: wrongFor(code) });
    expect(guess?.text).to.include('This code is wrong').and.not.include('If you already have one');
    const proved = await taken?.submit(guess as Answer, 'code', { code });
    expect(proved?.status).to.equal(400);
    expect(proved?.text).to.include('If you already have one');
  });

  it('gives a phone number to whoever proves it, unless another user has proved it before', async () => {
    const phone = number();
    const stranger = address();
    const api = await createAgent(server).request('/dbconnections/signup', {
      json: {
        client_id: 'web',
        connection: 'both-by-code',
        email: stranger,
        phone_number: phone,
        password: PASSWORD,
      },
    });
    expect(api.status, api.text).to.equal(200);
    const sends = { [phone]: 0 };
    const signUp = async (email: string) => {
      const { page, submit } = await open('both-by-code');
      const first = await submit(page, 'password', { email, phone, password: PASSWORD });
      const second = await submit(first, 'code', { code: await codeSentTo(email) });
      sends[phone] = (sends[phone] ?? 0) + 1;
      return submit(second, 'code', { code: await codeSentTo(phone, sends[phone]) });
    };
    const owner = address();
    expect(responseOf(await signUp(owner))).to.have.property('code');
    expect(await userOf('both-by-code', owner)).to.include({ phone_number: phone, phone_verified: true });
    const left = await userOf('both-by-code', stranger);
    expect(left).to.include({ email: stranger });
    expect(left?.phone_number).to.equal(undefined);
    const found = await server.users.findByAddress({
      connection: 'both-by-code',
      kind: 'phone_number',
      address: phone,
    });
    expect(found?.email).to.equal(owner);
    // Whoever gets the number later cannot take it from the user who proved it; the page says that it is taken.
    const next = await signUp(address());
    expect(next.status).to.equal(400);
    expect(next.text).to.include('If you already have one');
    expect(await userOf('both-by-code', owner)).to.include({ phone_number: phone });
  });

  it('leaves an unproved phone number where it is if the sign-up that proved it is refused', async () => {
    const [phone, stranger, taken] = [number(), address(), address()];
    const signUpByCall = (email: string, more: object) =>
      createAgent(server).request('/dbconnections/signup', {
        json: { client_id: 'web', connection: 'both-by-code', email, password: PASSWORD, ...more },
      });
    expect((await signUpByCall(stranger, { phone_number: phone })).status).to.equal(200);
    expect((await signUpByCall(taken, { phone_number: number() })).status).to.equal(200);
    const { page, submit } = await open('both-by-code');
    const first = await submit(page, 'password', { email: taken, phone, password: PASSWORD });
    const second = await submit(first, 'code', { code: await codeSentTo(taken) });
    const refused = await submit(second, 'code', { code: await codeSentTo(phone) });
    expect(refused.status).to.equal(400);
    expect(await userOf('both-by-code', stranger)).to.include({ phone_number: phone });
    expect(
      await server.users.findByAddress({ connection: 'both-by-code', kind: 'phone_number', address: phone }),
    ).to.include({ email: stranger });
  });

  it('accepts a code once, allows three tries, and rejects a code of another request', async () => {
    const email = address();
    const { agent, page, submit } = await open('by-code');
    const codePage = await submit(page, 'password', { email, password: PASSWORD });
    const code = await codeSentTo(email);
    const { action, fields } = readForm(codePage, 'code');
    const all = await Promise.all(
      Array.from({ length: 10 }, () => agent.request(action, { form: { ...fields, code } })),
    );
    expect(all.filter(({ status }) => status >= 500)).to.deep.equal([]);
    expect(await server.users.withEmail(email)).to.have.length(1);
    const other = address();
    const guessing = await open('by-code');
    let at = await guessing.submit(guessing.page, 'password', { email: other, password: PASSWORD });
    const right = await codeSentTo(other);
    for (let i = 0; i < 3; i += 1) at = await guessing.submit(at, 'code', { code: wrongFor(right) });
    expect((await guessing.submit(at, 'code', { code: right })).status).to.equal(400);
    const form = readForm(at, 'code');
    const again = await guessing.agent.request(`${form.action}/again`, { form: form.fields });
    const elsewhere = await open('by-code');
    const mine = await elsewhere.submit(elsewhere.page, 'password', { email: address(), password: PASSWORD });
    const next = await codeSentTo(other, 2);
    expect((await elsewhere.submit(mine, 'code', { code: next })).status).to.equal(400);
    expect(responseOf(await guessing.submit(again, 'code', { code: next }))).to.have.property('code');
  });

  it('checks username and password before it sends a code', async () => {
    const email = address();
    const { page, submit } = await open('by-code');
    const refused = await submit(page, 'password', { email, password: 'weak' });
    expect(refused.status).to.equal(400);
    expect(refused.text).to.include('The password does not meet all rules.');
    expect(await messagesTo(server, email)).to.deep.equal([]);
  });

  it('needs no code if a link verifies the address, or nothing does', async () => {
    const [linked, unproved] = [address(), address()];
    for (const [connection, email] of [
      ['by-link', linked],
      ['unproved', unproved],
    ] as const) {
      const { page, submit } = await open(connection);
      expect(responseOf(await submit(page, 'password', { email, password: PASSWORD }))).to.have.property(
        'code',
      );
    }
    expect((await nextMessageTo(server, linked)).link).to.include('/u/email-verification');
    expect(await messagesTo(server, unproved)).to.deep.equal([]);
  });
});

describe('another code for a sign-up', () => {
  let server: TestServer;
  before(async () => {
    const liftedLimits = ['signup', 'hosted', 'passwordlessStart', 'passwordlessDestination'];
    server = await startServer({
      tenant: withDatabases(DATABASES, { liftedLimits, attempts: 100 }),
      env: { TLS: 'proxy', TRUSTED_PROXIES: '127.0.0.1', BASE_URL: 'https://login.example.test' },
    });
  });
  after(() => server.stop());

  it('is sent even if strangers have requested codes for the same address', async () => {
    const email = 'held-up@example.test';
    const at = async (ip: string) => {
      const url = `http://127.0.0.1:${server.settings.port}`;
      const plain = createAgent({ url, ca: server.ca });
      const request = (path: string, form?: Record<string, string>) =>
        plain.request(path.replace('https://login.example.test', url), {
          ...(form && { form }),
          headers: { 'x-forwarded-proto': 'https', 'x-forwarded-for': ip },
        });
      const query = new URLSearchParams(webRequest({ connection: 'by-code', screen_hint: 'signup' }));
      const redirect = await request(`/authorize?${query}`);
      const page = await request(redirect.location);
      const { action, fields } = readForm(page, 'password');
      const codePage = await request(action, { ...fields, email, password: PASSWORD });
      expect(codePage.text).to.include('Enter your code');
      const { _csrf = '' } = readForm(codePage, 'code').fields;
      const again = /action="([^"]*signup\/code\/again)"/.exec(codePage.text)?.[1] ?? '';
      return async () => (await request(again, { _csrf })).status;
    };
    const stranger = await at('192.0.2.1');
    const owner = await at('192.0.2.2');
    expect(await stranger()).to.equal(200);
    expect(await stranger()).to.equal(429);
    expect(await owner()).to.equal(200);
    expect(await owner()).to.equal(429);
  });
});
