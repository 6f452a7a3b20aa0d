// Attacks with an AuthnRequest by somebody other than the service provider. Each is answered with an error page,
// and no login begins.
import { deflateRawSync } from 'node:zlib';
import { expect } from 'chai';
import { createAgent } from '../support/agent.ts';
import type { TestServer } from '../support/server.ts';
import {
  authnRequest,
  DS,
  HMAC_SHA1,
  idOf,
  postForm,
  RSA_SHA1,
  redirectQuery,
  sign,
  split,
} from './messages.ts';
import { ACS, type KeyAndCertificate, makeCertificate, samlClient, startSamlServer } from './support.ts';

const EVIL = 'https://sp.example.test/evil';

describe('the defences of SAML login', () => {
  let server: TestServer;
  let key: KeyAndCertificate;
  let foreign: KeyAndCertificate;

  before(async () => {
    key = await makeCertificate();
    foreign = await makeCertificate();
    const callbacks = { callbacks: [ACS, EVIL] };
    server = await startSamlServer([
      samlClient('open', {}, callbacks),
      samlClient('strict', { signingCert: key.certificate }, callbacks),
      samlClient('old', { signingCert: key.certificate, signatureAlgorithm: 'rsa-sha1' }, callbacks),
      samlClient('none', {}, { callbacks: ['com.example.app://callback'] }),
    ]);
  });
  after(() => server.stop());

  const address = (client: string) => `${server.url}/samlp/${client}`;
  const request = (client: string, over: Parameters<typeof authnRequest>[0] = {}) =>
    authnRequest({ ...over, attributes: { Destination: address(client), ...over.attributes } });
  const post = (client: string, xml: string) =>
    createAgent(server).request(`/samlp/${client}`, { form: postForm(xml) });
  const redirect = (client: string, query: string) => createAgent(server).get(`/samlp/${client}?${query}`);

  async function refused(answer: ReturnType<typeof post>, words = /./): Promise<void> {
    const { status, text, location } = await answer;
    expect([status, location]).to.deep.equal([400, '']);
    expect(text).to.match(words);
    expect(server.logged()).not.to.include('unexpected error');
  }
  async function taken(answer: ReturnType<typeof post>): Promise<void> {
    const { status, location } = await answer;
    expect(status).to.equal(302);
    expect(location).to.match(/\/authorize\?/);
  }

  describe('signatures', () => {
    it('are accepted inside a post and beside a redirect', async () => {
      await taken(post('strict', sign(request('strict'), key.privateKey)));
      await taken(redirect('strict', redirectQuery(request('strict'), { privateKey: key.privateKey })));
      const query = redirectQuery(request('strict'), { privateKey: key.privateKey, relayState: 'a b+c/ä' });
      await taken(redirect('strict', query));
    });

    it('are required when the application has a certificate', async () => {
      await refused(post('strict', request('strict')), /must be signed/);
      await refused(redirect('strict', redirectQuery(request('strict'))), /must be signed/);
    });

    it('inside a message do not replace the one beside a redirect', async () => {
      await refused(
        redirect('strict', redirectQuery(sign(request('strict'), key.privateKey))),
        /must be signed/,
      );
    });

    it('of another key are rejected, even if the message contains its certificate', async () => {
      const signed = sign(request('strict'), foreign.privateKey);
      const der = foreign.certificate.replaceAll(/-----.*-----|\s/g, '');
      const keyInfo = `<ds:KeyInfo><ds:X509Data><ds:X509Certificate>${der}</ds:X509Certificate></ds:X509Data></ds:KeyInfo>`;
      await refused(post('strict', signed), /not valid/);
      await refused(
        post('strict', signed.replace('</ds:Signature>', `${keyInfo}</ds:Signature>`)),
        /not valid/,
      );
      const query = redirectQuery(request('strict'), { privateKey: foreign.privateKey });
      await refused(redirect('strict', query), /not valid/);
    });

    it('are invalid after a change of the message, of RelayState or of the order', async () => {
      const signed = sign(request('strict'), key.privateKey);
      await refused(post('strict', signed.replace(ACS, EVIL)), /not valid/);
      const query = redirectQuery(request('strict'), { privateKey: key.privateKey, relayState: 'mine' });
      await refused(redirect('strict', query.replace('RelayState=mine', 'RelayState=yours')), /not valid/);
      await refused(redirect('strict', query.replace('&RelayState=mine', '')), /not valid/);
      const other = redirectQuery(request('strict'));
      await refused(redirect('strict', query.replace(/^SAMLRequest=[^&]*/, other)), /not valid/);
    });

    it('cover the parameters that are read, not others of the same name', async () => {
      const query = redirectQuery(request('strict'), { privateKey: key.privateKey });
      const evil = redirectQuery(request('strict', { attributes: { AssertionConsumerServiceURL: EVIL } }));
      await refused(redirect('strict', `${evil}&${query}`), /must come once/);
      await refused(redirect('strict', `${query}&${evil}`), /must come once/);
      await refused(redirect('strict', `${evil.replace('SAMLR', 'SAML%52')}&${query}`), /without escapes/);
      await refused(redirect('strict', `${query.replace('SAMLR', 'SAML%52')}`), /without escapes/);
    });

    it('with SHA-1 are rejected unless the addon allows it', async () => {
      const sha1 = { signature: RSA_SHA1, digest: `${DS}sha1` };
      await refused(post('strict', sign(request('strict'), key.privateKey, sha1)), /not accepted/);
      const digestOnly = { digest: `${DS}sha1` };
      await refused(post('strict', sign(request('strict'), key.privateKey, digestOnly)), /not accepted/);
      const beside = { privateKey: key.privateKey, algorithm: RSA_SHA1 };
      await refused(redirect('strict', redirectQuery(request('strict'), beside)), /not accepted/);
      await taken(post('old', sign(request('old'), key.privateKey, sha1)));
      await taken(redirect('old', redirectQuery(request('old'), beside)));
    });

    it('with HMAC and the public certificate as key are rejected', async () => {
      const hmac = { signature: HMAC_SHA1 };
      await refused(post('strict', sign(request('strict'), key.certificate, hmac)), /not accepted/);
      const beside = { privateKey: key.certificate, algorithm: HMAC_SHA1 };
      await refused(redirect('strict', redirectQuery(request('strict'), beside)), /not accepted/);
      await refused(post('old', sign(request('old'), key.certificate, hmac)), /not accepted/);
    });

    it('without an algorithm, or with an unknown one, are rejected', async () => {
      for (const algorithm of ['', 'none', 'urn:none', 'http://www.w3.org/2000/09/xmldsig#dsa-sha1']) {
        const signed = sign(request('strict'), key.privateKey);
        const bent = signed.replace(
          /(<ds:SignatureMethod Algorithm=")[^"]*/,
          (_all, start: string) => `${start}${algorithm}`,
        );
        await refused(post('strict', bent), /not accepted/);
        const query = redirectQuery(request('strict'), { privateKey: key.privateKey });
        const encoded = encodeURIComponent(algorithm);
        await refused(redirect('strict', query.replace(/SigAlg=[^&]*/, `SigAlg=${encoded}`)), /not accepted/);
      }
    });

    it('that are empty or not base64 are rejected', async () => {
      const signed = sign(request('strict'), key.privateKey);
      const value = /<ds:SignatureValue>[^<]*/;
      await refused(post('strict', signed.replace(value, '<ds:SignatureValue>')));
      await refused(post('strict', signed.replace(value, '<ds:SignatureValue>%%%')));
      const query = redirectQuery(request('strict'), { privateKey: key.privateKey });
      await refused(redirect('strict', query.replace(/Signature=.*$/, 'Signature=')));
      await refused(redirect('strict', query.replace(/&Signature=.*$/, '')));
      await refused(redirect('strict', query.replace(/&SigAlg=[^&]*/, '')));
    });

    it('with other transforms, canonicalizations or references than the whole message are rejected', async () => {
      const enveloped = `${DS}enveloped-signature`;
      const exclusive = 'http://www.w3.org/2001/10/xml-exc-c14n#';
      for (const bent of [
        { c14n: 'http://www.w3.org/TR/2001/REC-xml-c14n-20010315' },
        { transforms: [enveloped] },
        { transforms: [exclusive, enveloped] },
        { transforms: [enveloped, exclusive, exclusive] },
        { reference: "//*[local-name(.)='Issuer']" },
      ]) {
        await refused(post('strict', sign(request('strict'), key.privateKey, bent)), /not valid/);
      }
    });
  });

  describe('signature wrapping', () => {
    // The original signed request, its signature, and an unsigned request with its own ID or with the signed one's.
    const arrangements: Record<
      string,
      (p: { original: string; bare: string; signature: string; evil: string }) => string
    > = {
      '1: the signed request inside the signature of the other': ({ bare, signature, evil }) =>
        inside(evil, signature.replace('</ds:Signature>', `${bare}</ds:Signature>`)),
      '2: the signed request beside the signature of the other': ({ bare, signature, evil }) =>
        inside(evil, bare + signature),
      '3: both below another root, the other first': ({ original, evil }) =>
        `<samlp:Extensions xmlns:samlp="urn:oasis:names:tc:SAML:2.0:protocol">${evil}${original}</samlp:Extensions>`,
      '4: the signed request, with its signature, inside the other': ({ original, evil }) =>
        inside(evil, original),
      '5: the signature moved to the other, the signed request at its end': ({ bare, signature, evil }) =>
        inside(evil, signature).replace(/<\/samlp:AuthnRequest>$/, `${bare}</samlp:AuthnRequest>`),
      '6: the signed request inside KeyInfo of the signature': ({ bare, signature, evil }) =>
        inside(evil, signature.replace('</ds:Signature>', `<ds:KeyInfo>${bare}</ds:KeyInfo></ds:Signature>`)),
      '7: the signed request in the extensions of the other': ({ original, evil }) =>
        inside(evil, `<samlp:Extensions>${original}</samlp:Extensions>`),
      '8: the signed request in an Object of the signature': ({ bare, signature, evil }) =>
        inside(evil, signature.replace('</ds:Signature>', `<ds:Object>${bare}</ds:Object></ds:Signature>`)),
    };
    const inside = (outer: string, inner: string) =>
      outer.replace('</saml:Issuer>', `</saml:Issuer>${inner}`);

    for (const [name, arrange] of Object.entries(arrangements)) {
      for (const sameId of [false, true]) {
        it(`is rejected: ${name}${sameId ? ', with one ID' : ''}`, async () => {
          const original = sign(request('strict'), key.privateKey);
          const { unsigned: bare, signature } = split(original);
          const attributes = {
            AssertionConsumerServiceURL: EVIL,
            ...(sameId ? { ID: idOf(original) } : {}),
          };
          const evil = request('strict', { attributes });
          const wrapped = arrange({ original, bare, signature, evil });
          await refused(post('strict', wrapped));
          // The signed request is not used up by the attack.
          await taken(post('strict', original));
        });
      }
    }

    it('is rejected with two signatures', async () => {
      const original = sign(request('strict'), key.privateKey);
      const { signature } = split(original);
      await refused(post('strict', original.replace(signature, signature + signature)), /more than one/);
    });
  });

  describe('XML', () => {
    const declared = (doctype: string, xml: string) => `<?xml version="1.0"?>${doctype}${xml}`;

    it('with a document type, entities, comments, CDATA or instructions is rejected', async () => {
      const xml = request('open');
      const entity = xml.replace('https://sp.example.test/metadata', '&file;');
      const bomb = `<!DOCTYPE a [<!ENTITY a "aaaaaaaaaa">${Array.from({ length: 9 }, (_, i) => `<!ENTITY a${i} "${`&a${i === 0 ? '' : i - 1};`.repeat(10)}">`).join('')}]>`;
      await refused(post('open', declared('<!DOCTYPE a>', xml)), /must not contain/);
      await refused(
        post('open', declared('<!DOCTYPE a [<!ENTITY file SYSTEM "file:///etc/passwd">]>', entity)),
        /must not contain/,
      );
      await refused(post('open', declared(bomb, entity.replace('&file;', '&a8;'))), /must not contain/);
      await refused(post('open', entity), /well-formed/);
      await refused(post('open', xml.replace('sp.example', 'sp<!-- -->.example')), /must not contain/);
      await refused(
        post('open', xml.replace('</saml:Issuer>', '<![CDATA[x]]></saml:Issuer>')),
        /must not contain/,
      );
      await refused(
        post('open', xml.replace('</saml:Issuer>', '<?php x?></saml:Issuer>')),
        /must not contain/,
      );
    });

    it('that is not well-formed, or is not XML, is rejected', async () => {
      const xml = request('open');
      for (const bad of [
        'hello',
        '{}',
        ' ',
        xml.slice(0, -5),
        `${xml}${xml}`,
        xml.replace('</saml:Issuer>', ''),
        xml.replace('Version="2.0"', 'Version="2.0" Version="2.0"'),
        xml.replace('metadata', '\u0001'),
        xml.replace('ID=', 'ID='.toLowerCase()),
      ]) {
        await refused(post('open', bad));
      }
      const latin = Buffer.from(xml.replace('metadata', 'ä'), 'latin1').toString('base64');
      await refused(
        createAgent(server).request('/samlp/open', { form: { SAMLRequest: latin } }),
        /well-formed/,
      );
    });

    it('that is too large, too deep or too wide is rejected', async () => {
      const grown = (content: string) =>
        request('open', { content: `<samlp:Extensions>${content}</samlp:Extensions>` });
      await refused(redirect('open', redirectQuery(grown('x'.repeat(70_000)))), /too large/);
      await refused(post('open', grown('<a>'.repeat(40) + '</a>'.repeat(40))), /too deeply/);
      await refused(
        redirect('open', redirectQuery(grown('<a>'.repeat(9_000) + '</a>'.repeat(9_000)))),
        /too deeply/,
      );
      await refused(post('open', grown('<a/>'.repeat(600))), /too many/);
      const wide = Array.from({ length: 60 }, (_, i) => `a${i}=""`).join(' ');
      await refused(post('open', grown(`<a ${wide}/>`)), /too many/);
      const { status } = await post('open', grown('x'.repeat(100_000)));
      expect(status).to.equal(413);
    });

    it('that would inflate without bound is not inflated', async () => {
      const bomb = deflateRawSync(Buffer.alloc(8 * 1024 * 1024, 'a'), { level: 9 }).toString('base64');
      const started = process.memoryUsage().rss;
      await refused(redirect('open', `SAMLRequest=${encodeURIComponent(bomb)}`), /too large/);
      expect(process.memoryUsage().rss - started).to.be.below(64 * 1024 * 1024);
    });

    it('that is not deflated, or not base64, is rejected', async () => {
      const plain = encodeURIComponent(Buffer.from(request('open')).toString('base64'));
      await refused(redirect('open', `SAMLRequest=${plain}`), /nor deflated/);
      await refused(redirect('open', 'SAMLRequest=%25%25'), /base64/);
      await refused(redirect('open', 'SAMLRequest='), /base64/);
      await refused(
        redirect('open', `${redirectQuery(request('open'))}&SAMLEncoding=urn:other`),
        /SAMLEncoding/,
      );
    });
  });

  it('log the reason as an event', async () => {
    await refused(post('strict', request('strict')));
    await server.tenant.close();
    const { records } = await server.store.collection('logs').list({ limit: 1000 });
    const seen = records.find(({ client_id, type }) => client_id === 'strict' && type === 'f');
    expect(seen?.description).to.match(/^SAML: /);
  });

  describe('reject a request', () => {
    const bent = (attributes: Record<string, string | undefined>, words: RegExp) =>
      refused(post('open', request('open', { attributes })), words);

    it('for another destination', async () => {
      await bent({ Destination: address('strict') }, /Destination/);
      await bent({ Destination: 'https://evil.example.test/samlp/open' }, /Destination/);
      await bent({ Destination: 'open' }, /Destination/);
      // A signed request must have a Destination; a query in it makes no difference.
      const unsaid = request('strict', { attributes: { Destination: undefined } });
      await refused(post('strict', sign(unsaid, key.privateKey)), /Destination/);
      await taken(post('open', request('open', { attributes: { Destination: undefined } })));
      await taken(
        post('open', request('open', { attributes: { Destination: `${address('open')}?connection=users` } })),
      );
    });

    it('with an assertion consumer URL that is not registered', async () => {
      for (const url of [
        'https://evil.example.test/acs',
        `${ACS}/`,
        `${ACS}?x=1`,
        ACS.toUpperCase(),
        'javascript:alert(1)',
      ]) {
        await bent({ AssertionConsumerServiceURL: url }, /allowed callback/);
      }
      await refused(redirect('none', ''), /no callback/);
    });

    it('that is too old, from the future, or without a time', async () => {
      const at = (seconds: number) => new Date(Date.now() + seconds * 1000).toISOString();
      await bent({ IssueInstant: at(-900) }, /IssueInstant/);
      await bent({ IssueInstant: at(300) }, /IssueInstant/);
      await bent({ IssueInstant: undefined }, /IssueInstant/);
      await bent({ IssueInstant: 'yesterday' }, /IssueInstant/);
      await taken(post('open', request('open', { attributes: { IssueInstant: at(120) } })));
      await taken(post('open', request('open', { attributes: { IssueInstant: at(-600) } })));
    });

    it('of another version, without a proper ID, or without an issuer', async () => {
      await bent({ Version: '1.1' }, /SAML 2.0/);
      await bent({ ID: undefined }, /proper ID/);
      await bent({ ID: '1 or 1' }, /proper ID/);
      await bent({ IsPassive: 'perhaps' }, /IsPassive/);
      await refused(post('open', request('open', { issuer: ' ' })), /Issuer/);
      await refused(post('open', request('open', { issuer: 'x'.repeat(2000) })), /Issuer/);
      await refused(
        post('open', request('open').replace('</saml:Issuer>', '<b/></saml:Issuer>')),
        /text alone/,
      );
    });

    it('that is another message', async () => {
      await refused(
        post('open', request('open').replaceAll('AuthnRequest', 'LogoutRequest')),
        /no AuthnRequest/,
      );
      await refused(
        post('open', request('open').replace('urn:oasis:names:tc:SAML:2.0:protocol', 'urn:x')),
        /no AuthnRequest/,
      );
      const form = postForm(request('open'), 'SAMLResponse');
      await refused(createAgent(server).request('/samlp/open', { form }), /not expected/);
      await refused(createAgent(server).request('/samlp/open', { form: {} }), /Missing required parameter/);
    });

    it('that is signed and was used before', async () => {
      const signed = sign(request('strict'), key.privateKey);
      await taken(post('strict', signed));
      await refused(post('strict', signed), /already used/);
      const query = redirectQuery(request('strict'), { privateKey: key.privateKey });
      await taken(redirect('strict', query));
      await refused(redirect('strict', query), /already used/);
    });

    it('without storing it when it is unsigned, so that strangers cannot fill the store', async () => {
      const messages = server.store.collection('samlMessages');
      const before = (await messages.list({ limit: 1000 })).records.length;
      const xml = request('open');
      for (let count = 0; count < 3; count++) await taken(post('open', xml));
      for (let count = 0; count < 20; count++) await taken(redirect('open', redirectQuery(request('open'))));
      expect((await messages.list({ limit: 1000 })).records.length).to.equal(before);
    });

    it('with names that are too long', async () => {
      const long = 'x'.repeat(257);
      const context = (...classes: string[]) =>
        `<samlp:RequestedAuthnContext>${classes.map((one) => `<saml:AuthnContextClassRef>${one}</saml:AuthnContextClassRef>`).join('')}</samlp:RequestedAuthnContext>`;
      for (const content of [
        `<samlp:NameIDPolicy Format="${long}"/>`,
        `<samlp:NameIDPolicy SPNameQualifier="${long}"/>`,
        `<saml:Subject><saml:NameID>${long}</saml:NameID></saml:Subject>`,
        context(long),
        context(...Array.from({ length: 21 }, (_, i) => `urn:${i}`)),
      ]) {
        await refused(post('open', request('open', { content })), /too (long|many)/);
      }
    });

    it('with a RelayState that is too long', async () => {
      const long = redirectQuery(request('open'), { relayState: 'x'.repeat(2049) });
      await refused(redirect('open', long), /RelayState/);
      await refused(redirect('open', `RelayState=${'x'.repeat(2049)}`), /RelayState/);
      await taken(redirect('open', redirectQuery(request('open'), { relayState: 'x'.repeat(2048) })));
    });
  });
});
