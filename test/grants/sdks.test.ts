// Published SDKs with the further grants, as they are.
import { expect } from 'chai';
import { type SdkProcess, startSdkProcess } from '../support/sdk.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { callsOf, deviceTenant } from './tenant.ts';

describe('openid-client', () => {
  let server: TestServer;
  let sdk: SdkProcess;
  before(async () => {
    server = await startServer({ tenant: deviceTenant });
    sdk = await startSdkProcess(server.caFile);
  });
  after(async () => {
    await sdk.stop();
    await server.stop();
  });
  const { connect } = callsOf(() => server);

  it('logs a device in', async () => {
    const client = { issuer: server.issuer, clientId: 'tv', secret: null };
    const codes = await sdk.call('oidc-device', { ...client, parameters: { scope: 'openid email' } });
    expect(codes.verification_uri_complete).to.contain(codes.user_code);
    await connect(codes);
    const polling = { ...client, codes: { ...codes, interval: 1 } };
    expect((await sdk.call('oidc-device-poll', polling)).claims).to.include({ aud: 'tv' });
  });
});
