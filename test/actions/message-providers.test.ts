// Actions of custom-email-provider and custom-phone-provider: they send a tenant's e-mails and text messages with a
// provider of its own.
import { expect } from 'chai';
import { callsOf, tenant } from '../factors/tenant.ts';
import { startManaged } from '../management/support.ts';
import { type Provider, startProvider } from '../scripts/support.ts';
import { createAgent } from '../support/agent.ts';
import { USER } from '../support/flows.ts';
import { messagesTo } from '../support/inbox.ts';
import type { TestServer } from '../support/server.ts';
import { until } from '../support/wait-until.ts';
import { actionFailures, bindActions, eventsOf, managed, printed } from './support.ts';

/** As published: `retry` for faults of the provider, `drop` for what it refuses. */
const sending = (entry: string) => `exports.${entry} = async (event, api) => {
  const { secrets, ...told } = event;
  const response = await fetch(secrets.GATEWAY, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(told),
  });
  console.log('sending', event.notification);
  if (response.status >= 500) return api.notification.retry('the gateway said ' + response.status + event.notification.text);
  if (!response.ok) return api.notification.drop('refused: ' + response.status + (event.notification.code || ''));
};`;
const MAIL = sending('onExecuteCustomEmailProvider');
const PHONE = sending('onExecuteCustomPhoneProvider');

