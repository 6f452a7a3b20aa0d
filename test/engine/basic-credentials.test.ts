// HTTP Basic with credentials as they are, and form-encoded first (RFC 6749 §2.3.1), at every endpoint that
// authenticates applications.
import { expect } from 'chai';
import { CIBA_GRANT, cibaTenant } from '../grants/tenant.ts';
import { createAgent } from '../support/agent.ts';
import { API, WEB_CALLBACK } from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';

const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code';

const application = (client_id: string, client_secret: string) => ({
  client_id,
  client_secret,
  name: client_id,
  app_type: 'regular_web',
  callbacks: [WEB_CALLBACK],
  grant_types: ['authorization_code', 'client_credentials', DEVICE_GRANT, CIBA_GRANT],
});

const applications = [
  application('percent', '100%-of-the-secret'),
  application('escape', 'a%20b-of-the-secret'),
  application('plus', 'one+two/three=='),
  application('colon', 'with:colon%3A'),
  application('named%20so', 'first%secret'),
  // What the id above means in the encoded form.
  application('named so', 'second%secret'),
  application('spaced', 'a b-of-the-secret'),
];

const tenant = {
  ...cibaTenant,
  clients: [
    ...cibaTenant.clients,
    ...applications,
    {
      client_id: 'api%25',
      client_secret: 'api+secret%',
      name: 'The API',
      app_type: 'resource_server',
      resource_server_identifier: API,
    },
  ],
  clientGrants: applications.map(({ client_id }) => ({ client_id, audience: API, scope: ['read:things'] })),
};

const basic = (id: string, secret: string) => `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}`;
const encoded = (id: string, secret: string) => basic(encodeURIComponent(id), encodeURIComponent(secret));

describe('HTTP Basic', () => {
  let server: TestServer;
  before(async () => {
    server = await startServer({ tenant });
  });
  after(() => server.stop());

  const post = (path: string, form: Record<string, string>, authorization: string) =>
    createAgent(server).request(path, { form, headers: { authorization } });
  const tokenFor = (authorization: string, form: Record<string, string> = {}) =>
    post('/oauth/token', { grant_type: 'client_credentials', audience: API, ...form }, authorization);

  for (const { client_id: id, client_secret: secret } of applications) {
    it(`accepts the secret ${secret} of ${id} as it is and form-encoded`, async () => {
      expect((await tokenFor(basic(id, secret))).status, 'as it is').to.equal(200);
      expect((await tokenFor(encoded(id, secret))).status, 'encoded').to.equal(200);
      // With the id beside it, which has to be the same.
      expect((await tokenFor(basic(id, secret), { client_id: id })).status, 'with client_id').to.equal(200);
    });
  }

  for (const [id, wrong] of [
    ['escape', 'a b-of-the-secret'],
    ['escape', 'a+b-of-the-secret'],
    ['spaced', 'a%2520b-of-the-secret'],
    ['spaced', 'a%2Bb-of-the-secret'],
    ['plus', 'one two/three=='],
    ['plus', 'one%20two/three=='],
    ['percent', '100%25-of-the-secret%'],
    ['percent', ''],
    ['nobody', '%'],
  ]) {
    it(`refuses ${wrong || 'nothing'} for the secret of ${id}`, async () => {
      const answer = await tokenFor(basic(id ?? '', wrong ?? ''));
      expect(answer.status).to.equal(wrong === '' ? 400 : 401);
      expect(answer.json().error).to.equal(wrong === '' ? 'invalid_request' : 'invalid_client');
    });
  }

  it('does not read a secret in the body as an encoded one', async () => {
    const form = { grant_type: 'client_credentials', audience: API, client_id: 'spaced' };
    const send = (client_secret: string) =>
      createAgent(server).request('/oauth/token', { form: { ...form, client_secret } });
    expect((await send('a%20b-of-the-secret')).status).to.equal(401);
    expect((await send('a b-of-the-secret')).status).to.equal(200);
  });

  it('authenticates the application whose secret it is when both forms of an id exist', async () => {
    const audience = async (secret: string) => {
      const { access_token } = (await tokenFor(basic('named%20so', secret))).json();
      return JSON.parse(Buffer.from(String(access_token).split('.')[1] ?? '', 'base64url').toString()).azp;
    };
    expect(await audience('first%secret')).to.equal('named%20so');
    expect(await audience('second%25secret')).to.equal('named so');
    expect((await tokenFor(basic('named%20so', 'neither%'))).status).to.equal(401);
  });

  const request = { client_id: 'percent', redirect_uri: WEB_CALLBACK, response_type: 'code' };
  for (const [path, form, status] of [
    ['/oauth/par', request, 201],
    ['/oauth/revoke', { token: 'unknown' }, 200],
    ['/oauth/device/code', { client_id: 'percent', scope: 'openid' }, 200],
    ['/bc-authorize', { scope: 'openid', binding_message: '1', login_hint: '{}' }, 400],
  ] as const) {
    it(`reads both forms at ${path}`, async () => {
      const secret = '100%-of-the-secret';
      for (const header of [basic('percent', secret), encoded('percent', secret)]) {
        const answer = await post(path, form, header);
        expect(answer.status, answer.text).to.equal(status);
        if (status === 400) expect(answer.text).to.match(/unknown_user_id/);
      }
      expect((await post(path, form, basic('percent', '100%25-of-another'))).status).to.equal(401);
    });
  }

  it('refuses at /oauth/par what only the rewritten header would mean', async () => {
    const form = { ...request, client_id: 'escape' };
    expect((await post('/oauth/par', form, basic('escape', 'a%20b-of-the-secret'))).status).to.equal(201);
    expect((await post('/oauth/par', form, basic('escape', 'a+b-of-the-secret'))).status).to.equal(401);
  });

  it('reads both forms of an id and a secret at /oauth/introspect', async () => {
    for (const header of [basic('api%25', 'api+secret%'), encoded('api%25', 'api+secret%')]) {
      const answer = await post('/oauth/introspect', { token: 'unknown' }, header);
      expect(answer.json()).to.deep.equal({ active: false });
    }
    expect((await post('/oauth/introspect', { token: 'x' }, basic('api%25', 'api secret%'))).status).to.equal(
      401,
    );
  });
});
