// Wildcards and the placeholder of an organization's name in an application's callbacks, logout URLs and origins: everything
// that compares an address with these lists, and the ways to smuggle another host past them.
import { expect } from 'chai';
import { SignJWT } from 'jose';
import { isCallbackOf } from '../../src/records/clients/allowed-urls.ts';
import { membershipId } from '../../src/records/users/organizations.ts';
import { type Agent, createAgent } from '../support/agent.ts';
import { clientKey } from '../support/client-key.ts';
import {
  authorize,
  follow,
  logIn,
  pkce,
  responseOf,
  spaRequest,
  submitLogin,
  tenant,
  token,
  USER,
} from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { tenantWith } from '../support/tenant.ts';

const CALLBACK = 'https://acme.app.example.com/cb';
const NAMED = 'https://acme.members.example.com/cb';

describe('wildcards in the URLs of an application', () => {
  let server: TestServer;
  let key: Awaited<ReturnType<typeof clientKey>>;
  const { challenge, verifier } = pkce();

  before(async () => {
    key = await clientKey('RS256');
    const members = {
      callbacks: ['https://{organization_name}.members.example.com/cb', 'https://own.example.com/cb'],
      allowed_logout_urls: ['https://{organization_name}.members.example.com/out'],
      allowed_origins: ['https://{organization_name}.origin.example.com'],
      grant_types: ['authorization_code'],
    };
    server = await startServer({
      tenant: tenantWith({
        tenant: {
          ...tenant.tenant,
          allowed_logout_urls: ['https://*.bye.example.com'],
          allow_organization_name_in_authentication_api: true,
        },
        change: {
          spa: {
            callbacks: [
              'https://*.app.example.com/cb',
              'https://pr-*-web.preview.example.com/cb?from=preview',
              'http://*.plain.example.com:8080/cb',
              'http://*.localhost:3000/cb',
              'https://star.example.com/*',
              'com.example.app:/cb',
            ],
            web_origins: ['https://*.web.example.com'],
            allowed_origins: ['https://*.cors.example.com:8443'],
            allowed_logout_urls: [
              'https://*.app.example.com/out',
              'https://pr-*.app.example.com/preview?x=1',
            ],
            cross_origin_authentication: true,
          },
          web: {
            callbacks: ['https://*.app.example.com/cb'],
            signed_request_object: { credentials: [key.credential] },
          },
          third: { callbacks: ['https://*.third.example.com/cb', 'https://third.example.com/cb'] },
        },
        add: {
          clients: [
            {
              client_id: 'allowing',
              name: 'Allowing',
              app_type: 'spa',
              organization_usage: 'allow',
              ...members,
            },
            {
              client_id: 'requiring',
              name: 'Requiring',
              app_type: 'spa',
              organization_usage: 'require',
              ...members,
            },
            {
              client_id: 'choosing',
              name: 'Choosing',
              app_type: 'spa',
              organization_usage: 'require',
              organization_require_behavior: 'post_login_prompt',
              ...members,
            },
            { client_id: 'denying', name: 'Denying', app_type: 'spa', ...members },
          ],
        },
        organizations: [
          { id: 'org_acme', name: 'acme', display_name: 'Acme', connections: [{ name: 'users' }] },
          { id: 'org_other', name: 'other_1', display_name: 'Other', connections: [{ name: 'users' }] },
        ],
        enable: ['allowing', 'requiring', 'choosing', 'denying'],
      }),
    });
    const user = await server.users.findInConnection({ name: 'users' }, USER.email);
    for (const organization_id of ['org_acme', 'org_other'])
      await server.store.collection('memberships').insert({
        id: membershipId(organization_id, user?.id ?? ''),
        organization_id,
        user_id: user?.id ?? '',
        roles: [],
      });
  });
  after(() => server?.stop());

  const agent = () => createAgent(server);
  const ask = async (redirect_uri: string, over: Record<string, string | undefined> = {}) =>
    authorize(agent(), spaRequest(challenge, { redirect_uri, ...over }));
  const isAccepted = async (redirect_uri: string, over: Record<string, string | undefined> = {}) => {
    const answer = await ask(redirect_uri, { prompt: 'none', ...over });
    if (answer.status === 302) {
      expect(answer.location.startsWith(redirect_uri.split('?')[0] ?? '')).to.equal(true);
      expect(responseOf(answer)).to.include({ error: 'login_required' });
    } else expect(answer.status).to.equal(400);
    return answer.status === 302;
  };

  for (const address of [
    CALLBACK,
    'https://a.app.example.com/cb',
    'https://a-1-b.app.example.com/cb',
    'https://xn--bcher-kva.app.example.com/cb',
    'https://pr-12-web.preview.example.com/cb?from=preview',
    'https://pr-a-b-web.preview.example.com/cb?from=preview',
    'http://acme.plain.example.com:8080/cb',
    'http://acme.localhost:3000/cb',
    'https://star.example.com/*',
  ])
    it(`accepts the callback ${address}`, async () => {
      expect(await isAccepted(address)).to.equal(true);
    });

  const refused: [string, string][] = [
    ['https://*.app.example.com/cb', 'the wildcard itself'],
    ['https://%2a.app.example.com/cb', 'the wildcard, encoded'],
    ['https://app.example.com/cb', 'nothing in its place'],
    ['https://.app.example.com/cb', 'an empty label'],
    ['https://a.b.app.example.com/cb', 'two labels'],
    ['https://a%2eb.app.example.com/cb', 'an encoded dot'],
    ['https://a。b.app.example.com/cb', 'an ideographic full stop'],
    ['https://xapp.example.com/cb', 'a suffix without its dot'],
    ['https://acme.app.example.com.evil.com/cb', 'a host that begins so'],
    ['https://evil.com/.app.example.com/cb', 'the host in the path'],
    ['https://evil.com?.app.example.com/cb', 'the host in the query'],
    ['https://evil.com#.app.example.com/cb', 'the host in the fragment'],
    ['https://evil.com\\.app.example.com/cb', 'a backslash'],
    ['https://evil.com%5c.app.example.com/cb', 'an encoded backslash'],
    ['https://a@evil.com/.app.example.com/cb', 'a user name and another host'],
    ['https://evil.com@acme.app.example.com/cb', 'a user name'],
    ['https://a:b@acme.app.example.com/cb', 'a password'],
    ['https://a:80.app.example.com/cb', 'a port inside the host'],
    ['https://acme.app.example.com:443/cb', 'a port that is not in the entry'],
    ['https://acme.app.example.com:8443/cb', 'another port'],
    ['http://acme.app.example.com/cb', 'another scheme'],
    ['https://acme.plain.example.com:8080/cb', 'https for http'],
    ['http://acme.plain.example.com/cb', 'no port'],
    ['javascript://acme.app.example.com/cb', 'a script'],
    ['https://acme.app.example.com./cb', 'a trailing dot'],
    ['https://ACME.app.example.com/cb', 'capitals'],
    ['https://bücher.app.example.com/cb', 'letters that browsers rewrite'],
    ['https://ａcme.app.example.com/cb', 'full-width letters'],
    ['https://-acme.app.example.com/cb', 'a dash at the beginning'],
    ['https://acme-.app.example.com/cb', 'a dash at the end'],
    [`https://${'a'.repeat(64)}.app.example.com/cb`, 'a label that is too long'],
    ['https://a b.app.example.com/cb', 'a space'],
    ['https://a\n.app.example.com/cb', 'a line break'],
    ['https://a\0.app.example.com/cb', 'a null'],
    ['https://127.0.0.1/cb', 'an address'],
    ['https://[::1].app.example.com/cb', 'an IPv6 address'],
    ['https://acme.app.example.com/cb/../cb', 'a path that leads there'],
    ['https://acme.app.example.com/x/../cb', 'path traversal'],
    ['https://acme.app.example.com/cb/more', 'a longer path'],
    ['https://acme.app.example.com/cb?x=1', 'a query'],
    ['https://acme.app.example.com/CB', 'another path'],
    ['https://acme.app.example.com', 'no path'],
    ['https://pr--web.preview.example.com/cb?from=preview', 'nothing within a label'],
    ['https://pr-a.b-web.preview.example.com/cb?from=preview', 'a dot within a label'],
    ['https://pr-12-web.preview.example.com/cb', 'without the query of the entry'],
    ['https://xpr-12-web.preview.example.com/cb?from=preview', 'more before it'],
    [
      `https://pr-${'a'.repeat(57)}-web.preview.example.com/cb?from=preview`,
      'a label that is too long with its ends',
    ],
    ['https://star.example.com/anything', 'a star in the path for anything'],
    ['com.example.app:/other', 'a native scheme'],
  ];
  for (const [address, why] of refused)
    it(`refuses the callback ${JSON.stringify(address)}: ${why}`, async () => {
      const answer = await ask(address);
      expect(answer.status).to.equal(400);
      expect(answer.location).to.equal('');
    });

  it('exchanges a code only with the address that it was sent to', async () => {
    const browser = agent();
    const answer = await logIn(browser, server, spaRequest(challenge, { redirect_uri: CALLBACK }));
    expect(answer.location.startsWith(`${CALLBACK}?`)).to.equal(true);
    const exchanged = (redirect_uri: string) =>
      token(browser, {
        grant_type: 'authorization_code',
        client_id: 'spa',
        code: responseOf(answer).code,
        code_verifier: verifier,
        redirect_uri,
      });
    for (const other of ['https://evil.app.example.com/cb', 'https://*.app.example.com/cb'])
      expect((await exchanged(other)).json()).to.include({ error: 'invalid_grant' });
    expect((await exchanged(CALLBACK)).json()).to.have.property('access_token');
  });

  it('are the same in pushed and in signed requests', async () => {
    const web = (redirect_uri: string) => ({
      client_id: 'web',
      response_type: 'code',
      scope: 'openid',
      redirect_uri,
    });
    const push = (redirect_uri: string) =>
      agent().request('/oauth/par', { form: { ...web(redirect_uri), client_secret: 'web-secret' } });
    expect((await push(CALLBACK)).status).to.equal(201);
    for (const address of ['https://a.b.app.example.com/cb', 'https://*.app.example.com/cb'])
      expect((await push(address)).status).to.equal(400);
    const now = Math.floor(Date.now() / 1000);
    const signed = async (redirect_uri: string) => {
      const request = await new SignJWT({
        ...web(redirect_uri),
        iss: 'web',
        aud: server.issuer,
        exp: now + 60,
        nbf: now,
      })
        .setProtectedHeader({ alg: 'RS256' })
        .sign(key.privateKey);
      return authorize(agent(), { client_id: 'web', request });
    };
    expect((await signed(CALLBACK)).status).to.equal(302);
    expect((await signed('https://a.b.app.example.com/cb')).status).to.equal(400);
  });

  it('post a message to the address of the request and to no other', async () => {
    const answer = await ask(CALLBACK, { prompt: 'none', response_mode: 'web_message' });
    expect(answer.text).to.include('"https://acme.app.example.com")');
    expect(answer.headers['content-security-policy']).to.include(
      'frame-ancestors https://acme.app.example.com;',
    );
  });

  it('have no effect in a third-party application, as at the hosted service', async () => {
    expect(await isAccepted('https://a.third.example.com/cb', { client_id: 'third' })).to.equal(false);
    expect(await isAccepted('https://third.example.com/cb', { client_id: 'third' })).to.equal(true);
  });

  it('match nothing below a public suffix, though an older version has stored them', async () => {
    const entries = [
      'https://*.co.uk/cb',
      'https://*.github.io/cb',
      'https://app-*.vercel.app/cb',
      'https://*.com/cb',
      'https://*.0.0.1/cb',
      'https://*/cb',
      'https://*.*.example.com/cb',
      'https://sub.*.example.com/cb',
    ];
    await server.store
      .collection('clients')
      .update('leeway', (client) => ({ ...client, callbacks: entries }));
    for (const address of [
      'https://evil.co.uk/cb',
      'https://evil.github.io/cb',
      'https://app-evil.vercel.app/cb',
      'https://evil.com/cb',
      'https://127.0.0.1/cb',
      'https://evil/cb',
      'https://a.b.example.com/cb',
      'https://sub.a.example.com/cb',
      ...entries,
    ])
      expect((await ask(address, { client_id: 'leeway' })).status, address).to.equal(400);
  });

  describe('for pages', () => {
    const allowedFor = async (origin: string) =>
      (
        await agent().request('/oauth/token', {
          method: 'OPTIONS',
          headers: { origin, 'access-control-request-method': 'POST' },
        })
      ).headers['access-control-allow-origin'];
    for (const origin of [
      'https://a.web.example.com',
      'https://a.cors.example.com:8443',
      'https://a.app.example.com',
      'http://a.localhost:3000',
    ])
      it(`allow the origin ${origin}`, async () => {
        expect(await allowedFor(origin)).to.equal(origin);
      });
    for (const origin of [
      'https://*.web.example.com',
      'https://web.example.com',
      'https://a.b.web.example.com',
      'http://a.web.example.com',
      'https://a.web.example.com:444',
      'https://a.cors.example.com',
      'https://xweb.example.com',
      'https://evil.com/.web.example.com',
      'https://a.web.example.com.evil.com',
      'https://a.third.example.com',
      '*',
      'null',
    ])
      it(`do not allow the origin ${origin}`, async () => {
        expect(await allowedFor(origin)).to.equal(undefined);
      });

    it('allow a login of another origin as they allow CORS', async () => {
      const body = {
        client_id: 'spa',
        credential_type: 'http://auth0.com/oauth/grant-type/password-realm',
        username: 'ada@example.test',
        password: 'Correct-Horse-1',
        realm: 'users',
      };
      const from = async (origin: string) =>
        (await agent().request('/co/authenticate', { json: body, headers: { origin } })).status;
      expect(await from('https://a.web.example.com')).to.equal(200);
      expect(await from('https://a.b.web.example.com')).to.equal(403);
    });
  });

  describe('at a logout', () => {
    const returned = (path: string) => async (address: string) => {
      const name = path === '/v2/logout' ? 'returnTo' : 'post_logout_redirect_uri';
      return (await agent().get(`${path}?${new URLSearchParams({ client_id: 'spa', [name]: address })}`))
        .location;
    };
    for (const path of ['/v2/logout', '/oidc/logout']) {
      it(`lead to one label, at ${path}`, async () => {
        const to = returned(path);
        for (const address of ['https://a.app.example.com/out', 'https://pr-1.app.example.com/preview?x=1'])
          expect(await to(address)).to.equal(address);
        for (const address of [
          'https://a.b.app.example.com/out',
          'https://*.app.example.com/out',
          'https://evil.com/out',
          'https://a.app.example.com/other',
        ])
          expect(await to(address), address).to.equal('');
      });
    }

    it("are the tenant's, too", async () => {
      const to = async (returnTo: string) =>
        (await agent().get(`/v2/logout?${new URLSearchParams({ returnTo })}`)).location;
      expect(await to('https://a.bye.example.com')).to.equal('https://a.bye.example.com/');
      expect(await to('https://a.b.bye.example.com')).to.equal('');
    });
  });

  describe('the name of an organization', () => {
    const named = (address: string, over: Record<string, string | undefined>) =>
      isAccepted(address, { scope: 'openid', ...over });
    const acme = { client_id: 'allowing', organization: 'org_acme' };

    it('is that of the organization in the request', async () => {
      expect(await named(NAMED, acme)).to.equal(true);
      expect(await named(NAMED, { ...acme, organization: 'ACME' })).to.equal(true);
      expect(await named(NAMED, { ...acme, client_id: 'requiring' })).to.equal(true);
      expect(
        await named('https://other_1.members.example.com/cb', { ...acme, organization: 'org_other' }),
      ).to.equal(true);
    });

    for (const [why, address, over] of [
      ['without an organization', NAMED, { organization: undefined }],
      ['for another organization', NAMED, { organization: 'org_other' }],
      ['for an organization that there is not', NAMED, { organization: 'org_none' }],
      ['in an application that is not for organizations', NAMED, { client_id: 'denying' }],
      ['as it is written', 'https://{organization_name}.members.example.com/cb', {}],
      ['in capitals', 'https://ACME.members.example.com/cb', {}],
      ['with the id', 'https://org_acme.members.example.com/cb', {}],
      ['with another label before it', 'https://a.acme.members.example.com/cb', {}],
      ['with a user name', 'https://acme@evil.com/.members.example.com/cb', {}],
    ] as [string, string, Record<string, string | undefined>][])
      it(`matches nothing ${why}`, async () => {
        expect(await named(address, { ...acme, ...over })).to.equal(false);
      });

    for (const name of [
      'evil.com/',
      'a.b',
      'a@evil.com',
      'acme.members',
      '*',
      '-x',
      'bücher',
      '{organization_name}',
    ])
      it(`matches nothing for an organization named ${name}`, async () => {
        await server.store.collection('organizations').update('org_other', (one) => ({ ...one, name }));
        try {
          const address = `https://${name}.members.example.com/cb`;
          expect((await ask(address, { ...acme, organization: 'org_other' })).status).to.equal(400);
        } finally {
          await server.store
            .collection('organizations')
            .update('org_other', (one) => ({ ...one, name: 'other_1' }));
        }
      });

    const loginPage = async (browser: Agent, over: Record<string, string | undefined>) =>
      follow(
        browser,
        await authorize(browser, spaRequest(challenge, { redirect_uri: NAMED, ...acme, ...over })),
        server.url,
      );

    it('leads the user back, and to nobody else', async () => {
      const browser = agent();
      const answer = await submitLogin(browser, server, await loginPage(browser, {}));
      expect(answer.location.startsWith(`${NAMED}?`)).to.equal(true);
      expect(responseOf(answer)).to.have.property('code');
    });

    it('is read again when the login is done: no code goes to the former name', async () => {
      const browser = agent();
      const page = await loginPage(browser, {});
      await server.store
        .collection('organizations')
        .update('org_acme', (one) => ({ ...one, name: 'renamed' }));
      try {
        const answer = await submitLogin(browser, server, page);
        expect(answer.status).to.equal(400);
        expect(answer.location).to.equal('');
      } finally {
        await server.store
          .collection('organizations')
          .update('org_acme', (one) => ({ ...one, name: 'acme' }));
      }
    });

    it('does not match for an organization that the user chooses after the request', async () => {
      expect(await named(NAMED, { client_id: 'choosing', organization: undefined })).to.equal(false);
    });

    it('allows the pages of an organization of the tenant to read answers, and no others', async () => {
      const allowed = async (origin: string) =>
        (
          await agent().request('/oauth/token', {
            method: 'OPTIONS',
            headers: { origin, 'access-control-request-method': 'POST' },
          })
        ).headers['access-control-allow-origin'];
      expect(await allowed('https://acme.origin.example.com')).to.equal('https://acme.origin.example.com');
      expect(await allowed('https://acme.members.example.com')).to.equal('https://acme.members.example.com');
      for (const origin of [
        'https://nobody.origin.example.com',
        'https://org_acme.origin.example.com',
        'https://{organization_name}.origin.example.com',
      ])
        expect(await allowed(origin), origin).to.equal(undefined);
    });

    it('is at a logout that of the session, or of the ID token', async () => {
      const out = 'https://acme.members.example.com/out';
      const other = 'https://other_1.members.example.com/out';
      const at = async (browser: Agent, query: Record<string, string>, path = '/v2/logout') =>
        (await browser.get(`${path}?${new URLSearchParams(query)}`)).location;
      const browser = agent();
      const { code } = responseOf(
        await submitLogin(browser, server, await loginPage(browser, { scope: 'openid' })),
      );
      const { id_token } = (
        await token(browser, {
          grant_type: 'authorization_code',
          client_id: 'allowing',
          code,
          code_verifier: verifier,
          redirect_uri: NAMED,
        })
      ).json();
      expect(await at(agent(), { client_id: 'allowing', returnTo: out })).to.equal('');
      expect(
        await at(agent(), { id_token_hint: id_token, post_logout_redirect_uri: other }, '/oidc/logout'),
      ).to.equal('');
      expect(
        await at(agent(), { id_token_hint: id_token, post_logout_redirect_uri: out }, '/oidc/logout'),
      ).to.equal(out);
      expect(await at(browser, { client_id: 'allowing', returnTo: other })).to.equal('');
      expect(await at(browser, { client_id: 'allowing', returnTo: out })).to.equal(out);
    });
  });

  it('are compared in a time that the lengths bound', () => {
    const callbacks = Array.from(
      { length: 1000 },
      (_, at) => `https://a-*-${at}.app.example.com/${'a'.repeat(1900)}`,
    );
    const address = `https://a-${'-'.repeat(4000)}.app.example.com/${'a'.repeat(4000)}`;
    const before = process.cpuUsage();
    for (let times = 0; times < 20; times++) isCallbackOf({ callbacks }, address);
    expect(process.cpuUsage(before).user / 20_000, 'milliseconds').to.be.below(20);
  });
});