describe('actions that send messages with a provider of the tenant', () => {
  let server: TestServer;
  let gateway: Provider;
  let calls: ReturnType<typeof callsOf>;
  let failures = 0;
  before(async () => {
    gateway = await startProvider({
      '/busy-once': (_request, response) => response.writeHead(failures++ === 0 ? 503 : 200).end(),
      '/for-half-a-minute': (_request, response) => {
        server.tick(31_000);
        response.end();
      },
    });
    server = await startManaged({
      ...tenant,
      emailProvider: {
        name: 'custom',
        enabled: true,
        default_from_address: 'Us <us@example.test>',
        credentials: {},
      },
    });
    calls = callsOf(server);
  });
  after(async () => {
    await server?.stop();
    await gateway?.stop();
  });
  beforeEach(() => {
    gateway.seen.length = 0;
  });

  const bind = (trigger: string, path: string, code: string, more: object = {}) =>
    bindActions(server, trigger, { code, secrets: { GATEWAY: `${gateway.url}${path}` }, ...more });
  const bindMail = (path: string, code = MAIL, more = {}) => bind('custom-email-provider', path, code, more);
  const bindPhone = (path: string, code = PHONE) => bind('custom-phone-provider', path, code);
  const told = () => gateway.seen.map(({ body }) => JSON.parse(body));
  const reset = (email: string = USER.email) =>
    createAgent(server).request('/dbconnections/change_password', { json: { connection: 'users', email } });
  const enroll = async (email: string, phone_number: string) => {
    const mfa_token = await calls.mfaToken(email);
    const fields = { authenticator_types: ['oob'], oob_channels: ['sms'], phone_number };
    return { mfa_token, answer: await calls.associate(mfa_token, fields) };
  };
  const descriptionsOf = async (type: string) =>
    (await eventsOf(server, type)).map(({ description }) => description);

  describe('of e-mails', () => {
    it('get the whole message, and a link that they print is hidden', async () => {
      await bindMail('/echo');
      await reset();
      await until(async () => gateway.seen.length > 0);
      const [event] = told();
      const { notification, user, tenant: of } = event;
      expect(notification).to.include({
        to: USER.email,
        from: 'Us <us@example.test>',
        message_type: 'reset_email',
        locale: 'en',
      });
      expect(notification.subject).to.be.a('string').with.length.above(4);
      const [link = ''] = /https:\/\/\S+reset-password\?\S+/.exec(notification.text) ?? [];
      expect(notification.html).to.include('reset-password');
      expect(user).to.include({ email: USER.email });
      expect(of.id).to.be.a('string');
      // The link works, and only the provider has read it.
      expect((await createAgent(server).get(new URL(link).pathname + new URL(link).search)).status).to.equal(
        200,
      );
      expect(await messagesTo(server, USER.email)).to.deep.equal([]);
      const shown = await printed(server, 'sending');
      for (const value of new URL(link).searchParams.values())
        if (value.length >= 16) expect(shown + server.logged()).not.to.include(value);
    });

    it('get an address without a user for a message to somebody who has no account', async () => {
      await bindMail('/echo');
      const email = 'somebody-new@example.test';
      const json = {
        client_id: 'web',
        client_secret: 'web-secret',
        connection: 'email',
        email,
        send: 'code',
      };
      expect((await createAgent(server).request('/passwordless/start', { json })).status).to.equal(200);
      await until(async () => gateway.seen.length > 0);
      const [event] = told();
      expect(event.notification).to.include({ to: email, message_type: 'verification_code' });
      expect(event.user).to.include({ email });
      expect(event.client).to.deep.include({ client_id: 'web', metadata: {} });
      expect(event.connection).to.include({ name: 'email', strategy: 'email' });
    });

    it('do not begin so late that another process could send the message at the same time', async () => {
      const secrets = { GATEWAY: `${gateway.url}/for-half-a-minute` };
      const one = { code: MAIL, secrets };
      await bindActions(server, 'custom-email-provider', one, one);
      await reset();
      const late = async () =>
        (await actionFailures(server)).filter((told) => told.includes('those before it took too long'));
      await until(async () => (await late()).length > 0);
      expect(gateway.seen).to.have.length(1);
    });

    it('leave no part of a link in the log when their reason is cut', async () => {
      const code = `exports.onExecuteCustomEmailProvider = async (event, api) => {
        const link = /https:\\S+reset-password\\?\\S+/.exec(event.notification.text.replaceAll('https://', 'https:'))[0];
        await fetch(event.secrets.GATEWAY, { method: 'POST', body: JSON.stringify({ link }) });
        api.notification.drop('-'.repeat(1024 - link.length + 4) + link);
      };`;
      await bindMail('/echo', code);
      await reset();
      await until(async () => (await descriptionsOf('fcpr')).some((one) => one?.startsWith('---')));
      const [{ link }] = told();
      const value = [...new URL(link).searchParams.values()].find((one) => one.length >= 16) ?? '';
      const reasons = (await descriptionsOf('fcpr')).filter((one) => one?.startsWith('---'));
      expect(value).not.to.equal('');
      expect(reasons.join() + server.logged()).not.to.include(value.slice(0, 12));
    });

    it('are run again after `retry`, with the same message', async () => {
      failures = 0;
      await bindMail('/busy-once');
      await reset();
      await until(async () => {
        // Tries in the background are seconds apart.
        server.tick(5_000);
        return gateway.seen.length > 1;
      });
      const [first, second] = told();
      expect(second.notification).to.deep.equal(first.notification);
    });

    it('give a message up with `drop`, and their reason is in the log', async () => {
      await bindMail('/nothing');
      await reset();
      await until(async () => (await descriptionsOf('fcpr')).includes('refused: 404'));
      expect(gateway.seen.length).to.equal(1);
    });

    for (const [what, code] of [
      ['fail', 'exports.onExecuteCustomEmailProvider = async () => { throw new Error("no way"); };'],
      [
        'call `drop` wrongly',
        'exports.onExecuteCustomEmailProvider = async (e, api) => { api.notification.drop({}); };',
      ],
      [
        'call a method of another trigger',
        'exports.onExecuteCustomEmailProvider = async (e, api) => { api.access.deny("no"); };',
      ],
    ] as const) {
      it(`that ${what} have sent nothing, even where the binding is optional`, async () => {
        await bindMail('/echo', code, { on_error: 'continue' });
        const before = (await descriptionsOf('fcpr')).length;
        await reset();
        await until(async () => (await descriptionsOf('fcpr')).length > before);
        expect((await descriptionsOf('fcpr')).at(-1)).to.equal('the action that sends messages has failed');
        expect((await actionFailures(server)).at(-1)).to.match(/\(custom-email-provider\) failed: ./);
      });
    }

    it('do not run where the tenant has another provider, or it is switched off', async () => {
      await bindMail('/echo');
      const set = (body: object) => managed(server, 'PATCH', '/emails/provider', body);
      expect((await set({ enabled: false })).status).to.equal(200);
      try {
        await reset();
        await until(async () => (await messagesTo(server, USER.email)).length === 1);
      } finally {
        expect((await set({ enabled: true })).status).to.equal(200);
      }
      expect(gateway.seen.length).to.equal(0);
    });
  });

  describe('of text messages', () => {
    it('get the whole message, whose code works', async () => {
      await bindPhone('/echo');
      const phone = '+16505550901';
      const { mfa_token, answer } = await enroll('mfa-1@example.test', phone);
      expect(answer.status, answer.text).to.equal(200);
      const [event] = told();
      const { code, as_text } = event.notification;
      expect(event.notification).to.deep.equal({
        as_text,
        as_voice: as_text,
        code,
        delivery_method: 'text',
        locale: 'en',
        message_type: 'otp_enroll',
        recipient: phone,
      });
      expect(as_text).to.include(code);
      expect(event.user).to.include({ email: 'mfa-1@example.test' });
      expect(event.request).to.include({ method: 'POST' }).and.to.have.keys('ip', 'method', 'geoip');
      const done = await calls.verify('oob', {
        mfa_token,
        oob_code: answer.json().oob_code,
        binding_code: code,
      });
      expect(done.status, done.text).to.equal(200);
      expect(await messagesTo(server, phone)).to.deep.equal([]);
    });

    it('that drop a message have sent nothing: the application learns it without the reason, and no log has the code', async () => {
      await bindPhone('/nothing');
      const { answer } = await enroll('mfa-2@example.test', '+16505550902');
      expect(answer.status).to.equal(503);
      expect(answer.text).not.to.include('refused');
      await until(async () => (await descriptionsOf('fn')).includes('refused: 404***'));
      const [event] = told();
      expect(server.logged()).not.to.include(event.notification.code);
    });

    it('do not run where send-phone-message has an action', async () => {
      await bindPhone('/echo');
      const code = sending('onExecuteSendPhoneMessage').replaceAll(
        'event.notification',
        'event.message_options',
      );
      await bind('send-phone-message', '/echo', code);
      await enroll('mfa-3@example.test', '+16505550903');
      await until(async () => gateway.seen.length > 0);
      expect(told().map((event) => Object.hasOwn(event, 'message_options'))).to.deep.equal([true]);
      expect(told()[0].request).to.include({ method: 'POST' });
    });
  });
});
