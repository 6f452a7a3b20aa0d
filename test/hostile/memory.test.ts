// What strangers can make the server store: a limited number of requests of a limited size.
import { deflateRawSync } from 'node:zlib';
import { expect } from 'chai';
import { tenant as mfaTenant } from '../factors/tenant.ts';
import { createAgent, readForm } from '../support/agent.ts';
import {
  authorize,
  follow,
  responseOf,
  submitLogin,
  USER,
  WEB_CALLBACK,
  webRequest,
} from '../support/flows.ts';
import { createRequester } from '../support/requester.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { tenantWith } from '../support/tenant.ts';
import { UNLIMITED } from '../support/unlimited.ts';

const SAML_CALLBACK = 'https://sp.example.test/acs';

describe('what waits for a user', () => {
  let server: TestServer;
  beforeEach(async () => {
    server = await startServer({
      tenant: tenantWith({
        change: { leeway: { oidc_conformant: true, client_metadata: { mfa_policy: 'always' } } },
        add: {
          clients: [
            {
              client_id: 'sp',
              name: 'SAML application',
              app_type: 'regular_web',
              client_secret: 'sp-secret-of-some-length-at-least-32',
              callbacks: [SAML_CALLBACK],
              grant_types: [],
              addons: { samlp: { audience: 'urn:sp' } },
            },
          ],
        },
        enable: ['sp'],
        ...UNLIMITED,
        guardianFactors: mfaTenant.guardianFactors,
      }),
    });
  });
  afterEach(() => server.stop());
  const agent = () => createAgent(server);
  const kept = async (collection: 'artifacts' | 'challenges') =>
    (await server.store.collection(collection).list({ limit: 5_000 })).records;

  /** Sends requests of so many strangers, each as far as the beginning of a login. */
  const many = async (count: number, path: (i: number) => string) => {
    const requester = createRequester(server);
    const answers = await Promise.all(Array.from({ length: count }, (_, i) => requester.ask('GET', path(i))));
    requester.close();
    expect(answers.filter(({ status }) => status !== 302)).to.deep.equal([]);
  };

  const authnRequest = (extra: { id?: string; relayState?: string; subject?: string } = {}) => {
    const xml = `<samlp:AuthnRequest xmlns:samlp="urn:oasis:names:tc:SAML:2.0:protocol" xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion" ID="${extra.id ?? '_a'}" Version="2.0" IssueInstant="${new Date().toISOString()}"><saml:Issuer>urn:sp</saml:Issuer>${extra.subject === undefined ? '' : `<saml:Subject><saml:NameID>${extra.subject}</saml:NameID></saml:Subject>`}</samlp:AuthnRequest>`;
    return `/samlp/sp?${new URLSearchParams({
      SAMLRequest: deflateRawSync(xml).toString('base64'),
      ...(extra.relayState !== undefined && { RelayState: extra.relayState }),
    })}`;
  };

  describe('at /authorize', () => {
    it('is refused and not stored when a parameter or all together are too long', async () => {
      for (const over of [
        { state: 'x'.repeat(50_000) },
        { state: 'x'.repeat(4_097) },
        { nonce: 'x'.repeat(4_097) },
        { login_hint: 'x'.repeat(4_097) },
        { id_token_hint: 'x'.repeat(8_193) },
        { unknown: 'x'.repeat(4_097) },
        { state: 'x'.repeat(4_000), nonce: 'x'.repeat(4_000), login_hint: 'x'.repeat(3_000) },
        Object.fromEntries(Array.from({ length: 400 }, (_, i) => [`unknown-parameter-${i}`, 'x'.repeat(20)])),
      ]) {
        const answer = await agent().request('/authorize', { form: webRequest(over) });
        expect(answer.status, Object.keys(over)[0]).to.equal(400);
        expect(answer.headers['set-cookie']).to.equal(undefined);
      }
      expect(await kept('artifacts')).to.deep.equal([]);
    });

    it('may have a state as long as applications use', async () => {
      const browser = agent();
      const state = 'x'.repeat(4_096);
      const page = await follow(browser, await authorize(browser, webRequest({ state })), server.url);
      expect(responseOf(await submitLogin(browser, server, page)).state).to.equal(state);
    });

    it('is at most 600 requests of an address: the oldest are removed, but none that somebody has begun to answer', async () => {
      const [first, second, answered] = [agent(), agent(), agent()];
      const [firstPage, secondPage, mfaPage] = [
        await follow(first, await authorize(first, webRequest()), server.url),
        await follow(second, await authorize(second, webRequest()), server.url),
        await follow(
          answered,
          await authorize(answered, webRequest({ client_id: 'leeway', redirect_uri: WEB_CALLBACK })),
          server.url,
        ),
      ];
      const chosen = await submitLogin(answered, server, mfaPage);
      expect(chosen.status, chosen.text).to.equal(200);
      const where = readForm(chosen).action.replace(/\/[^/]*$/, '');
      const query = new URLSearchParams(webRequest({ state: 'x'.repeat(2_000) }));
      await many(598, () => `/authorize?${query}`);
      expect(await kept('artifacts')).to.have.length(600);
      expect((await submitLogin(first, server, firstPage)).status, 'the oldest is gone').to.equal(400);
      expect(responseOf(await submitLogin(second, server, secondPage)).code).to.be.a('string');
      expect((await answered.get(where)).status, 'the answered one is there').to.be.oneOf([200, 302]);
    });
  });

  describe('at /samlp', () => {
    it('is refused and not stored when it is too long', async () => {
      for (const path of [
        authnRequest({ relayState: 'x'.repeat(2_049) }),
        authnRequest({ subject: 'x'.repeat(8_500) }),
      ]) {
        expect((await agent().get(path)).status).to.equal(400);
      }
      expect(await kept('challenges')).to.deep.equal([]);
    });

    it('is at most the newest 600 requests of an address', async () => {
      const [first, second] = [agent(), agent()];
      const [firstPage, secondPage] = [
        await follow(first, await first.get(authnRequest({ id: '_first' })), server.url),
        await follow(second, await second.get(authnRequest({ id: '_second' })), server.url),
      ];
      await many(599, (i) => authnRequest({ id: `_${i}`, relayState: 'x'.repeat(2_000) }));
      const waiting = (await kept('challenges')).filter(({ id }) => id.startsWith('internal_login:'));
      expect(waiting).to.have.length(600);
      expect((await submitLogin(first, server, firstPage)).status, 'the oldest is gone').to.equal(400);
      const done = await submitLogin(second, server, secondPage, USER);
      expect(readForm(done, 'SAMLResponse').action).to.equal(SAML_CALLBACK);
      const left = (await kept('challenges')).filter(({ id }) => id.startsWith('internal_login:'));
      expect(left, 'nothing is kept of what is done').to.have.length(599);
    });
  });
});
