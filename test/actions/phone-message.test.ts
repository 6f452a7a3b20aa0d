// Actions of send-phone-message: they send the codes of second factors. A code that was not sent is not valid.
import { expect } from 'chai';
import { callsOf, tenant } from '../factors/tenant.ts';
import { startManaged } from '../management/support.ts';
import { type Provider, startProvider } from '../scripts/support.ts';
import { createAgent } from '../support/agent.ts';
import { messagesTo } from '../support/inbox.ts';
import { SHORT_SCRIPTS, type TestServer } from '../support/server.ts';
import { startTwilio, type TestTwilio, TWILIO } from '../support/twilio.ts';
import { aMoment, until } from '../support/wait-until.ts';
import { actionFailures, bindActions, eventsOf, printed } from './support.ts';

const TRIGGER = 'send-phone-message';
const NOT_SENT = {
  error: 'temporarily_unavailable',
  error_description: 'The message could not be sent. Try again in a few minutes.',
};
/** As operators write it, with the API of a gateway. */
const SEND = `exports.onExecuteSendPhoneMessage = async (event, api) => {
  const { action, code, message_type, recipient, text } = event.message_options;
  const sent = await fetch(event.secrets.GATEWAY, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ action, code, message_type, recipient, text,
      user: event.user && event.user.email, client: event.client.name, ip: event.request.ip }),
  });
  console.log('sent ' + code);
  if (!sent.ok) throw new Error('the gateway said ' + sent.status);
};`;

describe('actions of send-phone-message', () => {
  let server: TestServer;
  let gateway: Provider;
  let calls: ReturnType<typeof callsOf>;
  let people = 0;
  beforeEach(async () => {
    gateway = await startProvider();
    server = await startManaged(tenant, undefined, {}, { waits: SHORT_SCRIPTS });
    calls = callsOf(server);
  });
  afterEach(async () => {
    await server?.stop();
    await gateway?.stop();
  });

  const bind = (path: string, more: object = {}) =>
    bindActions(server, TRIGGER, { code: SEND, secrets: { GATEWAY: `${gateway.url}${path}` }, ...more });
  const someone = () => `mfa-${people++}@example.test`;
  const sent = () => gateway.seen.map(({ body }) => JSON.parse(body) as Record<string, string>);
  const enroll = async (email: string, phone_number: string) => {
    const mfa_token = await calls.mfaToken(email);
    const fields = { authenticator_types: ['oob'], oob_channels: ['sms'], phone_number };
    return { mfa_token, answer: await calls.associate(mfa_token, fields) };
  };
  const startBySms = (target: TestServer, phone_number: string) =>
    createAgent(target).request('/passwordless/start', {
      json: { client_id: 'web', client_secret: 'web-secret', connection: 'sms', phone_number },
    });

  it('send the code of an enrolment and of each login in place of the provider', async () => {
    await bind('/echo');
    const [email, phone] = [someone(), '+16505550801'];
    const { mfa_token, answer } = await enroll(email, phone);
    expect(answer.status, answer.text).to.equal(200);
    const [first] = sent();
    expect(first).to.include({
      action: 'enrollment',
      message_type: 'sms',
      recipient: phone,
      user: email,
      client: 'Web app',
    });
    expect(first?.text).to.contain(first?.code);
    expect(first?.ip).to.be.a('string');
    const { oob_code } = answer.json();
    const done = await calls.verify('oob', { mfa_token, oob_code, binding_code: first?.code });
    expect(done.status, done.text).to.equal(200);
    const again = await calls.mfaToken(email);
    const asked = (await calls.challenge({ mfa_token: again, challenge_type: 'oob' })).json();
    expect(sent()[1]).to.include({ action: 'second-factor-authentication', recipient: phone });
    const binding_code = sent()[1]?.code;
    const login = await calls.verify('oob', { mfa_token: again, oob_code: asked.oob_code, binding_code });
    expect(login.status, login.text).to.equal(200);
    expect(await messagesTo(server, phone)).to.deep.equal([]);
    expect((await eventsOf(server, 'gd_send_sms')).length).to.equal(2);
    // What they print shows no code.
    expect(await printed(server, 'sent ***'))
      .to.contain('sent ***')
      .and.not.contain(first?.code);
    expect(server.logged()).not.to.contain(first?.code);
  });

  for (const [what, path, more] of [
    ['fail', '/nothing', {}],
    ['are optional in their binding', '/nothing', { on_error: 'continue' }],
    ['never end', '/nothing', { code: 'exports.onExecuteSendPhoneMessage = async () => { for (;;); };' }],
  ] as const) {
    it(`that ${what} have sent nothing: no code is valid, and nothing is enrolled`, async () => {
      await bind(path, more);
      const email = someone();
      const { answer } = await enroll(email, '+16505550802');
      const user = await server.users.findInConnection({ name: 'users' }, email);
      const kept = async () => {
        const open = await server.store.collection('challenges').findBy('user', user?.id ?? '');
        return open.filter(({ boundCode, spent }) => boundCode !== undefined && !spent);
      };
      // An action may take longer than the response waits. A code that it fails to send is revoked then.
      if (answer.status === 503) expect(answer.json()).to.deep.equal(NOT_SENT);
      await until(async () => (await kept()).length === 0);
      expect((await actionFailures(server)).length).to.be.above(0);
      expect((await eventsOf(server, 'gd_send_sms')).length).to.equal(0);
      expect((await eventsOf(server, 'fn')).length).to.equal(1);
      // Once, because the message may have been sent before the action failed.
      expect(gateway.seen.length).to.be.below(2);
    });
  }

  it('send codes of passwordless logins where there is no SMS provider', async () => {
    await bind('/echo');
    const phone = '+16505550803';
    expect((await startBySms(server, phone)).status).to.equal(200);
    // An action may take longer than the response waits.
    for (const end = performance.now() + 20_000; sent().length === 0 && performance.now() < end; )
      await aMoment();
    expect(sent()[0]).to.include({ action: 'passwordless', recipient: phone });
    expect(await messagesTo(server, phone)).to.deep.equal([]);
  });

  it('leave codes of passwordless logins to the SMS provider where there is one', async () => {
    await server.stop();
    const twilio: TestTwilio = await startTwilio();
    try {
      server = await startManaged(tenant, undefined, {
        TWILIO_ACCOUNT_SID: TWILIO.accountSid,
        TWILIO_AUTH_TOKEN: TWILIO.authToken,
        TWILIO_FROM: '+15005550006',
        TWILIO_API_URL: twilio.url,
      });
      calls = callsOf(server);
      await bind('/echo');
      const phone = '+16505550804';
      expect((await startBySms(server, phone)).status).to.equal(200);
      expect(twilio.messages.at(-1)?.To).to.equal(phone);
      expect((await enroll(someone(), '+16505550805')).answer.status).to.equal(200);
      expect(sent().map(({ recipient }) => recipient)).to.deep.equal(['+16505550805']);
    } finally {
      await twilio.stop();
    }
  });
});
