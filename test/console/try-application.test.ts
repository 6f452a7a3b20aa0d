// "Try it": an administrator logs in to an application, and sees its tokens.
import { expect } from 'chai';
import { type Answer, readForm } from '../support/agent.ts';
import { type ConsoleAgent, openConsole, startConsole } from '../support/console.ts';
import { API, follow, pkce, submitLogin, USER } from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';
import { tenantWith } from '../support/tenant.ts';
import { sendForm } from './forms.ts';

const machine = {
  client_id: 'nightly',
  name: 'Nightly',
  app_type: 'non_interactive',
  client_secret: 'the-secret-of-the-machine',
  grant_types: ['client_credentials'],
};
const tried = tenantWith({
  add: {
    clients: [
      machine,
      {
        client_id: 'basic',
        name: 'Basic',
        app_type: 'regular_web',
        client_secret: 'the-secret-of-basic-clients',
        token_endpoint_auth_method: 'client_secret_basic',
        callbacks: ['https://basic.example.test/in'],
      },
      {
        client_id: 'third-party-spa',
        name: 'Far Party',
        is_first_party: false,
        third_party_security_mode: 'permissive',
        app_type: 'spa',
        token_endpoint_auth_method: 'none',
        callbacks: ['https://third.example.test/in'],
        grant_types: ['authorization_code'],
      },
    ],
    clientGrants: [{ client_id: 'nightly', audience: API, scope: ['read:things'] }],
  },
  enable: ['basic', 'third-party-spa'],
});

