// Calls of the Management API whose caller loses its rights while the body still arrives.
import type { ServerResponse } from 'node:http';
import { expect } from 'chai';
import { toResource } from '../../src/engine/base/request-extensions.ts';
import { rememberConsent } from '../../src/engine/token/token-grants.ts';
import { tenant } from '../connections/passwordless/tenant.ts';
import { metadata } from '../connections/samlp/metadata-server.ts';
import { makeCertificate } from '../saml/support.ts';
import { startProvider } from '../scripts/support.ts';
import { createAgent } from '../support/agent.ts';
import { createProver } from '../support/dpop.ts';
import { token, USER } from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';
import { sendSlowly } from '../support/slow-body.ts';
import { until } from '../support/wait-until.ts';
import { callsWith, type ManagementCall, managementToken, startManaged } from './support.ts';

const JSON_TYPE = { 'content-type': 'application/json' };

describe('a call of the Management API with a slow body', () => {
  let server: TestServer;
  let call: ManagementCall;
  before(async () => {
    server = await startManaged(tenant);
    call = callsWith(server, await managementToken(server));
  });
  after(() => server.stop());

  /** Creates an application that may call the Management API. @returns its credentials. */
  const application = async (more: object = {}) => {
    const made = await call('POST', '/clients', { name: 'caller', app_type: 'non_interactive', ...more });
    const { client_id, client_secret } = made.json();
    const audience = `${server.issuer}api/v2/`;
    const scope = ['create:users', 'create:roles', 'create:connections'];
    const granted = await call('POST', '/client-grants', { client_id, audience, scope });
    expect(granted.status, granted.text).to.equal(201);
    return { grant_type: 'client_credentials', client_id, client_secret, audience };
  };
  const bearerOf = async (credentials: Record<string, string>) =>
    (await token(createAgent(server), credentials)).json().access_token as string;
  const roles = async () =>
    ((await call('GET', '/roles')).json() as { name: string }[]).map(({ name }) => name);

  it('is refused if its application was deleted meanwhile', async () => {
    const credentials = await application();
    const authorization = `Bearer ${await bearerOf(credentials)}`;
    const body = JSON.stringify({ name: 'late', description: 'a role' });
    const request = { method: 'POST', path: '/api/v2/roles', headers: { ...JSON_TYPE, authorization }, body };
    const answer = await sendSlowly(server, request, () =>
      call('DELETE', `/clients/${credentials.client_id}`),
    );
    expect(answer.status, answer.text).to.equal(401);
    expect(JSON.parse(answer.text)).to.include({ message: 'Invalid token' });
    expect(await roles()).to.not.include('late');
  });

  it('imports no file if its application was deleted meanwhile', async () => {
    const credentials = await application();
    const part = (name: string, value: string, more = '') =>
      `--x\r\nContent-Disposition: form-data; name="${name}"${more}\r\n\r\n${value}\r\n`;
    const [{ id } = { id: '' }] = (await call('GET', '/connections?name=users')).json() as { id: string }[];
    const file = JSON.stringify([{ email: 'late@import.test' }]);
    const body = `${part('connection_id', id)}${part('users', file, '; filename="users.json"')}--x--\r\n`;
    const headers = {
      'content-type': 'multipart/form-data; boundary=x',
      authorization: `Bearer ${await bearerOf(credentials)}`,
    };
    const answer = await sendSlowly(
      server,
      { method: 'POST', path: '/api/v2/jobs/users-imports', headers, body },
      () => call('DELETE', `/clients/${credentials.client_id}`),
    );
    expect(answer.status, answer.text).to.equal(401);
  });

  it('writes no connection if its application was deleted while the provider sent its metadata', async () => {
    const credentials = await application();
    const authorization = `Bearer ${await bearerOf(credentials)}`;
    const pem = (await makeCertificate()).certificate;
    const waiting: ServerResponse[] = [];
    const provider = await startProvider({
      '/metadata': (_request, response) => void waiting.push(response),
    });
    try {
      const answer = createAgent(server).request('/api/v2/connections', {
        json: { name: 'late', strategy: 'samlp', options: { metadataUrl: `${provider.url}/metadata` } },
        headers: { authorization },
      });
      await until(() => waiting.length === 1);
      expect((await call('DELETE', `/clients/${credentials.client_id}`)).status).to.equal(204);
      waiting[0]?.end(metadata([pem]));
      const { status, text } = await answer;
      expect(status, text).to.equal(401);
      expect((await call('GET', '/connections?name=late')).json()).to.deep.equal([]);
    } finally {
      await provider.stop();
    }
  });

  it('is refused if its user was blocked meanwhile', async () => {
    const email = 'slow-body@example.test';
    const made = await call('POST', '/users', { connection: 'users', email, password: USER.password });
    const id = made.json().user_id as string;
    const path = `/users/${encodeURIComponent(id)}`;
    const audience = `${server.issuer}api/v2/`;
    const scope = 'update:current_user_metadata';
    await rememberConsent(server.store, id, 'web', { '': ['openid'], [toResource(audience)]: [scope] });
    const bearer = await bearerOf({
      grant_type: 'password',
      client_id: 'web',
      client_secret: 'web-secret',
      username: email,
      password: USER.password,
      audience,
      scope: `openid ${scope}`,
    });
    const headers = { ...JSON_TYPE, authorization: `Bearer ${bearer}` };
    const body = JSON.stringify({ user_metadata: { late: true } });
    const request = { method: 'PATCH', path: `/api/v2${path}`, headers, body };
    const answer = await sendSlowly(server, request, () => call('PATCH', path, { blocked: true }));
    expect(answer.status, answer.text).to.equal(401);
    expect((await call('GET', path)).json().user_metadata ?? {}).to.not.have.property('late');
  });

  it('is answered with the one DPoP proof that it has, if nothing has happened meanwhile', async () => {
    const credentials = await application();
    const prover = await createProver();
    const headers = { dpop: await prover.proof('POST', `${server.url}/oauth/token`) };
    const bound = await createAgent(server).request('/oauth/token', { form: credentials, headers });
    const accessToken = bound.json().access_token as string;
    const path = '/api/v2/roles';
    const dpop = await prover.proof('POST', `${server.url}${path}`, { accessToken });
    const request = {
      method: 'POST',
      path,
      headers: { ...JSON_TYPE, authorization: `DPoP ${accessToken}`, dpop },
      body: JSON.stringify({ name: 'bound', description: 'a role' }),
    };
    const answer = await sendSlowly(server, request, roles);
    expect(answer.status, answer.text).to.equal(200);
    expect(await roles()).to.include('bound');
    const again = await sendSlowly(server, request, roles);
    expect(again.status).to.equal(401);
  });
});
