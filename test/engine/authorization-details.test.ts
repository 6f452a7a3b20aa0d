// Rich authorization requests (RFC 9396): `authorization_details` of the types that an API has registered.
import { expect } from 'chai';
import { SignJWT } from 'jose';
import { type Agent, type Answer, createAgent, readForm } from '../support/agent.ts';
import { clientKey } from '../support/client-key.ts';
import {
  API,
  authorize,
  follow,
  logIn,
  payload,
  responseOf,
  tenant,
  token,
  WEB_CALLBACK,
  webRequest,
} from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';

const key = await clientKey('ES256');
const PAYMENT = {
  type: 'payment_initiation',
  actions: ['initiate', 'status'],
  instructedAmount: { currency: 'EUR', amount: '123.50' },
  creditor: { name: 'Merchant <b>A</b>' },
};
const TEMPLATED = { type: 'account_information', accounts: ['DE02 <img src=x>'] };
const resourceServers = [
  {
    ...tenant.resourceServers[0],
    authorization_details: [
      { type: 'payment_initiation' },
      {
        type: 'account_information',
        template:
          '<h2 class="api">{{ client.name }}: {{ type }}</h2>{% for one in authorization_detail.accounts %}<p>{{ one }}</p>{% endfor %}',
      },
      { type: 'broken', template: '{% if %}' },
    ],
  },
  { ...tenant.resourceServers[1], authorization_details: [{ type: 'guarded' }] },
];
const clients = [
  ...tenant.clients,
  {
    client_id: 'bank-app',
    name: 'Bank app',
    client_secret: 'bank-secret',
    callbacks: [WEB_CALLBACK],
    grant_types: ['authorization_code', 'refresh_token', 'implicit', 'client_credentials'],
    signed_request_object: { credentials: [key.credential] },
  },
];
const databases = tenant.databases.map((one) => ({
  ...one,
  enabled_clients: [...one.enabled_clients, 'bank-app'],
}));
const clientGrants = [
  {
    client_id: 'bank-app',
    audience: API,
    scope: ['read:things'],
    authorization_details_types: ['payment_initiation'],
  },
];

