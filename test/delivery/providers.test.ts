// A server with real mail and SMS: what users receive, and what callers are told when nothing is sent.
import { expect } from 'chai';
import { OTP_GRANT, tenant } from '../connections/passwordless/tenant.ts';
import { createAgent, readForm } from '../support/agent.ts';
import { openPage, uidOf } from '../support/browser-logins.ts';
import { follow, responseOf, USER, webRequest } from '../support/flows.ts';
import { startWithProviders, type WithProviders } from '../support/providers.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { startMailServer, type TestMailServer } from '../support/smtp.ts';
import { type TestTwilio, TWILIO } from '../support/twilio.ts';
import { aMoment } from '../support/wait-until.ts';

describe('with real providers', () => {
  let started: WithProviders;
  let mail: TestMailServer;
  let twilio: TestTwilio;
  let server: TestServer;
  let people = 0;
  before(async () => {
    started = await startWithProviders(tenant);
    ({ mail, twilio, server } = started);
  });
  after(async () => {
    await started?.stop();
  });
  afterEach(() => {
    mail.behave('accept');
    twilio.behave('accept');
  });

  const someone = () => `real-${++people}@example.test`;
  const start = (fields: object) =>
    createAgent(server).request('/passwordless/start', {
      json: { client_id: 'web', client_secret: 'web-secret', ...fields },
    });
  const exchange = (username: string, realm: string, otp: string) =>
    createAgent(server).request('/oauth/token', {
      json: { grant_type: OTP_GRANT, client_id: 'web', client_secret: 'web-secret', realm, username, otp },
    });
  const challenges = async () => (await server.store.collection('challenges').list({ limit: 1000 })).records;
  const codeIn = (text: string | undefined) => /\b\d{6,8}\b/.exec(text ?? '')?.[0] ?? '';
  const events = async (type: string) => {
    await server.tenant.close();
    const { records } = await server.store.collection('logs').list({ limit: 1000 });
    return records.filter((event) => event.type === type);
  };

  it('a code arrives by mail and works', async () => {
    const email = someone();
    expect((await start({ connection: 'email', email, send: 'code' })).status).to.equal(200);
    const message = mail.messages.at(-1);
    expect(message?.from?.address).to.equal('login@example.test');
    expect(message?.subject).to.equal('Your code for Web app');
    const code = codeIn(message?.text);
    expect(message?.html).to.contain(code);
    expect((await exchange(email, 'email', code)).status).to.equal(200);
  });

  it('a link arrives by mail, in the requested language', async () => {
    const agent = createAgent(server);
    await agent.request('/passwordless/start', {
      json: {
        client_id: 'web',
        client_secret: 'web-secret',
        connection: 'email',
        email: someone(),
        send: 'link',
      },
      headers: { 'x-request-language': 'de' },
    });
    const message = mail.messages.at(-1);
    expect(message?.subject).to.equal('Anmelden bei Web app');
    expect(message?.text).to.match(/https:\/\/localhost:\d+\/passwordless\/verify_redirect\?/);
  });

  it('a code arrives by SMS and works', async () => {
    const phone_number = '+16505551234';
    expect((await start({ connection: 'sms', phone_number })).status).to.equal(200);
    const { To, Body } = twilio.messages.at(-1) ?? {};
    expect(To).to.equal(phone_number);
    expect((await exchange(phone_number, 'sms', codeIn(Body))).status).to.equal(200);
  });

  it('a mail server that is busy for a moment is tried again', async () => {
    mail.behave({ code: 451, times: 2 });
    const before = mail.messages.length;
    expect((await start({ connection: 'email', email: someone(), send: 'code' })).status).to.equal(200);
    expect(mail.messages).to.have.length(before + 1);
  });

  for (const [what, how] of [
    ['stays busy', { code: 451 }],
    ['refuses', { code: 550 }],
  ] as const) {
    it(`a mail server that ${what} gives a clear 503, and the code does not stay valid`, async () => {
      mail.behave(how);
      const offered = mail.offered();
      const dead = (await challenges()).filter(({ spent }) => spent).length;
      const answer = await start({ connection: 'email', email: someone(), send: 'code' });
      expect(answer.status).to.equal(503);
      expect(answer.json()).to.deep.equal({
        error: 'temporarily_unavailable',
        error_description: 'The message could not be sent. Try again in a few minutes.',
      });
      expect(mail.offered() - offered).to.equal(what === 'refuses' ? 1 : 3);
      expect((await challenges()).filter(({ spent }) => spent)).to.have.length(dead + 1);
    });
  }

  it('a code that could not be sent from the login page is reported there, and does not stay valid', async () => {
    const agent = createAgent(server);
    const page = await openPage(agent, server, webRequest());
    const { action, fields } = readForm(await agent.get(`/u/${uidOf(page)}/passwordless/email`), 'address');
    const address = someone();
    mail.behave({ code: 550 });
    const unspent = async () => (await challenges()).filter(({ spent }) => !spent).length;
    const before = await unspent();
    const codePage = await agent.request(action, { form: { ...fields, address } });
    expect(codePage.status).to.equal(503);
    expect(readForm(codePage, 'address').fields).to.include({ address });
    expect(codePage.text).to.match(/role="alert"[\s\S]*could not be sent/);
    expect(await unspent()).to.equal(before);
    // Requested again once mail can be sent, the code works.
    mail.behave('accept');
    server.tick(31_000);
    const sent = await agent.request(action, { form: { ...fields, address } });
    const form = readForm(sent, 'code');
    const code = codeIn(mail.messages.at(-1)?.text);
    const back = await follow(
      agent,
      await agent.request(form.action, { form: { ...form.fields, code } }),
      server.url,
    );
    expect(responseOf(back)).to.have.property('code');
  });

  it('a code that could not be sent does not work, even for somebody who guesses it', async () => {
    const phone_number = '+16505550199';
    twilio.behave({ status: 503, code: 20503 });
    const before = (await challenges()).filter(({ spent }) => spent).length;
    expect((await start({ connection: 'sms', phone_number })).status).to.equal(503);
    expect((await challenges()).filter(({ spent }) => spent)).to.have.length(before + 1);
  });

  it("a phone number that the provider rejects is an error of the caller, with the provider's code", async () => {
    twilio.behave({ status: 400, code: 21211, message: "The 'To' number is not a valid phone number." });
    const twilioRequest = twilio.asked();
    const answer = await start({ connection: 'sms', phone_number: '+15005550001' });
    expect(answer.status).to.equal(400);
    expect(answer.json()).to.deep.equal({
      error: 'sms_provider_error',
      error_description: "The 'To' number is not a valid phone number. (Code: 21211)",
    });
    expect(twilio.asked() - twilioRequest).to.equal(1);
  });

  it('a provider that answers 429 is tried again later', async () => {
    twilio.behave({ status: 429, code: 20429, times: 2 });
    const twilioRequest = twilio.asked();
    expect((await start({ connection: 'sms', phone_number: '+16505550177' })).status).to.equal(200);
    expect(twilio.asked() - twilioRequest).to.equal(3);
  });

  it('a reset is answered the same when the mail server is down, and its link does not work', async () => {
    mail.behave({ code: 451 });
    const answer = await createAgent(server).request('/dbconnections/change_password', {
      json: { connection: 'users', email: USER.email },
    });
    expect(answer.status).to.equal(200);
    const resets = async () => (await challenges()).filter(({ purpose }) => purpose === 'password_reset');
    // Until its last try; a stop would leave the message to the next start.
    while (!(await resets()).some(({ spent }) => spent)) await aMoment();
    expect((await resets()).every(({ spent }) => spent)).to.equal(true);
    // `fcpr` says who requested the reset; `fn` says, as for any message, that it was not sent.
    for (const type of ['fcpr', 'fn'])
      expect((await events(type)).at(-1), type).to.include({ user_name: USER.email });
  });

  it('every outcome is in the log, without codes, links and secrets', async () => {
    await events('cls');
    const logged = server.logged();
    expect(logged).to.contain('a message was sent').and.contain('a message could not be sent');
    expect(logged).not.to.contain(TWILIO.authToken);
    for (const { text = '' } of mail.messages) {
      const code = codeIn(text);
      const ticket = /(?:ticket|verification_code)=([\w-]{43})/.exec(text)?.[1];
      if (code !== '') expect(logged).not.to.match(new RegExp(`\\b${code}\\b`));
      if (ticket !== undefined) expect(logged).not.to.contain(ticket);
    }
  });
});

describe('at shutdown', () => {
  it('waiting mail is sent before the process ends', async () => {
    const mail = await startMailServer();
    const server = await startServer({
      tenant,
      env: { SMTP_URL: mail.url, MAIL_FROM: 'login@example.test' },
    });
    for (let i = 0; i < 20; i++) {
      await createAgent(server).request('/dbconnections/signup', {
        json: { connection: 'users', email: `late-${i}@example.test`, password: USER.password },
      });
    }
    await server.stop();
    expect(mail.recipients.filter((one) => one.startsWith('late-'))).to.have.length(20);
    await mail.stop();
  });
});
