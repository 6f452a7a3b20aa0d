// Access tokens for the My Account API that do not prove the user's presence: by a device code, which a stranger
// may have begun, or by a token exchange.
import { expect } from 'chai';
import { DEVICE_GRANT, callsOf as deviceCallsOf, deviceTenant } from '../grants/tenant.ts';
import { createAgent } from '../support/agent.ts';
import { databaseUser } from '../support/database-user.ts';
import { accessTokenOf, logIn, payload, responseOf, token, USER, webRequest } from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { SCOPES } from './tenant.ts';

const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';
const AUDIENCE = 'https://elsewhere.example.test/me/';

describe('an access token for the My Account API without a proof of presence', () => {
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
  const parameters = () => ({ audience: `${server.issuer}me/`, scope: `openid ${SCOPES.join(' ')}` });
  const me = (bearer: string, json?: object) =>
    createAgent(server).request('/me/v1/authentication-methods', {
      ...(json && { json }),
      headers: { authorization: `Bearer ${bearer}` },
    });

  it('allows reading and no changes when it was issued for a device code', async () => {
    const codes = (await begin(parameters())).json();
    await connect(codes);
    const bearer = (await poll(codes.device_code)).json().access_token;
    expect(payload(bearer)).to.include({ gty: DEVICE_GRANT }).and.not.to.have.property('auth_time');
    expect((await me(bearer)).status).to.equal(200);
    const answer = await me(bearer, { type: 'totp' });
    expect([answer.status, answer.json().max_age]).to.deep.equal([401, 600]);
  });

  const client = { client_id: 'web', client_secret: 'web-secret' };
  const exchange = (subject_token: string) =>
    token(createAgent(server), {
      ...client,
      grant_type: EXCHANGE,
      subject_token,
      subject_token_type: 'urn:ietf:params:oauth:token-type:access_token',
    });
  const byPassword = async ({ email, password } = USER): Promise<string> => {
    const login = { grant_type: 'password', username: email, password };
    return (await token(createAgent(server), { ...client, ...parameters(), ...login })).json().access_token;
  };

  it('allows reading and no changes when it was issued by a token exchange', async () => {
    const subject = await byPassword();
    expect((await me(subject, { type: 'totp' })).status, 'the login itself').to.equal(201);
    const exchanged = await exchange(subject);
    expect(exchanged.status, exchanged.text).to.equal(200);
    const bearer = exchanged.json().access_token;
    expect(payload(bearer)).not.to.have.property('auth_time');
    const answer = await me(bearer, { type: 'totp' });
    expect(answer.status, answer.text).to.equal(401);
  });

  it('ends with the session of the exchanged token, which cannot be exchanged again', async () => {
    const browser = createAgent(server);
    const subject = await accessTokenOf(
      browser,
      responseOf(await logIn(browser, server, webRequest(parameters()))),
    );
    const bearer = (await exchange(subject)).json().access_token;
    expect((await me(bearer)).status).to.equal(200);
    await browser.get('/v2/logout?client_id=web');
    expect((await me(bearer)).status, 'exchanged before').to.equal(401);
    expect((await exchange(subject)).status, 'exchanged after').to.equal(400);
  });

  it('is not issued for a login that has ended', async () => {
    const make = async (email: string) => {
      const created = await server.users.create(
        databaseUser({ connection: 'users', email, password: USER.password }),
      );
      if (!('user' in created)) throw new Error('the address is taken');
      return created.user.id;
    };
    const [first, second] = [await make('first@example.test'), await make('second@example.test')];
    await server.users.link(first, second);
    const subject = await byPassword({ email: 'second@example.test', password: USER.password });
    expect((await me(subject)).status).to.equal(200);
    const linked = (await server.users.identitiesOf(first)).find(({ email }) => email?.startsWith('second'));
    await server.users.unlink(first, String(linked?.id));
    expect((await me(subject)).status).to.equal(401);
    expect((await exchange(subject)).status).to.equal(400);
  });
});
