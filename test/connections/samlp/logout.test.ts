// Single logout with a SAML identity provider, begun by either side.
import { inflateRawSync } from 'node:zlib';
import { SAML } from '@node-saml/node-saml';
import { expect } from 'chai';
import { logoutRequest, logoutResponse, postForm, redirectQuery, sign } from '../../saml/messages.ts';
import { certificateOf } from '../../saml/support.ts';
import { type Agent, createAgent } from '../../support/agent.ts';
import { authorize, webRequest } from '../../support/flows.ts';
import { IDP, idOf, newId, type SamlWorld, SIGN_IN, SIGN_OUT, samlWorld } from './provider.ts';

const HOME = 'https://home.example.test/';

describe('single logout with a SAML identity provider', () => {
  let world: SamlWorld;
  before(async () => {
    world = await samlWorld(
      () => ({ signOutEndpoint: SIGN_OUT, issuer: IDP }),
      (_key, foreign) => ({
        tenant: { friendly_name: 'Test tenant', default_directory: 'users', allowed_logout_urls: [HOME] },
        connections: [
          {
            name: 'staying',
            strategy: 'samlp',
            enabled_clients: ['web'],
            options: {
              signInEndpoint: SIGN_IN,
              signOutEndpoint: SIGN_OUT,
              disableSignout: true,
              signingCert: foreign.certificate,
            },
          },
        ],
      }),
    );
  });
  after(() => world.server.stop());

  /** Logs a user in. */
  const loggedIn = async (
    nameId: string,
    agent = createAgent(world.server),
    sessionIndex = '_index',
  ): Promise<Agent> => {
    const away = await world.away({}, agent);
    const xml = world.answer(away, { nameId, sessionIndex });
    expect(await world.finish(agent, await world.post(away, xml))).to.have.property('code');
    return agent;
  };
  const isLoggedIn = async (agent: Agent) => {
    const { location } = await authorize(agent, webRequest({ prompt: 'none' }));
    return new URL(location).searchParams.has('code');
  };
  const failures = async () => {
    const { records } = await world.server.store
      .collection('logs')
      .list({ where: { field: 'type', equals: 'flo' }, limit: 100 });
    return records.map(({ description }) => description);
  };

  describe('begun by this server', () => {
    const away = async (agent: Agent) => {
      const { location } = await agent.get(`/v2/logout?federated&returnTo=${encodeURIComponent(HOME)}`);
      const at = new URL(location);
      const message = inflateRawSync(
        Buffer.from(at.searchParams.get('SAMLRequest') ?? '', 'base64'),
      ).toString();
      return { at, message, relayState: at.searchParams.get('RelayState') ?? '' };
    };
    const answer = (message: string, over = {}) =>
      logoutResponse({
        inResponseTo: idOf(message),
        issuer: IDP,
        attributes: { Destination: `${world.server.url}/logout` },
        ...over,
      });

    it('sends a signed LogoutRequest, and continues to returnTo after the LogoutResponse', async () => {
      const agent = await loggedIn('leaving');
      const { at, message, relayState } = await away(agent);
      expect(`${at.origin}${at.pathname}`).to.equal(SIGN_OUT);
      const idp = new SAML({
        callbackUrl: SIGN_OUT,
        issuer: IDP,
        entryPoint: SIGN_IN,
        idpCert: await certificateOf(world.server),
      });
      const { profile } = await idp.validateRedirectAsync(
        Object.fromEntries(at.searchParams),
        at.search.slice(1),
      );
      expect(profile).to.include({
        nameID: 'leaving',
        sessionIndex: '_index',
        issuer: 'urn:auth0:localhost:acme',
      });
      expect(await isLoggedIn(agent)).to.equal(false);
      const query = redirectQuery(answer(message), {
        parameter: 'SAMLResponse',
        relayState,
        privateKey: world.key.privateKey,
      });
      const back = await agent.get(`/logout?${query}`);
      const on = await agent.get(back.location);
      expect(on.location).to.equal(HOME);
      // The state is accepted only once.
      expect((await agent.get(back.location)).location).not.to.equal(HOME);
      expect(await failures()).to.deep.equal([]);
    });

    it('names the SessionIndex of the session’s own login, not of the user’s last one', async () => {
      const first = await loggedIn('twice', createAgent(world.server), '_first');
      const second = await loggedIn('twice', createAgent(world.server), '_second');
      expect((await away(first)).message).to.include('SessionIndex>_first<');
      expect((await away(second)).message).to.include('SessionIndex>_second<');
    });

    it('does not store the SessionIndex unencrypted with sessions and challenges', async () => {
      await loggedIn('unread', createAgent(world.server), '_unread-index');
      for (const name of ['artifacts', 'challenges'] as const) {
        const { records } = await world.server.store.collection(name).list({ limit: 1000 });
        expect(records.length, name).to.be.lessThan(1000);
        expect(JSON.stringify(records), name).not.to.include('_unread-index');
      }
    });

    it('continues, and records a failure, when the LogoutResponse is unsigned or not a success', async () => {
      const responder = { status: 'urn:oasis:names:tc:SAML:2.0:status:Responder' };
      for (const [over, key] of [
        [{}, undefined],
        [responder, world.key.privateKey],
      ] as const) {
        const agent = await loggedIn('leaving');
        const { message, relayState } = await away(agent);
        const xml = answer(message, over);
        const form = postForm(key === undefined ? xml : sign(xml, key), 'SAMLResponse', relayState);
        const back = await agent.request('/logout', { form });
        expect((await agent.get(back.location)).location).to.equal(HOME);
      }
      await world.server.tick(0);
      const all = await failures();
      expect(all.some((one) => /not signed by it/.test(one ?? ''))).to.equal(true);
      expect(all.some((one) => /has not logged the user out/.test(one ?? ''))).to.equal(true);
    });

    it('redirects nowhere for a LogoutResponse with an unknown state', async () => {
      const agent = createAgent(world.server);
      const xml = sign(answer('<x ID="_x">'), world.key.privateKey);
      const back = await agent.request('/logout', {
        form: postForm(xml, 'SAMLResponse', 'https://evil.example.test'),
      });
      expect(new URL(back.location).pathname).to.equal('/logout/callback');
      expect((await agent.get(back.location)).location).to.equal('');
    });
  });

  describe('begun by the provider', () => {
    const request = (over: Partial<Parameters<typeof logoutRequest>[0]> = {}) =>
      logoutRequest({
        issuer: IDP,
        nameId: 'leaving',
        sessionIndex: '_index',
        ...over,
        attributes: { Destination: `${world.server.url}/logout`, ...over.attributes },
      });
    const redirected = (agent: Agent, xml: string, privateKey = world.key.privateKey) =>
      agent.get(`/logout?${redirectQuery(xml, { privateKey, relayState: 'theirs' })}`);

    it('ends the session, and answers with a signed LogoutResponse', async () => {
      const agent = await loggedIn('leaving');
      const xml = request();
      const ended = await redirected(agent, xml);
      expect(await isLoggedIn(agent)).to.equal(false);
      const at = new URL((await agent.get(ended.location)).location);
      expect(`${at.origin}${at.pathname}`).to.equal(SIGN_OUT);
      expect(at.searchParams.get('RelayState')).to.equal('theirs');
      const message = inflateRawSync(
        Buffer.from(at.searchParams.get('SAMLResponse') ?? '', 'base64'),
      ).toString();
      expect(message).to.include(`InResponseTo="${idOf(xml)}"`);
      expect(message).to.include('status:Success');
      const idp = new SAML({
        callbackUrl: SIGN_OUT,
        issuer: IDP,
        entryPoint: SIGN_IN,
        idpCert: await certificateOf(world.server),
        idpIssuer: 'urn:auth0:localhost:acme',
      });
      const { loggedOut } = await idp.validateRedirectAsync(
        Object.fromEntries(at.searchParams),
        at.search.slice(1),
      );
      expect(loggedOut).to.equal(true);
    });

    it('ends the session by HTTP-POST from another site, and answers by HTTP-POST', async () => {
      const agent = await loggedIn('leaving');
      const form = postForm(sign(request(), world.key.privateKey));
      const page = await agent.get((await agent.request('/logout', { form })).location);
      expect(await isLoggedIn(agent)).to.equal(false);
      expect(page.text).to.include(`action="${SIGN_OUT}"`).and.to.include('name="SAMLResponse"');
    });

    it('ends a session of another browser by its SessionIndex, and no session of others', async () => {
      const [named, other] = [await loggedIn('leaving'), await loggedIn('staying')];
      const bystander = createAgent(world.server);
      await redirected(bystander, request({ sessionIndex: '_another' }));
      expect(await isLoggedIn(named)).to.equal(true);
      await redirected(bystander, request());
      expect(await isLoggedIn(named)).to.equal(false);
      expect(await isLoggedIn(other)).to.equal(true);
    });

    it('ends the one of two sessions that it names, and both if it names none', async () => {
      const first = await loggedIn('twice', createAgent(world.server), '_first');
      const second = await loggedIn('twice', createAgent(world.server), '_second');
      const bystander = createAgent(world.server);
      await redirected(bystander, request({ nameId: 'twice', sessionIndex: '_first' }));
      expect([await isLoggedIn(first), await isLoggedIn(second)]).to.deep.equal([false, true]);
      const third = await loggedIn('twice', createAgent(world.server), '_third');
      await redirected(bystander, request({ nameId: 'twice', sessionIndex: undefined }));
      expect([await isLoggedIn(second), await isLoggedIn(third)]).to.deep.equal([false, false]);
    });

    it('rejects a LogoutRequest that is unsigned, forged, replayed, expired, for another URL, or of a connection without logout', async () => {
      const agent = await loggedIn('leaving');
      const refused = async (answer: ReturnType<Agent['get']>, words: RegExp) => {
        const { status, text } = await answer;
        expect(status).to.equal(400);
        expect(text).to.match(words);
        expect(await isLoggedIn(agent)).to.equal(true);
      };
      await refused(agent.get(`/logout?${redirectQuery(request())}`), /not signed by it/);
      // The key of a connection whose single logout is disabled.
      await refused(
        redirected(agent, request({ issuer: 'x' }), world.foreign.privateKey),
        /not signed by it/,
      );
      await refused(redirected(agent, request(), world.foreign.privateKey), /not signed by it/);
      await refused(
        redirected(agent, request({ issuer: 'https://evil.example.test' })),
        /no identity provider/,
      );
      const old = new Date(Date.now() - 3_600_000).toISOString();
      await refused(redirected(agent, request({ attributes: { IssueInstant: old } })), /IssueInstant/);
      await refused(redirected(agent, request({ attributes: { NotOnOrAfter: old } })), /NotOnOrAfter/);
      const elsewhere = { attributes: { Destination: 'https://other.example.test/logout' } };
      await refused(redirected(agent, request(elsewhere)), /Destination/);
      await refused(redirected(agent, request({ attributes: { Destination: undefined } })), /Destination/);
      const twice = request({ nameId: 'nobody' });
      expect((await redirected(agent, twice)).status).to.equal(302);
      await refused(redirected(agent, twice), /already used/);
      await refused(agent.get('/logout'), /SAMLRequest/);
      await refused(agent.get('/logout/answer?state=x'), /expired/);
    });

    it('keeps the session of another user in the same browser', async () => {
      const agent = await loggedIn('somebody');
      await redirected(agent, request({ nameId: newId() }));
      expect(await isLoggedIn(agent)).to.equal(true);
    });
  });
});
