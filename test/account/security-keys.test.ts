// The My Account API: WebAuthn second factors that are created at an application's own pages.
import { expect } from 'chai';
import { factors, POLICY } from '../factors/tenant.ts';
import { createAgent, readForm } from '../support/agent.ts';
import { logIn, responseOf, USER, webRequest } from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { softwareKey } from '../support/software-key.ts';
import { tenantWith } from '../support/tenant.ts';
import { callsOf, tenant } from './tenant.ts';

const ORIGIN = 'https://app.example.test';
const KINDS = ['webauthn-roaming', 'webauthn-platform'] as const;

describe('WebAuthn second factors in the My Account API', () => {
  let server: TestServer;
  let calls: ReturnType<typeof callsOf>;
  let people = 0;
  before(async () => {
    server = await startServer({
      tenant: tenantWith(
        { change: { web: { web_origins: [ORIGIN] } }, guardianFactors: factors(...KINDS, 'otp') },
        tenant,
      ),
    });
    calls = callsOf(server);
  });
  after(() => server.stop());

  const begin = async (type: (typeof KINDS)[number] = 'webauthn-roaming') => {
    const email = `mfa-${people++}@example.test`;
    const bearer = await calls.accountToken(email);
    const started = await calls.begin(bearer, { type });
    return { email, bearer, ...started, asked: started.begun.authn_params_public_key };
  };
  const refusal = (answer: { status: number; json(): Record<string, unknown> }) =>
    `${answer.status} ${String(answer.json().type).replace('urn:gatehouse:error:', '')}`;

  it("are created at the application's origin, and given at the next login", async () => {
    for (const [type, attachment, userVerification] of [
      ['webauthn-roaming', 'cross-platform', 'preferred'],
      ['webauthn-platform', 'platform', 'required'],
    ] as const) {
      const { email, begun, asked, verify } = await begin(type);
      expect(begun).to.include.keys('id', 'auth_session');
      expect(asked.authenticatorSelection).to.include({
        authenticatorAttachment: attachment,
        userVerification,
        residentKey: 'discouraged',
      });
      const key = softwareKey();
      const creation = await verify({ authn_response: key.create(asked, ORIGIN) });
      expect(creation.status, creation.text).to.equal(201);
      expect(creation.json()).to.include({ id: begun.id, type, confirmed: true });

      const agent = createAgent(server);
      const page = await logIn(agent, server, webRequest({ acr_values: POLICY }), { ...USER, email });
      const options = /data-options="([^"]+)"/.exec(page.text)?.[1]?.replaceAll('&#34;', '"') ?? '';
      const { action, fields } = readForm(page, 'code');
      const answered = key.get(JSON.parse(options.replaceAll('&quot;', '"')), server.url, { count: 1 });
      const posted = await agent.request(action, { form: { ...fields, code: JSON.stringify(answered) } });
      const back = await agent.get(posted.location);
      expect(responseOf(back), back.text.slice(0, 300)).to.have.property('code');
    }
  });

  it('must verify their users where the tenant requires that of security keys', async () => {
    const strict = await startServer({
      tenant: tenantWith(
        {
          change: { web: { web_origins: [ORIGIN] } },
          guardianFactors: factors(...KINDS, 'otp'),
          guardianSettings: { 'webauthn-roaming/settings': { userVerification: 'required' } },
        },
        tenant,
      ),
    });
    try {
      const strictCalls = callsOf(strict);
      for (const [flags, status] of [
        [1, 400],
        [5, 201],
      ] as const) {
        const bearer = await strictCalls.accountToken(`mfa-${people++}@example.test`);
        const { begun, verify } = await strictCalls.begin(bearer, { type: 'webauthn-roaming' });
        const asked = begun.authn_params_public_key;
        expect(asked.authenticatorSelection).to.include({ userVerification: 'required' });
        const authn_response = softwareKey().create(asked, ORIGIN, { flags });
        expect((await verify({ authn_response })).status, `flags ${flags}`).to.equal(status);
      }
    } finally {
      await strict.stop();
    }
  });

  it('are enrolled once for concurrent verifications', async () => {
    const { bearer, asked, verify } = await begin();
    const authn_response = softwareKey().create(asked, ORIGIN);
    const all = await Promise.all(Array.from({ length: 50 }, () => verify({ authn_response })));
    expect(all.filter(({ status }) => status === 201)).to.have.length(1);
    for (const { status } of all) expect(status).to.be.oneOf([201, 400, 401]);
    // The password alone is no longer enough.
    expect((await calls.me(bearer, 'authentication-methods')).status).to.equal(401);
  });

  it('are rejected from another origin, for another domain, without user verification, and for another login', async () => {
    for (const [type, origin, said] of [
      ['webauthn-roaming', 'https://evil.example.test', {}],
      ['webauthn-roaming', ORIGIN, { rpId: 'evil.example.test' }],
      ['webauthn-roaming', ORIGIN, { challenge: 'another' }],
      ['webauthn-roaming', ORIGIN, { flags: 0 }],
      ['webauthn-platform', ORIGIN, { flags: 1 }],
    ] as const) {
      const { asked, verify } = await begin(type);
      const answer = await verify({ authn_response: softwareKey().create(asked, origin, said) });
      expect(refusal(answer), JSON.stringify(said)).to.equal('400 invalid_grant');
    }
    const { asked, verify, bearer } = await begin();
    const authn_response = softwareKey().create(asked, ORIGIN);
    const other = await calls.accountToken(`mfa-${people++}@example.test`);
    expect(refusal(await verify({ authn_response }, other))).to.equal('400 invalid_grant');
    expect((await verify({ otp_code: '123456' })).status).to.equal(400);
    // A newer challenge of the same login replaces the earlier one.
    await calls.begin(bearer, { type: 'webauthn-roaming' });
    expect(refusal(await verify({ authn_response }))).to.equal('400 invalid_grant');
  });

  it('belong to one user, and are offered when the tenant has them on', async () => {
    const key = softwareKey();
    const first = await begin();
    expect((await first.verify({ authn_response: key.create(first.asked, ORIGIN) })).status).to.equal(201);
    const second = await begin();
    const again = await second.verify({ authn_response: key.create(second.asked, ORIGIN) });
    expect(refusal(again)).to.equal('400 invalid_grant');
    const { factors: offered } = (await calls.me(second.bearer, 'factors')).json();
    expect(offered.map(({ type }: { type: string }) => type)).to.include.members([...KINDS]);
    const plain = await startServer({ tenant });
    try {
      const elsewhere = callsOf(plain);
      const bearer = await elsewhere.accountToken('mfa-0@example.test');
      const refused = await elsewhere.me(bearer, 'authentication-methods', { type: 'webauthn-roaming' });
      expect(refused.status).to.equal(400);
    } finally {
      await plain.stop();
    }
  });
});
