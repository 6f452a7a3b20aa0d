// Keys of connections, and the access tokens for SCIM.
import { X509Certificate } from 'node:crypto';
import type { ManagementClient } from 'auth0';
import { expect } from 'chai';
import { hashSecret } from '../../src/runtime/secrets.ts';
import { makeCertificate } from '../saml/support.ts';
import type { TestServer } from '../support/server.ts';
import { callApi, managementClient, startManaged } from './support.ts';

describe('keys and SCIM tokens of a connection', () => {
  let server: TestServer;
  let management: ManagementClient;
  let id: string;

  before(async () => {
    server = await startManaged();
    management = managementClient(server);
  });
  after(() => server.stop());
  let count = 0;
  beforeEach(async () => {
    const made = await management.connections.create({
      name: `corporate-${count++}`,
      strategy: 'samlp',
      options: {
        signInEndpoint: 'https://idp.example.test/sso',
        signingCert: (await makeCertificate()).certificate,
      },
    } as never);
    id = String(made.id);
  });

  const failure = (asked: PromiseLike<unknown>): Promise<unknown> =>
    Promise.resolve(asked).catch((thrown: unknown) => thrown);
  const kids = async () =>
    (await management.connections.keys.get(id)).map(({ kid, current, next, previous }) => [
      kid,
      current ? 'current' : next ? 'next' : previous ? 'previous' : '',
    ]);

  it('creates keys once and rotates them: the next key signs, and the previous one is kept', async () => {
    const { keys } = management.connections;
    expect(await keys.get(id)).to.deep.equal([]);
    expect(await failure(keys.rotate(id, {}))).to.include({ statusCode: 404 });
    const [first, second] = await keys.create(id, { signing_alg: 'RS512' });
    expect(first).to.include({ current: true, algorithm: 'RS512', key_use: 'signing' });
    expect(
      new X509Certificate(first?.cert ?? '').checkIssued(new X509Certificate(first?.cert ?? '')),
    ).to.equal(true);
    expect(await failure(keys.create(id, {}))).to.include({ statusCode: 409 });
    const third = await keys.rotate(id, {});
    expect(third).to.include({ next: true, algorithm: 'RS512' });
    expect(await kids()).to.deep.equal([
      [second?.kid, 'current'],
      [third.kid, 'next'],
      [first?.kid, 'previous'],
    ]);
    const fourth = await keys.rotate(id, { signing_alg: 'PS256' });
    expect(await kids()).to.deep.equal([
      [third.kid, 'current'],
      [fourth.kid, 'next'],
      [second?.kid, 'previous'],
    ]);
  });

  it('creates keys for only one of two concurrent requests', async () => {
    const make = () => callApi(server, 'POST', `/connections/${id}/keys`, {});
    const statuses = (await Promise.all([make(), make()])).map(({ status }) => status);
    expect(statuses.sort()).to.deep.equal([201, 409]);
    expect(await kids()).to.have.length(2);
  });

  it('shows nothing private, seals keys at rest, and deletes them with their connection', async () => {
    await management.connections.keys.create(id, {});
    expect(JSON.stringify(await management.connections.keys.get(id))).not.to.match(/PRIVATE|"d":|"p":/);
    expect(await server.store.collection('connectionKeys').findBy('connection', id)).to.have.length(2);
    await management.connections.delete(id);
    expect(await server.store.collection('connectionKeys').findBy('connection', id)).to.deep.equal([]);
  });

  it('creates keys as soon as a connection authenticates with them, and not again', async () => {
    const options = {
      client_id: 'gatehouse',
      issuer: 'https://idp.example.test/',
      authorization_endpoint: 'https://idp.example.test/authorize',
      token_endpoint: 'https://idp.example.test/token',
      jwks_uri: 'https://idp.example.test/jwks',
    };
    const asserting = {
      ...options,
      token_endpoint_auth_method: 'private_key_jwt',
      token_endpoint_auth_signing_alg: 'PS256',
    };
    const made = (await (
      await callApi(server, 'POST', '/connections', {
        name: 'asserting',
        strategy: 'oidc',
        options: asserting,
      })
    ).json()) as { id: string };
    id = made.id;
    const [current, next] = await management.connections.keys.get(id);
    expect([current, next].map((key) => key?.algorithm)).to.deep.equal(['PS256', 'PS256']);
    await management.connections.update(id, { options: { ...asserting, client_id: 'other' } } as never);
    expect((await kids()).map(([kid]) => kid)).to.deep.equal([current?.kid, next?.kid]);

    const later = (await (
      await callApi(server, 'POST', '/connections', { name: 'asserting-later', strategy: 'oidc', options })
    ).json()) as { id: string };
    id = later.id;
    expect(await kids()).to.deep.equal([]);
    await management.connections.update(id, { options: asserting } as never);
    expect(await kids()).to.have.length(2);
  });

  it('creates no keys for a connection that signs nothing', async () => {
    const { data } = await management.connections.list({ strategy: ['auth0'] });
    expect((await callApi(server, 'POST', `/connections/${data[0]?.id}/keys`, {})).status).to.equal(400);
  });

  describe('SCIM tokens', () => {
    it('shows a token once and stores its hash', async () => {
      const { tokens } = management.connections.scimConfiguration;
      expect(await failure(tokens.create(id, {}))).to.include({ statusCode: 404 });
      await management.connections.scimConfiguration.create(id, {});
      const made = await tokens.create(id, { scopes: ['get:users'], token_lifetime: 900 });
      expect(made.token).to.match(/^[\w-]{43}$/);
      const { token = '', ...shown } = made;
      expect(await tokens.get(id)).to.deep.equal([shown]);
      expect(Date.parse(made.valid_until ?? '') - Date.parse(made.created_at ?? '')).to.equal(900_000);
      const documents = await server.store.collection('documents').findBy('kind', 'scim-token');
      expect(documents.map(({ name }) => name)).to.deep.equal([hashSecret(token)]);
      const logs = await (await callApi(server, 'GET', '/logs?per_page=100')).text();
      expect(JSON.stringify(documents) + logs).not.to.contain(token);
    });

    it('allows two tokens, deletes them, and deletes them with their configuration', async () => {
      const scim = management.connections.scimConfiguration;
      await scim.create(id, {});
      const [first, second] = [await scim.tokens.create(id, {}), await scim.tokens.create(id, {})];
      expect(await failure(scim.tokens.create(id, {}))).to.include({ statusCode: 409 });
      await scim.tokens.delete(id, first.token_id ?? '');
      expect((await scim.tokens.get(id)).map(({ token_id }) => token_id)).to.deep.equal([second.token_id]);
      const list = async () => {
        const answer = await callApi(server, 'GET', '/connections-scim-configurations?take=50');
        const { scim_configurations } = (await answer.json()) as {
          scim_configurations: { connection_id: string }[];
        };
        return scim_configurations.filter(({ connection_id }) => connection_id === id);
      };
      expect(await list()).to.deep.equal([await scim.get(id)]);
      await scim.delete(id);
      expect(await scim.tokens.get(id)).to.deep.equal([]);
      expect(await list()).to.deep.equal([]);
    });
  });
});
