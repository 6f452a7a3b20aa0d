// Codes and refresh tokens that two requests have both read before either uses them (RFC 6749 §4.1.2, RFC 9700 §4.14.2).
import { expect } from 'chai';
import { createAgent } from '../support/agent.ts';
import { API, logIn, redeem, responseOf, spaTokens, tenant, token, webRequest } from '../support/flows.ts';
import { heldStore } from '../support/held-store.ts';
import { startServer, type TestServer } from '../support/server.ts';

describe('of two requests that have read the same', () => {
  const store = heldStore();
  let server: TestServer;
  before(async () => {
    server = await startServer({ tenant, open: store.open });
  });
  after(() => server.stop());

  const refresh = (refresh_token: string, client: object = { client_id: 'spa' }) =>
    token(createAgent(server), { grant_type: 'refresh_token', refresh_token, ...client });

  it('code the second gets no tokens, and those of the first are revoked', async () => {
    const scope = 'openid offline_access';
    const request = webRequest({ scope, audience: API });
    const { code } = responseOf(await logIn(createAgent(server), server, request));
    let first: Record<string, string> = {};
    store.beforeUpdate(
      ({ model }) => model === 'AuthorizationCode',
      async () => {
        first = (await redeem(createAgent(server), code)).json();
      },
    );
    const second = await redeem(createAgent(server), code);
    expect(second.json()).to.have.property('error', 'invalid_grant');
    expect(first).to.have.property('refresh_token');
    const web = { client_id: 'web', client_secret: 'web-secret' };
    expect((await refresh(first.refresh_token ?? '', web)).json()).to.have.property('error', 'invalid_grant');
  });

  it('refresh token the second gets no tokens, and those of the first are revoked', async () => {
    const { refresh_token } = await spaTokens(createAgent(server), server, {
      scope: 'openid offline_access',
    });
    let first: Record<string, string> = {};
    store.beforeUpdate(
      ({ model }) => model === 'RefreshToken',
      async () => {
        first = (await refresh(refresh_token)).json();
      },
    );
    expect((await refresh(refresh_token)).json()).to.have.property('error', 'invalid_grant');
    expect(first).to.have.property('refresh_token');
    expect((await refresh(first.refresh_token ?? '')).json()).to.have.property('error', 'invalid_grant');
  });
});
