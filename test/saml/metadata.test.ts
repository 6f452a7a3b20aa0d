// Our metadata for a service provider.
import { verify, X509Certificate } from 'node:crypto';
import { expect } from 'chai';
import { createSigning } from '../../src/capabilities/signing/signing.ts';
import { rotateSigningKeys } from '../../src/capabilities/signing/signing-key-list.ts';
import { identityProvider } from '../../src/features/saml/identity-provider.ts';
import { openConfig } from '../../src/tenant/config.ts';
import { createAgent } from '../support/agent.ts';
import type { TestServer } from '../support/server.ts';
import { schemaFaults } from './conformance.ts';
import { makeCertificate, samlClient, startSamlServer } from './support.ts';

describe('SAML metadata', () => {
  let server: TestServer;

  before(async () => {
    const { certificate } = await makeCertificate();
    server = await startSamlServer([
      samlClient('sp'),
      samlClient('signed', { signingCert: certificate, issuer: 'urn:of-its-own' }),
      samlClient('no-addon', {}, { addons: undefined }),
    ]);
  });
  after(() => server.stop());

  it('names the entity ID, both bindings of both services, and the NameID formats', async () => {
    const { status, headers, text } = await createAgent(server).get('/samlp/metadata/sp');
    expect(status).to.equal(200);
    expect(headers['content-type']).to.equal('application/xml; charset=utf-8');
    expect(headers['content-disposition']).to.equal('attachment; filename="localhost-metadata.xml"');
    expect(text).to.include('entityID="urn:localhost"').and.include('WantAuthnRequestsSigned="false"');
    for (const binding of ['HTTP-Redirect', 'HTTP-POST']) {
      const uri = `urn:oasis:names:tc:SAML:2.0:bindings:${binding}`;
      expect(text).to.include(
        `<SingleSignOnService Binding="${uri}" Location="${server.url}/samlp/sp"></SingleSignOnService>`,
      );
      expect(text).to.include(
        `<SingleLogoutService Binding="${uri}" Location="${server.url}/samlp/sp/logout"></SingleLogoutService>`,
      );
    }
    const formats = [...text.matchAll(/<NameIDFormat>([^<]*)</g)].map(([, uri]) => uri);
    expect(formats)
      .to.include.members([
        'urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress',
        'urn:oasis:names:tc:SAML:2.0:nameid-format:persistent',
        'urn:oasis:names:tc:SAML:2.0:nameid-format:transient',
      ])
      .and.not.include('urn:oasis:names:tc:SAML:1.1:nameid-format:unspecified');
  });

  it("is valid by the standard's schema, which detects a misplaced element", async () => {
    const { text } = await createAgent(server).get('/samlp/metadata/sp');
    expect(await schemaFaults(text, 'metadata')).to.deep.equal([]);
    const moved = text.replace(
      /(<KeyDescriptor[\s\S]*<\/KeyDescriptor>)([\s\S]*)(<\/IDPSSODescriptor>)/,
      '$2$1$3',
    );
    expect(await schemaFaults(moved, 'metadata')).not.to.deep.equal([]);
  });

  it('contains the certificates of the current and of the next key, the current one first', async () => {
    const { text } = await createAgent(server).get('/samlp/metadata/sp');
    const certificates = [...text.matchAll(/<X509Certificate>([^<]*)</g)].map(([, der]) => der);
    const keys = server.store.collection('signingKeys');
    const [current] = await keys.findBy('state', 'current');
    const [next] = await keys.findBy('state', 'next');
    expect(certificates).to.deep.equal([current!.x5c[0], next!.x5c[0]]);
    expect(new X509Certificate(Buffer.from(certificates[0]!, 'base64')).subject).to.equal('CN=localhost');
  });

  it("states the application's entity ID, and whether requests must be signed", async () => {
    const { text } = await createAgent(server).get('/samlp/metadata/signed');
    expect(text).to.include('WantAuthnRequestsSigned="true"').and.include('entityID="urn:of-its-own"');
  });

  it('answers 404 for an application without the addon, and for an unknown one', async () => {
    const agent = createAgent(server);
    expect((await agent.get('/samlp/metadata/no-addon')).status).to.equal(404);
    expect((await agent.get('/samlp/metadata/nobody')).status).to.equal(404);
    expect((await agent.get('/samlp/no-addon')).status).to.equal(404);
  });

  it('follows a key rotation: the announced key then signs', async () => {
    const before = await createAgent(server).get('/samlp/metadata/sp');
    await rotateSigningKeys(server.store, Date.now, 'localhost');
    const keys = server.store.collection('signingKeys');
    const [current] = await keys.findBy('state', 'current');
    expect(before.text).to.include(current!.x5c[0]);
    const after = await createAgent(server).get('/samlp/metadata/sp');
    expect(after.text.indexOf(current!.x5c[0]!)).to.be.within(0, after.text.lastIndexOf('<X509Certificate>'));
    const config = await openConfig(server.store);
    const signing = createSigning({ store: server.store, config, clock: Date.now, commonName: 'localhost' });
    const idp = identityProvider(server.url, config, signing.sign);
    const signer = idp.signer({ signatureAlgorithm: 'rsa-sha256', digestAlgorithm: 'sha256' });
    expect(signer.certificate).to.equal(current!.x5c[0]);
    const publicKey = new X509Certificate(Buffer.from(signer.certificate, 'base64')).publicKey;
    const signature = await signer.sign('rsa-sha256', Buffer.from('octets'));
    expect(verify('sha256', Buffer.from('octets'), publicKey, signature)).to.equal(true);
    expect(idp.certificates())
      .to.have.length(2)
      .and.not.include((await keys.findBy('state', 'previous'))[0]!.x5c[0]);
  });
});
