// Signed AuthnRequests to a SAML identity provider.
import { verify } from 'node:crypto';
import { expect } from 'chai';
import { callApi, startManaged } from '../../management/support.ts';
import { certificateOf, type KeyAndCertificate, makeCertificate } from '../../saml/support.ts';
import { createAgent, readForm } from '../../support/agent.ts';
import { authorize, follow, tenant, webRequest } from '../../support/flows.ts';
import type { TestServer } from '../../support/server.ts';
import { BINDING, SIGN_IN } from './provider.ts';

describe('a signed AuthnRequest', () => {
  let server: TestServer;
  let key: KeyAndCertificate;
  before(async () => {
    key = await makeCertificate();
    server = await startManaged(tenant);
  });
  after(() => server.stop());

  /** Creates a connection. @returns its id. */
  const create = async (name: string, more: object = {}): Promise<string> => {
    const options = { signInEndpoint: SIGN_IN, signingCert: key.certificate, signSAMLRequest: true, ...more };
    const body = { name, strategy: 'samlp', enabled_clients: ['web'], options };
    const answer = await callApi(server, 'POST', '/connections', body);
    return String(((await answer.json()) as { id: string }).id);
  };
  const redirected = async (connection: string) =>
    new URL((await authorize(createAgent(server), webRequest({ connection }))).location);
  const postedFields = async (connection: string) => {
    const agent = createAgent(server);
    const page = await follow(agent, await authorize(agent, webRequest({ connection })), server.url);
    return readForm(page, 'SAMLRequest').fields;
  };

  it('has its signature in the query for HTTP-Redirect, by the key of the tenant', async () => {
    await create('by-redirect');
    const at = await redirected('by-redirect');
    expect([...at.searchParams.keys()]).to.deep.equal(['SAMLRequest', 'RelayState', 'SigAlg', 'Signature']);
    const [octets = '', signature = ''] = at.search.slice(1).split('&Signature=');
    const isBy = (certificate: string) =>
      verify(
        'RSA-SHA256',
        Buffer.from(octets),
        certificate,
        Buffer.from(decodeURIComponent(signature), 'base64'),
      );
    expect(isBy(await certificateOf(server))).to.equal(true);
    expect(isBy(key.certificate)).to.equal(false);
  });

  it('is signed inside for HTTP-POST, by the key of the connection as soon as there is one', async () => {
    const id = await create('by-post', { protocolBinding: `${BINDING}POST`, digestAlgorithm: 'sha512' });
    const before = Buffer.from((await postedFields('by-post')).SAMLRequest ?? '', 'base64').toString();
    expect(before).to.include('http://www.w3.org/2001/04/xmlenc#sha512');
    const keys = (await (await callApi(server, 'POST', `/connections/${id}/keys`, {})).json()) as {
      cert: string;
      current?: boolean;
    }[];
    const current = keys.find((one) => one.current)?.cert ?? '';
    const after = Buffer.from((await postedFields('by-post')).SAMLRequest ?? '', 'base64').toString();
    const der = (pem: string) => pem.replaceAll(/-----[^-]+-----|\s/g, '');
    expect(after).to.include(der(current));
    expect(before).not.to.include(der(current));
    const { text } = await createAgent(server).get('/samlp/metadata?connection=by-post');
    for (const { cert } of keys) expect(text).to.include(der(cert));
  });

  it('is signed by the signing_key of the options, if there is one', async () => {
    const own = await makeCertificate();
    await create('by-options', {
      protocolBinding: `${BINDING}POST`,
      signing_key: { key: own.privateKey, cert: own.certificate },
    });
    const message = Buffer.from((await postedFields('by-options')).SAMLRequest ?? '', 'base64').toString();
    expect(message).to.include(own.certificate.replaceAll(/-----[^-]+-----|\s/g, ''));
  });

  it('is signed inside for HTTP-Redirect without deflate', async () => {
    await create('plain', { deflate: false });
    const at = await redirected('plain');
    expect([...at.searchParams.keys()]).to.deep.equal(['SAMLRequest', 'RelayState']);
    const message = Buffer.from(at.searchParams.get('SAMLRequest') ?? '', 'base64').toString();
    expect(message).to.match(/^<samlp:AuthnRequest[\s\S]*<ds:SignatureValue>/);
  });
});
