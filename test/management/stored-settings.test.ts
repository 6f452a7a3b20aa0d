// Settings that are only stored for deploy tools: they are written, read, changed and deleted, and their secrets are
// never returned.
import type { ManagementClient } from 'auth0';
import { expect } from 'chai';
import type { TestServer } from '../support/server.ts';
import { callApi, managementClient, startManaged } from './support.ts';

type Item = Record<string, unknown>;

describe('settings that are only stored for tools', () => {
  let server: TestServer;
  let management: ManagementClient;

  before(async () => {
    server = await startManaged();
    management = managementClient(server);
    const { id } = await answer('POST', '/actions/actions', {
      name: 'exchange',
      supported_triggers: [{ id: 'custom-token-exchange', version: 'v1' }],
    });
    Object.assign(KINDS['/token-exchange-profiles']?.body ?? {}, { action_id: id });
  });
  after(() => server.stop());

  const failure = (asked: PromiseLike<unknown>): Promise<unknown> =>
    Promise.resolve(asked).catch((thrown: unknown) => thrown);
  const answer = async (method: string, path: string, body?: unknown): Promise<Item> => {
    const response = await callApi(server, method, path, body);
    const text = await response.text();
    expect(response.status, `${path} ${text}`).to.be.within(200, 204);
    return text === '' ? {} : (JSON.parse(text) as Item);
  };

  const KINDS: Record<string, { body: Item; change: Item; key: string; id: RegExp; unlisted?: string[] }> = {
    '/rules': { body: { name: 'a', script: 'x' }, change: { enabled: false }, key: 'rules', id: /^rul_/ },
    '/hooks': {
      body: { name: 'a', script: 'x', triggerId: 'credentials-exchange' },
      change: { enabled: true },
      key: 'hooks',
      id: /^hok_/,
    },
    '/forms': {
      body: { name: 'a', nodes: [{ id: 'step_1', type: 'STEP' }] },
      change: { start: { next_node: '$ending' } },
      key: 'forms',
      id: /^ap_/,
      unlisted: ['nodes', 'start'],
    },
    '/flows': {
      body: { name: 'a' },
      change: { actions: [{ id: 'x' }] },
      key: 'flows',
      id: /^af_/,
      unlisted: ['actions'],
    },
    '/self-service-profiles': {
      body: { name: 'a', allowed_strategies: ['oidc'] },
      change: { description: 'b' },
      key: 'self_service_profiles',
      id: /^ssp_/,
    },
    '/token-exchange-profiles': {
      body: { name: 'a', subject_token_type: 'urn:x', action_id: 'x', type: 'custom_authentication' },
      change: { name: 'b' },
      key: 'token_exchange_profiles',
      id: /^tep_/,
    },
    '/user-attribute-profiles': {
      body: { name: 'a', user_attributes: {} },
      change: { name: 'b' },
      key: 'user_attribute_profiles',
      id: /^uap_/,
    },
    '/connection-profiles': {
      body: { name: 'a' },
      change: { enabled_features: ['scim'] },
      key: 'connection_profiles',
      id: /^cop_/,
    },
    '/network-acls': {
      body: { description: 'a', active: false, rule: { action: { block: true }, scope: 'tenant' } },
      change: { priority: 2 },
      key: 'network_acls',
      id: /^acl_/,
    },
    '/event-streams': {
      body: { name: 'a', destination: { type: 'eventbridge', configuration: { aws_region: 'eu-west-1' } } },
      change: { status: 'disabled' },
      key: 'eventStreams',
      id: /^est_/,
    },
  };

  for (const [path, { body, change, key, id, unlisted = [] }] of Object.entries(KINDS)) {
    it(`creates, reads, changes and deletes ${path}`, async () => {
      const made = await answer('POST', path, body);
      expect(made.id).to.match(id);
      expect(made).to.deep.include(body);
      const one = `${path}/${made.id}`;
      expect(await answer('GET', one)).to.deep.equal(made);
      expect(await answer('PATCH', one, change)).to.deep.include({ ...body, ...change });
      const shown = await answer('GET', one);
      expect(Object.keys(shown)).to.include.members(unlisted);
      const listed = Object.entries(shown).filter(([member]) => !unlisted.includes(member));
      expect((await answer('GET', `${path}?take=50`))[key]).to.deep.equal([Object.fromEntries(listed)]);
      // Lists that are always paged by cursor have no total.
      const whole = await answer('GET', `${path}?include_totals=true`);
      expect(whole[key]).to.have.length(1);
      expect(whole.total).to.be.oneOf([1, undefined]);
      await answer('DELETE', one);
      await answer('DELETE', one);
      expect((await callApi(server, 'GET', one)).status).to.equal(404);
    });
  }

  it('returns no secrets of phone providers, flow connections, event streams and rule variables', async () => {
    const secret = 'nobody-is-told-this';
    const provider = await management.branding.phone.providers.create({
      name: 'twilio',
      configuration: { sid: 'AC1', delivery_methods: ['text'] },
      credentials: { auth_token: secret },
    });
    expect(
      await failure(management.branding.phone.providers.create({ name: 'custom', credentials: {} })),
    ).to.include({
      statusCode: 409,
    });
    const vault = await management.flows.vault.connections.create({
      name: 'Slack',
      app_id: 'SLACK',
      setup: { type: 'WEBHOOK', url: `https://hooks.example.test/${secret}` },
    });
    const stream = await answer('POST', '/event-streams', {
      destination: {
        type: 'webhook',
        configuration: {
          webhook_endpoint: 'https://events.example.test/',
          webhook_authorization: { method: 'bearer', token: secret },
        },
      },
    });
    expect(stream).to.have.nested.property('destination.configuration.webhook_endpoint');
    await management.rulesConfigs.set('API_KEY', { value: secret });
    expect(await answer('GET', '/rules-configs')).to.deep.equal([{ key: 'API_KEY' }]);
    expect(await management.branding.phone.providers.list()).to.have.nested.property(
      'providers[0].name',
      'twilio',
    );
    const all = [
      provider,
      vault,
      stream,
      await answer('GET', `/branding/phone/providers/${provider.id}`),
      await answer('GET', '/branding/phone/providers'),
      await answer('GET', '/flows/vault/connections'),
      await answer('PATCH', `/flows/vault/connections/${vault.id}`, { name: 'Chat' }),
      await answer('GET', '/logs?per_page=100'),
    ];
    expect(JSON.stringify(all)).not.to.contain(secret);
    await management.rulesConfigs.delete('API_KEY');
    expect(await answer('GET', '/rules-configs')).to.deep.equal([]);
    expect((await callApi(server, 'PUT', '/rules-configs/a%2Fb', { value: 'x' })).status).to.equal(400);
  });

  it("returns the method and header name of an event stream's authorization, and keeps its secret", async () => {
    const authorization = { method: 'custom_header', header_key: 'x-hook', header_value: 'told-to-nobody' };
    const destination = (webhook_authorization: object) => ({
      type: 'webhook',
      configuration: { webhook_endpoint: 'https://events.example.test/', webhook_authorization },
    });
    const { header_value, ...shown } = authorization;
    const stream = await answer('POST', '/event-streams', { destination: destination(authorization) });
    expect(stream.destination).to.deep.equal(destination(shown));
    await answer('PATCH', `/event-streams/${String(stream.id)}`, { destination: destination(shown) });
    const kept = await server.store.collection('documents').get(String(stream.id));
    expect(kept?.body.destination).to.deep.equal(destination({ ...shown, header_value }));
  });

  it('returns settings of push providers without secrets, which a change keeps', async () => {
    const at = '/guardian/factors/push-notification/providers/apns';
    expect(await answer('GET', at)).to.deep.equal({});
    await answer('PUT', at, { bundle_id: 'com.example', sandbox: true, p12: 'told-to-nobody' });
    await answer('PUT', at, { bundle_id: 'com.example', enabled: true });
    expect(await answer('GET', at)).to.deep.equal({ bundle_id: 'com.example', enabled: true });
    const settings = (await server.store.collection('tenant').get('tenant'))?.guardianSettings as Item;
    expect(settings['push-notification/providers/apns']).to.include({ p12: 'told-to-nobody' });
    expect(JSON.stringify(await answer('GET', '/logs?per_page=100'))).not.to.contain('told-to-nobody');
    await answer('PATCH', '/prompts/mfa-push', { app_name: 'App' });
    await answer('PATCH', '/prompts/mfa-push', { apple_app_link: 'https://apps.example.test/' });
    expect(await answer('GET', '/prompts/mfa-push')).to.deep.equal({
      app_name: 'App',
      apple_app_link: 'https://apps.example.test/',
    });
  });

  // The clients for Java and Go cannot read a response without a body here.
  for (const factor of ['phone', 'sms']) {
    it(`returns an object without members for templates of ${factor} that were never set`, async () => {
      const at = `/guardian/factors/${factor}/templates`;
      const unset = await callApi(server, 'GET', at);
      expect([unset.status, await unset.text()]).to.deep.equal([200, '{}']);
      const texts = { enrollment_message: 'Enroll {{code}}', verification_message: 'Code {{code}}' };
      await answer('PUT', at, texts);
      expect(await answer('GET', at)).to.deep.equal(texts);
    });
  }

  it('returns the settings of security keys that are in use, and rejects another relying party', async () => {
    const at = '/guardian/factors/webauthn-roaming/settings';
    const inForce = { userVerification: 'preferred', overrideRelyingParty: false };
    expect(await answer('GET', at)).to.deep.equal(inForce);
    await answer('PUT', at, inForce);
    for (const other of [{ userVerification: 'never' }, { overrideRelyingParty: true }])
      expect((await callApi(server, 'PUT', at, { ...inForce, ...other })).status).to.equal(400);
  });

  it('completes the user id mapping of a profile with defaults', async () => {
    const profile = await answer('POST', '/user-attribute-profiles', {
      name: 'usual',
      user_attributes: {},
      user_id: { oidc_mapping: 'oid', scim_mapping: 'userName' },
    });
    expect(profile.user_id).to.include({ oidc_mapping: 'oid', scim_mapping: 'userName' });
    const changed = await answer('PATCH', `/user-attribute-profiles/${String(profile.id)}`, {
      user_id: { oidc_mapping: 'oid' },
    });
    expect(changed.user_id).to.include({ oidc_mapping: 'oid', scim_mapping: 'externalId' });
    expect(changed).to.have.nested.property('user_id.saml_mapping').with.length(3);
  });

  it('stores one phone template of each type', async () => {
    const template = {
      type: 'otp_verify',
      disabled: false,
      content: { from: '+15550100', body: { text: '{{code}}' } },
    };
    const made = await management.branding.phone.templates.create(template as never);
    expect(made).to.deep.include(template);
    expect((await callApi(server, 'POST', '/branding/phone/templates', template)).status).to.equal(409);
    await management.branding.phone.templates.update(String(made.id), { disabled: true });
    expect(await management.branding.phone.templates.list()).to.have.nested.property(
      'templates[0].disabled',
      true,
    );
  });

  it('stores the rendering of screens, one by one and several at once', async () => {
    const { rendering } = management.prompts;
    expect(await rendering.get('login-id', 'login-id')).to.include({ rendering_mode: 'standard' });
    await rendering.update('login-id', 'login-id', { rendering_mode: 'advanced', use_page_template: true });
    await rendering.bulkUpdate({
      configs: [{ prompt: 'signup', screen: 'signup', rendering_mode: 'advanced' }],
    });
    const { data } = await rendering.list({ rendering_mode: 'advanced' });
    expect(data.map(({ prompt }) => prompt)).to.have.members(['login-id', 'signup']);
    expect((await rendering.list({ prompt: 'signup' })).data).to.have.length(1);
  });

  it('has no encryption or custom signing keys, and stores supplemental signals', async () => {
    expect(await failure(management.keys.customSigning.get())).to.include({ statusCode: 404 });
    expect((await management.keys.encryption.list()).data).to.deep.equal([]);
    expect(await management.supplementalSignals.get()).to.deep.equal({});
    await management.supplementalSignals.patch({ akamai_enabled: true });
    expect(await management.supplementalSignals.get()).to.deep.equal({ akamai_enabled: true });
  });
});
