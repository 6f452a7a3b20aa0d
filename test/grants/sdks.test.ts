// Published, unmodified SDKs with the device code and CIBA grants.
import { expect } from 'chai';
import { createAgent, readForm } from '../support/agent.ts';
import { follow, submitLogin, USER } from '../support/flows.ts';
import { nextMessageTo } from '../support/inbox.ts';
import { type SdkProcess, startSdkProcess } from '../support/sdk.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { callsOf, cibaTenant, deviceTenant } from './tenant.ts';

describe('SDKs with device codes and CIBA', () => {
  let server: TestServer;
  let sdk: SdkProcess;
  let sub: string;
  before(async () => {
    server = await startServer({
      tenant: {
        ...cibaTenant,
        guardianPolicies: { policies: [] },
        clients: [...cibaTenant.clients, ...deviceTenant.clients.filter(({ client_id: id }) => id === 'tv')],
        databases: cibaTenant.databases.map((one) => ({
          ...one,
          enabled_clients: [...one.enabled_clients, 'tv'],
        })),
      },
    });
    sdk = await startSdkProcess(server.caFile);
    sub = (await server.users.withEmail(USER.email))[0]?.id ?? '';
  });
  after(async () => {
    await sdk.stop();
    await server.stop();
  });
  const { connect } = callsOf(() => server);

  /** The user opens the link of an e-mail, logs in and approves. */
  const approve = async (count: number) => {
    const agent = createAgent(server);
    const { link = '' } = await nextMessageTo(server, USER.email, count, 'link');
    const page = await submitLogin(agent, server, await follow(agent, await agent.get(link), server.url));
    const { action, fields } = readForm(page, 'ticket');
    const done = await agent.request(action, { form: { ...fields, decision: 'accept' } });
    expect(done.text).to.contain('You approved the request');
  };

  it('openid-client logs a device in', async () => {
    const client = { issuer: server.issuer, clientId: 'tv', secret: null };
    const codes = await sdk.call('oidc-device', { ...client, parameters: { scope: 'openid email' } });
    expect(codes.verification_uri_complete).to.contain(codes.user_code);
    await connect(codes);
    const polling = { ...client, codes: { ...codes, interval: 1 } };
    expect((await sdk.call('oidc-device-poll', polling)).claims).to.include({ aud: 'tv' });
  });

  it('openid-client asks a user for approval, and polls', async () => {
    const client = { issuer: server.issuer, clientId: 'mail-bank', secret: 'mail-bank-secret' };
    const login_hint = JSON.stringify({ format: 'iss_sub', iss: server.issuer, sub });
    const parameters = { scope: 'openid', login_hint, binding_message: 'Payment 1' };
    const begun = await sdk.call('oidc-backchannel', { ...client, parameters });
    await approve(1);
    const polling = { ...client, begun: { ...begun, interval: 1 } };
    expect((await sdk.call('oidc-backchannel-poll', polling)).claims).to.include({ sub, aud: 'mail-bank' });
  });

  it('auth0-auth-js asks a user for approval', async () => {
    const options = {
      domain: new URL(server.url).host,
      clientId: 'mail-bank',
      clientSecret: 'mail-bank-secret',
    };
    const call = (method: string, args: object[]) => sdk.call('auth-js', { options, method, args });
    const { authReqId } = await call('initiateBackchannelAuthentication', [
      { bindingMessage: 'Payment 2', loginHint: { sub } },
    ]);
    await approve(2);
    expect((await call('backchannelAuthenticationGrant', [{ authReqId }])).claims).to.include({ sub });
  });

  it('node-auth0 asks a user for approval', async () => {
    const options = {
      domain: new URL(server.url).host,
      clientId: 'mail-bank',
      clientSecret: 'mail-bank-secret',
    };
    const call = (method: string, args: object) =>
      sdk.call('node-auth0-backchannel', { options, method, args });
    const { auth_req_id } = await call('authorize', {
      userId: sub,
      binding_message: 'Payment 3',
      scope: 'openid',
    });
    await approve(3);
    expect(await call('backchannelGrant', { auth_req_id })).to.include.keys('access_token', 'id_token');
  });
});
