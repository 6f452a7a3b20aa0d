// The tenant's own texts of messages to phones: set by the Management API or the tenant file, and used whatever sends a code.
import type { ManagementClient } from 'auth0';
import { expect } from 'chai';
import { parse } from 'yaml';
import { loadTenantFile } from '../../src/tenant/load.ts';
import { exportTenant } from '../../src/tenant/tenant-export.ts';
import { managed } from '../actions/support.ts';
import { tenant as base, callsOf } from '../factors/tenant.ts';
import { callApi, managementClient, managementToken, startManaged } from '../management/support.ts';
import { createAgent } from '../support/agent.ts';
import type { TestServer } from '../support/server.ts';
import { order, tenantFolder } from '../support/tenant-folder.ts';
import { startTwilio, type TestTwilio, TWILIO } from '../support/twilio.ts';
import { until } from '../support/wait-until.ts';

const OUR_NUMBER = '+15005550006';
const codes = { phone_otp: { enabled: true }, password: { enabled: true } };
const tenant = {
  ...base,
  databases: [
    ...base.databases,
    {
      name: 'phones',
      enabled_clients: ['web'],
      options: {
        attributes: { phone_number: { identifier: { active: true } } },
        authentication_methods: codes,
      },
    },
  ],
};

describe('phone templates', () => {
  let twilio: TestTwilio;
  let server: TestServer;
  let management: ManagementClient;
  let people = 0;
  before(async () => {
    twilio = await startTwilio();
    server = await startManaged(tenant, undefined, {
      TWILIO_ACCOUNT_SID: TWILIO.accountSid,
      TWILIO_AUTH_TOKEN: TWILIO.authToken,
      TWILIO_FROM: OUR_NUMBER,
      TWILIO_API_URL: twilio.url,
    });
    management = managementClient(server);
  });
  after(async () => {
    await server?.stop();
    await twilio?.stop();
  });
  afterEach(async () => {
    const { templates = [] } = await management.branding.phone.templates.list();
    for (const { id } of templates) await management.branding.phone.templates.delete(String(id));
  });

  const set = async (type: string, text: string, more: object = {}) => {
    const content = { syntax: 'liquid', body: { text }, ...more };
    return String(
      (await management.branding.phone.templates.create({ type, disabled: false, content } as never)).id,
    );
  };
  /** Returns the messages to a number, once there are so many. */
  const sentTo = async (number: string, count = 1) => {
    const all = () => twilio.messages.filter(({ To }) => To === number);
    await until(() => all().length >= count);
    return all().map(({ Body = '', From = '' }) => ({
      From,
      code: /\b\d{6,8}\b/.exec(Body)?.[0] ?? '',
      text: Body.replaceAll(/\b\d{6,8}\b/g, 'CODE').replace(/:\d+ /, ' '),
    }));
  };
  const newNumber = () => `+1650556${2_000 + ++people}`;
  /** Returns what a user is sent who enrols a phone, and is then asked for its code. */
  const ofFactor = async (headers: Record<string, string> = {}) => {
    const calls = callsOf(server);
    const email = `mfa-${++people}@example.test`;
    const phone_number = newNumber();
    const mfa_token = await calls.mfaToken(email);
    const started = await createAgent(server).request('/mfa/associate', {
      json: { authenticator_types: ['oob'], oob_channels: ['sms'], phone_number },
      headers: { authorization: `Bearer ${mfa_token}`, ...headers },
    });
    const [first] = await sentTo(phone_number);
    const { oob_code } = started.json();
    const done = await calls.verify('oob', { mfa_token, oob_code, binding_code: first?.code });
    expect(done.status, done.text).to.equal(200);
    await calls.challenge({ mfa_token: await calls.mfaToken(email), challenge_type: 'oob' });
    return sentTo(phone_number, 2);
  };
  /** Returns what somebody is sent who logs in without a password. */
  const ofPasswordless = async () => {
    const phone_number = newNumber();
    const json = {
      ...{ client_id: 'web', client_secret: 'web-secret', connection: 'sms' },
      ...{ send: 'code', phone_number },
    };
    const started = await createAgent(server).request('/passwordless/start', { json });
    expect(started.status, started.text).to.equal(200);
    return sentTo(phone_number);
  };

  it('are the texts of the codes of second factors and of passwordless logins, from their number', async () => {
    const usual = await ofFactor();
    expect(usual[0]?.From).to.equal(OUR_NUMBER);
    await set('otp_enroll', '{{code}} enrols you at {{tenant.friendly_name}}', { from: '+15005550111' });
    await set('otp_verify', '{{ code }} lets you in at {{friendly_name}}');
    const [first, second] = await ofFactor();
    expect(first).to.include({ text: 'CODE enrols you at Test tenant', From: '+15005550111' });
    expect(second).to.include({ text: 'CODE lets you in at Test tenant', From: OUR_NUMBER });
    expect(await ofPasswordless()).to.have.nested.property('[0].text', 'CODE lets you in at Test tenant');
    // Of a sign-up with a phone number, whose code verifies it.
    const number = newNumber();
    const json = {
      ...{ client_id: 'web', client_secret: 'web-secret', connection: 'phones' },
      ...{ phone_number: number, allow_signup: true },
    };
    const challenged = await createAgent(server).request('/otp/challenge', { json });
    expect(challenged.status, challenged.text).to.equal(200);
    expect(await sentTo(number)).to.have.nested.property('[0].text', 'CODE lets you in at Test tenant');
  });

  it('know the language of the recipient, and that the message is a text', async () => {
    await set(
      'otp_enroll',
      "{{code}} {% if locale contains 'de' %}für{% else %}for{% endif %} {{message_type}}",
    );
    await managed(server, 'PATCH', '/tenants/settings', { enabled_locales: ['en', 'de'] });
    expect((await ofFactor({ 'x-request-language': 'de' }))[0]?.text).to.equal('CODE für sms');
    expect((await ofFactor())[0]?.text).to.equal('CODE for sms');
  });

  it('that are disabled, broken, empty, or lack the code, are replaced by ours', async () => {
    const [ours] = await ofFactor();
    const id = await set('otp_enroll', '{{code}} theirs');
    const templates = management.branding.phone.templates;
    for (const change of [
      { disabled: true },
      { disabled: false, content: { body: { text: '{% if %}{{code}}' } } },
      { content: { body: { text: 'Welcome' } } },
      { content: { body: { text: '' } } },
    ]) {
      await templates.update(id, change as never);
      expect((await ofFactor())[0]?.text, JSON.stringify(change)).to.equal(ours?.text);
    }
    await templates.update(id, { content: { body: { text: '{{code}} again' } } } as never);
    expect((await ofFactor())[0]?.text).to.equal('CODE again');
    const reset = await templates.reset(id, {});
    expect(reset).to.deep.include({ id, type: 'otp_enroll', content: { syntax: 'liquid', body: {} } });
    expect((await ofFactor())[0]?.text).to.equal(ours?.text);
  });

  it('come after those of the factor and the connection, or first where the tenant says so', async () => {
    await managed(server, 'PUT', '/guardian/factors/sms/templates', {
      enrollment_message: '{{code}} of the factor',
      verification_message: '{{code}} of the factor, too',
    });
    await set('otp_enroll', '{{code}} of the phone');
    await set('otp_verify', '{{code}} of the phone, too');
    expect((await ofFactor()).map(({ text }) => text)).to.deep.equal([
      'CODE of the factor',
      'CODE of the factor, too',
    ]);
    const { body: connections } = await managed(server, 'GET', '/connections?name=sms');
    const [{ id, options }] = connections;
    const asConnection = (template: string | undefined) =>
      managed(server, 'PATCH', `/connections/${id}`, {
        options: { ...options, template, from: '+15005550222' },
      });
    await asConnection('@@password@@ of the connection');
    expect((await ofPasswordless())[0]).to.include({ text: 'CODE of the connection', From: '+15005550222' });
    await managed(server, 'PATCH', '/tenants/settings', { phone_consolidated_experience: true });
    expect((await ofFactor()).map(({ text }) => text)).to.deep.equal([
      'CODE of the phone',
      'CODE of the phone, too',
    ]);
    expect((await ofPasswordless())[0]).to.include({ text: 'CODE of the phone, too', From: '+15005550222' });
    await managed(server, 'PATCH', '/tenants/settings', { phone_consolidated_experience: false });
    await asConnection(undefined);
    await server.store
      .collection('tenant')
      .update('tenant', ({ guardianSettings: _, ...rest }) => rest as never);
  });

  it('are tried by a message to a number that the caller names, also those that no message has yet', async () => {
    const id = await set('blocked_account', 'Your account at {{ friendly_name }} is blocked');
    const number = newNumber();
    const answer = await management.branding.phone.templates.test(id, { to: number });
    expect(answer).to.have.property('message');
    expect(await sentTo(number)).to.have.nested.property(
      '[0].text',
      'Your account at Test tenant is blocked',
    );
    const code = await set('otp_verify', '{{code}} to try', { from: '+15005550333' });
    await management.branding.phone.templates.update(code, { disabled: true });
    const other = newNumber();
    await management.branding.phone.templates.test(code, { to: other, delivery_method: 'text' });
    expect((await sentTo(other))[0]).to.include({ text: 'CODE to try', From: '+15005550333' });
    const at = `/branding/phone/templates/${code}/try`;
    for (const refused of [
      { to: other, delivery_method: 'voice' },
      { to: '12' },
      { to: 'ada@example.test' },
      {},
    ])
      expect((await callApi(server, 'POST', at, refused)).status, JSON.stringify(refused)).to.equal(400);
    expect(
      (await callApi(server, 'POST', '/branding/phone/templates/tem_none/try', { to: other })).status,
    ).to.equal(404);
    expect((await callApi(server, 'PATCH', '/branding/phone/templates/tem_none/reset', {})).status).to.equal(
      404,
    );
    const token = await managementToken(server, 'read:phone_templates');
    const mayNot = await fetch(`${server.url}/api/v2${at}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ to: other }),
    });
    expect(mayNot.status).to.equal(403);
    expect(twilio.messages.filter(({ To }) => To === other).length).to.equal(1);
  });

  it('that cannot be sent say so to the caller, and never what the provider has answered', async () => {
    const id = await set('otp_verify', '{{code}}');
    twilio.behave({ status: 400, code: 21211, message: `not with ${TWILIO.authToken}` });
    const answer = await callApi(server, 'POST', `/branding/phone/templates/${id}/try`, { to: newNumber() });
    twilio.behave('accept');
    expect(answer.status).to.equal(400);
  });

  it('are of known types and members', async () => {
    for (const body of [
      { type: 'invented', content: { body: { text: 'x' } } },
      { type: 'otp_verify', content: { body: { html: 'x' } } },
      { type: 'otp_verify', content: { body: { text: 'x'.repeat(10_001) } } },
      { type: 'otp_verify', content: 'x' },
    ])
      expect((await callApi(server, 'POST', '/branding/phone/templates', body)).status).to.equal(400);
    const id = await set('otp_verify', '{{code}}');
    expect(
      (await callApi(server, 'PATCH', `/branding/phone/templates/${id}`, { type: 'otp_enroll' })).status,
    ).to.equal(400);
    const changed = await management.branding.phone.templates.update(id, {
      content: { body: { text: '{{code}} new' } },
    } as never);
    expect(changed.content, 'the syntax stays').to.deep.equal({
      syntax: 'liquid',
      body: { text: '{{code}} new' },
    });
  });

  it('are read from a file, applied under stable ids, and exported', async () => {
    const folder = await tenantFolder();
    try {
      const template = (text: string) => ({
        type: 'otp_enroll',
        disabled: false,
        content: { syntax: 'liquid', from: '', body: { text, voice: '{{code}}' } },
      });
      await folder.write('phone-templates/otp_enroll.json', template('{{code}} of a file at ${place}'));
      expect(await order(server, 'plan', folder)).to.include('+ phoneTemplates.otp_enroll');
      const { tenant: file } = await loadTenantFile(folder.path, {});
      expect(file.phoneTemplates).to.have.length(1);
      const other = await startManaged({ ...tenant, phoneTemplates: file.phoneTemplates });
      try {
        const { body } = await managed(other, 'GET', '/branding/phone/templates');
        expect(body.templates).to.have.length(1);
        const [{ id, ...made }] = body.templates;
        expect(made).to.deep.include({ type: 'otp_enroll', disabled: false, channel: 'phone' });
        expect(made.content.body.text).to.equal('{{code}} of a file at ${place}');
        const again = { ...tenant, phoneTemplates: [template('{{code}} changed')] };
        await folder.write('phone-templates/otp_enroll.json', again.phoneTemplates[0]);
        expect(await order(other, 'apply', folder)).to.include(
          '~ phoneTemplates.otp_enroll.body.content.body.text: "{{code}} of a file at ${place}" → "{{code}} changed"',
        );
        const after = await other.store.collection('documents').get(id);
        expect(after?.body.content).to.have.nested.property('body.text', '{{code}} changed');
        const { phoneTemplates } = parse(await exportTenant(other.store));
        expect(phoneTemplates).to.have.length(1);
        expect(phoneTemplates[0]).to.deep.include({ id, ...template('{{code}} changed') });
      } finally {
        await other.stop();
      }
    } finally {
      await folder.remove();
    }
  });
});
