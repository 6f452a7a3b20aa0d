// Attacks with logout messages by somebody other than the service provider.
import { expect } from 'chai';
import { type Agent, createAgent } from '../support/agent.ts';
import { authorize, follow, responseOf, webRequest } from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';
import {
  idOf,
  logoutRequest,
  logoutResponse,
  postForm,
  RSA_SHA1,
  redirectQuery,
  sign,
  split,
} from './messages.ts';
import {
  type KeyAndCertificate,
  makeCertificate,
  posted,
  SP_ISSUER,
  samlClient,
  serviceProvider,
  signOn,
  startSamlServer,
} from './support.ts';

const SLO = 'https://sp.example.test/slo';

describe('the defences of single logout', () => {
  let server: TestServer;
  let key: KeyAndCertificate;
  let foreign: KeyAndCertificate;

  before(async () => {
    key = await makeCertificate();
    foreign = await makeCertificate();
    const logout = { logout: { callback: SLO } };
    server = await startSamlServer([
      samlClient('open', logout),
      samlClient('other', logout),
      samlClient('strict', { ...logout, signingCert: key.certificate }),
      samlClient('silent'),
    ]);
  });
  after(() => server.stop());

  const address = (client: string) => `${server.url}/samlp/${client}/logout`;
  const send = (agent: Agent, client: string, xml: string, parameter?: string) =>
    agent.request(`/samlp/${client}/logout`, { form: postForm(xml, parameter) });

  interface Visitor {
    agent: Agent;
    nameId: string;
    sessionIndex: string;
    isLoggedIn(): Promise<boolean>;
  }
  async function visitor(client: string): Promise<Visitor> {
    const agent = createAgent(server);
    const sp = await serviceProvider(
      server,
      client,
      client === 'strict' ? { privateKey: key.privateKey } : {},
    );
    const { profile } = await signOn(agent, server, sp);
    return {
      agent,
      nameId: profile.nameID,
      sessionIndex: String(profile.sessionIndex),
      isLoggedIn: async () => {
        const asked = await authorize(agent, webRequest({ prompt: 'none' }));
        return responseOf(await follow(agent, asked, server.url)).code !== undefined;
      },
    };
  }
  type Over = Partial<Parameters<typeof logoutRequest>[0]>;
  const request = (client: string, { nameId, sessionIndex }: Visitor, over: Over = {}) =>
    logoutRequest({
      nameId,
      sessionIndex,
      ...over,
      attributes: { Destination: address(client), ...over.attributes },
    });

  /** Expects that the message is rejected with an error page, and that nobody is logged out. */
  async function refused(client: string, who: Visitor, xml: string, words = /./): Promise<void> {
    const { status, location, text } = await send(who.agent, client, xml);
    expect([status, location]).to.deep.equal([400, '']);
    expect(text).to.match(words);
    expect(await who.isLoggedIn()).to.equal(true);
  }
  /** Expects that the message is answered with a failure at the callback, and that nobody is logged out. */
  async function denied(client: string, who: Visitor, xml: string): Promise<void> {
    const page = posted(await send(who.agent, client, xml));
    expect(page.action).to.equal(SLO);
    expect(page.xml).to.include(':status:Responder"').and.include('Invalid Session Participant');
    expect(await who.isLoggedIn()).to.equal(true);
  }

  describe('a LogoutRequest', () => {
    it('is rejected when it is unsigned, of another key or an old algorithm, if signatures are required', async () => {
      const who = await visitor('strict');
      const xml = request('strict', who);
      await refused('strict', who, xml, /must be signed/);
      await refused('strict', who, sign(xml, foreign.privateKey), /not valid/);
      await refused('strict', who, sign(xml, key.privateKey, { signature: RSA_SHA1 }), /not accepted/);
      const { status } = await who.agent.get(`/samlp/strict/logout?${redirectQuery(xml)}`);
      expect(status).to.equal(400);
      await send(who.agent, 'strict', sign(xml, key.privateKey));
      expect(await who.isLoggedIn()).to.equal(false);
    });

    it('is rejected when it wraps a signed one', async () => {
      const [who, victim] = [await visitor('strict'), await visitor('strict')];
      const original = sign(request('strict', { ...who, nameId: 'nobody' }), key.privateKey);
      const { unsigned, signature } = split(original);
      const inside = (outer: string, inner: string) =>
        outer.replace('</saml:Issuer>', `</saml:Issuer>${inner}`);
      const closed = '</ds:Signature>';
      for (const attributes of [{}, { ID: idOf(original) }]) {
        const evil = request('strict', victim, { attributes });
        for (const wrapped of [
          inside(evil, original),
          inside(evil, unsigned + signature),
          inside(evil, signature.replace(closed, `${unsigned}${closed}`)),
          inside(evil, signature.replace(closed, `<ds:Object>${unsigned}</ds:Object>${closed}`)),
          inside(evil, `<samlp:Extensions>${original}</samlp:Extensions>`),
          original.replace('</saml:NameID>', `</saml:NameID>${evil}`),
        ]) {
          await refused('strict', victim, wrapped);
        }
      }
    });

    it('does not match a part of a NameID', async () => {
      const who = await visitor('open');
      const split = who.nameId.replace('@', '@<!-- -->');
      await refused('open', who, request('open', who, { nameId: split }), /must not contain/);
      await refused('open', who, request('open', who, { nameId: `${who.nameId}<b/>` }), /text alone/);
      const twice = request('open', who).replace(
        '</saml:NameID>',
        '</saml:NameID><saml:NameID>x</saml:NameID>',
      );
      await refused('open', who, twice, /more than one/);
    });

    it('matches NameID, session and issuer exactly', async () => {
      const who = await visitor('open');
      const emailFormat = 'urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress';
      await denied('open', who, request('open', who, { nameId: who.nameId.toUpperCase() }));
      await denied('open', who, request('open', who, { nameId: ` ${who.nameId}` }));
      await denied('open', who, request('open', who, { sessionIndex: '_other' }));
      await denied('open', who, request('open', who, { issuer: `${SP_ISSUER}/other` }));
      await denied(
        'open',
        who,
        request('open', who, { format: emailFormat.replace('emailAddress', 'kerberos') }),
      );
      await refused(
        'open',
        who,
        request('open', who).replaceAll('saml:NameID', 'saml:EncryptedID'),
        /no NameID/,
      );
      await send(who.agent, 'open', request('open', who, { format: emailFormat }));
      expect(await who.isLoggedIn()).to.equal(false);
    });

    it("of one service provider ends no session of another's user", async () => {
      const who = await visitor('open');
      const page = posted(await send(who.agent, 'other', request('other', who)));
      expect(page.xml).to.include(':status:Success"');
      expect(await who.isLoggedIn()).to.equal(true);
    });

    it('must be for this address, recent, not expired and not used before', async () => {
      const who = await visitor('open');
      const at = (seconds: number) => new Date(Date.now() + seconds * 1000).toISOString();
      const bent = (attributes: Record<string, string>, words: RegExp) =>
        refused('open', who, request('open', who, { attributes }), words);
      await bent({ Destination: address('other') }, /Destination/);
      await bent({ Destination: `${server.url}/samlp/open` }, /Destination/);
      await bent({ IssueInstant: at(-1000) }, /IssueInstant/);
      await bent({ IssueInstant: at(400) }, /IssueInstant/);
      await bent({ NotOnOrAfter: at(-200) }, /NotOnOrAfter/);
      await bent({ NotOnOrAfter: 'soon' }, /NotOnOrAfter/);
      // A clock may be three minutes off.
      // Without a SessionIndex it would end the next session, too.
      const used = logoutRequest({
        nameId: who.nameId,
        attributes: { NotOnOrAfter: at(-100), IssueInstant: at(-150) },
      });
      await send(who.agent, 'open', used);
      expect(await who.isLoggedIn()).to.equal(false);
      const again = await visitor('open');
      await refused('open', again, used, /already used/);
    });

    it('that ends nothing is not stored when it is unsigned, so that strangers cannot fill the store', async () => {
      const messages = server.store.collection('samlMessages');
      const before = (await messages.list({ limit: 1000 })).records.length;
      for (let count = 0; count < 10; count++) {
        await send(createAgent(server), 'open', logoutRequest({ nameId: 'nobody' }));
      }
      expect((await messages.list({ limit: 1000 })).records.length).to.equal(before);
    });

    it('is not accepted with a HEAD request, nor without a message', async () => {
      const who = await visitor('open');
      const query = redirectQuery(request('open', who));
      const { status } = await who.agent.request(`/samlp/open/logout?${query}`, { method: 'HEAD' });
      expect(status).to.equal(405);
      expect((await who.agent.get('/samlp/open/logout')).status).to.equal(400);
      expect(await who.isLoggedIn()).to.equal(true);
    });

    it('that names another user is rejected with a page when it cannot be answered', async () => {
      const who = await visitor('silent');
      const { status } = await send(who.agent, 'silent', request('silent', who, { nameId: 'nobody' }));
      expect(status).to.equal(400);
      expect(await who.isLoggedIn()).to.equal(true);
    });
  });

  describe('a LogoutResponse', () => {
    /** Begins a logout at `client`, and returns the request that it gets. */
    async function asked(client: string): Promise<{ agent: Agent; requestId: string }> {
      const { agent } = await visitor(client);
      const page = posted(await follow(agent, await agent.get('/v2/logout'), server.url), 'SAMLRequest');
      return { agent, requestId: idOf(page.xml) };
    }
    const answers = async (client: string, xml: string, agent: Agent) => {
      const { status, location } = await send(agent, client, xml, 'SAMLResponse');
      return { status, location };
    };

    it("to no request of ours is rejected, and so is one to another's request", async () => {
      const { agent, requestId } = await asked('open');
      const unknown = logoutResponse({ inResponseTo: '_nothing' });
      expect((await answers('open', unknown, agent)).status).to.equal(400);
      const own = logoutResponse({ inResponseTo: requestId });
      expect((await answers('other', own, agent)).status).to.equal(400);
      expect((await answers('open', own.replace(/ InResponseTo="[^"]*"/, ''), agent)).status).to.equal(400);
      expect((await answers('open', own, agent)).status).to.equal(302);
    });

    it('from another browser is rejected, and reveals nothing of the other participants', async () => {
      const { agent, nameId } = await visitor('open');
      await signOn(agent, server, await serviceProvider(server, 'other'));
      const next = (await agent.get('/v2/logout')).location;
      const client = /samlp\/(\w+)\//.exec(next)?.[1] ?? '';
      const inResponseTo = idOf(posted(await agent.get(next), 'SAMLRequest').xml);
      const stranger = createAgent(server);
      const answer = logoutResponse({ inResponseTo });
      const theirs = await send(stranger, client, answer, 'SAMLResponse');
      expect([theirs.status, theirs.location]).to.deep.equal([400, '']);
      expect((await stranger.get(next)).status).to.equal(400);
      const own = await send(agent, client, answer, 'SAMLResponse');
      expect(own.status).to.equal(302);
      expect(posted(await agent.get(own.location), 'SAMLRequest').xml).to.include(nameId);
    });

    it('is accepted once', async () => {
      const { agent, requestId } = await asked('open');
      const own = logoutResponse({ inResponseTo: requestId });
      expect((await answers('open', own, agent)).status).to.equal(302);
      expect((await answers('open', own, agent)).status).to.equal(400);
    });

    const failures: [string, string, (id: string) => string][] = [
      ['that lacks the required signature', 'strict', (id) => logoutResponse({ inResponseTo: id })],
      ['of another issuer', 'open', (id) => logoutResponse({ inResponseTo: id, issuer: 'urn:other' })],
      [
        'for another address',
        'open',
        (id) => logoutResponse({ inResponseTo: id, attributes: { Destination: SLO } }),
      ],
      [
        'that is too old',
        'open',
        (id) => logoutResponse({ inResponseTo: id, attributes: { IssueInstant: '2020-01-01T00:00:00Z' } }),
      ],
      [
        'without a status',
        'open',
        (id) => logoutResponse({ inResponseTo: id }).replace(/<samlp:Status>.*<\/samlp:Status>/, ''),
      ],
      [
        'with a failure status',
        'open',
        (id) => logoutResponse({ inResponseTo: id, status: 'urn:oasis:names:tc:SAML:2.0:status:Responder' }),
      ],
    ];
    for (const [name, client, message] of failures) {
      it(`${name} makes the logout partial, and it continues`, async () => {
        const { agent, nameId } = await visitor('other');
        await signOn(
          agent,
          server,
          await serviceProvider(server, client, client === 'strict' ? { privateKey: key.privateKey } : {}),
        );
        const page = await follow(agent, await send(agent, 'other', logoutRequest({ nameId })), server.url);
        const requestId = idOf(posted(page, 'SAMLRequest').xml);
        const done = await send(agent, client, message(requestId), 'SAMLResponse');
        const { xml } = posted(await follow(agent, done, server.url));
        expect(xml).to.include(':status:PartialLogout"');
      });
    }
  });

  describe('a step of a logout', () => {
    it('requires its ticket and its application, and runs once', async () => {
      const { agent, nameId } = await visitor('open');
      await signOn(agent, server, await serviceProvider(server, 'other'));
      const next = (await send(agent, 'open', logoutRequest({ nameId }))).location;
      expect(next).to.match(/\/samlp\/other\/logout\/next\?state=/);
      for (const wrong of [
        '/samlp/other/logout/next',
        '/samlp/other/logout/next?state=x',
        '/samlp/open/logout/done?state=x',
        next.replace('/other/', '/strict/'),
      ]) {
        expect((await agent.get(wrong)).status).to.equal(400);
      }
      const inResponseTo = idOf(posted(await agent.get(next), 'SAMLRequest').xml);
      const done = (await send(agent, 'other', logoutResponse({ inResponseTo }), 'SAMLResponse')).location;
      expect((await agent.get(next)).status).to.equal(400);
      expect((await agent.get(done.replace('/open/', '/strict/'))).status).to.equal(400);
      expect(posted(await agent.get(done)).xml).to.include(':status:Success"');
      expect((await agent.get(done)).status).to.equal(400);
    });

    it('expires', async () => {
      const { agent, nameId } = await visitor('open');
      await signOn(agent, server, await serviceProvider(server, 'other'));
      const next = (await send(agent, 'open', logoutRequest({ nameId }))).location;
      server.tick(601_000);
      expect((await agent.get(next)).status).to.equal(400);
    });
  });
});
