// Codes of a second factor that could not be sent: they are revoked, and so is what they would confirm.
import { expect } from 'chai';
import { type Answer, createAgent, readForm } from '../support/agent.ts';
import { follow, logIn, responseOf, USER, webRequest } from '../support/flows.ts';
import { startWithProviders, type WithProviders } from '../support/providers.ts';
import type { TestServer } from '../support/server.ts';
import type { TestMailServer } from '../support/smtp.ts';
import type { TestTwilio } from '../support/twilio.ts';
import { until } from '../support/wait-until.ts';
import { callsOf, tenant } from './tenant.ts';

const FAULT = { status: 503, code: 20503 };
const NOT_SENT = {
  error: 'temporarily_unavailable',
  error_description: 'The message could not be sent. Try again in a few minutes.',
};

describe('a code of a second factor that cannot be sent', () => {
  let started: WithProviders;
  let mail: TestMailServer;
  let twilio: TestTwilio;
  let server: TestServer;
  let calls: ReturnType<typeof callsOf>;
  let people = 0;
  before(async () => {
    started = await startWithProviders(tenant, { maxWait: 5_000 });
    ({ mail, twilio, server } = started);
    calls = callsOf(server);
  });
  after(async () => {
    await started?.stop();
  });
  afterEach(() => {
    mail.behave('accept');
    twilio.behave('accept');
  });

  const someone = () => `mfa-${people++}@example.test`;
  const codeIn = (text: string | undefined) => /\b\d{6}\b/.exec(text ?? '')?.[0] ?? '';
  const bySms = (mfa_token: string, phone_number: string) =>
    calls.associate(mfa_token, { authenticator_types: ['oob'], oob_channels: ['sms'], phone_number });
  const stored = async <N extends 'authenticators' | 'challenges'>(name: N, email: string) => {
    const user = await server.users.findInConnection({ name: 'users' }, email);
    return server.store.collection(name).findBy('user', user?.id ?? '');
  };
  const openCodes = async (email: string) =>
    (await stored('challenges', email)).filter(({ boundCode, spent }) => boundCode !== undefined && !spent);
  /** Returns a user with a phone number. */
  const withPhone = async () => {
    const email = someone();
    const phone = `+165055506${String(people).padStart(2, '0')}`;
    const mfa_token = await calls.mfaToken(email);
    const { oob_code } = (await bySms(mfa_token, phone)).json();
    const binding_code = codeIn(twilio.messages.at(-1)?.Body);
    const done = await calls.verify('oob', { mfa_token, oob_code, binding_code });
    expect(done.status, done.text).to.equal(200);
    return { email, phone };
  };

  it('leaves neither a code nor an authenticator during an enrolment', async () => {
    for (const channel of ['sms', 'email'] as const) {
      const email = someone();
      const mfa_token = await calls.mfaToken(email);
      twilio.behave(FAULT);
      mail.behave({ code: 550 });
      const answer = await calls.associate(mfa_token, {
        authenticator_types: ['oob'],
        oob_channels: [channel],
        ...(channel === 'sms' ? { phone_number: '+16505550601' } : { email: 'other@example.test' }),
      });
      expect([answer.status, answer.json()], channel).to.deep.equal([503, NOT_SENT]);
      expect(await openCodes(email)).to.deep.equal([]);
      expect(await stored('authenticators', email)).to.deep.equal([]);
      twilio.behave('accept');
      expect((await bySms(mfa_token, '+16505550602')).status, 'the token is still good').to.equal(200);
    }
  });

  it('is answered with 400 when the provider knows no such number', async () => {
    const mfa_token = await calls.mfaToken(someone());
    twilio.behave({ status: 400, code: 21211, message: "The 'To' number is not a valid phone number." });
    const answer = await bySms(mfa_token, '+16505550603');
    expect([answer.status, answer.json().error]).to.deep.equal([400, 'invalid_phone_number']);
  });

  it('is revoked, and has replaced the code before it', async () => {
    const { email } = await withPhone();
    const mfa_token = await calls.mfaToken(email);
    const before = (await calls.challenge({ mfa_token, challenge_type: 'oob' })).json();
    const code = codeIn(twilio.messages.at(-1)?.Body);
    twilio.behave(FAULT);
    const failed = await calls.challenge({ mfa_token, challenge_type: 'oob' });
    expect([failed.status, failed.json()]).to.deep.equal([503, NOT_SENT]);
    expect(await openCodes(email)).to.deep.equal([]);
    const late = await calls.verify('oob', { mfa_token, oob_code: before.oob_code, binding_code: code });
    expect([late.status, late.json()]).to.deep.equal([
      403,
      { error: 'invalid_grant', error_description: 'Invalid oob_code.' },
    ]);
  });

  describe('at the page', () => {
    const open = (browser: ReturnType<typeof createAgent>, email: string): Promise<Answer> =>
      logIn(browser, server, webRequest(), { email, password: USER.password });

    it('leads to the other factors, and another is sent when the provider works again', async () => {
      const { email, phone } = await withPhone();
      const browser = createAgent(server);
      twilio.behave(FAULT);
      const page = await open(browser, email);
      expect(page.status).to.equal(503);
      expect(page.text).to.contain('The message could not be sent').and.contain('XXXXX');
      expect(await openCodes(email)).to.deep.equal([]);
      twilio.behave('accept');
      const path = /href="(\/u\/[\w-]+\/mfa\/phone)"/.exec(page.text)?.[1] ?? '';
      const { action, fields } = readForm(await browser.get(path), 'code');
      expect(twilio.messages.at(-1)?.To).to.equal(phone);
      const code = codeIn(twilio.messages.at(-1)?.Body);
      const done = await browser.request(action, { form: { ...fields, code } });
      expect(responseOf(await follow(browser, done, server.url)).code).to.be.a('string');
    });

    it('is replaced when the page is reloaded, if sending failed after the page was shown', async () => {
      const email = someone();
      const mfa_token = await calls.mfaToken(email);
      const { oob_code } = (await calls.associate(mfa_token, { authenticator_types: ['email'] })).json();
      const binding_code = codeIn(mail.messages.at(-1)?.text);
      await calls.verify('oob', { mfa_token, oob_code, binding_code });
      const browser = createAgent(server);
      // The page waits this long for the mail server. A later failure is not shown.
      mail.behave('hold');
      const page = await open(browser, email);
      const { action, fields } = readForm(page, 'code');
      expect(page.status).to.equal(200);
      expect(await openCodes(email)).to.have.length(1);
      mail.behave('accept');
      mail.release(550);
      await until(async () => (await openCodes(email)).length === 0);
      const sent = mail.messages.length;
      expect((await browser.get(action)).status).to.equal(200);
      expect(mail.messages).to.have.length(sent + 1);
      const code = codeIn(mail.messages.at(-1)?.text);
      const done = await browser.request(action, { form: { ...fields, code } });
      expect(responseOf(await follow(browser, done, server.url)).code).to.be.a('string');
    });
  });
});
