// The authentication context classes that a tenant lists (`acr_values_supported`): what applications are told, and
// what they are not told because no login proved it.
import { expect } from 'chai';
import { callsWith, managementToken, startManaged } from '../management/support.ts';
import { createAgent } from '../support/agent.ts';
import {
  authorize,
  tenant as base,
  logIn,
  payload,
  responseOf,
  token,
  USER,
  WEB_CALLBACK,
  webRequest,
} from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';

const MFA = 'http://schemas.openid.net/pape/policies/2007/06/multi-factor';
const PASSWORD = 'urn:oasis:names:tc:SAML:2.0:ac:classes:PasswordProtectedTransport';

const tenant = {
  ...base,
  guardianFactors: [{ name: 'otp', enabled: true }],
  guardianPolicies: { policies: [] },
  tenant: {
    ...base.tenant,
    acr_values_supported: [
      'urn:example:basic',
      'urn:example:strong',
      PASSWORD,
      'phr',
      'urn:example:gold',
      'phrh',
    ],
    // A public name keeps its meaning.
    acr_value_meanings: { 'urn:example:basic': 'any', 'urn:example:strong': 'mfa', phr: 'any' },
  },
};

describe('authentication context classes', () => {
  let server: TestServer;
  beforeEach(async () => {
    server = await startManaged(tenant);
  });
  afterEach(() => server.stop());

  const redeem = async (answer: Awaited<ReturnType<typeof logIn>>) => {
    const { code, error } = responseOf(answer);
    if (error !== undefined) return error;
    const form = { grant_type: 'authorization_code', code: String(code), redirect_uri: WEB_CALLBACK };
    const answered = await token(createAgent(server), {
      ...form,
      client_id: 'web',
      client_secret: 'web-secret',
    });
    return payload(answered.json().id_token).acr;
  };
  const acrOf = async (over: Record<string, string>, browser = createAgent(server)) =>
    redeem(await logIn(browser, server, webRequest(over)));
  const acrClaim = (acr: object) => ({ claims: JSON.stringify({ id_token: { acr } }) });

  it('are announced if some login can prove them', async () => {
    const metadata = (await createAgent(server).get('/.well-known/openid-configuration')).json();
    expect(metadata.acr_values_supported).to.deep.equal([
      MFA,
      'urn:example:basic',
      'urn:example:strong',
      PASSWORD,
      'phr',
    ]);
    const call = callsWith(server, await managementToken(server));
    await call('PATCH', '/tenants/settings', { acr_values_supported: [PASSWORD] });
    const after = (await createAgent(server).get('/.well-known/openid-configuration')).json();
    expect(after.acr_values_supported).to.deep.equal([MFA, PASSWORD]);
  });

  for (const [what, over, expected] of [
    ['the one that was asked for', { acr_values: PASSWORD }, PASSWORD],
    [
      'the first of several that the login proved',
      { acr_values: `phr ${PASSWORD} urn:example:basic` },
      PASSWORD,
    ],
    ['one of the tenant’s own', { acr_values: 'urn:example:basic' }, 'urn:example:basic'],
    ['one of a claims request', acrClaim({ values: ['phr', PASSWORD] }), PASSWORD],
    ['an essential one', acrClaim({ essential: true, value: PASSWORD }), PASSWORD],
    ['none that nobody proved', { acr_values: 'phr' }, undefined],
    ['none that the tenant does not list', { acr_values: '0 https://refeds.org/profile/mfa' }, undefined],
    ['none without a meaning', { acr_values: 'urn:example:gold' }, undefined],
    ['none that was not asked for', {}, undefined],
  ] as const) {
    it(`are stated truthfully: ${what}`, async () => {
      expect(await acrOf(over)).to.equal(expected);
    });
  }

  it('are stated for a session as far as it proved them', async () => {
    const browser = createAgent(server);
    await logIn(browser, server, webRequest());
    const silent = async (over: Record<string, string>) =>
      redeem(await authorize(browser, webRequest({ ...over, prompt: 'none' })));
    expect(await silent({ acr_values: PASSWORD })).to.equal(PASSWORD);
    expect(await silent(acrClaim({ essential: true, value: PASSWORD }))).to.equal(PASSWORD);
    expect(await silent(acrClaim({ essential: true, value: 'phr' }))).to.equal('login_required');
    expect(await silent({ acr_values: 'urn:example:strong' })).to.equal('login_required');
    expect(await silent({ acr_values: 'phr' })).to.equal(undefined);
  });

  it('that are essential and not reached by the login end it', async () => {
    expect(await acrOf(acrClaim({ essential: true, value: 'phr' }))).to.equal(
      'unmet_authentication_requirements',
    );
    // No login can reach this one.
    const refused = await authorize(
      createAgent(server),
      webRequest(acrClaim({ essential: true, value: 'urn:example:gold' })),
    );
    expect(responseOf(refused).error).to.equal('unmet_authentication_requirements');
  });

  it('of a second factor ask for it, whatever their name', async () => {
    const call = callsWith(server, await managementToken(server));
    const [user] = await server.users.withEmail(USER.email);
    const factor = { type: 'totp', name: 'app', totp_secret: 'JBSWY3DPEHPK3PXP' };
    const path = `/users/${encodeURIComponent(user?.id ?? '')}/authentication-methods`;
    expect((await call('POST', path, factor)).status).to.equal(201);
    for (const acr_values of ['urn:example:strong', MFA]) {
      const page = await logIn(createAgent(server), server, webRequest({ acr_values }));
      expect(page.text, acr_values).to.include('name="code"');
    }
    const without = await logIn(createAgent(server), server, webRequest({ acr_values: 'urn:example:basic' }));
    expect(responseOf(without)).to.have.property('code');
  });
});
