// Tokens for the account that somebody else asked for: by a device code, which a stranger may have begun, or by an exchange.
import { expect } from 'chai';
import { DEVICE_GRANT, callsOf as deviceCallsOf, deviceTenant } from '../grants/tenant.ts';
import { createAgent } from '../support/agent.ts';
import { payload, token, USER } from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { SCOPES } from './tenant.ts';

const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';
const AUDIENCE = 'https://elsewhere.example.test/me/';

describe('a token for the account that was got elsewhere', () => {
  let server: TestServer;
  before(async () => {
    server = await startServer({
      tenant: {
        ...deviceTenant,
        clients: deviceTenant.clients.map((client) =>
          client.client_id === 'web' ? { ...client, grant_types: [...client.grant_types, EXCHANGE] } : client,
        ),
        clientGrants: [
          ...deviceTenant.clientGrants,
          ...['tv', 'web'].map((client_id) => ({
            client_id,
            audience: AUDIENCE,
            subject_type: 'user',
            scope: SCOPES,
          })),
        ],
        guardianFactors: [{ name: 'otp', enabled: true }],
      },
    });
  });
  after(() => server.stop());
  const { begin, poll, connect } = deviceCallsOf(() => server);
  const asked = () => ({ audience: `${server.issuer}me/`, scope: `openid ${SCOPES.join(' ')}` });
  const me = (bearer: string, json?: object) =>
    createAgent(server).request('/me/v1/authentication-methods', {
      ...(json && { json }),
      headers: { authorization: `Bearer ${bearer}` },
    });

  it('looks, and changes nothing: by a device code', async () => {
    const codes = (await begin(asked())).json();
    await connect(codes);
    const bearer = (await poll(codes.device_code)).json().access_token;
    expect(payload(bearer)).to.include({ gty: DEVICE_GRANT }).and.not.to.have.property('auth_time');
    expect((await me(bearer)).status).to.equal(200);
    const answer = await me(bearer, { type: 'totp' });
    expect([answer.status, answer.json().max_age]).to.deep.equal([401, 600]);
  });

  it('looks, and changes nothing: by an exchange', async () => {
    const client = { client_id: 'web', client_secret: 'web-secret' };
    const own = await token(createAgent(server), {
      ...client,
      ...asked(),
      grant_type: 'password',
      username: USER.email,
      password: USER.password,
    });
    const subject_token = own.json().access_token;
    expect((await me(subject_token, { type: 'totp' })).status, 'the login itself').to.equal(201);
    const exchanged = await token(createAgent(server), {
      ...client,
      grant_type: EXCHANGE,
      subject_token,
      subject_token_type: 'urn:ietf:params:oauth:token-type:access_token',
    });
    expect(exchanged.status, exchanged.text).to.equal(200);
    const bearer = exchanged.json().access_token;
    expect(payload(bearer)).not.to.have.property('auth_time');
    const answer = await me(bearer, { type: 'totp' });
    expect(answer.status, answer.text).to.equal(401);
  });
});
