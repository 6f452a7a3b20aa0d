// Clients (applications) with the published management client.

import type { ManagementClient } from 'auth0';
import { expect } from 'chai';
import type { TestServer } from '../support/server.ts';
import { callApi, managementClient, managementToken, startManaged } from './support.ts';

describe('/clients', () => {
  let server: TestServer;
  let management: ManagementClient;

  before(async () => {
    server = await startManaged();
    management = managementClient(server);
  });
  after(() => server.stop());

  const tokenFor = (client_id: string, client_secret: string | undefined) =>
    fetch(`${server.url}/oauth/token`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        grant_type: 'client_credentials',
        client_id,
        client_secret,
        audience: 'https://api.example.test/',
      }),
    });

  it('creates a client that gets tokens with the next request after it is granted an API', async () => {
    const made = await management.clients.create({ name: 'Robot', app_type: 'non_interactive' });
    expect(made.client_id).to.match(/^[A-Za-z0-9]{32}$/);
    expect((await tokenFor(made.client_id ?? '', made.client_secret)).status).to.equal(403);
    await management.clientGrants.create({
      client_id: made.client_id ?? '',
      audience: 'https://api.example.test/',
      scope: ['read:things'],
    });
    const token = await tokenFor(made.client_id ?? '', made.client_secret);
    expect(await token.json()).to.include({ token_type: 'Bearer', scope: 'read:things' });
  });

  it('replaces the secret with the next request after a rotation', async () => {
    const made = await management.clients.create({ name: 'Rotated', app_type: 'non_interactive' });
    const rotated = await management.clients.rotateSecret(made.client_id ?? '');
    expect(rotated.client_secret).not.to.equal(made.client_secret);
    expect((await tokenFor(made.client_id ?? '', made.client_secret)).status).to.equal(401);
  });

  it('merges metadata key by key, and accepts every app_type of the hosted service', async () => {
    const made = await management.clients.create({
      name: 'Integrated',
      app_type: 'sso_integration',
      client_metadata: { a: '1', b: '2' },
    });
    const id = made.client_id ?? '';
    expect(made.app_type).to.equal('sso_integration');
    const patch = async (client_metadata: Record<string, string | null>) => {
      const answer = await callApi(server, 'PATCH', `/clients/${id}`, { client_metadata });
      return { status: answer.status, metadata: ((await answer.json()) as typeof made).client_metadata };
    };
    expect((await patch({ b: null, c: '3' })).metadata).to.deep.equal({ a: '1', c: '3' });
    const many = Object.fromEntries(Array.from({ length: 9 }, (_, n) => [`k${n}`, 'x']));
    expect((await patch(many)).status).to.equal(400);
    expect((await patch({ a: null, c: null })).metadata).to.deep.equal({});
    const refused = await callApi(server, 'POST', '/clients', { name: 'x', client_metadata: { a: null } });
    expect(refused.status).to.equal(400);
  });

  it('accepts only profiles that exist, and a complete default_organization', async () => {
    const profile = (await (
      await callApi(server, 'POST', '/user-attribute-profiles', { name: 'p', user_attributes: {} })
    ).json()) as { id: string };
    const made = await management.clients.create({ name: 'Profiled' });
    const path = `/clients/${made.client_id}`;
    const status = async (body: object) => (await callApi(server, 'PATCH', path, body)).status;
    const named = (user_attribute_profile_id: string) => ({
      my_organization_configuration: { user_attribute_profile_id },
    });
    expect(await status(named(profile.id))).to.equal(200);
    expect(await status(named('uap_none'))).to.equal(400);
    expect(await status({ my_organization_configuration: { connection_profile_id: profile.id } })).to.equal(
      400,
    );
    // A deleted profile does not prevent changes of other members.
    await callApi(server, 'DELETE', `/user-attribute-profiles/${profile.id}`);
    expect(await status({ description: 'x' })).to.equal(200);
    const flows = ['client_credentials'];
    expect(await status({ default_organization: { organization_id: 'org_x', flows } })).to.equal(200);
    expect(await status({ default_organization: { flows } })).to.equal(400);
    expect(await status({ default_organization: { organization_id: 'org_x' } })).to.equal(400);
    expect(await status({ default_organization: { organization_id: 'org_x', flows: ['code'] } })).to.equal(
      400,
    );
    expect(await status({ default_organization: null })).to.equal(200);
  });

  it('merges objects member by member, as Terraform changes them', async () => {
    const session_transfer = { allowed_authentication_methods: ['cookie'], enforce_device_binding: 'ip' };
    const made = await management.clients.create({
      name: 'Objects',
      app_type: 'native',
      session_transfer,
      mobile: { ios: { team_id: 'TEAM', app_bundle_identifier: 'com.example' } },
      native_social_login: { google: { enabled: true } },
    } as never);
    const changed = await management.clients.update(made.client_id ?? '', {
      session_transfer: { delegation: null, enforce_device_binding: 'asn' },
      mobile: { android: { app_package_name: 'com.example' } },
      native_social_login: { facebook: { enabled: true } },
      jwt_configuration: { lifetime_in_seconds: 60 },
    } as never);
    expect(changed.session_transfer).to.deep.include({ ...session_transfer, enforce_device_binding: 'asn' });
    expect(changed.mobile).to.have.all.keys('ios', 'android');
    expect(changed.native_social_login).to.have.all.keys('google', 'facebook');
    expect(changed.jwt_configuration).to.deep.equal({ lifetime_in_seconds: 60, secret_encoded: false });
    await management.clients.update(made.client_id ?? '', { session_transfer: null } as never);
    expect(await management.clients.get(made.client_id ?? '')).not.to.have.property('session_transfer');
  });

  it('shows the client that is linked to an API in that API', async () => {
    const audience = 'https://linked.example.test/';
    const api = await management.resourceServers.create({ identifier: audience, name: 'Linked' });
    expect(api).not.to.have.property('client_id');
    const linked = await management.clients.create({
      name: 'Linked',
      app_type: 'resource_server',
      resource_server_identifier: audience,
    });
    expect(await management.resourceServers.get(api.id ?? '')).to.include({ client_id: linked.client_id });
    // In a list, the deploy tool would write the id of this tenant's client into its files.
    const { data } = await management.resourceServers.list({ identifiers: [audience] });
    expect(data).to.have.length(1);
    expect(data[0]).not.to.have.property('client_id');
    await management.clients.delete(linked.client_id ?? '');
    expect(await management.resourceServers.get(api.id ?? '')).not.to.have.property('client_id');
  });

  it('finds clients by the client grants of an organization, and by no other query', async () => {
    const [one, other] = await Promise.all(
      ['One', 'Other'].map((name) => management.clients.create({ name, app_type: 'non_interactive' })),
    );
    const grantOf = (client_id = '', allow_any_organization = false) =>
      management.clientGrants.create({
        client_id,
        audience: 'https://api.example.test/',
        scope: ['read:things'],
        organization_usage: 'allow',
        allow_any_organization,
      });
    const grant = await grantOf(one?.client_id);
    await grantOf(other?.client_id, true);
    const { id = '' } = await management.organizations.create({ name: 'grantee' });
    const found = async (q: string) => {
      const response = await callApi(server, 'GET', `/clients?take=50&q=${encodeURIComponent(q)}`);
      const { clients } = (await response.json()) as { clients?: { client_id: string }[] };
      return clients?.map(({ client_id }) => client_id) ?? response.status;
    };
    expect(await found(`client_grant.organization_id:${id}`)).to.deep.equal([]);
    await management.organizations.clientGrants.create(id, { grant_id: grant.id ?? '' });
    expect(await found(`client_grant.organization_id:${id}`)).to.deep.equal([one?.client_id]);
    expect(await found('client_grant.organization_id:org_none')).to.deep.equal([]);
    expect(await found('client_grant.allow_any_organization:true')).to.deep.equal([other?.client_id]);
    expect(await found('name:One')).to.equal(400);
  });

  it('changes only the members in the body, and no longer finds a deleted client', async () => {
    const { client_id = '' } = await management.clients.create({
      name: 'Shop',
      app_type: 'spa',
      callbacks: ['https://shop.example.test/callback'],
    });
    const changed = await management.clients.update(client_id, {
      callbacks: ['https://shop.example.test/new'],
    });
    expect(changed).to.include({ name: 'Shop', app_type: 'spa' });
    expect(changed.callbacks).to.deep.equal(['https://shop.example.test/new']);
    await management.clients.delete(client_id);
    await management.clients.delete(client_id);
    const missing = await management.clients.get(client_id).catch((thrown: unknown) => thrown);
    expect(missing).to.deep.include({ statusCode: 404 });
  });

  it('rejects an invalid callback, with which nobody could log in', async () => {
    const { client_id = '' } = await management.clients.create({
      name: 'Native',
      callbacks: ['com.shop.app:/in'],
    });
    for (const wrong of ['not an url', 'shop.example.test', 'https://a.test/#b', 'javascript:alert(1)']) {
      const callbacks = ['https://shop.example.test/callback', wrong];
      const made = await management.clients
        .create({ name: 'x', callbacks })
        .catch((thrown: unknown) => thrown);
      const changed = await management.clients
        .update(client_id, { callbacks })
        .catch((thrown: unknown) => thrown);
      for (const answer of [made, changed]) {
        expect(answer, wrong).to.deep.include({ statusCode: 400 });
        expect((answer as { body: { message: string } }).body.message)
          .to.contain('must be an absolute URI without a fragment')
          .and.contain('on property callbacks[1]');
      }
    }
    expect((await management.clients.get(client_id)).callbacks).to.deep.equal(['com.shop.app:/in']);
  });

  it('rejects unknown and read-only members', async () => {
    const token = await managementToken(server);
    for (const body of [
      { name: 'x', foo: 1 },
      { name: 'x', client_id: 'mine' },
      { name: 'x', global: true },
      {},
    ]) {
      const response = await fetch(`${server.url}/api/v2/clients`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
      expect(response.status, JSON.stringify(body)).to.equal(400);
      expect(await response.json()).to.include({
        statusCode: 400,
        error: 'Bad Request',
        errorCode: 'invalid_body',
      });
    }
  });

  it('shows secrets only to callers who may read keys', async () => {
    const token = await managementToken(server, 'read:clients');
    const response = await fetch(`${server.url}/api/v2/clients`, {
      headers: { authorization: `Bearer ${token}` },
    });
    const clients = (await response.json()) as object[];
    expect(clients.length).to.be.above(2);
    for (const client of clients) expect(client).not.to.have.property('client_secret');
  });
});
