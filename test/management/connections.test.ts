// Connections with the published management client.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ManagementClient } from 'auth0';
import { expect } from 'chai';
import { parse } from 'yaml';
import { createAgent } from '../support/agent.ts';
import { databaseUser } from '../support/database-user.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { EXAMPLE } from './example.ts';
import { callApi, managementClient, startManaged } from './support.ts';

describe('/connections', () => {
  let server: TestServer;
  let management: ManagementClient;

  before(async () => {
    server = await startManaged();
    management = managementClient(server);
  });
  after(() => server.stop());

  const passwordLogin = (realm: string, username: string, password: string) =>
    createAgent(server).request('/oauth/token', {
      method: 'POST',
      json: {
        grant_type: 'http://auth0.com/oauth/grant-type/password-realm',
        client_id: 'example-web',
        client_secret: 'example-web-secret',
        realm,
        username,
        password,
      },
    });

  it('returns the members that `fields` names, and always id and is_domain_connection', async () => {
    const read = async (query: string) => (await callApi(server, 'GET', `/connections${query}`)).json();
    for (const one of (await read('?fields=id')) as object[])
      expect(one).to.have.all.keys('id', 'is_domain_connection');
    const [{ id }] = (await read('')) as [{ id: string }];
    // The Terraform provider reads this for the enabled clients of a connection.
    const one = await read(`/${id}?fields=strategy%2Cname&include_fields=true`);
    expect(one).to.have.all.keys('id', 'is_domain_connection', 'name', 'strategy').and.include({ id });
    const [all] = (await read('?fields=id,options&include_fields=false')) as { name: string }[];
    expect(all).to.include.keys('name', 'strategy').and.not.have.any.keys('id', 'options');
  });

  it('finds connections by their domain', async () => {
    const options = { client_id: 'x', client_secret: 'y', domain_aliases: ['found.example.test'] };
    await management.connections.create({ name: 'found', strategy: 'google-oauth2', options });
    const names = async (domain: string) =>
      (
        (await (await callApi(server, 'GET', `/connections?domain_alias=${domain}`)).json()) as {
          name: string;
        }[]
      ).map(({ name }) => name);
    expect(await names('found.example.test')).to.deep.equal(['found']);
    expect(await names('other.example.test')).to.deep.equal([]);
  });

  it('rejects a database that would request access to other applications', async () => {
    const requesting = { cross_app_access_requesting_app: { active: true } };
    const refused = await callApi(server, 'POST', '/connections', {
      name: 'asking',
      strategy: 'auth0',
      ...requesting,
    });
    expect(refused.status).to.equal(400);
    expect(await refused.json()).to.include({ errorCode: 'operation_not_supported' });
  });

  it('rejects a database script with a syntax error, and names the script', async () => {
    const options = { enabledDatabaseCustomization: true, customScripts: { get_user: 'function ( {' } };
    const refused = await management.connections.create({ name: 'unread', strategy: 'auth0', options }).then(
      () => undefined,
      (thrown: unknown) => String(thrown),
    );
    expect(refused).to.include('get_user').and.include('no JavaScript');
  });

  it('warns of a custom database without the scripts that it needs; rejects one whose users move here, too', async () => {
    const login = 'module.exports = async () => ({})';
    const create = (name: string, options: object) =>
      management.connections.create({ name, strategy: 'auth0', options }).then(
        ({ id }) => id ?? '',
        (thrown: unknown) => String(thrown),
      );
    const custom = { enabledDatabaseCustomization: true };
    const blank = { ...custom, customScripts: { login: ' ' } };
    expect(await create('blank-login', blank)).to.match(/^con_/);
    expect(server.logged()).to.include('customScripts.login: without it nobody can log in in blank-login');
    const movingBlank = { ...blank, import_mode: true };
    expect(await create('moving-login', movingBlank)).to.include('customScripts.login');
    const moving = { ...custom, import_mode: true, customScripts: { login } };
    expect(await create('no-get-user', moving)).to.include('customScripts.get_user');
    const id = await create('with-login', { ...custom, customScripts: { login } });
    expect(id).to.match(/^con_/);
    await management.connections.update(id, { options: { ...custom, customScripts: {} } });
    expect(server.logged()).to.include('customScripts.login: without it nobody can log in in with-login');
    await management.connections.update(id, { display_name: 'Named' });
  });

  it('rejects database options that contradict one another', async () => {
    const email = { identifier: { active: true }, profile_required: true, signup: { status: 'required' } };
    const refusal = async (options: object) => {
      const body = { name: 'contradictory', strategy: 'auth0', options };
      const { message } = (await (await callApi(server, 'POST', '/connections', body)).json()) as {
        message?: string;
      };
      return message;
    };
    const attributes = { email };
    expect(await refusal({ attributes, requires_username: true })).to.equal(
      'Cannot set both options.attributes and options.requires_username',
    );
    expect(await refusal({ attributes, validation: { username: { min: 1, max: 5 } } })).to.equal(
      'Cannot set both options.attributes and options.validation',
    );
    expect(await refusal({ attributes: { email: { ...email, identifier: { active: false } } } })).to.equal(
      'attributes must contain one active identifier',
    );
    expect(await refusal({ attributes: { email: { ...email, signup: { status: 'inactive' } } } })).to.equal(
      'attribute email must also be required on signup',
    );
  });

  it('allows non-unique e-mail addresses only when a database is created', async () => {
    const username = { identifier: { active: true } };
    const attributes = (unique: boolean) => ({
      username,
      email: { identifier: { active: false }, signup: { status: 'optional' }, unique },
    });
    const make = async (name: string, options: object) =>
      (await management.connections.create({ name, strategy: 'auth0', options })).id ?? '';
    const change = async (id: string, options: object) => {
      const answer = await callApi(server, 'PATCH', `/connections/${id}`, { options });
      return [answer.status, ((await answer.json()) as { message?: string }).message];
    };
    const refused = [400, 'cannot add non-unique email attribute'];
    const plain = await make('each-their-own', {});
    expect(await change(plain, { attributes: attributes(false) })).to.deep.equal(refused);
    expect(await change(plain, { attributes: attributes(true) })).to.deep.equal([200, undefined]);
    expect(await change(plain, { attributes: attributes(false) })).to.deep.equal(refused);
    const shared = await make('shared-addresses', { attributes: attributes(false) });
    expect(await change(shared, { attributes: attributes(false) })).to.deep.equal([200, undefined]);
  });

  it('makes e-mail addresses unique later, except for users who share one', async () => {
    const optional = { status: 'optional' };
    const username = { identifier: { active: true }, signup: optional };
    const before = { username, email: { identifier: { active: false }, signup: optional, unique: false } };
    const made = await management.connections.create({
      name: 'own-later',
      strategy: 'auth0',
      enabled_clients: ['example-web'],
      options: { attributes: before },
    } as never);
    const connection = 'own-later';
    const user = (name: string, email: string) =>
      callApi(server, 'POST', '/users', { connection, username: name, email, password: 'A-good-Passw0rd' });
    for (const [name, email] of [
      ['first', 'both@later.test'],
      ['second', 'both@later.test'],
      ['third', 'alone@later.test'],
    ] as const)
      expect((await user(name, email)).status, name).to.equal(201);
    const after = { username, email: { identifier: { active: true }, signup: optional } };
    const path = `/connections/${made.id}`;
    const options = {
      attributes: after,
      authentication_methods: { email_otp: { enabled: true } },
    };
    expect((await callApi(server, 'PATCH', path, { options })).status).to.equal(200);
    const named = async (address: string) =>
      (await server.users.findInConnection({ name: connection, options } as never, address))?.username;
    expect(await named('alone@later.test')).to.equal('third');
    expect(await named('both@later.test')).to.equal(undefined);
    // No code is sent to the first of several users.
    const byCode = { connection, kind: 'email', address: 'both@later.test' } as const;
    expect(await server.users.findByAddress(byCode)).to.equal(undefined);
    expect((await server.users.findByAddress({ ...byCode, address: 'alone@later.test' }))?.username).to.equal(
      'third',
    );
    // No new user may share an address, which would leave the existing user without an identifier.
    expect((await user('fourth', 'alone@later.test')).status).to.equal(409);
    expect((await user('fifth', 'new@later.test')).status).to.equal(201);
  });

  it('never returns the configuration of a database, and keeps it if new options leave it out', async () => {
    const customScripts = { login: 'module.exports = async () => ({})' };
    const configuration = { KEY: 'a-secret-of-the-scripts' };
    const made = await management.connections.create({
      name: 'kept',
      strategy: 'auth0',
      options: { customScripts, configuration },
    });
    const id = made.id ?? '';
    const changed = await management.connections.update(id, { options: { customScripts } });
    const read = await management.connections.get(id);
    expect(read.options?.customScripts).to.deep.equal(customScripts);
    expect(JSON.stringify([made, changed, read])).not.to.include(configuration.KEY);
    const stored = await server.store.collection('connections').get(id);
    expect(stored?.options.configuration).to.deep.equal(configuration);
  });

  it('allows logins with the next request after a connection is enabled for a client', async () => {
    await management.clients.update('example-web', {
      grant_types: ['http://auth0.com/oauth/grant-type/password-realm', 'authorization_code'],
    });
    const made = await management.connections.create({ name: 'staff', strategy: 'auth0' });
    expect(made.id).to.match(/^con_[A-Za-z0-9]{16}$/);
    await management.users.create({
      connection: 'staff',
      email: 'grace@example.test',
      password: 'A-good-Passw0rd',
    });
    const before = await passwordLogin('staff', 'grace@example.test', 'A-good-Passw0rd');
    expect(before.status).not.to.equal(200);
    await management.connections.clients.update(made.id ?? '', [{ client_id: 'example-web', status: true }]);
    const after = await passwordLogin('staff', 'grace@example.test', 'A-good-Passw0rd');
    expect(after.status).to.equal(200);
  });

  const addresses = {
    authorizationURL: 'https://idp.example.test/authorize',
    tokenURL: 'https://idp.example.test/token',
  };

  it('replaces options as a whole, but keeps a secret that the new ones leave out', async () => {
    const { id = '' } = await management.connections.create({
      name: 'upstream',
      strategy: 'oauth2',
      options: { ...addresses, client_id: 'ours', client_secret: 'their-secret', scope: 'a' },
    });
    await management.connections.update(id, { options: { ...addresses, client_id: 'other' } });
    const { options } = await management.connections.get(id);
    expect(options).to.deep.equal({ ...addresses, client_id: 'other', client_secret: 'their-secret' });
  });

  it('stores connections to well-known providers without a client id, and returns options as they were sent', async () => {
    const options = { email: true, scope: ['user:email'], profile: true };
    const { id = '' } = await management.connections.create({ name: 'github', strategy: 'github', options });
    expect((await management.connections.get(id)).options).to.deep.equal(options);
    const client = { client_id: 'ours', client_secret: 'their-secret' };
    await management.connections.update(id, { options: { ...options, ...client } });
    expect((await management.connections.get(id)).options).to.deep.equal({ ...options, ...client });
    const plain = { ...client, userInfoURL: 'http://git.example.test/user' };
    const refusal = await management.connections
      .update(id, { options: plain })
      .catch((thrown: unknown) => thrown);
    expect(refusal).to.have.property('statusCode', 400);
    expect((refusal as Error).message).to.contain('userInfoURL');
  });

  it('removes users with their connection, except those with an identity in another one', async () => {
    const { id = '' } = await management.connections.create({ name: 'leaving', strategy: 'auth0' });
    const password = 'A-good-Passw0rd';
    const gone = await management.users.create({
      connection: 'leaving',
      email: 'gone@example.test',
      password,
    });
    const stays = await management.users.create({
      connection: 'leaving',
      email: 'stays@example.test',
      password,
    });
    await server.store.collection('identities').insert({
      id: 'email|0123',
      user_id: stays.user_id ?? '',
      connection: 'email',
      provider: 'email',
      upstream_id: '0123',
      isSocial: false,
      unique: [],
    });
    await management.connections.delete(id);
    // The name can be used again once the users are removed.
    const again = async () => {
      for (;;) {
        const made = await management.connections
          .create({ name: 'leaving', strategy: 'auth0' })
          .catch((thrown: unknown) => thrown as { statusCode: number });
        if (!('statusCode' in made)) return made;
        expect(made.statusCode).to.equal(409);
      }
    };
    await again();
    expect(await server.store.collection('users').get(gone.user_id ?? '')).to.equal(undefined);
    expect(await server.store.collection('users').get(stays.user_id ?? '')).not.to.equal(undefined);
  });
});

describe('a connection whose removal was interrupted', () => {
  it('loses its users at the next start', async () => {
    const dataDir = await mkdtemp(join(tmpdir(), 'gatehouse-removal-'));
    const tenant = parse(EXAMPLE) as object;
    try {
      const first = await startServer({ tenant, dataDir });
      const made = await first.users.create(
        databaseUser({
          connection: 'staff',
          email: 'left@example.test',
          password: 'A-good-Passw0rd',
        }),
      );
      const id = 'user' in made ? made.user.id : '';
      await first.store.collection('documents').insert({
        id: 'connection-removal/staff',
        kind: 'connection-removal',
        body: { name: 'staff' },
        created_at: '2026-01-01T00:00:00.000Z',
        updated_at: '2026-01-01T00:00:00.000Z',
      });
      await first.stop();
      const second = await startServer({ tenant, dataDir });
      await second.stop();
      const third = await startServer({ tenant, dataDir });
      expect(await third.store.collection('users').get(id)).to.equal(undefined);
      expect(await third.store.collection('documents').get('connection-removal/staff')).to.equal(undefined);
      await third.stop();
    } finally {
      await rm(dataDir, { recursive: true });
    }
  });
});