describe('authorization_details', () => {
  let server: TestServer;
  before(async () => {
    server = await startServer({ tenant: { ...tenant, clients, databases, resourceServers, clientGrants } });
  });
  after(() => server.stop());

  const agent = () => createAgent(server);
  const secret = { client_id: 'bank-app', client_secret: 'bank-secret' };
  const asking = (details: unknown, over: Record<string, string | undefined> = {}) =>
    webRequest({
      client_id: 'bank-app',
      audience: API,
      scope: 'openid read:things offline_access',
      authorization_details: typeof details === 'string' ? details : JSON.stringify(details),
      ...over,
    });
  /** Logs in, as far as the consent page. */
  const asked = async (browser: Agent, details: unknown): Promise<Answer> => {
    const page = await logIn(browser, server, asking(details));
    expect(page.status, page.location).to.equal(200);
    return page;
  };
  const decide = async (browser: Agent, page: Answer, decision: string): Promise<Answer> => {
    const { action, fields } = readForm(page);
    return follow(browser, await browser.request(action, { form: { ...fields, decision } }), server.url);
  };
  const exchange = async (browser: Agent, answer: Answer) => {
    const form = {
      grant_type: 'authorization_code',
      code: String(responseOf(answer).code),
      redirect_uri: WEB_CALLBACK,
    };
    return (await token(browser, { ...form, ...secret })).json();
  };
  const refresh = async (refresh_token: string, over: Record<string, string> = {}) =>
    token(agent(), { grant_type: 'refresh_token', refresh_token, ...secret, ...over });

  it('are shown on the consent page, and are in the token and its response, also after a refresh', async () => {
    const browser = agent();
    const answer = await decide(browser, await asked(browser, [PAYMENT]), 'accept');
    const tokens = await exchange(browser, answer);
    expect(tokens.authorization_details).to.deep.equal([PAYMENT]);
    expect(payload(tokens.access_token).authorization_details).to.deep.equal([PAYMENT]);
    const refreshed = (await refresh(tokens.refresh_token)).json();
    expect(refreshed.authorization_details).to.deep.equal([PAYMENT]);
    expect(payload(refreshed.access_token).authorization_details).to.deep.equal([PAYMENT]);
  });

  it('require consent each time, even for the same details, and are refused to a silent request', async () => {
    const browser = agent();
    await decide(browser, await asked(browser, [PAYMENT]), 'accept');
    for (const details of [
      [PAYMENT],
      [{ ...PAYMENT, instructedAmount: { currency: 'EUR', amount: '99999' } }],
    ]) {
      const page = await follow(browser, await authorize(browser, asking(details)), server.url);
      expect(page.text).to.contain('payment_initiation');
      const silent = await authorize(browser, asking(details, { prompt: 'none' }));
      expect(responseOf(silent).error).to.equal('consent_required');
    }
    const without = await authorize(
      browser,
      asking(undefined as unknown as string, { authorization_details: undefined }),
    );
    expect(responseOf(without)).to.have.property('code');
  });

  it('end as access_denied when the user refuses them', async () => {
    const browser = agent();
    const answer = await decide(browser, await asked(browser, [PAYMENT]), 'deny');
    expect(responseOf(answer).error).to.equal('access_denied');
  });

  it('are listed in full on the consent page, as escaped text', async () => {
    const { text } = await asked(agent(), [{ ...PAYMENT, withoutLimit: {}, options: [{}, 'urgent'] }]);
    for (const part of [
      // A member may mean something by being there.
      ...['withoutLimit', 'options › 1', 'options › 2'],
      'payment_initiation',
      'initiate, status',
      'instructedAmount › currency',
      'EUR',
      '123.50',
    ])
      expect(text).to.contain(part);
    expect(text).to.contain('Merchant &lt;b&gt;A&lt;/b&gt;').and.not.contain('<b>A</b>');
  });

  it('are rendered by the template of their type, which escapes values, or listed when the template fails', async () => {
    const { text } = await asked(agent(), [TEMPLATED]);
    expect(text).to.contain('<h2 class="api">Bank app: account_information</h2>');
    expect(text).to.contain('DE02 &lt;img src=x&gt;').and.not.contain('<img src=x>');
    const broken = await asked(agent(), [{ type: 'broken', limit: 'no limit' }]);
    expect(broken.text).to.contain('no limit');
  });

  describe('are refused at the redirect URI', () => {
    const deep = JSON.parse(`${'{"a":'.repeat(20)}1${'}'.repeat(20)}`);
    const bad: [string, unknown, Record<string, string>?][] = [
      ['of an unknown type', [{ type: 'unknown' }]],
      ['of a type of another API', [{ type: 'guarded' }]],
      ['without an API', [PAYMENT], { audience: '' }],
      ['one of which is unknown', [PAYMENT, { type: 'unknown' }]],
      ['without a type', [{ amount: 1 }]],
      ['that are no list', PAYMENT],
      ['that are no objects', ['payment_initiation']],
      ['that are no JSON', '[{'],
      ['with actions that are no list', [{ ...PAYMENT, actions: 'initiate' }]],
      ['that are nested too deep', [{ type: 'payment_initiation', deep }]],
      ['that are more than a person can read', [{ type: 'payment_initiation', to: 'x'.repeat(1_001) }]],
      ['of a type that is a member of Object.prototype', [{ type: 'constructor' }]],
    ];
    for (const [what, details, over] of bad) {
      it(`${what}, and at /oauth/par`, async () => {
        const request = asking(details, over);
        const answer = await authorize(agent(), request);
        expect(responseOf(answer)).to.include({ error: 'invalid_authorization_details', state: 'the-state' });
        const pushed = await agent().request('/oauth/par', { form: { ...request, ...secret } });
        expect(pushed.status).to.equal(400);
        expect(pushed.json().error).to.equal('invalid_authorization_details');
      });
    }

    it('when the response type returns a token from /authorize', async () => {
      const answer = await authorize(agent(), asking([PAYMENT], { response_type: 'token' }));
      const fragment = new URLSearchParams(new URL(answer.location).hash.slice(1));
      expect(fragment.get('error')).to.equal('invalid_request');
    });
  });

  it('are accepted in a pushed request, and as JSON in a request object', async () => {
    const { authorization_details: _, ...least } = asking([PAYMENT]);
    const request = await new SignJWT({
      ...least,
      authorization_details: [PAYMENT],
      iss: 'bank-app',
      aud: server.issuer,
    })
      .setProtectedHeader({ alg: 'ES256' })
      .sign(key.privateKey);
    for (const form of [asking([PAYMENT]), { request }]) {
      const pushed = await agent().request('/oauth/par', { form: { ...form, ...secret } });
      expect(pushed.status, pushed.text).to.equal(201);
      const browser = agent();
      const { request_uri } = pushed.json();
      const page = await logIn(browser, server, { client_id: 'bank-app', request_uri });
      expect(page.text).to.contain('123.50');
      const tokens = await exchange(browser, await decide(browser, page, 'accept'));
      expect(tokens.authorization_details).to.deep.equal([PAYMENT]);
    }
  });

  it('can be reduced at the token endpoint, but not extended or changed (RFC 9396 §6.1)', async () => {
    const browser = agent();
    const answer = await decide(browser, await asked(browser, [PAYMENT, TEMPLATED]), 'accept');
    const { refresh_token } = await exchange(browser, answer);
    const fewer = await refresh(refresh_token, {
      resource: API,
      authorization_details: JSON.stringify([TEMPLATED]),
    });
    expect(fewer.json().authorization_details).to.deep.equal([TEMPLATED]);
    for (const details of ['[{', '{}', '[5]', '"payment_initiation"']) {
      const malformed = await refresh(refresh_token, { authorization_details: details });
      expect(malformed.json().error, details).to.equal('invalid_authorization_details');
    }
    const changed = { ...PAYMENT, instructedAmount: { currency: 'EUR', amount: '9999' } };
    for (const details of [[changed], [TEMPLATED, { type: 'broken' }]]) {
      const more = await refresh(refresh_token, {
        resource: API,
        authorization_details: JSON.stringify(details),
      });
      expect(more.status).to.equal(400);
      expect(more.json().error).to.equal('invalid_authorization_details');
    }
  });

  it('are accepted with client_credentials when the client grant has their type', async () => {
    const ask = (details: object[], over: object = {}) =>
      token(agent(), {
        grant_type: 'client_credentials',
        audience: API,
        ...secret,
        authorization_details: JSON.stringify(details),
        ...over,
      });
    const answer = (await ask([PAYMENT])).json();
    expect(payload(answer.access_token).authorization_details).to.deep.equal([PAYMENT]);
    for (const refused of [
      await ask([TEMPLATED]),
      await ask([PAYMENT], { client_id: 'm2m', client_secret: 'm2m-secret' }),
    ]) {
      expect(refused.json().error).to.be.oneOf(['invalid_authorization_details', 'access_denied']);
    }
  });

  it('are not in a token when the request had none', async () => {
    const browser = agent();
    const over = { authorization_details: undefined };
    const tokens = await exchange(browser, await logIn(browser, server, asking('', over)));
    expect(tokens).not.to.have.property('authorization_details');
    expect(payload(tokens.access_token)).not.to.have.property('authorization_details');
    const more = await refresh(tokens.refresh_token, {
      resource: API,
      authorization_details: JSON.stringify([PAYMENT]),
    });
    expect(more.json().error).to.equal('invalid_authorization_details');
  });

  it('are listed in the metadata by the types that APIs have registered', async () => {
    const metadata = (await agent().get('/.well-known/openid-configuration')).json();
    expect(metadata.authorization_details_types_supported).to.have.members([
      'payment_initiation',
      'account_information',
      'broken',
      'guarded',
    ]);
  });
});
