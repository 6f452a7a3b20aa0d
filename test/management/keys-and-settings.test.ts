// Signing keys, and details that deploy tools depend on.
import type { ManagementClient } from 'auth0';
import { expect } from 'chai';
import { listAll } from '../../src/store/list-all.ts';
import { makeCertificate } from '../saml/support.ts';
import { createAgent } from '../support/agent.ts';
import { header } from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';
import { authorizeAs, callApi, managementClient, managementToken, startManaged } from './support.ts';

describe('/keys/signing and other settings of deploy tools', () => {
  let server: TestServer;
  let management: ManagementClient;

  beforeEach(async () => {
    server = await startManaged();
    management = managementClient(server);
  });
  afterEach(() => server.stop());

  const failure = (asked: PromiseLike<unknown>): Promise<unknown> =>
    Promise.resolve(asked).catch((thrown: unknown) => thrown);
  const kidNow = async () => header(await managementToken(server)).kid;
  const published = async () => {
    const { keys } = (await createAgent(server).get('/.well-known/jwks.json')).json();
    return (keys as { kid: string }[]).map(({ kid }) => kid);
  };

  it('lists keys, the current one first, without private parts', async () => {
    const keys = await management.keys.signing.list();
    expect(keys.map(({ current, next }) => [current, next])).to.deep.equal([
      [true, undefined],
      [undefined, true],
    ]);
    expect(JSON.stringify(keys)).not.to.match(/PRIVATE|"d":/);
    expect(keys[0]?.kid).to.equal(await kidNow());
    expect(keys[0]?.cert).to.contain('BEGIN CERTIFICATE');
    expect(await management.keys.signing.get(keys[1]?.kid ?? '')).to.deep.equal(keys[1]);
    expect(await failure(management.keys.signing.get('unknown'))).to.include({ statusCode: 404 });
  });

  it('signs with the next key after a rotation, and still accepts tokens of the previous one', async () => {
    const old = await managementToken(server);
    const [current, next] = await management.keys.signing.list();
    const rotated = await management.keys.signing.rotate();
    expect(rotated.kid).to.equal(next?.kid);
    expect(await kidNow()).to.equal(next?.kid);
    expect(await published()).to.include(current?.kid);
    expect((await authorizeAs(server, old, 'GET', '/clients')).status).to.equal(200);
  });

  it('rotates the keys of one algorithm if asked to', async () => {
    await server.store.collection('clients').update('admin', (client) => ({
      ...client,
      id_token_signed_response_alg: 'ES256',
    }));
    await published();
    const algOf = (key: object) => (key as { alg?: string }).alg;
    const before = await management.keys.signing.list();
    expect(before.map(algOf)).to.deep.equal(['RS256', 'RS256', 'ES256', 'ES256']);
    const rotated = await callApi(server, 'POST', '/keys/signing/rotate', { alg: 'ES256' });
    expect(rotated.status).to.equal(201);
    expect(await rotated.json()).to.include({ kid: before[3]?.kid });
    const after = await management.keys.signing.list();
    expect(after.find(({ current }) => current)?.kid).to.equal(before[0]?.kid);
    expect((await callApi(server, 'POST', '/keys/signing/rotate', { alg: 'HS256' })).status).to.equal(400);
  });

  it('rejects tokens of a revoked key with the next request', async () => {
    const old = await managementToken(server);
    const [current] = await management.keys.signing.list();
    const revoke = () => management.keys.signing.revoke(current?.kid ?? '');
    // The current key cannot be revoked.
    expect(await failure(revoke())).to.include({ statusCode: 400 });
    await management.keys.signing.rotate();
    expect((await managementClient(server).keys.signing.revoke(current?.kid ?? '')).kid).to.equal(
      current?.kid,
    );
    const refused = await authorizeAs(server, old, 'GET', '/clients');
    expect(refused.status).to.equal(401);
    expect(await refused.json()).to.include({ statusCode: 401, error: 'Unauthorized' });
    expect(await published()).not.to.include(current?.kid);
    expect((await callApi(server, 'PUT', `/keys/signing/${current?.kid}/revoke`)).status).to.equal(404);
    expect((await callApi(server, 'GET', '/clients')).status).to.equal(200);
  });

  it('does not rotate or revoke for a caller with read access alone', async () => {
    const reading = await managementToken(server, 'read:signing_keys');
    const [current] = await management.keys.signing.list();
    const calls = [
      ['POST', '/keys/signing/rotate'],
      ['PUT', `/keys/signing/${current?.kid}/revoke`],
    ] as const;
    for (const [method, path] of calls)
      expect((await authorizeAs(server, reading, method, path)).status).to.equal(403);
    expect((await management.keys.signing.list())[0]?.kid).to.equal(current?.kid);
  });

  it('takes an empty default directory or audience as none, and clients can log in', async () => {
    const settings = async (method: string, body?: object) =>
      (await (await callApi(server, method, '/tenants/settings', body)).json()) as object;
    const none = { default_directory: '', default_audience: '' };
    expect(await settings('PATCH', { ...none, error_page: { html: '<p>No</p>', url: '' } })).to.include(none);
    const { tenant } = (await server.store.collection('tenant').get('tenant')) ?? {};
    expect(tenant).not.to.have.any.keys('default_directory', 'default_audience');
    const query =
      'client_id=example-spa&response_type=code&redirect_uri=http://localhost:5173&scope=openid&state=s';
    const answer = await createAgent(server).get(
      `/authorize?${query}&code_challenge=${'a'.repeat(43)}&code_challenge_method=S256`,
    );
    expect(answer.headers.location).to.match(/^\/u\//);
    // Terraform disables a page without sending its other members.
    const changed = await settings('PATCH', { error_page: { show_log_link: false } });
    expect(changed).to.have.nested.property('error_page.html', '<p>No</p>');
  });

  it("returns the e-mail provider's credentials without secrets, to callers who set them or ask for them", async () => {
    const ask = async (method: string, body?: object, query = '') =>
      (await (await callApi(server, method, `/emails/provider${query}`, body)).json()) as object;
    const credentials = { smtp_host: 'mail.example.test', smtp_port: 587, smtp_user: 'bob' };
    const body = { name: 'smtp', credentials: { ...credentials, smtp_pass: 'a secret' } };
    expect(await ask('POST', body)).to.deep.include({ credentials });
    const changed = { ...credentials, smtp_port: 465 };
    expect(await ask('PATCH', { credentials: changed })).to.deep.include({ credentials: changed });
    expect(await ask('GET')).not.to.have.property('credentials');
    expect(await ask('GET', undefined, '?fields=name,credentials')).to.deep.equal({
      name: 'smtp',
      credentials: changed,
    });
    // Whoever may change the provider cannot read its password, and must not get it by its delivery elsewhere.
    const moved = { ...changed, smtp_host: 'mail.attacker.test' };
    const refused = await ask('PATCH', { credentials: moved });
    expect(refused).to.include({ statusCode: 400, errorCode: 'invalid_body' });
    const stored = await server.store.collection('tenant').get('tenant');
    expect(JSON.stringify(stored)).to.not.contain('attacker');
    const own = { ...moved, smtp_pass: 'another secret' };
    expect(await ask('PATCH', { credentials: own })).to.deep.include({ credentials: moved });
    expect(await ask('PATCH', { name: 'custom', credentials: {} })).to.deep.include({ credentials: {} });
    const logged = JSON.stringify(await listAll(server.store.collection('logs')));
    expect(logged).not.to.contain('a secret').and.not.contain('another secret');
    await callApi(server, 'DELETE', '/emails/provider');
  });

  it('stores an authorization policy of an API with a warning that it is not enforced', async () => {
    const ask = async (method: string, path: string, body: object) => {
      const answer = await callApi(server, method, path, body);
      return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
    };
    const identifier = 'urn:policy-api';
    const none = { authorization_policy: null, allow_online_access_with_ephemeral_sessions: true };
    const made = await ask('POST', '/resource-servers', { identifier, name: 'Policy', ...none });
    expect(made.status, JSON.stringify(made.body)).to.equal(201);
    expect(made.body).to.include({ allow_online_access_with_ephemeral_sessions: true });
    expect(made.body).not.to.have.property('authorization_policy');
    const policy = { authorization_policy: { policy_id: 'apl_1' } };
    const changed = await ask('PATCH', `/resource-servers/${made.body.id}`, policy);
    expect(changed.body).to.deep.include(policy);
    expect(server.logged()).to.include('authorization_policy of Policy is not enforced');
    expect((await ask('PATCH', `/resource-servers/${made.body.id}`, none)).status).to.equal(200);
  });

  it('accepts settings of the My Account API that are in force, which the deploy tool sends back, and no others', async () => {
    const list = async () => {
      const apis = await (await callApi(server, 'GET', '/resource-servers')).json();
      return apis as { id: string; name: string; token_lifetime: number; is_system?: boolean }[];
    };
    const before = await list();
    const api = before.find(({ name }) => name === 'Auth0 My Account API');
    expect(api).to.include({ is_system: true });
    const patch = (body: object) =>
      callApi(server, 'PATCH', `/resource-servers/${encodeURIComponent(api?.id ?? '')}`, body);
    const exported = {
      token_lifetime: api?.token_lifetime,
      skip_consent_for_verifiable_first_party_clients: true,
    };
    const changes = async () =>
      (await listAll(server.store.collection('logs'))).filter(({ type }) => type === 'sapi').length;
    const recorded = await changes();
    const same = await patch(exported);
    expect([same.status, await same.json()]).to.deep.equal([200, api]);
    expect(await changes()).to.equal(recorded);
    for (const other of [
      { token_lifetime: 86_400 },
      { ...exported, signing_alg: 'HS256' },
      { skip_consent_for_verifiable_first_party_clients: null },
    ])
      expect((await patch(other)).status, JSON.stringify(other)).to.equal(400);
    expect(await list()).to.deep.equal(before);
  });

  describe('SCIM configurations', () => {
    const connection = async () => {
      const made = await management.connections.create({
        name: 'corporate',
        strategy: 'samlp',
        options: {
          signInEndpoint: 'https://idp.example.test/sso',
          signingCert: (await makeCertificate()).certificate,
        },
      } as never);
      return String(made.id);
    };

    it('returns the 404 that tools expect, and can be created, changed and deleted', async () => {
      const id = await connection();
      const { scimConfiguration: scim } = management.connections;
      const none = await callApi(server, 'GET', `/connections/${id}/scim-configuration`);
      expect(none.status).to.equal(404);
      expect(await none.json()).to.deep.equal({ statusCode: 404, error: 'Not Found', message: 'Not Found' });
      const made = await scim.create(id, {});
      expect(made).to.include({ connection_id: id, connection_name: 'corporate', strategy: 'samlp' });
      expect(await failure(scim.create(id, {}))).to.include({ statusCode: 409 });
      const mapping = [{ auth0: 'email', scim: 'userName' }];
      await scim.update(id, { user_id_attribute: 'externalId', mapping });
      expect(await scim.get(id)).to.deep.include({ user_id_attribute: 'externalId', mapping });
      expect((await scim.getDefaultMapping(id)).mapping).to.deep.equal(made.mapping);
      await scim.delete(id);
      // The cleanup of deploy tools deletes twice, which the hosted service accepts.
      await scim.delete(id);
      for (const again of [() => scim.get(id), () => scim.update(id, { user_id_attribute: 'a', mapping })])
        expect(await failure(again())).to.include({ statusCode: 404 });
    });

    it('deletes configurations with their connection, and rejects them for databases', async () => {
      const id = await connection();
      await management.connections.scimConfiguration.create(id, {});
      await management.connections.delete(id);
      expect(await server.store.collection('documents').findBy('kind', 'scim-configuration')).to.deep.equal(
        [],
      );
      const { data } = await management.connections.list({ strategy: ['auth0'] });
      const database = `/connections/${data[0]?.id}/scim-configuration`;
      expect((await callApi(server, 'POST', database, {})).status).to.equal(404);
      expect(
        (await callApi(server, 'GET', '/connections/con_0000000000000000/scim-configuration')).status,
      ).to.equal(404);
      expect((await callApi(server, 'POST', database, { mapping: 'all' })).status).to.equal(400);
    });
  });
});
