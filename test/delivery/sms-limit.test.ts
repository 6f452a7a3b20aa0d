// The limit of text messages to a number, whatever asks for them.
import { expect } from 'chai';
import { tenant } from '../connections/passwordless/tenant.ts';
import { createAgent } from '../support/agent.ts';
import { USER } from '../support/flows.ts';
import { messagesTo } from '../support/inbox.ts';
import { startServer, type TestServer } from '../support/server.ts';

const generous = { capacity: 10_000, perMinute: 10_000 };
const WEB = { client_id: 'web', client_secret: 'web-secret' };
const REALM = 'http://auth0.com/oauth/grant-type/password-realm';

describe('text messages to a number', () => {
  let server: TestServer;
  before(async () => {
    server = await startServer({
      tenant: {
        ...tenant,
        attackProtection: {
          rateLimits: {
            ...tenant.attackProtection.rateLimits,
            passwordlessDestination: generous,
            smsDestination: { capacity: 3, perMinute: 1 },
          },
        },
        guardianFactors: [{ name: 'sms', enabled: true }],
        guardianPolicies: { policies: ['all-applications'] },
      },
    });
  });
  after(() => server.stop());

  const post = (path: string, json: object, headers = {}) =>
    createAgent(server).request(path, { json, headers });
  const start = async (phone_number: string) =>
    (await post('/passwordless/start', { ...WEB, connection: 'sms', phone_number })).status;
  const enroll = async (phone_number: string) => {
    const login = {
      grant_type: REALM,
      ...WEB,
      realm: 'users',
      username: USER.email,
      password: USER.password,
    };
    const { mfa_token } = (await post('/oauth/token', login)).json();
    const parameters = { authenticator_types: ['oob'], oob_channels: ['sms'], phone_number };
    return (await post('/mfa/associate', parameters, { authorization: `Bearer ${mfa_token}` })).status;
  };

  it('are limited for logins and second factors together', async () => {
    const number = '+16505550180';
    expect([await start(number), await enroll(number), await start(number)]).to.deep.equal([200, 200, 200]);
    expect([await start(number), await enroll(number)]).to.deep.equal([503, 503]);
    expect(await messagesTo(server, number)).to.have.length(3);
    expect(await start('+16505550181'), 'another number').to.equal(200);
    server.tick(60_000);
    expect([await enroll(number), await start(number)]).to.deep.equal([200, 503]);
    expect(await messagesTo(server, number)).to.have.length(4);
  });
});
