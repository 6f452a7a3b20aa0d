// Forged and malformed SAML Responses, none of which logs a user in.
import { deflateRawSync } from 'node:zlib';
import { expect } from 'chai';
import { createAgent } from '../../support/agent.ts';
import {
  assertion,
  newId,
  type ResponseOptions,
  response,
  type SamlWorld,
  SIGN_IN,
  type StartedLogin,
  samlWorld,
  signed,
} from './provider.ts';

const DS = 'http://www.w3.org/2000/09/xmldsig#';
const HOUR = 3600;
const at = (seconds: number) => new Date(Date.now() + seconds * 1000).toISOString();

describe('a hostile SAML response', () => {
  let world: SamlWorld;
  before(async () => {
    const connection = (name: string, options: object) => ({
      name,
      strategy: 'samlp',
      enabled_clients: ['web'],
      options: { signInEndpoint: SIGN_IN, ...options },
    });
    world = await samlWorld(
      () => ({ issuer: 'https://idp.example.test/metadata' }),
      (key, foreign) => ({
        connections: [
          connection('other', { signingCert: foreign.certificate }),
          connection('twin', { signingCert: key.certificate }),
          connection('old', { signingCert: key.certificate, signatureAlgorithm: 'rsa-sha1' }),
        ],
      }),
    );
  });
  after(() => world.server.stop());

  const known = async () =>
    (await world.server.store.collection('users').list({ limit: 500 })).records.length;

  /** Posts a response, and expects an error with these words, and no new user. */
  async function refused(away: StartedLogin, xml: string, words = /./): Promise<void> {
    const before = await known();
    const answer = await world.post(away, xml);
    const outcome = await world.finish(away.agent, answer);
    expect(outcome).to.have.property('error');
    expect(outcome.error_description).to.match(words);
    expect(outcome).not.to.have.property('code');
    expect(await known()).to.equal(before);
    expect(world.server.logged()).not.to.include('unexpected error');
  }
  const bent = async (over: ResponseOptions, words: RegExp) => {
    const away = await world.away();
    await refused(away, world.answer(away, over), words);
  };

  describe('is rejected if its signature', () => {
    const plain = (away: StartedLogin) => ({ inResponseTo: away.requestId, nameId: 'admin' });

    it('is missing', async () => {
      const away = await world.away();
      await refused(
        away,
        response(world.server, assertion(world.server, plain(away)), plain(away)),
        /must be signed/,
      );
    });

    it('is of another key, whose certificate it includes', async () => {
      const away = await world.away();
      const xml = signed(assertion(world.server, plain(away)), 'Assertion', world.foreign.privateKey);
      const der = world.foreign.certificate.replaceAll(/-----.*-----|\s/g, '');
      const info = `<ds:KeyInfo><ds:X509Data><ds:X509Certificate>${der}</ds:X509Certificate></ds:X509Data></ds:KeyInfo>`;
      const brought = xml.replace('</ds:Signature>', `${info}</ds:Signature>`);
      await refused(away, response(world.server, brought, plain(away)), /not valid/);
    });

    for (const [algorithm, signature] of Object.entries({
      'SHA-1': `${DS}rsa-sha1`,
      'HMAC under the certificate': `${DS}hmac-sha1`,
    })) {
      it(`uses ${algorithm}`, async () => {
        const away = await world.away();
        const key = signature.includes('hmac') ? world.key.certificate : world.key.privateKey;
        const xml = signed(assertion(world.server, plain(away)), 'Assertion', key, { signature });
        await refused(away, response(world.server, xml, plain(away)), /algorithm .* not accepted/);
      });
    }

    it('uses a SHA-1 digest, unless the connection allows SHA-1', async () => {
      const away = await world.away();
      const old = { signature: `${DS}rsa-sha1`, digest: `${DS}sha1` };
      const xml = signed(assertion(world.server, plain(away)), 'Assertion', world.key.privateKey, {
        digest: old.digest,
      });
      await refused(away, response(world.server, xml, plain(away)), /digest algorithm .* not accepted/);
      const allowed = await world.away({ connection: 'old' });
      const taken = world.answer(allowed, { audience: 'urn:auth0:localhost:old' }, old);
      expect(await world.finish(allowed.agent, await world.post(allowed, taken))).to.have.property('code');
    });

    it('names an unknown algorithm, or none', async () => {
      for (const algorithm of ['', 'none', 'urn:none']) {
        const away = await world.away();
        const xml = world
          .answer(away)
          .replace(/(<ds:SignatureMethod Algorithm=")[^"]*/, (_all, start: string) => `${start}${algorithm}`);
        await refused(away, xml, /not accepted/);
      }
    });

    it('does not match the content', async () => {
      const away = await world.away();
      await refused(
        away,
        world.answer(away, { nameId: 'mallory' }).replace('>mallory<', '>admin<'),
        /not valid/,
      );
    });

    it('refers to the document, and not to the element by its ID (SAML Core §5.4.2)', async () => {
      const away = await world.away();
      const xml = signed(assertion(world.server, plain(away)), 'Assertion', world.key.privateKey, {
        refersToDocument: true,
      });
      expect(xml).to.contain('<ds:Reference URI="">');
      await refused(away, response(world.server, xml, plain(away)), /not valid/);
    });

    it('has an unsupported transform', async () => {
      const away = await world.away();
      const xml = world.answer(away);
      const xslt = '<ds:Transform Algorithm="http://www.w3.org/TR/1999/REC-xslt-19991116"/>';
      await refused(away, xml.replace('<ds:Transforms>', `<ds:Transforms>${xslt}`), /not valid/);
    });
  });

  describe('is rejected if it wraps signed content (XML signature wrapping)', () => {
    /** Returns a signed assertion of the user mallory, its parts, and a forged one. */
    const parts = (away: StartedLogin) => {
      const contents = { inResponseTo: away.requestId, nameId: 'mallory' };
      const plain = assertion(world.server, { ...contents, assertionId: newId() });
      const whole = signed(plain, 'Assertion', world.key.privateKey);
      const signature = /<ds:Signature[\s\S]*<\/ds:Signature>/.exec(whole)?.[0] ?? '';
      const evil = plain.replace('>mallory<', '>admin<');
      return {
        contents,
        plain,
        whole,
        signature,
        evil,
        evilId: evil.replace(/ ID="[^"]*"/, ` ID="${newId()}"`),
      };
    };
    const within = (away: StartedLogin, content: string) =>
      response(world.server, content, parts(away).contents);
    const put = (element: string, signature: string) =>
      element.replace('</saml:Issuer>', `</saml:Issuer>${signature}`);
    /** Returns a signed Response of mallory, and its parts. */
    const responses = (away: StartedLogin) => {
      const { contents, plain } = parts(away);
      const whole = signed(response(world.server, plain, contents), 'Response', world.key.privateKey);
      const signature = /<ds:Signature[\s\S]*<\/ds:Signature>/.exec(whole)?.[0] ?? '';
      const original = whole.replace(signature, '');
      const evil = original.replace('>mallory<', '>admin<').replace(/ ID="[^"]*"/, ` ID="${newId()}"`);
      return { whole, signature, original, evil };
    };
    const inside = (signature: string, object: string) =>
      signature.replace('</ds:Signature>', `<ds:Object>${object}</ds:Object></ds:Signature>`);

    const variants: Record<string, (away: StartedLogin) => string> = {
      '1: the response in the signature of a forged one': (away) => {
        const { signature, original, evil } = responses(away);
        return put(evil, inside(signature, original));
      },
      '2: the response next to the signature of a forged one': (away) => {
        const { signature, original, evil } = responses(away);
        return put(evil, `${original}${signature}`);
      },
      '3: a forged assertion before the signed one': (away) => {
        const { evilId, whole } = parts(away);
        return within(away, `${evilId}${whole}`);
      },
      '4: the signed assertion in a forged one': (away) => {
        const { evilId, whole } = parts(away);
        return within(away, evilId.replace('</saml:Assertion>', `${whole}</saml:Assertion>`));
      },
      '5: a forged assertion with the signature, next to the original': (away) => {
        const { evilId, plain, signature } = parts(away);
        return within(away, `${put(evilId, signature)}${plain}`);
      },
      '6: the same, with the original in the signature': (away) => {
        const { evilId, plain, signature } = parts(away);
        return within(away, put(evilId, inside(signature, plain)));
      },
      '7: a forged assertion with the same ID in an extension': (away) => {
        const { evil, whole } = parts(away);
        return within(away, `<samlp:Extensions>${evil}</samlp:Extensions>${whole}`);
      },
      '8: the original in an Object of the signature of one with the same ID': (away) => {
        const { evil, plain, signature } = parts(away);
        return within(away, put(evil, inside(signature, plain)));
      },
    };
    for (const [what, make] of Object.entries(variants)) {
      it(what, async () => {
        const away = await world.away();
        await refused(away, make(away));
      });
    }

    it('9: two signed assertions', async () => {
      const away = await world.away();
      await refused(away, within(away, `${parts(away).whole}${parts(away).whole}`), /one assertion/);
    });
  });

  describe('is rejected as XML if it', () => {
    it('has a comment in the NameID', async () => {
      const away = await world.away();
      const xml = world.answer(away, { nameId: 'admin@corp.test.evil.test' });
      await refused(away, xml.replace('admin@corp.test', 'admin@corp.test<!-- -->'), /comments/);
    });

    it('has an element in the NameID', async () => {
      const away = await world.away();
      await refused(away, world.answer(away, { nameId: 'admin<b/>.evil' }), /text alone/);
    });

    it('has a document type, entities, or a processing instruction', async () => {
      for (const before of ['<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]>', '<?evil x?>']) {
        const away = await world.away();
        await refused(away, `${before}${world.answer(away)}`, /must not contain/);
      }
    });

    it('is empty, not XML, too large, too deep, or not a Response', async () => {
      const deep = `${'<a>'.repeat(30)}${'</a>'.repeat(30)}`;
      for (const xml of ['', 'not xml', '<a', `<a>${'x'.repeat(150_000)}`, deep, '<a/>']) {
        const away = await world.away();
        const outcome = await world.finish(away.agent, await world.post(away, xml));
        expect(outcome).to.have.property('error');
      }
    });
  });

  it('is rejected if it inflates to more than the limit', async () => {
    const { agent, relayState } = await world.away();
    const bomb = deflateRawSync(Buffer.alloc(50_000_000, 'x')).toString('base64');
    const answer = await agent.request('/login/callback', {
      form: { SAMLResponse: bomb, RelayState: relayState },
    });
    const outcome = await world.finish(agent, answer);
    expect(outcome).to.have.property('error');
    expect(outcome.error_description).to.match(/too large/);
  });

  describe('is rejected as one for another login if it', () => {
    it('answers another request', () => bent({ inResponseTo: newId() }, /another request/));
    it('answers no request', () => bent({ inResponseTo: undefined }, /another request, or none/));
    it('answers this request, and its assertion another', () =>
      bent({ confirmed: newId() }, /another request/));
    it('answers this request, and its assertion none', () =>
      bent({ confirmed: undefined }, /another request, or none/));

    it('is for another audience', () => bent({ audience: 'urn:auth0:localhost:other' }, /audience/));
    it('has no audience', () =>
      bent({ conditions: `<saml:Conditions NotOnOrAfter="${at(HOUR)}"/>` }, /audience/));
    it('has no conditions', () => bent({ conditions: '' }, /no Conditions/));
    it('has an unknown condition', () =>
      bent(
        {
          conditions: `<saml:Conditions><saml:AudienceRestriction><saml:Audience>urn:auth0:localhost:acme</saml:Audience></saml:AudienceRestriction><saml:Condition/></saml:Conditions>`,
        },
        /condition/,
      ));

    it('is for another recipient, or for that of another connection', async () => {
      await bent({ recipient: 'https://other.example.test/login/callback' }, /recipient/);
      await bent({ recipient: `${world.server.url}/login/callback?connection=other` }, /recipient/);
    });
    it('has another destination', () => bent({ destination: 'https://other.example.test/x' }, /Destination/));
    it('is of another issuer', () => bent({ issuer: 'https://evil.example.test' }, /Issuer/));
    it('has another issuer than its assertion', () =>
      bent({ responseIssuer: 'https://evil.example.test' }, /Issuer/));
    it('has no bearer confirmation', () =>
      bent({ method: 'urn:oasis:names:tc:SAML:2.0:cm:holder-of-key' }, /bearer/));

    it('is for another connection with the same provider', async () => {
      const away = await world.away();
      const twin = await world.away({ connection: 'twin' }, away.agent);
      const xml = world.answer(twin, { audience: 'urn:auth0:localhost:twin' });
      await refused(away, xml, /another request/);
      await refused(twin, world.answer(twin), /audience/);
    });

    it('is posted to the URL of another connection', async () => {
      const away = await world.away();
      const answer = await world.post(away, world.answer(away), '/login/callback?connection=twin');
      expect(await world.finish(away.agent, answer)).to.have.property('error');
    });
  });

  describe('by its time', () => {
    it('is rejected after NotOnOrAfter', () => bent({ notOnOrAfter: at(-200) }, /expired/));
    it('is rejected before NotBefore', () => bent({ notBefore: at(300) }, /not valid yet/));
    it('is rejected with an old IssueInstant, even before NotOnOrAfter', () =>
      bent({ issuedAt: at(-HOUR), notOnOrAfter: at(HOUR) }, /IssueInstant/));
    it('is accepted if the clocks differ by less than the tolerance', async () => {
      const away = await world.away();
      const xml = world.answer(away, { notOnOrAfter: at(-100), notBefore: at(-400) });
      expect(await world.finish(away.agent, await world.post(away, xml))).to.have.property('code');
    });
  });

  describe('that was accepted before', () => {
    it('is rejected in the same browser and in another', async () => {
      const away = await world.away();
      const xml = world.answer(away);
      expect(await world.finish(away.agent, await world.post(away, xml))).to.have.property('code');
      expect((await world.post(away, xml)).status).to.equal(400);
      expect((await world.post({ ...away, agent: createAgent(world.server) }, xml)).status).to.equal(400);
    });

    it('is rejected by the ID of its assertion', async () => {
      const assertionId = newId();
      const first = await world.away();
      const taken = await world.post(first, world.answer(first, { assertionId }));
      expect(await world.finish(first.agent, taken)).to.have.property('code');
      const second = await world.away();
      await refused(second, world.answer(second, { assertionId }), /already used/);
    });

    it('is accepted exactly once when it is sent fifty times at once', async () => {
      const assertionId = newId();
      const logins = await Promise.all(Array.from({ length: 50 }, () => world.away()));
      const answers = await Promise.all(
        logins.map(async (away) =>
          world.finish(away.agent, await world.post(away, world.answer(away, { assertionId }))),
        ),
      );
      expect(answers.filter(({ code }) => code !== undefined)).to.have.length(1);
      const one = await world.away();
      const xml = world.answer(one);
      const posted = await Promise.all(Array.from({ length: 50 }, () => world.post(one, xml)));
      expect(posted.filter(({ status }) => status === 303)).to.have.length(1);
    });
  });

  it('is rejected in a query', async () => {
    const { agent, relayState, requestId } = await world.away();
    const message = Buffer.from(world.answer({ requestId })).toString('base64');
    const query = new URLSearchParams({ SAMLResponse: message, RelayState: relayState });
    expect((await agent.get(`/login/callback?${query}`)).status).to.equal(400);
  });

  it('is rejected if no request asked for it', async () => {
    const xml = world.answer({ requestId: '' }, { inResponseTo: undefined });
    const agent = createAgent(world.server);
    for (const path of ['/login/callback', '/login/callback?connection=acme']) {
      expect((await world.post({ agent, relayState: '' }, xml, path)).status).to.equal(400);
    }
  });
});
