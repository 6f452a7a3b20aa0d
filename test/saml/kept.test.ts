// What a SAML login that waits keeps of its request: anybody can send a long one, and many of them.
import { deflateRawSync } from 'node:zlib';
import { expect } from 'chai';
import { listAll } from '../../src/store/list-all.ts';
import { createAgent } from '../support/agent.ts';
import { follow } from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';
import { ACS, SP_ISSUER, samlClient, startSamlServer } from './support.ts';

const CLASS = 'urn:oasis:names:tc:SAML:2.0:ac:classes:PasswordProtectedTransport';

const MAX_CLASSES = 20;
const MAX_CLASS_LENGTH = 256;

/**
 * Returns an AuthnRequest.
 * @param long whether it has as much beside what an answer needs as a URL can have.
 * @param classes how many further contexts it accepts.
 */
function request(long: boolean, classes = 0): string {
  const filler = (text: string, times: number) => (long ? text.repeat(times) : '');
  // Not compressible, so that it is as long in the store as it seems.
  const noise = (length: number) =>
    Array.from({ length }, (_, index) => ((index * 7919 + 13) % 36).toString(36)).join('');
  const contexts = Array.from({ length: classes }, (_, index) =>
    `urn:example:${index}:${noise(MAX_CLASS_LENGTH)}`.slice(0, MAX_CLASS_LENGTH),
  );
  return `<samlp:AuthnRequest xmlns:samlp="urn:oasis:names:tc:SAML:2.0:protocol"
    xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion" ID="_id" Version="2.0"
    IssueInstant="${new Date().toISOString()}" AssertionConsumerServiceURL="${ACS}" ProviderName="${filler(noise(100), 20)}">
    <saml:Issuer>${SP_ISSUER}</saml:Issuer>
    <samlp:Extensions>${filler(`<x xmlns="urn:x">${noise(1000)}</x>`, 10)}</samlp:Extensions>
    <samlp:RequestedAuthnContext>${[...contexts, CLASS]
      .map((one) => `<saml:AuthnContextClassRef>${one}</saml:AuthnContextClassRef>`)
      .join('')}</samlp:RequestedAuthnContext>
    <samlp:Scoping>${filler(`<samlp:RequesterID>${noise(200)}</samlp:RequesterID>`, 10)}</samlp:Scoping>
  </samlp:AuthnRequest>`;
}

describe('a SAML login that waits', () => {
  let server: TestServer;
  before(async () => {
    server = await startSamlServer([samlClient('plain')]);
  });
  after(() => server.stop());

  const keptLength = async () => {
    const records = [
      ...(await listAll(server.store.collection('challenges'))),
      ...(await listAll(server.store.collection('artifacts'))),
      ...(await listAll(server.store.collection('samlMessages'))),
    ];
    return JSON.stringify(records).length;
  };
  const addedBy = async (xml: string) => {
    const before = await keptLength();
    const message = deflateRawSync(xml).toString('base64');
    const agent = createAgent(server);
    const query = new URLSearchParams({ SAMLRequest: message });
    const page = await follow(agent, await agent.get(`/samlp/plain?${query}`), server.url);
    expect(page.text).to.include('name="password"');
    return (await keptLength()) - before;
  };

  it('keeps of a long request what the answer needs', async () => {
    const short = await addedBy(request(false));
    expect(short).to.be.below(4_000);
    expect(request(true).length).to.be.above(14_000);
    expect((await addedBy(request(true))) - short).to.be.below(100);
    // The contexts are compared with that of the login, which an action may set.
    const most = await addedBy(request(true, MAX_CLASSES - 1));
    expect(most - short).to.be.below(MAX_CLASSES * (MAX_CLASS_LENGTH + 10));
  });
});
