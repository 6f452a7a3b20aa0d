// Methods of the newest published client that the tests of their resources do not call, with their responses.
import type { ManagementClient } from 'auth0';
import { expect } from 'chai';
import type { TestServer } from '../support/server.ts';
import { callApi, managementClient, startManaged } from './support.ts';

const PUSH = '/guardian/factors/push-notification/providers';

describe('methods of the published management client without a test of their resource', () => {
  let server: TestServer;
  let client: ManagementClient;

  before(async () => {
    server = await startManaged();
    client = managementClient(server);
  });
  after(() => server.stop());

  const answer = async (method: string, path: string, body?: unknown) => {
    const response = await callApi(server, method, path, body);
    const text = await response.text();
    expect(response.status, `${method} ${path} ${text}`).to.be.within(200, 204);
    return text === '' ? {} : (JSON.parse(text) as Record<string, unknown>);
  };
  const isGone = async (asked: PromiseLike<unknown>) =>
    expect(
      await Promise.resolve(asked).catch((thrown: { statusCode?: number }) => thrown.statusCode),
    ).to.equal(404);

  it('reads and changes the clients of a connection, and reads a client grant', async () => {
    const made = await client.connections.create({ name: 'further', strategy: 'auth0' });
    const [id, client_id] = [made.id ?? '', 'example-web'];
    await client.connections.clients.update(id, [{ client_id, status: true }]);
    expect((await client.connections.clients.get(id)).data).to.deep.equal([{ client_id }]);
    const names = (await client.clients.connections.get(client_id)).data.map(({ name }) => name);
    expect(names).to.include('further');
    await client.connections.checkStatus(id);
    const email = 'further@example.test';
    await client.users.create({ connection: 'further', email, password: 'A-long-Passw0rd!' });
    await client.connections.users.deleteByEmail(id, { email });
    await client.connections.users.deleteByEmail(id, { email });
    expect(await client.users.listUsersByEmail({ email })).to.deep.equal([]);
    const [grant] = (await client.clientGrants.list({ client_id: 'example-m2m' })).data;
    expect(await client.clientGrants.get(grant?.id ?? '')).to.deep.equal(grant);
    await isGone(client.clientGrants.get('cgr_none'));
  });

  it('updates roles, and the connections and clients of an organization', async () => {
    const { id: role = '' } = await client.roles.create({ name: 'Further' });
    expect(await client.roles.update(role, { description: 'x' })).to.deep.include({ description: 'x' });
    expect(await client.roles.get(role)).to.deep.include({ id: role, name: 'Further', description: 'x' });
    await client.roles.delete(role);
    await isGone(client.roles.get(role));
    const { id = '' } = await client.organizations.create({ name: 'further' });
    const [connection] = (await client.connections.list({ name: 'Username-Password-Authentication' })).data;
    const connection_id = connection?.id ?? '';
    const { connections, enabledConnections, clients } = client.organizations;
    await connections.create(id, { connection_id, assign_membership_on_login: true });
    for (const one of [connections, enabledConnections])
      expect(await one.get(id, connection_id)).to.deep.include({
        connection_id,
        assign_membership_on_login: true,
      });
    await connections.update(id, connection_id, { assign_membership_on_login: false });
    expect((await connections.list(id)).data[0]).to.include({ assign_membership_on_login: false });
    await connections.delete(id, connection_id);
    await isGone(connections.get(id, connection_id));
    const client_id = 'example-web';
    await clients.create(id, { clients: [{ client_id, use_for_member_access: true }] });
    expect(await clients.get(id, client_id)).to.deep.include({ client_id, use_for_member_access: true });
    await clients.update(id, client_id, { use_for_member_access: false });
    expect(await clients.get(id, client_id)).to.include({ use_for_member_access: false });
    await clients.delete(id, { clients: [client_id] });
    await isGone(clients.get(id, client_id));
  });

  it('creates an enrollment ticket for a user, and deletes an enrollment', async () => {
    const user = await client.users.create({
      connection: 'Username-Password-Authentication',
      email: 'factors@example.test',
      password: 'A-long-Passw0rd!',
    });
    const id = user.user_id ?? '';
    await client.guardian.factors.set('otp', { enabled: true });
    const ticket = await client.guardian.enrollments.createTicket({ user_id: id });
    expect(ticket.ticket_url).to.contain(server.url);
    await client.users.authenticationMethods.create(id, {
      type: 'totp',
      name: 'App',
      totp_secret: 'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP',
    });
    const [enrollment] = await client.users.enrollments.get(id);
    expect(await client.guardian.enrollments.get(enrollment?.id ?? '')).to.include({ id: enrollment?.id });
    await client.guardian.enrollments.delete(enrollment?.id ?? '');
    expect(await client.users.enrollments.get(id)).to.deep.equal([]);
    expect((await client.users.connectedAccounts.list(id)).data).to.deep.equal([]);
  });

  const settings = (): [string, () => PromiseLike<unknown>, () => PromiseLike<unknown>, object][] => {
    const { sms, phone, pushNotification: push, duo } = client.guardian.factors;
    const [twilio, provider] = [{ from: '+15550100200', sid: 'AC1' }, { provider: 'twilio' } as const];
    const texts = { enrollment_message: 'Code {{code}}', verification_message: 'Code {{code}}' };
    const sns = { aws_access_key_id: 'x', aws_region: 'eu-west-1' };
    return [
      ['sms provider', () => sms.setProvider(provider), () => sms.getSelectedProvider(), provider],
      ['phone provider', () => phone.setProvider(provider), () => phone.getSelectedProvider(), provider],
      [
        'push provider',
        () => push.setProvider({ provider: 'sns' }),
        () => push.getSelectedProvider(),
        { provider: 'sns' },
      ],
      ['sms account', () => sms.setTwilioProvider(twilio), () => sms.getTwilioProvider(), twilio],
      ['phone account', () => phone.setTwilioProvider(twilio), () => phone.getTwilioProvider(), twilio],
      ['sms texts', () => sms.setTemplates(texts), () => sms.getTemplates(), texts],
      ['phone texts', () => phone.setTemplates(texts), () => phone.getTemplates(), texts],
      [
        'phone types',
        () => phone.setMessageTypes({ message_types: ['voice'] }),
        () => phone.getMessageTypes(),
        { message_types: ['voice'] },
      ],
      ['SNS', () => push.setSnsProvider(sns), () => push.getSnsProvider(), sns],
      [
        'SNS, changed',
        () => push.updateSnsProvider({ aws_region: 'eu-west-2' }),
        () => push.getSnsProvider(),
        { ...sns, aws_region: 'eu-west-2' },
      ],
      [
        'APNs, changed',
        () => push.updateApnsProvider({ sandbox: true }),
        () => push.getApnsProvider(),
        { sandbox: true },
      ],
      [
        'Duo',
        () => duo.settings.set({ ikey: 'i', host: 'h.example.test' }),
        () => duo.settings.get(),
        { ikey: 'i', host: 'h.example.test' },
      ],
      [
        'Duo, changed',
        () => duo.settings.update({ ikey: 'j' }),
        () => duo.settings.get(),
        { ikey: 'j', host: 'h.example.test' },
      ],
    ];
  };

  it('returns the settings of second factors as they were set, without secrets', async () => {
    for (const [name, set, get, expected] of settings()) {
      await set();
      expect(await get(), name).to.deep.include(expected);
    }
    for (const [kind, body] of Object.entries({
      fcm: { server_key: 'a secret key' },
      fcmv1: { server_credentials: 'a secret key' },
    }))
      for (const method of ['PUT', 'PATCH']) {
        await answer(method, `${PUSH}/${kind}`, body);
        expect(JSON.stringify(await answer('GET', `${PUSH}/${kind}`))).not.to.contain('a secret key');
      }
    const platform = '/guardian/factors/webauthn-platform/settings';
    await answer('PUT', platform, { overrideRelyingParty: false });
    expect(await answer('GET', platform)).to.deep.include({ overrideRelyingParty: false });
  });

  it('updates e-mail templates and the page template', async () => {
    const template = 'welcome_email';
    const mail = { template, from: 'a@example.test', subject: 'S', syntax: 'liquid', enabled: true } as const;
    await client.emailTemplates.create({ ...mail, body: 'first' });
    await client.emailTemplates.set(template, { ...mail, body: 'second' });
    expect(await client.emailTemplates.get(template)).to.deep.include({ ...mail, body: 'second' });
    await client.emailTemplates.update(template, { subject: 'T' });
    expect(await client.emailTemplates.get(template)).to.include({ subject: 'T', body: 'second' });
    const page = '<html><head>{%- auth0:head -%}</head><body>{%- auth0:widget -%}</body></html>';
    await client.branding.templates.updateUniversalLogin({ template: page });
    expect(await client.branding.templates.getUniversalLogin()).to.deep.include({ body: page });
    await client.branding.templates.deleteUniversalLogin();
    await isGone(client.branding.templates.getUniversalLogin());
  });

  it('creates, reads and deletes settings that are only stored for tools', async () => {
    const policy = {
      resource: 'oauth_authentication_api',
      consumer: 'client',
      consumer_selector: 'x',
    } as const;
    const { id } = (await answer('POST', '/rate-limit-policies', {
      ...policy,
      configuration: { action: 'log', limit: 5 },
    })) as { id: string };
    expect(await client.rateLimitPolicies.get(id)).to.deep.include(policy);
    await client.rateLimitPolicies.delete(id);
    await isGone(client.rateLimitPolicies.get(id));
    const vault = await client.flows.vault.connections.create({
      name: 'Further',
      app_id: 'HTTP',
      setup: { type: 'BEARER', token: 'a secret' },
    });
    expect(await client.flows.vault.connections.get(vault.id))
      .to.include({ name: 'Further' })
      .and.not.have.property('setup');
    await client.flows.vault.connections.delete(vault.id);
    const list = await client.networkAcls.list();
    expect(list.data).to.deep.equal([]);
    const acl = { description: 'a', active: false, rule: { action: { block: true }, scope: 'tenant' } };
    const { id: aclId } = (await answer('POST', '/network-acls', acl)) as { id: string };
    await client.networkAcls.set(aclId, { ...acl, description: 'b' } as never);
    expect(await client.networkAcls.get(aclId)).to.deep.include({ ...acl, description: 'b' });
    const { phone } = client.branding;
    const provider = await phone.providers.create({ name: 'custom', credentials: {} });
    expect(await phone.providers.get(provider.id ?? '')).to.include({ name: 'custom' });
    await phone.providers.delete(provider.id ?? '');
    const text = await phone.templates.create({ type: 'otp_verify', disabled: false });
    expect(await phone.templates.get(text.id ?? '')).to.include({ type: 'otp_verify' });
    await phone.templates.delete(text.id ?? '');
    await isGone(phone.templates.get(text.id ?? ''));
  });

  it("returns the names of a hook's secrets alone, and deletes them with the hook", async () => {
    const { id = '' } = await client.hooks.create({
      name: 'further',
      script: 'x',
      triggerId: 'credentials-exchange',
    });
    await client.hooks.secrets.create(id, { A: 'first', B: 'second' });
    await client.hooks.secrets.update(id, { A: 'third' });
    const hidden = '_VALUE_NOT_SHOWN_';
    expect(await client.hooks.secrets.get(id)).to.deep.equal({ A: hidden, B: hidden });
    await client.hooks.secrets.delete(id, ['A']);
    expect(await client.hooks.secrets.get(id)).to.deep.equal({ B: hidden });
    await client.hooks.delete(id);
    await isGone(client.hooks.secrets.get(id));
  });

  it('creates, updates and deletes directory provisioning', async () => {
    const options = { client_id: 'x', client_secret: 'y', domain: 'example.test' };
    const made = await client.connections.create({ name: 'directory', strategy: 'google-apps', options });
    const { directoryProvisioning: directory } = client.connections;
    const id = made.id ?? '';
    await directory.create(id, {});
    expect((await directory.getDefaultMapping(id)).mapping).to.deep.equal((await directory.get(id)).mapping);
    await directory.update(id, { synchronize_automatically: true });
    expect(await directory.get(id)).to.include({ synchronize_automatically: true });
    await directory.delete(id);
    await isGone(directory.get(id));
  });
});
