// Another Gatehouse in place of a self-managed GitLab, with the tenant files of config/examples.
import tls from 'node:tls';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { loadTenantFile } from '../../../src/tenant/load.ts';
import { createAgent, readForm } from '../../support/agent.ts';
import { authorize, follow, payload, pkce, responseOf } from '../../support/flows.ts';
import { startServer, type TestServer } from '../../support/server.ts';

const file = (name: string) => fileURLToPath(new URL(`../../../config/examples/${name}`, import.meta.url));
const USER = { email: 'grace@example.test', password: 'Correct-Horse-1' };
const CALLBACK = 'http://localhost:5173/callback';

describe('another Gatehouse in place of a self-managed GitLab', () => {
  const trusted = tls.getCACertificates('default');
  let upstream: TestServer;
  let server: TestServer;

  before(async () => {
    const example = async (name: string, env: Record<string, string>) =>
      (await loadTenantFile(file(name), { PROVIDER_SECRET: 'a-secret-of-both', ...env })).tenant;
    upstream = await startServer({
      tenant: await example('oauth2-provider.yaml', { GATEHOUSE: 'https://localhost:1' }),
    });
    // For a process, NODE_EXTRA_CA_CERTS does the same.
    tls.setDefaultCACertificates([...trusted, upstream.ca]);
    server = await startServer({ tenant: await example('gitlab.yaml', { PROVIDER: upstream.url }) });
    // The port of the second server is only known now.
    await upstream.store.collection('clients').update('harbour-books', (client) => ({
      ...client,
      callbacks: [`${server.url}/login/callback`],
    }));
  });
  after(async () => {
    await server?.stop();
    await upstream?.stop();
    tls.setDefaultCACertificates(trusted);
  });

  it('logs its users in', async () => {
    const [agent, there] = [createAgent(server), createAgent(upstream)];
    const { verifier, challenge } = pkce();
    const away = await authorize(agent, {
      client_id: 'books',
      response_type: 'code',
      redirect_uri: CALLBACK,
      scope: 'openid profile email',
      connection: 'harbour-git',
      code_challenge: challenge,
      code_challenge_method: 'S256',
    });
    const requestUrl = new URL(away.location);
    expect(requestUrl.origin).to.equal(upstream.url);
    expect(requestUrl.searchParams.get('scope')).to.equal('openid profile email');
    const page = await follow(there, await there.get(away.location), upstream.url);
    const { action, fields } = readForm(page, 'password');
    const formAnswer = await there.request(action, {
      form: { ...fields, username: USER.email, password: USER.password },
    });
    const back = await follow(there, formAnswer, upstream.url);
    const { code } = responseOf(await follow(agent, await agent.get(back.location), server.url));
    const answer = await agent.request('/oauth/token', {
      form: {
        grant_type: 'authorization_code',
        code: code ?? '',
        redirect_uri: CALLBACK,
        client_id: 'books',
        code_verifier: verifier,
      },
    });
    const user = await upstream.users.findInConnection({ name: 'people' }, USER.email);
    expect(payload(answer.json().id_token)).to.include({
      iss: server.issuer,
      sub: `gitlab|${user?.id}`,
      email: USER.email,
      email_verified: true,
    });
  });
});
