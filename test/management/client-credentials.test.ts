// Credentials of clients with the published management client, and the assertions that they sign.
import { createPrivateKey, generateKeyPairSync, randomUUID } from 'node:crypto';
import type { Management, ManagementClient } from 'auth0';
import { expect } from 'chai';
import { SignJWT } from 'jose';
import { clientCertificate } from '../support/client-certificate.ts';
import type { TestServer } from '../support/server.ts';
import { callApi, managementClient, startManaged } from './support.ts';

const pair = () =>
  generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  });
const [one, two] = [pair(), pair()];
const API = 'https://api.example.test/';
const HOUR = 3_600_000;

describe('the credentials of a client', () => {
  let server: TestServer;
  let management: ManagementClient;

  beforeEach(async () => {
    server = await startManaged();
    management = managementClient(server);
  });
  afterEach(() => server.stop());

  const key = (publicKey: string, over: object = {}) =>
    ({ credential_type: 'public_key', pem: publicKey, alg: 'RS256', ...over }) as never;
  /** Creates a client that is granted an API and authenticates with the first key. @returns its id */
  const robot = async (over: object = {}): Promise<string> => {
    const { client_id = '' } = await management.clients.create({
      name: 'Robot',
      app_type: 'non_interactive',
      client_authentication_methods: { private_key_jwt: { credentials: [key(one.publicKey, over)] } },
    });
    await management.clientGrants.create({ client_id, audience: API, scope: ['read:things'] });
    return client_id;
  };
  const ask = (body: object) =>
    fetch(`${server.url}/oauth/token`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ grant_type: 'client_credentials', audience: API, ...body }),
    });
  const tokenBy = async (client: string, privateKey: string, kid?: string) => {
    const assertion = await new SignJWT({ iss: client, sub: client, aud: server.issuer, jti: randomUUID() })
      .setExpirationTime(new Date(Date.now() + 60_000))
      .setProtectedHeader({ alg: 'RS256', ...(kid !== undefined && { kid }) })
      .sign(createPrivateKey(privateKey));
    return ask({
      client_assertion: assertion,
      client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
    });
  };
  const later = (ms: number) => new Date(Date.now() + ms).toISOString();
  const failure = (asked: PromiseLike<unknown>): Promise<unknown> =>
    Promise.resolve(asked).catch((thrown: unknown) => thrown);

  it('are created with the client, which then shows their ids alone', async () => {
    const client = await robot({ name: 'first' });
    const [shown] = await management.clients.credentials.list(client);
    expect(shown).to.include({ name: 'first', alg: 'RS256', credential_type: 'public_key' });
    expect(shown?.id).to.match(/^cred_[A-Za-z0-9]{16}$/);
    expect(shown).not.to.have.property('pem');
    const { client_authentication_methods: methods } = await management.clients.get(client);
    expect(methods).to.deep.equal({ private_key_jwt: { credentials: [{ id: shown?.id }] } });
    expect((await tokenBy(client, one.privateKey)).status).to.equal(200);
    expect((await tokenBy(client, one.privateKey, shown?.kid)).status).to.equal(200);
    expect((await tokenBy(client, two.privateKey)).status).to.equal(401);
  });

  it('authenticate nothing that are for a token vault', async () => {
    const client = await robot();
    const [own] = await management.clients.credentials.list(client);
    const { id } = await management.clients.credentials.create(client, key(two.publicKey));
    const vault = (one: unknown) => ({ token_vault_privileged_access: { credentials: [{ id: one }] } });
    const patched = await callApi(server, 'PATCH', `/clients/${client}`, vault(id));
    expect(await patched.json()).to.deep.include({
      client_authentication_methods: { private_key_jwt: { credentials: [{ id: own?.id }] } },
    });
    expect((await tokenBy(client, two.privateKey)).status).to.equal(401);
    expect((await tokenBy(client, one.privateKey)).status).to.equal(200);
    expect((await callApi(server, 'PATCH', `/clients/${client}`, vault(own?.id))).status).to.equal(400);
  });

  it('authenticate the client with the next request once added, and no more once deleted', async () => {
    const client = await robot();
    const { id = '' } = await management.clients.credentials.create(client, key(two.publicKey));
    expect((await tokenBy(client, two.privateKey)).status).to.equal(200);
    expect((await tokenBy(client, one.privateKey)).status).to.equal(200);
    await management.clients.credentials.delete(client, id);
    await management.clients.credentials.delete(client, id);
    expect((await tokenBy(client, two.privateKey)).status).to.equal(401);
    expect((await tokenBy(client, one.privateKey)).status).to.equal(200);
    expect(await failure(management.clients.credentials.get(client, id))).to.include({ statusCode: 404 });
  });

  it('authenticate the client until they expire, even if they expire while the server runs', async () => {
    const client = await robot();
    const { id = '' } = await management.clients.credentials.create(
      client,
      key(two.publicKey, { expires_at: later(HOUR) }),
    );
    expect((await tokenBy(client, two.privateKey)).status).to.equal(200);
    server.tick(HOUR + 1000);
    expect((await tokenBy(client, two.privateKey)).status).to.equal(401);
    const expires_at = later(3 * HOUR);
    expect(await management.clients.credentials.update(client, id, { expires_at })).to.include({
      expires_at,
    });
    expect((await tokenBy(client, two.privateKey)).status).to.equal(200);
    await management.clients.credentials.update(client, id, { expires_at: later(-HOUR) });
    expect((await tokenBy(client, two.privateKey)).status).to.equal(401);
    expect((await tokenBy(client, one.privateKey)).status).to.equal(200);
    await management.clients.credentials.update(client, id, { expires_at: null });
    expect((await tokenBy(client, two.privateKey)).status).to.equal(200);
  });

  it('admit the client by no method once all of them have expired', async () => {
    const client = await robot({ expires_at: later(HOUR) });
    server.tick(HOUR + 1000);
    expect((await tokenBy(client, one.privateKey)).status).to.equal(401);
    expect((await ask({ client_id: client })).status).to.equal(401);
  });

  it('cannot all be deleted, which would leave the client without authentication', async () => {
    const client = await robot();
    const [{ id = '' } = {}] = await management.clients.credentials.list(client);
    expect(await failure(management.clients.credentials.delete(client, id))).to.include({ statusCode: 400 });
    expect((await ask({ client_id: client })).status).to.equal(401);
    expect((await tokenBy(client, one.privateKey)).status).to.equal(200);
  });

  it('cannot be taken from a native client so that it authenticates by nothing', async () => {
    const { client_id = '' } = await management.clients.create({
      name: 'App',
      app_type: 'native',
      client_authentication_methods: { private_key_jwt: { credentials: [key(one.publicKey)] } },
    });
    const [{ id = '' } = {}] = await management.clients.credentials.list(client_id);
    const path = `/clients/${client_id}`;
    const refused = async (body: object) =>
      expect((await callApi(server, 'PATCH', path, body)).status, JSON.stringify(body)).to.equal(400);
    for (const methods of [null, {}, { private_key_jwt: {} }, { private_key_jwt: { credentials: [] } }])
      await refused({ client_authentication_methods: methods });
    await refused({ client_authentication_methods: null, token_endpoint_auth_method: null });
    // One credential named twice is still the only one.
    await management.clients.update(client_id, {
      client_authentication_methods: { private_key_jwt: { credentials: [{ id }, { id }] as never } },
    });
    expect(await failure(management.clients.credentials.delete(client_id, id))).to.include({
      statusCode: 400,
    });
    expect((await ask({ client_id, grant_type: 'refresh_token', refresh_token: 'x' })).status).to.equal(401);
  });

  it('cannot be left out of a new native client with a method that needs them', async () => {
    const body = {
      name: 'App',
      app_type: 'native',
      client_authentication_methods: { private_key_jwt: { credentials: [] } },
    };
    expect((await callApi(server, 'POST', '/clients', body)).status).to.equal(400);
    const asked = await callApi(server, 'POST', '/clients', { ...body, token_endpoint_auth_method: 'none' });
    expect(asked.status).to.equal(201);
  });

  it('can be replaced by another method, or by none if the body says so', async () => {
    const create = () =>
      management.clients.create({
        name: 'App',
        app_type: 'native',
        client_authentication_methods: { private_key_jwt: { credentials: [key(one.publicKey)] } },
      });
    for (const method of ['client_secret_post', 'none'] as const) {
      const { client_id = '' } = await create();
      const changed = await management.clients.update(client_id, {
        client_authentication_methods: null,
        token_endpoint_auth_method: method,
      } as Management.UpdateClientRequestContent);
      expect(changed.token_endpoint_auth_method).to.equal(method);
    }
  });

  it('are not needed to keep a client confidential whose secret is its method', async () => {
    const { client_id = '' } = await management.clients.create({
      name: 'App',
      app_type: 'regular_web',
      grant_types: ['authorization_code'],
    });
    for (const body of [
      { token_endpoint_auth_method: null, app_type: 'spa' },
      { token_endpoint_auth_method: null, app_type: 'native' },
    ])
      expect((await callApi(server, 'PATCH', `/clients/${client_id}`, body)).status).to.equal(400);
    const changed = await management.clients.update(client_id, {
      token_endpoint_auth_method: 'none',
      app_type: 'spa',
    });
    expect(changed.token_endpoint_auth_method).to.equal('none');
  });

  it('of a client with a secret are unused until its method is changed, and the reverse', async () => {
    const made = await management.clients.create({ name: 'Secret', app_type: 'non_interactive' });
    const { client_id = '', client_secret } = made;
    await management.clientGrants.create({ client_id, audience: API, scope: [] });
    const { id = '' } = await management.clients.credentials.create(client_id, key(two.publicKey));
    expect((await ask({ client_id, client_secret })).status).to.equal(200);
    expect((await tokenBy(client_id, two.privateKey)).status).to.equal(401);
    const use = (credentials: object[]) =>
      management.clients.update(client_id, {
        client_authentication_methods: { private_key_jwt: { credentials: credentials as never } },
      });
    expect(await failure(use([{ id: 'cred_0000000000000000' }]))).to.include({ statusCode: 400 });
    await use([{ id }]);
    expect((await tokenBy(client_id, two.privateKey)).status).to.equal(200);
    expect((await ask({ client_id, client_secret })).status).to.equal(401);
    await management.clients.update(client_id, {
      client_authentication_methods: null,
      token_endpoint_auth_method: 'client_secret_post',
    } as Management.UpdateClientRequestContent);
    expect((await tokenBy(client_id, two.privateKey)).status).to.equal(401);
    expect((await ask({ client_id, client_secret })).status).to.equal(200);
    expect(await management.clients.credentials.list(client_id)).to.have.length(1);
  });

  it("are rejected if they are malformed, private, or another client's", async () => {
    const client = await robot();
    const path = `/clients/${client}/credentials`;
    for (const body of [
      { credential_type: 'public_key' },
      { credential_type: 'public_key', pem: 'nothing' },
      { credential_type: 'public_key', pem: two.privateKey },
      { credential_type: 'public_key', pem: two.publicKey, expires_at: 'tomorrow' },
      { credential_type: 'public_key', pem: two.publicKey, parse_expiry_from_cert: true },
      { credential_type: 'public_key', pem: two.publicKey, id: 'cred_mine' },
      { credential_type: 'shared', pem: two.publicKey },
    ]) {
      expect((await callApi(server, 'POST', path, body)).status, JSON.stringify(body)).to.equal(400);
    }
    const other = await robot();
    const [{ id = '' } = {}] = await management.clients.credentials.list(other);
    for (const method of ['GET', 'PATCH'])
      expect((await callApi(server, method, `${path}/${id}`, undefined)).status).to.equal(404);
    expect((await callApi(server, 'DELETE', `${path}/${id}`)).status).to.equal(204);
    expect(await management.clients.credentials.list(other)).to.have.length(1);
    for (const method of ['GET', 'POST'])
      expect(
        (
          await callApi(
            server,
            method,
            '/clients/nobody/credentials',
            method === 'POST' ? { credential_type: 'public_key', pem: two.publicKey } : undefined,
          )
        ).status,
      ).to.equal(404);
  });

  it('can be certificates, of one method at a time', async () => {
    const own = await clientCertificate({ subject: 'C=DE,CN=robot' });
    const made = await management.clients.create({
      name: 'Certificate',
      app_type: 'non_interactive',
      client_authentication_methods: {
        self_signed_tls_client_auth: {
          credentials: [{ credential_type: 'x509_cert', pem: own.cert, parse_expiry_from_cert: true }],
        },
      } as never,
    });
    const { client_id = '' } = made;
    const [shown] = await management.clients.credentials.list(client_id);
    expect(shown).to.include({ credential_type: 'x509_cert', thumbprint_sha256: own.thumbprint });
    expect(Date.parse(String(shown?.expires_at))).to.equal(Date.parse(own.certificate.validTo));
    expect(shown).not.to.have.any.keys('pem', 'kid', 'alg');
    // A certificate for another method is unused until the client uses that method.
    const subject = { credential_type: 'cert_subject_dn', pem: own.cert } as never;
    const { id = '' } = await management.clients.credentials.create(client_id, subject);
    expect(await management.clients.credentials.get(client_id, id)).to.include({
      subject_dn: 'CN=robot,C=DE',
    });
    const use = (methods: object) =>
      failure(management.clients.update(client_id, { client_authentication_methods: methods as never }));
    const both = {
      tls_client_auth: { credentials: [{ id }] },
      self_signed_tls_client_auth: { credentials: [] },
    };
    expect(await use(both)).to.include({ statusCode: 400 });
    expect(await use({ self_signed_tls_client_auth: { credentials: [{ id }] } })).to.include({
      statusCode: 400,
    });
    await use({ tls_client_auth: { credentials: [{ id }] } });
    const { client_authentication_methods: methods } = await management.clients.get(client_id);
    expect(methods).to.deep.equal({ tls_client_auth: { credentials: [{ id }] } });
    for (const body of [
      { credential_type: 'x509_cert', pem: one.publicKey },
      { credential_type: 'x509_cert' },
      { credential_type: 'cert_subject_dn', subject_dn: 'nobody' },
      { credential_type: 'cert_subject_dn' },
    ])
      expect((await callApi(server, 'POST', `/clients/${client_id}/credentials`, body)).status).to.equal(400);
  });

  it('are limited to those that a rotation needs', async () => {
    const client = await robot();
    const add = () => failure(management.clients.credentials.create(client, key(two.publicKey)));
    expect(await add()).not.to.be.an('error');
    // Two may be valid: the current one and the next.
    expect(await add()).to.include({ statusCode: 400 });
    const [{ id = '' } = {}] = await management.clients.credentials.list(client);
    await management.clients.credentials.update(client, id, { expires_at: later(-HOUR) });
    expect(await add()).not.to.be.an('error');
  });

  describe('for request objects', () => {
    const CALLBACK = 'https://app.example.test/callback';
    const signing = async (): Promise<string> => {
      const { client_id = '' } = await management.clients.create({
        name: 'Signs its requests',
        app_type: 'regular_web',
        callbacks: [CALLBACK],
        signed_request_object: { required: true, credentials: [key(one.publicKey)] },
      });
      return client_id;
    };
    const errorFor = async (client_id: string, privateKey: string): Promise<string | null> => {
      const parameters = { client_id, redirect_uri: CALLBACK, response_type: 'code', prompt: 'none' };
      const request = await new SignJWT({ ...parameters, iss: client_id, aud: server.issuer })
        .setProtectedHeader({ alg: 'RS256' })
        .sign(createPrivateKey(privateKey));
      const query = new URLSearchParams({ client_id, request });
      const answer = await fetch(`${server.url}/authorize?${query}`, { redirect: 'manual' });
      return new URL(answer.headers.get('location') ?? '').searchParams.get('error');
    };

    it('are created with the client, and listed among its credentials', async () => {
      const client = await signing();
      const [shown] = await management.clients.credentials.list(client);
      const { signed_request_object: requests } = await management.clients.get(client);
      expect(requests).to.deep.equal({ required: true, credentials: [{ id: shown?.id }] });
      expect(await errorFor(client, one.privateKey)).to.equal('login_required');
      expect(await errorFor(client, two.privateKey)).to.equal('invalid_request_object');
    });

    it('can be replaced by other credentials of the client, named by their ids', async () => {
      const client = await signing();
      const { id = '' } = await management.clients.credentials.create(client, key(two.publicKey));
      expect(await errorFor(client, two.privateKey)).to.equal('invalid_request_object');
      await management.clients.update(client, {
        signed_request_object: { required: true, credentials: [{ id }] },
      });
      expect(await errorFor(client, two.privateKey)).to.equal('login_required');
      expect(await errorFor(client, one.privateKey)).to.equal('invalid_request_object');
      const unknown = { required: true, credentials: [{ id: 'cred_unknown' }] };
      const refused = await failure(management.clients.update(client, { signed_request_object: unknown }));
      expect(refused).to.include({ statusCode: 400 });
      expect(await management.clients.credentials.list(client)).to.have.length(2);
    });

    it('expire and are deleted like others, except the last one of a client that must sign', async () => {
      const client = await signing();
      const [first] = await management.clients.credentials.list(client);
      const gone = await failure(management.clients.credentials.delete(client, first?.id ?? ''));
      expect(gone).to.include({ statusCode: 400 });
      await management.clients.credentials.update(client, first?.id ?? '', { expires_at: later(HOUR) });
      expect(await errorFor(client, one.privateKey)).to.equal('login_required');
      server.tick(2 * HOUR);
      expect(await errorFor(client, one.privateKey)).to.equal('invalid_request_object');
      const { id = '' } = await management.clients.credentials.create(client, key(two.publicKey));
      await management.clients.update(client, {
        signed_request_object: { required: true, credentials: [{ id }] },
      });
      await management.clients.credentials.delete(client, first?.id ?? '');
      const left = await management.clients.credentials.list(client);
      expect(left.map((one) => one.id)).to.deep.equal([id]);
    });
  });
});