describe('trying an application', () => {
  let server: TestServer;
  let owner: ConsoleAgent;
  beforeEach(async () => {
    server = await startConsole({ tenant: tried });
    owner = await openConsole(server);
  });
  afterEach(() => server.stop());

  const pageOf = (id: string) => `/console/applications/${id}/try`;
  /** Begins a login. @returns the address that begins it. */
  const begin = async (id: string, typed: Record<string, string> = {}, who = owner): Promise<string> => {
    const begun = await sendForm(who, await who.get(pageOf(id)), pageOf(id), typed);
    expect(begun.status, begun.text).to.equal(200);
    const to = /^0; url=(\/authorize\?.*)$/.exec(String(begun.headers.refresh))?.[1] ?? '';
    expect(begun.text).to.contain(`href="${to.replaceAll('&', '&amp;')}"`);
    return to;
  };
  /** Logs the test user in. @returns the address of the callback with the response, not yet opened. */
  const logIn = async (to: string, who = owner): Promise<string> => {
    const login = await follow(who.agent, await who.agent.get(to), server.url);
    const { action, fields } = readForm(login, 'password');
    const form = { ...fields, username: USER.email, password: USER.password };
    let answer = await who.agent.request(action, { form });
    while (answer.location.startsWith(server.url) && !answer.location.includes('/console-try/'))
      answer = await who.agent.get(answer.location);
    return answer.location;
  };
  const shown = ({ text }: Answer) => text.replaceAll('&quot;', '"').replaceAll('&#34;', '"');

  for (const id of ['spa', 'web', 'basic'])
    it(`shows the decoded tokens of ${id}, and nothing that could be used`, async () => {
      const back = await logIn(await begin(id, { audience: API }));
      expect(new URL(back).pathname).to.equal(`/console-try/${id}`);
      const page = await owner.agent.get(back);
      expect(page.status, page.text).to.equal(200);
      expect(shown(page)).to.contain(`"email": "${USER.email}"`).and.to.contain(`"${API}"`);
      expect(shown(page)).to.contain('"token_type": "Bearer"');
      expect(page.text).not.to.match(/eyJ[\w-]+\.eyJ[\w-]+\.[\w-]+/);
      expect(page.headers['cache-control']).to.equal('no-store');
      const { client_secret: secret } = (await server.store.collection('clients').get(id)) ?? {};
      expect(page.text).not.to.contain(secret ?? 'no secret');
      // The response can be used once.
      expect((await owner.agent.get(back)).status).to.equal(400);
    });

  it('shows the token of a machine-to-machine application', async () => {
    const page = await sendForm(owner, await owner.get(pageOf('nightly')), pageOf('nightly'), {
      audience: API,
    });
    expect(page.status, page.text).to.equal(200);
    expect(shown(page)).to.contain('"sub": "nightly@clients"').and.to.contain('read:things');
    expect(page.text)
      .not.to.match(/eyJ[\w-]+\.eyJ/)
      .and.not.to.contain(machine.client_secret);
    const refused = await owner.post(pageOf('nightly'), { audience: 'https://none.example.test/' });
    expect(refused.status).to.equal(200);
    expect(refused.text).to.contain('access_denied');
  });

  it('asks for consent for a third-party application', async () => {
    const to = await begin('third-party-spa');
    const login = await follow(owner.agent, await owner.agent.get(to), server.url);
    const consent = await follow(
      owner.agent,
      await submitLogin(owner.agent, server, login, USER),
      server.url,
    );
    expect(consent.text).to.contain('Far Party').and.not.to.contain('token_type');
  });

  it('shows the error of a login', async () => {
    const to = new URL(await begin('spa', { fresh: '' }), server.url);
    const back = new URL(`${server.url}/console-try/spa`);
    back.searchParams.set('state', to.searchParams.get('state') ?? '');
    back.searchParams.set('error', 'access_denied');
    back.searchParams.set('error_description', '<script>alert(1)</script>');
    const page = await owner.agent.get(back.href);
    expect(page.status).to.equal(200);
    expect(page.text).to.contain('access_denied').and.not.to.contain('<script>alert');
  });

  it('ends only in the session that began it', async () => {
    const back = await logIn(await begin('spa'));
    const others = [await openConsole(server, 'editor'), await openConsole(server, 'owner')];
    for (const other of others) expect((await other.agent.get(back)).status).to.equal(400);
    const viewer = await openConsole(server, 'viewer');
    expect((await viewer.agent.get(back)).status).to.equal(403);
    const elsewhere = new URL(back);
    elsewhere.pathname = '/console-try/web';
    expect((await owner.agent.get(elsewhere.href)).status).to.equal(400);
    expect((await owner.agent.get(back)).status).to.equal(200);
  });

  it('allows nobody else to use its callback', async () => {
    const { challenge } = pkce();
    const request = {
      client_id: 'spa',
      response_type: 'code',
      scope: 'openid',
      code_challenge: challenge,
      code_challenge_method: 'S256',
    };
    const ours = new URL(await begin('spa'), server.url).searchParams;
    const state = ours.get('state') ?? '';
    const redirect_uri = `${server.url}/console-try/spa`;
    const odd: Record<string, string>[] = [
      { ...request, redirect_uri },
      { ...request, redirect_uri, state },
      { ...request, redirect_uri, state: 'guessed' },
      { ...Object.fromEntries(ours), response_mode: 'fragment' },
      { ...Object.fromEntries(ours), client_id: 'web' },
      { ...request, redirect_uri: `${server.url}/console-try/../console-try/spa`, state },
      { ...request, redirect_uri: `${server.url}/console-try/web`, state },
    ];
    for (const query of odd) {
      const refused = await owner.agent.get(`/authorize?${new URLSearchParams(query)}`);
      expect(refused.status, JSON.stringify(query)).to.be.oneOf([400, 403]);
    }
  });

  it('issues a code that cannot be redeemed without its PKCE verifier', async () => {
    const back = new URL(await logIn(await begin('spa')));
    const stolen = await owner.agent.request('/oauth/token', {
      json: {
        grant_type: 'authorization_code',
        client_id: 'spa',
        code: back.searchParams.get('code'),
        redirect_uri: `${server.url}/console-try/spa`,
        code_verifier: pkce().verifier,
      },
    });
    expect(stolen.status).to.be.oneOf([400, 403]);
  });

  it("is limited to roles that may see the application's secret", async () => {
    const viewer = await openConsole(server, 'viewer');
    expect((await viewer.get(pageOf('web'))).status).to.equal(403);
    expect((await viewer.post(pageOf('web'), {})).status).to.equal(403);
    const forged = await owner.agent.request(pageOf('nightly'), {
      form: { audience: API, _csrf: 'guessed' },
    });
    expect(forged.status).to.equal(403);
    expect(forged.text).not.to.contain('read:things');
  });
});
