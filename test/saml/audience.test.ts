// The audience of assertions: no service provider gets one that another would accept.
import { expect } from 'chai';
import { createAgent } from '../support/agent.ts';
import { follow, submitLogin } from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';
import { authnRequest, postForm, redirectQuery, sign } from './messages.ts';
import {
  type KeyAndCertificate,
  logInAt,
  makeCertificate,
  posted,
  samlClient,
  startSamlServer,
} from './support.ts';

const acs = (name: string) => `https://${name}.example.test/acs`;
const entity = (name: string) => `https://${name}.example.test/metadata`;

/** An application on its own host. */
const at = (name: string, addon: object = {}, callbacks = [acs(name)]) =>
  samlClient(name, { audience: undefined, ...addon }, { callbacks });

describe('the audience of an assertion', () => {
  let server: TestServer;
  let key: KeyAndCertificate;

  const requestAt = (name: string, issuer: string, over: object = {}) =>
    authnRequest({
      issuer,
      attributes: { AssertionConsumerServiceURL: acs(name), Destination: `${server.url}/samlp/${name}` },
      ...over,
    });
  const audienceOf = (xml: string) => /<saml:Audience>([^<]*)</.exec(xml)?.[1];
  async function audienceAt(name: string, issuer: string): Promise<string | undefined> {
    const address = `/samlp/${name}?${redirectQuery(requestAt(name, issuer))}`;
    return audienceOf((await logInAt(createAgent(server), server, address)).xml);
  }
  async function refuses(name: string, issuer: string): Promise<void> {
    const answers = [
      await createAgent(server).get(`/samlp/${name}?${redirectQuery(requestAt(name, issuer))}`),
      await createAgent(server).request(`/samlp/${name}`, { form: postForm(requestAt(name, issuer)) }),
    ];
    for (const { status, location, text } of answers) {
      expect([status, location], `${name} as ${issuer}`).to.deep.equal([400, '']);
      expect(text).to.include('audience');
    }
  }

  describe('when several applications have no audience of their own', () => {
    before(async () => {
      key = await makeCertificate();
      server = await startSamlServer([
        at('one'),
        at('two'),
        at('signed', { signingCert: key.certificate }),
        at('named', { audience: 'https://www.named.test/Saml/' }),
        at('tenant-a', {}, ['https://shared.example.test/a/acs']),
        at('tenant-b', {}, ['https://shared.example.test/b/acs']),
      ]);
    });
    after(() => server.stop());

    it("is the request's issuer if that is a URL on one of the application's own origins", async () => {
      expect(await audienceAt('one', entity('one'))).to.equal(entity('one'));
      expect(await audienceAt('two', entity('two'))).to.equal(entity('two'));
    });

    it('causes a warning at start when it is not set, or shared by two applications', async () => {
      const warned = (name: string) =>
        server.logged().match(new RegExp(`"[^"]*audience[^"]*The ${name} application[^"]*"`, 'g'))?.length ??
        0;
      expect([warned('one'), warned('tenant-a'), warned('named')]).to.deep.equal([1, 1, 0]);
      const both = await startSamlServer([samlClient('one'), samlClient('two')]);
      expect(both.logged()).to.include('is also good for The two application');
      await both.stop();
    });

    it("is the addon's, whatever the issuer", async () => {
      for (const issuer of [entity('named'), 'https://www.named.test/Saml/', 'urn:named', entity('one')]) {
        expect(await audienceAt('named', issuer)).to.equal('https://www.named.test/Saml/');
      }
    });

    it("is never another application's, in any spelling", async () => {
      for (const issuer of [
        entity('two'),
        'https://two.example.test',
        'HTTPS://TWO.example.test/metadata',
        'https://two.example.test:8443/metadata',
        'http://one.example.test/metadata',
        'https://one.example.test@two.example.test/metadata',
        'https://www.named.test/Saml/',
        'https://www.named.test/saml',
        'urn:auth0:urn:localhost:two',
        'urn:two',
        'two',
      ]) {
        await refuses('one', issuer);
      }
    });

    it('is not proved by a signature: the key belongs to the application that asks, not to the issuer it names', async () => {
      const xml = sign(requestAt('signed', entity('two')), key.privateKey);
      const { status } = await createAgent(server).request('/samlp/signed', { form: postForm(xml) });
      expect(status).to.equal(400);
      const own = sign(requestAt('signed', entity('signed')), key.privateKey);
      expect((await createAgent(server).request('/samlp/signed', { form: postForm(own) })).status).to.equal(
        302,
      );
    });

    it('has to be set when two applications share a host', async () => {
      const request = authnRequest({
        issuer: 'https://shared.example.test/b',
        attributes: { AssertionConsumerServiceURL: undefined },
      });
      const { status } = await createAgent(server).get(`/samlp/tenant-a?${redirectQuery(request)}`);
      expect(status).to.equal(400);
    });

    it("of an IdP-initiated login is made from the application's client_id", async () => {
      const { xml } = await logInAt(createAgent(server), server, '/samlp/one');
      expect(audienceOf(xml)).to.equal('urn:auth0:urn:localhost:one');
    });

    it("is, besides the application's own issuer, the only SPNameQualifier of a NameID", async () => {
      const qualified = (name: string) => ({
        content: `<samlp:NameIDPolicy Format="urn:oasis:names:tc:SAML:2.0:nameid-format:persistent" SPNameQualifier="${name}"/>`,
      });
      const ask = async (issuer: string, qualifier: string) => {
        const query = redirectQuery(requestAt('named', issuer, qualified(qualifier)));
        return (await logInAt(createAgent(server), server, `/samlp/named?${query}`)).xml;
      };
      for (const other of [entity('two'), 'https://www.one.test/']) {
        expect(await ask(other === entity('two') ? other : entity('named'), other)).to.include(
          'InvalidNameIDPolicy',
        );
      }
      const own = 'https://www.named.test/Saml/';
      expect(await ask(entity('named'), own)).to.include(`SPNameQualifier="${own}"`);
      expect(await ask(entity('named'), entity('named'))).to.include(`SPNameQualifier="${entity('named')}"`);
    });
  });

  describe('when all other applications have an audience of their own', () => {
    before(async () => {
      server = await startSamlServer([at('one'), at('named', { audience: 'urn:named' })]);
    });
    after(() => server.stop());

    it("is the request's issuer, which cannot be another's", async () => {
      for (const issuer of ['passport-saml', 'urn:one', entity('elsewhere')]) {
        expect(await audienceAt('one', issuer)).to.equal(issuer);
      }
      await refuses('one', 'urn:named');
      await refuses('one', 'URN:Named');
    });

    it('is checked again at the end of the login', async () => {
      const agent = createAgent(server);
      const address = `/samlp/one?${redirectQuery(requestAt('one', 'urn:later'))}`;
      const page = await follow(agent, await agent.get(address), server.url);
      const rename = (audience: string) =>
        server.store
          .collection('clients')
          .update(
            'named',
            (client) =>
              ({ ...(structuredClone(client) as object), addons: { samlp: { audience } } }) as never,
          );
      await rename('urn:later');
      const { xml } = posted(await submitLogin(agent, server, page));
      await rename('urn:named');
      expect(xml).to.include(':status:RequestDenied"').and.not.include('<saml:Assertion');
    });
  });
});
