// CIBA requests with authorization_details (RFC 9396), which the user sees before they approve, and with
// acr_values.
import { expect } from 'chai';
import { managed } from '../actions/support.ts';
import { devicesOf } from '../factors/device.ts';
import { callsOf, codeOf, POLICY } from '../factors/tenant.ts';
import { startManaged } from '../management/support.ts';
import { type Agent, type Answer, createAgent, readForm } from '../support/agent.ts';
import { launchBrowser } from '../support/browser.ts';
import { API, follow, payload, submitLogin, token, USER } from '../support/flows.ts';
import { nextMessageTo } from '../support/inbox.ts';
import type { TestServer } from '../support/server.ts';
import { CIBA_GRANT, cibaTenant, told } from './tenant.ts';

const PAYMENT = {
  type: 'payment',
  amount: { value: '12.50', currency: 'EUR' },
  creditor: 'Tom & <b>Jerry</b>',
};
/** A user with a second factor. */
const CAREFUL = 'mfa-50@example.test';
const tenant = {
  ...cibaTenant,
  resourceServers: cibaTenant.resourceServers.map((api) =>
    api.identifier === API
      ? {
          ...api,
          authorization_details: [
            { type: 'payment' },
            { type: 'order', template: '<p>Order {{ authorization_detail.item }} for {{ client.name }}</p>' },
          ],
        }
      : api,
  ),
};

