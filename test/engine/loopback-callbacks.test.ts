// Callbacks of native applications on the loopback interface (RFC 8252 §7.3).
import { expect } from 'chai';
import { createAgent } from '../support/agent.ts';
import {
  authorize,
  follow,
  pkce,
  responseOf,
  spaRequest,
  submitLogin,
  token,
  USER,
} from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';

describe('a callback on the loopback interface', () => {
  let server: TestServer;
  before(async () => {
    const callbacks = [
      'http://127.0.0.1/callback',
      'http://[::1]:7000/callback',
      'http://localhost:7000/callback',
      'https://127.0.0.1/callback',
      'com.example.app:/callback',
    ];
    const common = { callbacks, grant_types: ['authorization_code'], is_first_party: true };
    server = await startServer({
      tenant: {
        clients: [
          { client_id: 'native', name: 'Native', app_type: 'native', ...common },
          { client_id: 'browser', name: 'Browser', app_type: 'spa', ...common },
        ],
        users: [{ ...USER, connection: 'users' }],
        databases: [{ name: 'users', enabled_clients: ['native', 'browser'] }],
      },
    });
  });
  after(() => server?.stop());

  const isAccepted = async (client_id: string, redirect_uri: string) => {
    const answer = await authorize(
      createAgent(server),
      spaRequest(pkce().challenge, { client_id, redirect_uri }),
    );
    return answer.status === 302;
  };

  it('may have any port in a native application, and the code is exchanged with that callback alone', async () => {
    const redirect_uri = 'http://127.0.0.1:51004/callback';
    const exchanged = async (uri: string) => {
      const agent = createAgent(server);
      const { verifier, challenge } = pkce();
      const request = spaRequest(challenge, { client_id: 'native', redirect_uri, scope: 'openid' });
      const page = await follow(agent, await authorize(agent, request), server.url);
      const answer = await submitLogin(agent, server, page, USER);
      expect(answer.location).to.match(/^http:\/\/127\.0\.0\.1:51004\/callback\?/);
      return token(agent, {
        grant_type: 'authorization_code',
        client_id: 'native',
        code: responseOf(answer).code,
        code_verifier: verifier,
        redirect_uri: uri,
      });
    };
    expect((await exchanged('http://127.0.0.1:51005/callback')).json()).to.include({
      error: 'invalid_grant',
    });
    expect((await exchanged(redirect_uri)).json()).to.have.property('access_token');
  });

  for (const accepted of [
    'http://127.0.0.1/callback',
    'http://127.0.0.1:1/callback',
    'http://[::1]:65535/callback',
    'http://[::1]/callback',
    'http://localhost:7000/callback',
    'com.example.app:/callback',
  ]) {
    it(`is accepted from a native application: ${accepted}`, async () => {
      expect(await isAccepted('native', accepted)).to.equal(true);
    });
  }

  for (const refused of [
    'http://localhost:7001/callback',
    'https://127.0.0.1:7001/callback',
    'http://127.0.0.1:7001/other',
    'http://127.0.0.1:7001/callback?a=b',
    'http://127.0.0.1:7001/callback#a',
    'http://127.0.0.1:99999/callback',
    'http://127.0.0.1:7001@evil.test/callback',
    'http://127.0.0.1.evil.test/callback',
    'http://127.0.0.1:@evil.test/callback',
    'http://127.0.0.2:7001/callback',
    'http://2130706433:7001/callback',
    'http://[::ffff:127.0.0.1]:7001/callback',
    'HTTP://127.0.0.1:7001/callback',
  ]) {
    it(`is refused from a native application: ${refused}`, async () => {
      expect(await isAccepted('native', refused)).to.equal(false);
    });
  }

  it('is compared to the letter in every other application', async () => {
    expect(await isAccepted('browser', 'http://127.0.0.1/callback')).to.equal(true);
    expect(await isAccepted('browser', 'http://127.0.0.1:51004/callback')).to.equal(false);
  });
});
