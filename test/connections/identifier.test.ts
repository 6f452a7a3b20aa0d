// Home realm discovery: the domain of an e-mail address selects the connection.
import { expect } from 'chai';
import { makeCertificate } from '../saml/support.ts';
import { type Agent, type Answer, createAgent, readForm } from '../support/agent.ts';
import { openPage } from '../support/browser-logins.ts';
import {
  authorize,
  follow,
  responseOf,
  submitLogin,
  tenant,
  USER,
  WEB_CALLBACK,
  webRequest,
} from '../support/flows.ts';
import { optionsFor } from '../support/oauth2-provider.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { tenantWith } from '../support/tenant.ts';

const CORP = 'https://corp.example.test/sso';
const LAB = 'https://lab.example.test/sso';
const SOCIAL = 'https://social.example.test';

describe('the identifier-first login page', () => {
  let server: TestServer;
  before(async () => {
    const { certificate: signingCert } = await makeCertificate();
    const saml = (name: string, enabled_clients: string[], signInEndpoint: string, options: object = {}) => ({
      name,
      strategy: 'samlp',
      enabled_clients,
      options: { signInEndpoint, signingCert, ...options },
    });
    const application = (client_id: string, over: object = {}) => ({
      client_id,
      name: client_id,
      app_type: 'regular_web',
      client_secret: 'its-own-secret',
      callbacks: [WEB_CALLBACK],
      grant_types: ['authorization_code'],
      ...over,
    });
    server = await startServer({
      tenant: tenantWith({
        add: {
          clients: [
            application('elsewhere'),
            application('members', { organization_usage: 'allow' }),
            application('foreign', { is_first_party: false, third_party_security_mode: 'permissive' }),
          ],
        },
        enable: ['members'],
        connections: [
          saml('corp', ['web', 'elsewhere'], CORP, { domain_aliases: ['Corp.example'] }),
          saml('lab', ['web', 'elsewhere', 'members'], LAB, {
            tenant_domain: 'lab.example',
            requestTemplate:
              '<samlp:AuthnRequest xmlns:samlp="urn:oasis:names:tc:SAML:2.0:protocol" ID="@@ID@@" ProviderName="@@hint@@" Version="2.0"><saml:Issuer xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion">@@Issuer@@</saml:Issuer></samlp:AuthnRequest>',
            upstream_params: { hint: { alias: 'login_hint' } },
            deflate: false,
          }),
          saml('plain', ['members'], CORP),
          saml('unused', [], CORP, { domain_aliases: ['unused.example'] }),
          {
            ...saml('open-house', [], CORP, { domain_aliases: ['open.example'] }),
            is_domain_connection: true,
          },
          {
            name: 'social',
            strategy: 'oauth2',
            enabled_clients: ['web', 'elsewhere'],
            options: optionsFor({ url: SOCIAL }),
          },
        ],
        organizations: [
          {
            id: 'org_acme',
            name: 'acme',
            discovery_domains: [
              { domain: 'acme.example', status: 'verified' },
              { domain: 'unproved.example', status: 'pending' },
            ],
            connections: [{ name: 'users' }, { name: 'plain' }],
          },
        ],
      }),
    });
  });
  after(() => server?.stop());

  const open = (agent: Agent, more: Record<string, string> = {}) => openPage(agent, server, webRequest(more));
  /** Submits an address on the page. */
  const type = (agent: Agent, page: Answer, identifier: string) => {
    const { action, fields } = readForm(page, 'identifier');
    return agent.request(action, { form: { ...fields, identifier } });
  };
  const typed = async (identifier: string, more: Record<string, string> = {}) => {
    const agent = createAgent(server);
    const answer = await type(agent, await open(agent, more), identifier);
    return { agent, answer };
  };
  const originOf = ({ location }: Answer) => `${new URL(location).origin}${new URL(location).pathname}`;

  for (const [address, to] of [
    ['ada@corp.example', CORP],
    [' Ada@CORP.Example ', CORP],
    ['ada@lab.example', LAB],
  ] as const) {
    it(`sends the user to the connection that has the domain of the address: ${address}`, async () => {
      const { answer } = await typed(address);
      expect(originOf(answer)).to.equal(to);
    });
  }

  it('sends the address to the provider as login_hint', async () => {
    const { answer } = await typed('ada@lab.example');
    const request = new URL(answer.location).searchParams.get('SAMLRequest') ?? '';
    expect(Buffer.from(request, 'base64').toString()).to.contain('ProviderName="ada@lab.example"');
  });

  it('leads to the password form, which shows the address as read-only and lets the user change it', async () => {
    const { agent, answer } = await typed(USER.email);
    expect(answer.status).to.equal(303);
    const page = await agent.get(answer.location);
    expect(page.text).to.match(/<input id="username"[^>]* value="ada@example\.test"[^>]* readonly/);
    expect(page.text).not.to.contain('Continue with');
    const { action } = readForm(page, 'password');
    const change = await agent.get(action.replace(/login$/, 'identifier'));
    expect(change.text).to.match(/<input id="identifier"[^>]* value="ada@example\.test"/);
    expect(responseOf(await submitLogin(agent, server, page)).code).to.be.a('string');
  });

  it('keeps the address when the password is wrong', async () => {
    const { agent, answer } = await typed(USER.email);
    const again = await submitLogin(agent, server, await agent.get(answer.location), {
      ...USER,
      password: 'wrong',
    });
    expect(again.status).to.equal(400);
    expect(again.text).to.contain('Wrong email or password.');
    expect(again.text).to.match(/<input id="username"[^>]* readonly/);
  });

  it('gives the same answer whether there is an account or not', async () => {
    const seen = await Promise.all(
      [USER.email, 'zed@example.test'].map(async (address) => {
        const { agent, answer } = await typed(address);
        const page = await agent.get(answer.location);
        const uid = new URL(answer.location).pathname.split('/')[2] ?? '';
        return [answer.status, page.status, anonymous(page.text, [uid, address])];
      }),
    );
    expect(seen[0]).to.deep.equal(seen[1]);
  });

  it('is skipped when login_hint, connection or screen_hint decides; an unknown login_hint fills it in', async () => {
    const agent = () => createAgent(server);
    const hinted = await authorize(agent(), webRequest({ login_hint: 'ada@corp.example' }));
    expect(originOf(hinted)).to.equal(CORP);
    const named = await authorize(agent(), webRequest({ connection: 'lab' }));
    expect(originOf(named)).to.equal(LAB);
    expect((await open(agent(), { connection: 'users' })).text).to.contain('name="password"');
    expect((await open(agent(), { screen_hint: 'signup' })).text).to.contain('Create your account');
    const prefilled = await open(agent(), { login_hint: 'ada@home.example' });
    expect(prefilled.text).to.match(/<input id="identifier"[^>]* value="ada@home\.example"/);
  });

  it('is skipped when no address leads to another connection', async () => {
    const page = await openPage(createAgent(server), server, { ...webRequest(), client_id: 'code-only' });
    expect(page.text).to.contain('name="password"');
  });

  it('shows buttons for connections without domains only', async () => {
    const page = await open(createAgent(server));
    expect(page.text).to.contain('Continue with social');
    expect(page.text).not.to.match(/Continue with (corp|lab)/);
    expect(page.text).not.to.contain('name="password"');
  });

  it('rejects an address of no known domain when every connection is at an external provider', async () => {
    const agent = createAgent(server);
    const page = await open(agent, { client_id: 'elsewhere' });
    for (const nobody of ['ada@home.example', 'ada', 'corp.example']) {
      const answer = await type(agent, page, nobody);
      expect(answer.status).to.equal(400);
      expect(answer.text).to.contain('role="alert"').and.contain(`value="${nobody}"`);
    }
    expect((await type(agent, page, '  ')).text).to.contain('Enter your address.');
    expect(originOf(await type(agent, page, 'ada@lab.example'))).to.equal(LAB);
  });

  it('rejects a form with a wrong CSRF token, or from another browser', async () => {
    const agent = createAgent(server);
    const { action, fields } = readForm(await open(agent), 'identifier');
    const forged = await agent.request(action, {
      form: { ...fields, _csrf: 'x', identifier: 'a@corp.example' },
    });
    expect(forged.status).to.equal(403);
    const stranger = await createAgent(server).request(action, {
      form: { ...fields, identifier: 'a@corp.example' },
    });
    expect(stranger.status).to.equal(400);
  });

  it('escapes the address, and cuts off one that is too long', async () => {
    const nasty = '"><script>alert(1)</script>@home.example';
    const { agent, answer } = await typed(nasty);
    expect((await agent.get(answer.location)).text).not.to.contain('<script>alert');
    const long = await typed(`${'a'.repeat(5000)}@home.example`);
    expect((await long.agent.get(long.answer.location)).text.length).to.be.below(5000);
  });

  describe('for an organization', () => {
    const members = { client_id: 'members', organization: 'org_acme' };

    it('leads to the only enterprise connection of the organization by its verified domain', async () => {
      expect(originOf((await typed('ada@acme.example', members)).answer)).to.equal(CORP);
      const hinted = await authorize(
        createAgent(server),
        webRequest({ ...members, login_hint: 'ada@acme.example' }),
      );
      expect(originOf(hinted)).to.equal(CORP);
    });

    it('ignores unverified domains, and connections that the organization has not enabled', async () => {
      for (const address of ['ada@unproved.example', 'ada@lab.example'])
        expect((await typed(address, members)).answer.location).to.match(/\/login$/);
    });

    it('ignores domains of the organization in a request without it', async () => {
      const { answer } = await typed('ada@acme.example', { client_id: 'members' });
      expect(answer.location).to.match(/\/login$/);
    });
  });

  it('offers domain connections to third-party applications only', async () => {
    const answer = await authorize(createAgent(server), webRequest({ client_id: 'foreign' }));
    expect(originOf(answer)).to.equal(CORP);
    const own = await openPage(createAgent(server), server, webRequest());
    expect(own.text).not.to.contain('open-house');
  });

  describe('WebFinger', () => {
    const ISSUER = 'http://openid.net/specs/connect/1.0/issuer';
    const discover = (domain: string, rel = ISSUER) =>
      createAgent(server).get(
        `/.well-known/webfinger?${new URLSearchParams({ resource: `urn:auth0:discovery:domain:${domain}`, rel })}`,
        { origin: 'https://app.example.test' },
      );

    for (const domain of ['corp.example', 'CORP.Example', 'lab.example', 'open.example', 'acme.example']) {
      it(`returns the issuer for the domain of an enterprise connection: ${domain}`, async () => {
        const { status, headers, json } = await discover(domain);
        expect(status).to.equal(200);
        expect(headers).to.include({ 'access-control-allow-origin': '*' });
        expect(headers['content-type']).to.contain('application/jrd+json');
        expect(json()).to.deep.equal({
          subject: `urn:auth0:discovery:domain:${domain}`,
          links: [{ rel: ISSUER, href: server.issuer }],
        });
      });
    }

    for (const domain of [
      'example.test',
      'unproved.example',
      'unused.example',
      'x@corp.example',
      'a b',
      '',
    ]) {
      it(`returns 404 for any other domain: "${domain}"`, async () => {
        const { status, headers } = await discover(domain);
        expect(status).to.equal(404);
        expect(headers).to.include({ 'access-control-allow-origin': '*' });
      });
    }

    it('returns no links of other relations, and rejects a request without one resource', async () => {
      expect((await discover('corp.example', 'http://webfinger.net/rel/avatar')).json().links).to.deep.equal(
        [],
      );
      for (const query of ['', '?resource=', '?resource=a&resource=b'])
        expect((await createAgent(server).get(`/.well-known/webfinger${query}`)).status, query).to.equal(400);
      expect(
        (await createAgent(server).get('/.well-known/webfinger?resource=acct:a@corp.example')).status,
      ).to.equal(404);
    });
  });

  describe('with prompts.identifier_first', () => {
    let first: TestServer;
    before(async () => {
      first = await startServer({ tenant: { ...tenant, prompts: { identifier_first: true } } });
    });
    after(() => first.stop());

    it('is shown by an application with nothing but passwords', async () => {
      const agent = createAgent(first);
      const page = await openPage(agent, first, webRequest());
      expect(page.text).not.to.contain('name="password"');
      const next = await follow(agent, await type(agent, page, USER.email), first.url);
      expect(responseOf(await submitLogin(agent, first, next)).code).to.be.a('string');
    });
  });
});

/** Returns a page without what differs by request or user. */
function anonymous(text: string, own: readonly string[]): string {
  const plain = own.reduce((rest, one) => rest.replaceAll(one, ''), text);
  return plain.replaceAll(/nonce="[^"]*"|name="_csrf" value="[^"]*"/g, '');
}
