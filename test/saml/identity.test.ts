// The identity in an assertion, which is made from verified values only, whatever the application requests.
import { expect } from 'chai';
import { NAME_ID_FORMATS, nameIdFormatOf } from '../../src/capabilities/saml-messages/name-id.ts';
import { createAgent } from '../support/agent.ts';
import { follow, submitLogin, USER } from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';
import { authnRequest, redirectQuery } from './messages.ts';
import { logInAt, posted, SP_ISSUER, samlClient, startSamlServer } from './support.ts';

const CLAIMS = 'http://schemas.xmlsoap.org/ws/2005/05/identity/claims/';
const EMAIL = 'urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress';
const UNSPECIFIED = 'urn:oasis:names:tc:SAML:1.1:nameid-format:unspecified';
const PROVIDERS: Record<string, object> = {
  plain: {},
  'by-format': { nameIdentifierFormat: EMAIL },
  'by-probes': { nameIdentifierProbes: [`${CLAIMS}emailaddress`, `${CLAIMS}upn`, `${CLAIMS}name`] },
  'by-probed-format': {
    nameIdentifierFormat: EMAIL,
    nameIdentifierProbes: [`${CLAIMS}emailaddress`, `${CLAIMS}name`],
  },
  'own-names': {
    mappings: {
      user_id: 'uid',
      email: ['mail', `${CLAIMS}nameidentifier`, `${CLAIMS}emailaddress`],
      phone_number: 'phone',
      'user_metadata.contact': ['contact', `${CLAIMS}emailaddress`],
      nickname: 'display',
    },
    mapUnknownClaimsAsIs: true,
    nameIdentifierProbes: ['mail', 'contact', 'phone', 'display', 'given_name'],
  },
};

