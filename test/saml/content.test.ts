// The content of an assertion, and how it is signed and encrypted with the addon's keys.
import { expect } from 'chai';
import { type Agent, createAgent } from '../support/agent.ts';
import { USER } from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';
import { isSignedBy, schemaFaults } from './conformance.ts';
import { authnRequest, redirectQuery } from './messages.ts';
import {
  ACS,
  certificateOf,
  type KeyAndCertificate,
  logInAt,
  makeCertificate,
  SP_ISSUER,
  samlClient,
  serviceProvider,
  signOn,
  startSamlServer,
} from './support.ts';

const CLAIMS = 'http://schemas.xmlsoap.org/ws/2005/05/identity/claims/';
const SHA256 = {
  signature: 'http://www.w3.org/2001/04/xmldsig-more#rsa-sha256',
  digest: 'http://www.w3.org/2001/04/xmlenc#sha256',
};
const SHA1 = {
  signature: 'http://www.w3.org/2000/09/xmldsig#rsa-sha1',
  digest: 'http://www.w3.org/2000/09/xmldsig#sha1',
};

describe('SAML assertions', () => {
  let server: TestServer;
  let certificate: string;
  let key: KeyAndCertificate;

  before(async () => {
    key = await makeCertificate();
    server = await startSamlServer(
      [
        samlClient('plain'),
        samlClient('response', { signResponse: true }),
        samlClient('both', { signResponse: true, signAssertion: true }),
        samlClient('sha1', { signatureAlgorithm: 'rsa-sha1', digestAlgorithm: 'sha1' }),
        samlClient('sha512', { signatureAlgorithm: 'rsa-sha512', digestAlgorithm: 'sha512' }),
        samlClient('sealed', { encryptionCert: key.certificate }),
        samlClient('sealed-both', {
          encryptionPublicKey: key.certificate,
          signResponse: true,
          signAssertion: true,
        }),
        samlClient('bare', {
          typedAttributes: false,
          includeAttributeNameFormat: false,
          createUpnClaim: false,
          passthroughClaimsWithNoMapping: false,
          mapIdentities: false,
        }),
        samlClient('named', {
          mappings: {
            email: ['mail', 'urn:oid:0.9.2342.19200300.100.1.3'],
            'user_metadata.team': 'team',
            'app_metadata.roles': 'roles',
          },
          mapUnknownClaimsAsIs: true,
          nameIdentifierProbes: ['nothing', 'mail'],
          nameIdentifierFormat: 'urn:oasis:names:tc:SAML:2.0:nameid-format:persistent',
          authnContextClassRef: 'urn:oasis:names:tc:SAML:2.0:ac:classes:Kerberos',
          audience: 'urn:the-audience',
          recipient: 'https://sp.example.test/recipient',
          destination: 'https://sp.example.test/destination',
          issuer: 'urn:the-issuer',
          lifetimeInSeconds: 120,
        }),
      ],
      {
        users: [
          {
            ...USER,
            connection: 'users',
            email_verified: true,
            user_metadata: { team: 'Tés<t> & "co"\n' },
            app_metadata: { roles: ['a', 'b'], secret: 'not to be told' },
          },
        ],
      },
    );
    certificate = await certificateOf(server);
  });
  after(() => server.stop());

  async function responseFor(client: string, agent: Agent = createAgent(server)): Promise<string> {
    const address = `/samlp/${client}?${redirectQuery(authnRequest())}`;
    const { xml } = await logInAt(agent, server, address);
    expect(await schemaFaults(xml), client).to.deep.equal([]);
    return xml;
  }
  const attribute = (xml: string, name: string) => {
    const found = [...xml.matchAll(/<saml:Attribute ([^>]*)>([\s\S]*?)<\/saml:Attribute>/g)].find(([, tag]) =>
      tag!.includes(`Name="${name}"`),
    );
    return [...(found?.[2] ?? '').matchAll(/<saml:AttributeValue[^>]*>([^<]*)</g)].map(([, value]) => value);
  };
  const names = (xml: string) => [...xml.matchAll(/<saml:Attribute Name="([^"]*)"/g)].map(([, name]) => name);

  describe('signatures', () => {
    it('cover the assertion with RSA-SHA256, unless the addon says otherwise', async () => {
      const xml = await responseFor('plain');
      expect(xml).to.include(SHA256.signature).and.include(SHA256.digest);
      expect(await isSignedBy(xml, 'Assertion', certificate)).to.equal(true);
      expect(await isSignedBy(xml, 'Response', certificate)).to.equal(false);
      expect(await isSignedBy(xml, 'Assertion', key.certificate)).to.equal(false);
      expect(
        await isSignedBy(xml.replace(USER.email, 'eve@example.test'), 'Assertion', certificate),
      ).to.equal(false);
    });

    it('cover the response with signResponse, and both with signAssertion, too', async () => {
      const response = await responseFor('response');
      expect(await isSignedBy(response, 'Response', certificate)).to.equal(true);
      expect(await isSignedBy(response, 'Assertion', certificate)).to.equal(false);
      const both = await responseFor('both');
      expect(await isSignedBy(both, 'Response', certificate)).to.equal(true);
      expect(await isSignedBy(both, 'Assertion', certificate)).to.equal(true);
      for (const [client, wanted] of [
        ['response', [false, true]],
        ['both', [true, true]],
      ] as const) {
        const [wantAssertionsSigned, wantAuthnResponseSigned] = wanted;
        const sp = await serviceProvider(server, client, { wantAssertionsSigned, wantAuthnResponseSigned });
        expect((await signOn(createAgent(server), server, sp)).profile.nameID).to.equal(USER.email);
      }
    });

    it('use the algorithms of the addon', async () => {
      const sha1 = await responseFor('sha1');
      expect(sha1).to.include(SHA1.signature).and.include(SHA1.digest).and.not.include(SHA256.signature);
      expect(await isSignedBy(sha1, 'Assertion', certificate)).to.equal(true);
      const sha512 = await responseFor('sha512');
      expect(sha512).to.include('rsa-sha512"').and.include('xmlenc#sha512"');
      expect(await isSignedBy(sha512, 'Assertion', certificate)).to.equal(true);
    });
  });

  describe('encryption', () => {
    it('hides the assertion from everybody but the service provider', async () => {
      const xml = await responseFor('sealed');
      expect(xml).to.include('<saml:EncryptedAssertion').and.include('aes256-gcm');
      expect(xml).not.to.include(USER.email).and.not.include('<saml:Assertion');
      const sp = await serviceProvider(server, 'sealed', { decryptionPvk: key.privateKey });
      const { profile } = await signOn(createAgent(server), server, sp);
      expect(profile.nameID).to.equal(USER.email);
    });

    it('is combined with signatures of assertion and response', async () => {
      const sp = await serviceProvider(server, 'sealed-both', {
        decryptionPvk: key.privateKey,
        wantAuthnResponseSigned: true,
      });
      const { profile, posted } = await signOn(createAgent(server), server, sp);
      expect(profile.nameID).to.equal(USER.email);
      expect(await isSignedBy(posted.xml, 'Response', certificate)).to.equal(true);
    });
  });

  describe('by default', () => {
    it('contain the user id, the audience, the time of login and the validity', async () => {
      const xml = await responseFor('plain');
      expect(xml).to.match(
        /<saml:NameID Format="urn:oasis:names:tc:SAML:1.1:nameid-format:unspecified">auth0\|[0-9a-f]{24}</,
      );
      expect(xml).to.include(`<saml:Audience>${SP_ISSUER}</saml:Audience>`);
      expect(xml).to.include(`Recipient="${ACS}"`).and.include(`Destination="${ACS}"`);
      expect(xml).to.include('<saml:Issuer>urn:localhost</saml:Issuer>');
      const [before = 0, until = 0] = ['NotBefore', 'NotOnOrAfter'].map((name) =>
        Date.parse(new RegExp(`<saml:Conditions [^>]*${name}="([^"]*)"`).exec(xml)?.[1] ?? ''),
      );
      expect(until - before).to.equal((3600 + 60) * 1000);
    });

    it("contain the profile under claim types, or under the vendor's namespace, with types and name formats", async () => {
      const xml = await responseFor('plain');
      expect(attribute(xml, `${CLAIMS}emailaddress`)).to.deep.equal([USER.email]);
      expect(attribute(xml, `${CLAIMS}upn`)).to.deep.equal([USER.email]);
      expect(attribute(xml, 'http://schemas.auth0.com/email_verified')).to.deep.equal(['true']);
      expect(attribute(xml, 'http://schemas.auth0.com/clientID')).to.deep.equal(['plain']);
      expect(attribute(xml, 'http://schemas.auth0.com/identities/default/connection')).to.deep.equal([
        'users',
      ]);
      expect(xml).to.include('xsi:type="xs:boolean"').and.include('xsi:type="xs:string"');
      expect(xml).to.include('NameFormat="urn:oasis:names:tc:SAML:2.0:attrname-format:uri"');
      expect(xml).not.to.include('not to be told').and.not.include('metadata.');
    });
  });

  it('contain only mapped attributes, without types and formats, when the addon says so', async () => {
    const xml = await responseFor('bare');
    expect(names(xml)).to.deep.equal([`${CLAIMS}nameidentifier`, `${CLAIMS}emailaddress`, `${CLAIMS}name`]);
    expect(xml).not.to.include('xsi:type').and.not.include('NameFormat');
  });

  it('follow the options of the addon', async () => {
    const xml = await responseFor('named');
    expect(attribute(xml, 'mail')).to.deep.equal([USER.email]);
    expect(attribute(xml, 'urn:oid:0.9.2342.19200300.100.1.3')).to.deep.equal([USER.email]);
    expect(attribute(xml, `${CLAIMS}emailaddress`)).to.deep.equal([]);
    expect(attribute(xml, 'roles')).to.deep.equal(['a', 'b']);
    expect(attribute(xml, 'team')[0]).to.equal('Tés&lt;t&gt; &amp; &quot;co&quot;&#10;');
    expect(attribute(xml, 'email_verified')).to.deep.equal(['true']);
    expect(xml).to.include('NameFormat="urn:oasis:names:tc:SAML:2.0:attrname-format:basic"');
    expect(xml).to.include(`nameid-format:persistent">${USER.email}<`);
    expect(xml).to.include('<saml:AuthnContextClassRef>urn:oasis:names:tc:SAML:2.0:ac:classes:Kerberos<');
    expect(xml).to.include('<saml:Audience>urn:the-audience<').and.include('<saml:Issuer>urn:the-issuer<');
    expect(xml).to.include('Recipient="https://sp.example.test/recipient"');
    expect(xml).to.include('Destination="https://sp.example.test/destination"');
    const instant = (name: string) =>
      Date.parse(new RegExp(`<saml:Conditions [^>]*${name}="([^"]*)"`).exec(xml)?.[1] ?? '');
    expect(instant('NotOnOrAfter') - instant('NotBefore')).to.equal((120 + 60) * 1000);
    expect(await isSignedBy(xml, 'Assertion', certificate)).to.equal(true);
  });

  it('are rejected by a service provider with another audience or key, and when they have expired', async () => {
    const fails = async (over: object, words: RegExp) => {
      const sp = await serviceProvider(server, 'plain', over);
      const thrown = await signOn(createAgent(server), server, sp).then(
        () => undefined,
        (error: Error) => error,
      );
      expect(thrown?.message).to.match(words);
    };
    await fails({ audience: 'urn:other' }, /audience/i);
    await fails({ idpCert: key.certificate }, /signature/i);
    const sp = await serviceProvider(server, 'plain');
    const response = await logInAt(
      createAgent(server),
      server,
      await sp.getAuthorizeUrlAsync('', undefined, {}),
    );
    server.tick(3_700_000);
    const late = await sp.validatePostResponseAsync(response.fields).then(
      () => undefined,
      (error: Error) => error,
    );
    expect(late?.message).to.match(/expired/i);
  });
});
