// A provider that sends its discovery document so slowly that it never ends.
import { expect } from 'chai';
import { createAgent } from '../../support/agent.ts';
import { authorize, follow, responseOf, tenant, webRequest } from '../../support/flows.ts';
import { type OpenIdProvider, signingKey, startOpenIdProvider } from '../../support/openid-provider.ts';
import { startServer, type TestServer } from '../../support/server.ts';
import { logInUpstream } from '../../support/upstream-login.ts';

const DOCUMENT = '/.well-known/openid-configuration';

describe('a provider whose discovery document is slow', () => {
  let slow: OpenIdProvider;
  let quick: OpenIdProvider;
  let server: TestServer;
  before(async () => {
    const key = await signingKey('k1');
    [slow, quick] = await Promise.all([startOpenIdProvider(key), startOpenIdProvider(key)]);
    slow.instead = {
      [DOCUMENT]: (response) => {
        response.writeHead(200, { 'content-type': 'application/json' });
        const timer = setInterval(() => response.write(' '), 100);
        response.on('close', () => clearInterval(timer));
      },
    };
    const connection = (name: string, { url }: OpenIdProvider) => ({
      name,
      strategy: 'oidc',
      enabled_clients: ['web'],
      options: { type: 'back_channel', client_id: 'gatehouse', discovery_url: `${url}${DOCUMENT}` },
    });
    server = await startServer({
      tenant: { ...tenant, connections: [connection('slow', slow), connection('quick', quick)] },
    });
  });
  after(async () => {
    await server?.stop();
    await Promise.all([slow?.stop(), quick?.stop()]);
  });

  it('fails its logins after ten seconds with one request for all, and does not delay other logins', async () => {
    const start = performance.now();
    const waiting = Array.from({ length: 20 }, async () => {
      const agent = createAgent(server);
      return responseOf(
        await follow(agent, await authorize(agent, webRequest({ connection: 'slow' })), server.url),
      );
    });
    expect(await logInUpstream(server, { connection: 'quick' })).to.have.property('code');
    expect(performance.now() - start).to.be.below(5_000);
    for (const outcome of await Promise.all(waiting)) {
      expect(outcome).to.include({ error: 'invalid_request' });
      expect(outcome.error_description).to.contain('did not answer in time');
    }
    expect(performance.now() - start).to.be.below(45_000);
  });
});
