// Responses that no honest provider sends, or that somebody else does: none of them logs anybody in.
import { deflateRawSync } from 'node:zlib';
import { expect } from 'chai';
import { createAgent } from '../../support/agent.ts';
import {
  type Answered,
  type Away,
  assertion,
  newId,
  response,
  type SamlWorld,
  SIGN_IN,
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

  /** Posts a response; nobody logs in, no user is made, and the log says why. */
  async function refused(away: Away, xml: string, words = /./): Promise<void> {
    const before = await known();
    const answer = await world.post(away, xml);
    const told = await world.finish(away.agent, answer);
    expect(told).to.have.property('error');
    expect(told.error_description).to.match(words);
    expect(told).not.to.have.property('code');
    expect(await known()).to.equal(before);
    expect(world.server.logged()).not.to.include('unexpected error');
  }
  const bent = async (over: Answered, words: RegExp) => {
    const away = await world.away();
    await refused(away, world.answer(away, over), words);
  };

  describe('of whose signature something is wrong', () => {
    const plain = (away: Away) => ({ inResponseTo: away.requestId, nameId: 'admin' });

    it('has none', async () => {
      const away = await world.away();
      await refused(
        away,
        response(world.server, assertion(world.server, plain(away)), plain(away)),
        /must be signed/,
      );
    });

    it('is of another key, though it brings its certificate', async () => {
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
      it(`is made by ${algorithm}`, async () => {
        const away = await world.away();
        const key = signature.includes('hmac') ? world.key.certificate : world.key.privateKey;
        const xml = signed(assertion(world.server, plain(away)), 'Assertion', key, { signature });
        await refused(away, response(world.server, xml, plain(away)), /algorithm .* not accepted/);
      });
    }

    it('has a digest by SHA-1, unless the connection is so old', async () => {
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

    it('names the algorithm none, or an unknown one', async () => {
      for (const algorithm of ['', 'none', 'urn:none']) {
        const away = await world.away();
        const xml = world
          .answer(away)
          .replace(/(<ds:SignatureMethod Algorithm=")[^"]*/, (_all, start: string) => `${start}${algorithm}`);
        await refused(away, xml, /not accepted/);
      }
    });

    it('covers another text than the one that is read', async () => {
      const away = await world.away();
      await refused(
        away,
        world.answer(away, { nameId: 'mallory' }).replace('>mallory<', '>admin<'),
        /not valid/,
      );
    });

    it('has transforms that leave something out', async () => {
      const away = await world.away();
      const xml = world.answer(away);
      const xslt = '<ds:Transform Algorithm="http://www.w3.org/TR/1999/REC-xslt-19991116"/>';
      await refused(away, xml.replace('<ds:Transforms>', `<ds:Transforms>${xslt}`), /not valid/);
    });
  });

  describe('that wraps what was signed (XSW)', () => {
    /** The signed assertion of mallory, its parts, and a forged one. */
    const parts = (away: Away) => {
      const said = { inResponseTo: away.requestId, nameId: 'mallory' };
      const plain = assertion(world.server, { ...said, assertionId: newId() });
      const whole = signed(plain, 'Assertion', world.key.privateKey);
      const signature = /<ds:Signature[\s\S]*<\/ds:Signature>/.exec(whole)?.[0] ?? '';
      const evil = plain.replace('>mallory<', '>admin<');
      return { said, plain, whole, signature, evil, evilId: evil.replace(/ ID="[^"]*"/, ` ID="${newId()}"`) };
    };
    const within = (away: Away, content: string) => response(world.server, content, parts(away).said);
    const put = (element: string, signature: string) =>
      element.replace('</saml:Issuer>', `</saml:Issuer>${signature}`);
    /** A signed response of mallory's, and its parts. */
    const responses = (away: Away) => {
      const { said, plain } = parts(away);
      const whole = signed(response(world.server, plain, said), 'Response', world.key.privateKey);
      const signature = /<ds:Signature[\s\S]*<\/ds:Signature>/.exec(whole)?.[0] ?? '';
      const original = whole.replace(signature, '');
      const evil = original.replace('>mallory<', '>admin<').replace(/ ID="[^"]*"/, ` ID="${newId()}"`);
      return { whole, signature, original, evil };
    };
    const inside = (signature: string, object: string) =>
      signature.replace('</ds:Signature>', `<ds:Object>${object}</ds:Object></ds:Signature>`);

    const variants: Record<string, (away: Away) => string> = {
      '1: the response in the signature of a forged one': (away) => {
        const { signature, original, evil } = responses(away);
        return put(evil, inside(signature, original));
      },
      '2: the response beside the signature of a forged one': (away) => {
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
      '5: a forged assertion with the signature, and the one that it is of': (away) => {
        const { evilId, plain, signature } = parts(away);
        return within(away, `${put(evilId, signature)}${plain}`);
      },
      '6: the same, with the original in the signature': (away) => {
        const { evilId, plain, signature } = parts(away);
        return within(away, put(evilId, inside(signature, plain)));
      },
      '7: a forged assertion of the same ID in an extension': (away) => {
        const { evil, whole } = parts(away);
        return within(away, `<samlp:Extensions>${evil}</samlp:Extensions>${whole}`);
      },
      '8: the original in an object of the forged one’s signature': (away) => {
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

    it('and has two assertions, both signed', async () => {
      const away = await world.away();
      await refused(away, within(away, `${parts(away).whole}${parts(away).whole}`), /one assertion/);
    });
  });

  describe('that is odd XML', () => {
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

    it('is no base64, no XML, too large, too deep, or no response', async () => {
      const deep = `${'<a>'.repeat(30)}${'</a>'.repeat(30)}`;
      for (const xml of ['', 'not xml', '<a', `<a>${'x'.repeat(150_000)}`, deep, '<a/>']) {
        const away = await world.away();
        const told = await world.finish(away.agent, await world.post(away, xml));
        expect(told).to.have.property('error');
      }
    });
  });

  it('that is small and unpacks to more than memory should hold is refused', async () => {
    const { agent, relayState } = await world.away();
    const bomb = deflateRawSync(Buffer.alloc(50_000_000, 'x')).toString('base64');
    const answer = await agent.request('/login/callback', {
      form: { SAMLResponse: bomb, RelayState: relayState },
    });
    const told = await world.finish(agent, answer);
    expect(told).to.have.property('error');
    expect(told.error_description).to.match(/too large/);
  });

  describe('that is not for this login', () => {
    it('answers another request', () => bent({ inResponseTo: newId() }, /another request/));
    it('answers none, though one is pending', () =>
      bent({ inResponseTo: undefined }, /another request, or none/));
    it('answers this one, and its assertion another', () => bent({ confirmed: newId() }, /another request/));
    it('answers this one, and its assertion none', () =>
      bent({ confirmed: undefined }, /another request, or none/));

    it('is for another audience', () => bent({ audience: 'urn:auth0:localhost:other' }, /audience/));
    it('is for no audience', () =>
      bent({ conditions: `<saml:Conditions NotOnOrAfter="${at(HOUR)}"/>` }, /audience/));
    it('has no conditions', () => bent({ conditions: '' }, /no Conditions/));
    it('has an unknown condition', () =>
      bent(
        {
          conditions: `<saml:Conditions><saml:AudienceRestriction><saml:Audience>urn:auth0:localhost:acme</saml:Audience></saml:AudienceRestriction><saml:Condition/></saml:Conditions>`,
        },
        /condition/,
      ));

    it('is for another recipient, or another connection’s', async () => {
      await bent({ recipient: 'https://other.example.test/login/callback' }, /recipient/);
      await bent({ recipient: `${world.server.url}/login/callback?connection=other` }, /recipient/);
    });
    it('has another destination', () => bent({ destination: 'https://other.example.test/x' }, /Destination/));
    it('is of another issuer', () => bent({ issuer: 'https://evil.example.test' }, /Issuer/));
    it('is of two issuers', () => bent({ responseIssuer: 'https://evil.example.test' }, /Issuer/));
    it('confirms the subject by a key', () =>
      bent({ method: 'urn:oasis:names:tc:SAML:2.0:cm:holder-of-key' }, /bearer/));

    it('is of another connection of the same provider', async () => {
      const away = await world.away();
      const twin = await world.away({ connection: 'twin' }, away.agent);
      const xml = world.answer(twin, { audience: 'urn:auth0:localhost:twin' });
      await refused(away, xml, /another request/);
      await refused(twin, world.answer(twin), /audience/);
    });

    it('comes to the address of another connection', async () => {
      const away = await world.away();
      const answer = await world.post(away, world.answer(away), '/login/callback?connection=twin');
      expect(await world.finish(away.agent, answer)).to.have.property('error');
    });
  });

  describe('that is not for now', () => {
    it('has expired', () => bent({ notOnOrAfter: at(-200) }, /expired/));
    it('is not valid yet', () => bent({ notBefore: at(300) }, /not valid yet/));
    it('is old, though its time is long', () =>
      bent({ issuedAt: at(-HOUR), notOnOrAfter: at(HOUR) }, /IssueInstant/));
    it('is taken where the clocks differ a little', async () => {
      const away = await world.away();
      const xml = world.answer(away, { notOnOrAfter: at(-100), notBefore: at(-400) });
      expect(await world.finish(away.agent, await world.post(away, xml))).to.have.property('code');
    });
  });

  describe('that was taken before', () => {
    it('is refused in the same browser and in another', async () => {
      const away = await world.away();
      const xml = world.answer(away);
      expect(await world.finish(away.agent, await world.post(away, xml))).to.have.property('code');
      expect((await world.post(away, xml)).status).to.equal(400);
      expect((await world.post({ ...away, agent: createAgent(world.server) }, xml)).status).to.equal(400);
    });

    it('is refused for its assertion’s ID alone', async () => {
      const assertionId = newId();
      const first = await world.away();
      const taken = await world.post(first, world.answer(first, { assertionId }));
      expect(await world.finish(first.agent, taken)).to.have.property('code');
      const second = await world.away();
      await refused(second, world.answer(second, { assertionId }), /already used/);
    });

    it('logs in once, of fifty at once', async () => {
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

  it('that comes in a query is refused', async () => {
    const { agent, relayState, requestId } = await world.away();
    const message = Buffer.from(world.answer({ requestId })).toString('base64');
    const query = new URLSearchParams({ SAMLResponse: message, RelayState: relayState });
    expect((await agent.get(`/login/callback?${query}`)).status).to.equal(400);
  });

  it('that nobody asked for is refused', async () => {
    const xml = world.answer({ requestId: '' }, { inResponseTo: undefined });
    const agent = createAgent(world.server);
    for (const path of ['/login/callback', '/login/callback?connection=acme']) {
      expect((await world.post({ agent, relayState: '' }, xml, path)).status).to.equal(400);
    }
  });
});