describe('CIBA requests with authorization_details or acr_values', () => {
  let server: TestServer;
  let calls: ReturnType<typeof callsOf>;
  let users = 0;
  const devices = devicesOf(() => ({ server, calls, someone: () => `mfa-${users++}@example.test` }));
  beforeEach(async () => {
    server = await startManaged(tenant);
    calls = callsOf(server);
    users = 0;
  });
  afterEach(() => server.stop());

  const ask = async (fields: Record<string, string>, { client = 'mail-bank', email = USER.email } = {}) => {
    const sub = (await server.users.withEmail(email))[0]?.id ?? '';
    return createAgent(server).request('/bc-authorize', {
      form: {
        client_id: client,
        client_secret: `${client}-secret`,
        scope: 'openid offline_access read:things',
        audience: API,
        login_hint: JSON.stringify({ format: 'iss_sub', iss: server.issuer, sub }),
        ...fields,
      },
    });
  };
  const poll = (auth_req_id: string) =>
    token(createAgent(server), {
      grant_type: CIBA_GRANT,
      client_id: 'mail-bank',
      client_secret: 'mail-bank-secret',
      auth_req_id,
    });
  /** Opens the link of the mail, and logs in. */
  const open = async (agent: Agent, email = USER.email, mails = 1): Promise<Answer> => {
    const { link = '' } = await nextMessageTo(server, email, mails, 'link');
    const login = await follow(agent, await agent.get(link), server.url);
    return submitLogin(agent, server, login, { ...USER, email });
  };
  const approve = (agent: Agent, page: Answer) => {
    const { action, fields } = readForm(page, 'ticket');
    return agent.request(action, { form: { ...fields, decision: 'accept' } });
  };
  const otp = async () => {
    const { secret } = await calls.enrollOtp(CAREFUL, 'leeway');
    const id = (await server.users.withEmail(CAREFUL))[0]?.id ?? '';
    await server.users.update(id, { email_verified: true });
    return secret;
  };
  const withoutPolicy = () => managed(server, 'PUT', '/guardian/policies', [] as unknown as object);

  const askEachTime = async () => {
    const at = `/resource-servers/${encodeURIComponent(API)}`;
    const consent_policy = 'transactional-authorization-with-mfa';
    expect((await managed(server, 'PATCH', at, { consent_policy })).status).to.equal(200);
    // The login at the page is for no API, although the tenant has a default one.
    const usual = { default_audience: API };
    expect((await managed(server, 'PATCH', '/tenants/settings', usual)).status).to.equal(200);
  };

  it('show authorization_details to the user, and put them into the tokens', async () => {
    await withoutPolicy();
    const asked = await ask({ authorization_details: JSON.stringify([PAYMENT]) });
    expect(asked.status, asked.text).to.equal(200);
    const agent = createAgent(server);
    const page = await open(agent);
    expect(page.text).to.contain('payment').and.contain('12.50').and.contain('Tom &amp; &lt;b&gt;Jerry');
    expect(page.text).not.to.contain('<b>Jerry');
    await approve(agent, page);
    const tokens = (await poll(asked.json().auth_req_id)).json();
    expect(tokens.authorization_details).to.deep.equal([PAYMENT]);
    expect(payload(tokens.access_token).authorization_details).to.deep.equal([PAYMENT]);
    const refreshed = await token(createAgent(server), {
      grant_type: 'refresh_token',
      client_id: 'mail-bank',
      client_secret: 'mail-bank-secret',
      refresh_token: tokens.refresh_token,
    });
    expect(payload(refreshed.json().access_token).authorization_details).to.deep.equal([PAYMENT]);
  });

  it('are in the e-mail, as the template of their type or a list shows them, with nothing in them that is not seen', async () => {
    await withoutPolicy();
    const item = '<img src=x> \u202e11\u202c\u200b\nnow';
    const asked = [
      { ...PAYMENT, '\u2066to': 'gpj.\u202eexe', struck: `9${'\u0336'.repeat(7)}` },
      { type: 'order', item },
    ];
    expect((await ask({ authorization_details: JSON.stringify(asked) })).status).to.equal(200);
    const { html = '', text } = await nextMessageTo(server, USER.email, 1, 'link');
    for (const one of ['amount › value', '12.50', 'Tom &amp; &lt;b&gt;Jerry', 'gpj.[U+202E]exe'])
      expect(html).to.contain(one);
    expect(html).to.contain('<p>Order &lt;img src=x&gt; [U+202E]11[U+202C][U+200B] now for ');
    expect(text).to.contain('creditor: Tom & <b>Jerry</b>').and.contain('[U+2066]to: gpj.[U+202E]exe');
    const page = await open(createAgent(server), USER.email, 1);
    expect(page.text).to.contain('[U+2066]to').and.contain('Order &lt;img src=x&gt; [U+202E]11');
    expect(page.text, 'marks over other lines').to.contain(`9${'\u0336'.repeat(5)}[U+0336][U+0336]`);
    expect(`${html}${text}${page.text}`).not.to.match(/[\u202a-\u202e\u2066\u200b]/);
  });

  it('can only be approved at the page, which shows the scopes, when the API requires consent each time', async () => {
    await withoutPolicy();
    const early = (await ask({})).json();
    const before = createAgent(server);
    await approve(before, await open(before));
    await askEachTime();
    expect((await poll(early.auth_req_id)).json().error).to.equal('invalid_grant');
    const asked = (await ask({})).json();
    const agent = createAgent(server);
    const page = await open(agent, USER.email, 2);
    expect(page.text).to.contain('Read things').and.contain('value="accept"');
    await approve(agent, page);
    expect((await poll(asked.auth_req_id)).json()).to.have.property('access_token');
  });

  it('omit details from the tokens when the API no longer has their type', async () => {
    await withoutPolicy();
    const asked = await ask({ authorization_details: JSON.stringify([PAYMENT]) });
    const agent = createAgent(server);
    await approve(agent, await open(agent));
    const at = `/resource-servers/${encodeURIComponent(API)}`;
    expect((await managed(server, 'PATCH', at, { authorization_details: [] })).status).to.equal(200);
    const tokens = (await poll(asked.json().auth_req_id)).json();
    expect(payload(tokens.access_token)).not.to.have.property('authorization_details');
  });

  it('are refused with details of an unknown type, too deeply nested, or malformed', async () => {
    const deep = JSON.parse(`${'{"a":'.repeat(12)}1${'}'.repeat(12)}`);
    const wrong = [
      [{ type: 'transfer' }],
      [{ type: 'payment', ...deep }],
      [{ amount: 1 }],
      ['payment'],
      [{ type: 'payment', actions: 'all' }],
      [{ type: 'payment', locations: [1] }],
      [{ type: 'payment', identifier: {} }],
      { type: 'payment' },
      [{ type: 'payment', text: 'x'.repeat(4_000) }],
      // More than a person can read.
      [{ type: 'payment', text: 'x'.repeat(1_001) }],
      [{ type: 'payment', ['x'.repeat(201)]: 1 }],
      [{ type: 'payment', ...Object.fromEntries(Array.from({ length: 60 }, (_, n) => [`n${n}`, n])) }],
      Array.from({ length: 61 }, () => ({ type: 'payment' })),
    ].map((one) => JSON.stringify(one));
    for (const authorization_details of [...wrong, 'payment', '[', 'null'])
      expect(told(await ask({ authorization_details })).slice(0, 2), authorization_details).to.deep.equal([
        400,
        'invalid_authorization_details',
      ]);
    expect(told(await ask({ authorization_details: '[]' }))[1]).to.equal('invalid_request');
  });

  it('with details are approved on a device that shows them', async () => {
    const { user, device } = await devices.enrolled();
    const details = JSON.stringify([{ ...PAYMENT, to: 'gpj.\u202eexe' }]);
    const list = async (claims: object) =>
      (
        await devices.requests(device, await devices.sign(device.key, { sub: device.id, ...claims }))
      ).json() as unknown as { id: string; details: object[] }[];
    expect(await list({ shows: ['authorization_details'] })).to.deep.equal([]);
    const asked = await ask({ authorization_details: details }, { client: 'bank', email: user });
    expect(asked.status, asked.text).to.equal(200);
    const [request = { id: '', details: [] }] = await list({ shows: ['authorization_details'] });
    expect(request.details).to.deep.equal([
      {
        type: 'payment',
        lines: [
          { name: 'amount › value', value: '12.50' },
          { name: 'amount › currency', value: 'EUR' },
          { name: 'creditor', value: 'Tom & <b>Jerry</b>' },
          { name: 'to', value: 'gpj.[U+202E]exe' },
        ],
      },
    ]);
    // An older program with the same key does not show them.
    expect(await list({})).to.deep.equal([]);
    expect((await devices.answerWith(device, request.id, 'allow')).status).to.equal(404);
    await list({ shows: ['authorization_details'] });
    expect((await devices.answerWith(device, request.id, 'allow')).status).to.equal(204);
    const { auth_req_id } = asked.json();
    const bank = { client_id: 'bank', client_secret: 'bank-secret' };
    const tokens = await token(createAgent(server), { ...bank, grant_type: CIBA_GRANT, auth_req_id });
    expect(tokens.json().authorization_details, tokens.text).to.deep.equal(JSON.parse(details));
  });

  it('with details are approved at the page of the authenticator, which shows them as text', async () => {
    const browser = await launchBrowser(server.ca);
    try {
      const page = await (await browser.newContext()).newPage();
      const email = `mfa-${users++}@example.test`;
      const { mfa_token, body } = await devices.begin(email);
      await page.goto(`${server.url}/authenticator#${body.barcode_uri}`);
      await page.locator('#enroll button[type=submit]').click();
      await page.locator('#accounts li').waitFor();
      expect((await calls.verify('oob', { mfa_token, oob_code: body.oob_code })).status).to.equal(200);
      const authorization_details = JSON.stringify([{ ...PAYMENT, to: 'gpj.\u202eexe' }]);
      const asked = await ask(
        { authorization_details, binding_message: 'Payment 4711' },
        { client: 'bank', email },
      );
      expect(asked.status, asked.text).to.equal(200);
      const request = page.locator('#requests .request');
      await request.waitFor();
      expect(await request.locator('.message').innerText()).to.contain('Payment 4711');
      const shown = (await request.locator('dl').innerText()).replaceAll(/\s+/g, ' ');
      expect(shown).to.contain('payment').and.contain('amount › value 12.50');
      expect(shown).to.contain('creditor Tom & <b>Jerry</b> to gpj.[U+202E]exe');
      await request.locator('[data-answer=allow]').click();
      await request.waitFor({ state: 'detached' });
      const bank = { client_id: 'bank', client_secret: 'bank-secret' };
      const { auth_req_id } = asked.json();
      const tokens = await token(createAgent(server), { ...bank, grant_type: CIBA_GRANT, auth_req_id });
      expect(tokens.json(), tokens.text).to.have.property('authorization_details');
    } finally {
      await browser.close();
    }
  });

  it('with details can only be approved at the page, not on a device, which does not show them', async () => {
    const { user, device } = await devices.enrolled();
    const details = JSON.stringify([PAYMENT]);
    // The application allows only devices, or the user's e-mail address is not verified.
    const refused = await ask({ authorization_details: details }, { client: 'bank', email: user });
    expect(told(refused)[1]).to.equal('invalid_request');
    const id = (await server.users.withEmail(user))[0]?.id ?? '';
    await server.users.update(id, { email_verified: true });
    expect((await ask({ authorization_details: details }, { email: user })).status).to.equal(200);
    expect(await devices.waiting(device)).to.deep.equal([]);
    // Other requests of the same user go to the device.
    expect((await ask({}, { client: 'bank', email: user })).status).to.equal(200);
    expect(await devices.waiting(device)).to.have.length(1);
    await askEachTime();
    expect((await ask({}, { email: user })).status).to.equal(200);
    expect(await devices.waiting(device)).to.have.length(1);
  });

  it('with acr_values ask for the second factor, and put acr into the ID token', async () => {
    const secret = await otp();
    await withoutPolicy();
    const asked = await ask({ acr_values: `unknown ${POLICY}` }, { email: CAREFUL });
    expect(asked.status, asked.text).to.equal(200);
    const agent = createAgent(server);
    const factor = await open(agent, CAREFUL);
    expect(factor.text).not.to.contain('name="ticket"');
    const form = readForm(factor, 'code');
    const code = codeOf(secret, Date.now() + 30_000);
    const given = await agent.request(form.action, { form: { ...form.fields, code } });
    await approve(agent, await follow(agent, given, server.url));
    const claims = payload((await poll(asked.json().auth_req_id)).json().id_token);
    expect(claims)
      .to.include({ acr: POLICY })
      .and.deep.include({ amr: ['mfa'] });
  });

  it('without acr_values, or with unknown ones, ask only for the login', async () => {
    await otp();
    await withoutPolicy();
    const asked = await ask({ acr_values: 'unknown' }, { email: CAREFUL });
    const agent = createAgent(server);
    await approve(agent, await open(agent, CAREFUL));
    expect(payload((await poll(asked.json().auth_req_id)).json().id_token)).not.to.have.property('acr');
  });
});