describe('the identity in an assertion', () => {
  let server: TestServer;

  before(async () => {
    server = await startSamlServer([
      ...Object.entries(PROVIDERS).map(([name, addon]) => samlClient(name, addon)),
      samlClient('trusting', { nameIdentifierFormat: EMAIL, allowUnverifiedIdentifiers: true }),
    ]);
  });
  after(() => server.stop());

  const nameIdOf = (xml: string) => {
    const [, format, value] = /<saml:NameID Format="([^"]*)"[^>]*>([^<]*)</.exec(xml) ?? [];
    return { format, value };
  };
  const statuses = (xml: string) =>
    [...xml.matchAll(/<samlp:StatusCode Value="[^"]*:([^":]*)"/g)].map(([, value]) => value);
  const attribute = (xml: string, name: string) => {
    const found = [...xml.matchAll(/<saml:Attribute ([^>]*)>([\s\S]*?)<\/saml:Attribute>/g)].find(([, tag]) =>
      tag!.includes(`Name="${name}"`),
    );
    return [...(found?.[2] ?? '').matchAll(/<saml:AttributeValue[^>]*>([^<]*)</g)].map(([, value]) => value);
  };

  /** Signs up a user with `address` by the API, with every self-asserted member set. */
  async function signUp(address: string, profile: object = {}): Promise<{ email: string; password: string }> {
    const answer = await createAgent(server).request('/dbconnections/signup', {
      json: {
        client_id: 'web',
        connection: 'users',
        email: address,
        password: USER.password,
        ...profile,
      },
    });
    expect(answer.status, answer.text).to.equal(200);
    return { email: address, password: USER.password };
  }

  async function responseTo(
    client: string,
    user: { email: string; password: string },
    { format, query = '' }: { format?: string; query?: string } = {},
  ): Promise<string> {
    const agent = createAgent(server);
    const content = format === undefined ? '' : `<samlp:NameIDPolicy Format="${format}"/>`;
    const address = `/samlp/${client}?${redirectQuery(authnRequest({ content }))}${query}`;
    const page = await follow(agent, await agent.get(address), server.url);
    return posted(await submitLogin(agent, server, page, user)).xml;
  }

  async function recordOf(email: string) {
    const users = server.store.collection('users');
    const [user] = await users.findBy('email', email);
    if (user === undefined) throw new Error(`no ${email}`);
    return {
      user,
      change: (patch: object) => users.update(user.id, (u) => ({ ...structuredClone(u), ...patch }) as never),
    };
  }

  let count = 0;
  const newAddress = () => `victim-${count++}@corp.example.test`;

  describe('of a user with an unverified address', () => {
    for (const name of Object.keys(PROVIDERS)) {
      for (const format of [undefined, ...NAME_ID_FORMATS.map(({ uri }) => uri)]) {
        const asked = format === undefined ? 'nothing' : format.split(':').at(-1);
        it(`is not that address at ${name}, which requests ${asked}`, async () => {
          const address = newAddress();
          const user = await signUp(address, {
            name: address,
            nickname: address.toUpperCase(),
            given_name: `<${address}>`,
            family_name: address.replace('@', '＠'),
            user_metadata: { contact: address },
          });
          const xml = await responseTo(name, user, format === undefined ? {} : { format });
          const {
            user: { id },
          } = await recordOf(address);
          expect(xml.normalize('NFKC').toLowerCase()).not.to.include(address);
          expect(xml).not.to.include(address.split('@')[0]!);
          const { lack, lasts } = nameIdFormatOf(format) ?? {};
          if (lack !== undefined) {
            expect(statuses(xml)).to.deep.equal(['Responder', 'InvalidNameIDPolicy']);
            expect(xml).to.include(lack);
          } else {
            // The NameID is then the user id, which nobody else has, or an id of the session.
            expect(nameIdOf(xml).format).to.equal(format ?? UNSPECIFIED);
            if (lasts === 'transient') expect(nameIdOf(xml).value).to.match(/^_[0-9a-f]{40}$/);
            else expect(nameIdOf(xml).value).to.equal(id);
          }
        });
      }
    }

    it('is marked as unverified, and has no upn', async () => {
      const xml = await responseTo('plain', await signUp(newAddress()));
      expect(attribute(xml, 'http://schemas.auth0.com/email_verified')).to.deep.equal(['false']);
      for (const claim of ['emailaddress', 'upn', 'name']) {
        expect(attribute(xml, `${CLAIMS}${claim}`)).to.deep.equal([]);
      }
      expect(attribute(xml, 'http://schemas.auth0.com/nickname')).to.deep.equal([]);
    });

    it('is the address once it is verified', async () => {
      const address = newAddress();
      const user = await signUp(address);
      await (await recordOf(address)).change({ email_verified: true });
      for (const name of ['by-format', 'by-probes']) {
        expect(nameIdOf(await responseTo(name, user)).value).to.equal(address);
      }
      const xml = await responseTo('plain', user, { format: EMAIL });
      expect(nameIdOf(xml)).to.deep.equal({ format: EMAIL, value: address });
      expect(attribute(xml, `${CLAIMS}upn`)).to.deep.equal([address]);
      expect(attribute(xml, `${CLAIMS}name`)).to.deep.equal([address]);
      expect(attribute(xml, 'http://schemas.auth0.com/nickname')).to.deep.equal([address.split('@')[0]]);
    });

    it('is the address at an application whose addon allows unverified identifiers', async () => {
      const address = newAddress();
      expect(nameIdOf(await responseTo('trusting', await signUp(address)))).to.deep.equal({
        format: EMAIL,
        value: address,
      });
    });
  });

  it('causes a warning at start for an application that allows unverified identifiers, and for no other', () => {
    const warnings = server.logged().match(/"[^"]*allowUnverifiedIdentifiers:[^"]*"/g);
    expect(warnings).to.have.length(1);
    expect(warnings?.[0]).to.include('The trusting application').and.include("somebody else's");
  });

  describe('of a user who claims to be somebody else', () => {
    it('is a verified address, and not a self-chosen name, nickname or metadata', async () => {
      const [address, victim] = [newAddress(), newAddress()];
      const user = await signUp(address, {
        name: victim,
        nickname: 'ceo',
        given_name: 'ceo',
        user_metadata: { contact: victim, x: 'y' },
      });
      await (await recordOf(address)).change({ email_verified: true });
      for (const name of Object.keys(PROVIDERS)) {
        for (const options of [{}, ...NAME_ID_FORMATS.map(({ uri }) => ({ format: uri }))]) {
          const xml = await responseTo(name, user, options);
          expect(xml, name).not.to.include(victim);
          expect(nameIdOf(xml).value, name).not.to.equal('ceo');
        }
      }
      expect(attribute(await responseTo('plain', user), 'http://schemas.auth0.com/nickname')).to.deep.equal([
        'ceo',
      ]);
    });

    it('may contain self-chosen names in attributes that are not the NameID', async () => {
      const address = newAddress();
      const user = await signUp(address, {
        name: 'Ada @ home',
        nickname: '@ada',
        picture: 'https://social.example.test/@ada.png',
      });
      const xml = await responseTo('plain', user);
      expect(attribute(xml, `${CLAIMS}name`)).to.deep.equal(['Ada @ home']);
      expect(attribute(xml, 'http://schemas.auth0.com/nickname')).to.deep.equal(['@ada']);
      expect(attribute(xml, 'http://schemas.auth0.com/picture')).to.have.length(1);
    });

    it('cannot be extended by an attribute that a mapping gives to another field', async () => {
      const address = newAddress();
      const user = await signUp(address, { given_name: 'mine', nickname: 'theirs' });
      const xml = await responseTo('own-names', user);
      expect(attribute(xml, 'display')).to.deep.equal(['theirs']);
      expect(attribute(xml, 'mail')).to.deep.equal([]);
    });
  });

  it('does not contain an unverified phone number', async () => {
    const address = newAddress();
    const user = await signUp(address);
    const {
      user: { id },
      change,
    } = await recordOf(address);
    await change({ phone_number: '+15550100', phone_verified: false });
    const before = await responseTo('own-names', user);
    expect(before).not.to.include('+15550100');
    expect(nameIdOf(before).value).to.equal(id);
    await change({ phone_verified: true });
    const after = await responseTo('own-names', user);
    expect(attribute(after, 'phone')).to.deep.equal(['+15550100']);
    expect(nameIdOf(after).value).to.equal('+15550100');
  });

  it('does not use a username in place of an address, or as upn of a user with an address', async () => {
    const address = newAddress();
    const user = await signUp(address);
    const { change } = await recordOf(address);
    await change({ username: 'ada' });
    const xml = await responseTo('plain', user);
    expect(attribute(xml, 'http://schemas.auth0.com/username')).to.deep.equal(['ada']);
    expect(attribute(xml, `${CLAIMS}upn`)).to.deep.equal([]);
    for (const username of ['ceo@corp', 'ceo＠corp.example.test', 'ceo@corp.example.test']) {
      await change({ username });
      const said = (await responseTo('plain', user)).normalize('NFKC');
      expect(said).not.to.include('ceo@corp');
    }
  });

  it('is not changed by login_hint or the Subject of a request', async () => {
    const address = newAddress();
    const user = await signUp(address);
    const agent = createAgent(server);
    const content = `<saml:Subject><saml:NameID>${address}</saml:NameID></saml:Subject>`;
    const started = await agent.get(`/samlp/by-format?${redirectQuery(authnRequest({ content }))}`);
    const page = await follow(agent, started, server.url);
    const { xml } = posted(await submitLogin(agent, server, page, user));
    expect(statuses(xml)).to.deep.equal(['Responder', 'UnknownPrincipal']);
  });

  it('is unchanged for a verified user', async () => {
    const xml = (await logInAt(createAgent(server), server, `/samlp/plain?${redirectQuery(authnRequest())}`))
      .xml;
    expect(nameIdOf(xml).value).to.match(/^auth0\|/);
    expect(attribute(xml, `${CLAIMS}emailaddress`)).to.deep.equal([USER.email]);
    expect(xml).to.include(SP_ISSUER);
  });
});
