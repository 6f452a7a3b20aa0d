// Single logout with service providers by another author: started by one of them or here, and propagated to the
// others.

import type { Profile, SAML } from '@node-saml/node-saml';
import { expect } from 'chai';
import { type Agent, type Answer, createAgent } from '../support/agent.ts';
import { authorize, follow, responseOf, WEB_CALLBACK, webRequest } from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';
import { isSignedBy, schemaFaults } from './conformance.ts';
import {
  certificateOf,
  type KeyAndCertificate,
  logInAt as logInByAddress,
  makeCertificate,
  posted,
  samlClient,
  serviceProvider,
  signOn,
  startSamlServer,
} from './support.ts';

const REDIRECT = 'urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect';
const HOME = 'https://homely.example.test/bye';
const slo = (name: string) => `https://${name}.example.test/slo`;

describe('single logout', () => {
  let server: TestServer;
  let key: KeyAndCertificate;

  before(async () => {
    key = await makeCertificate();
    const named = (name: string, over: object = {}) =>
      samlClient(name, {
        audience: `https://${name}.example.test/metadata`,
        logout: { callback: slo(name) },
        ...over,
      });
    server = await startSamlServer([
      named('one'),
      named('two'),
      named('by-redirect', { binding: REDIRECT }),
      named('signed', { signingCert: key.certificate }),
      named('deaf', { logout: { callback: slo('deaf'), slo_enabled: false } }),
      named('silent', { logout: undefined }),
      samlClient(
        'homely',
        { audience: 'https://homely.example.test/metadata' },
        { allowed_logout_urls: [HOME, 'https://*.homely.example.test/bye'] },
      ),
    ]);
  });
  after(() => server.stop());
  beforeEach(async () => {
    for (const name of ['samlSessions', 'samlLogouts'] as const) {
      const { records } = await server.store.collection(name).list();
      await Promise.all(records.map(({ id }) => server.store.collection(name).delete(id)));
    }
  });

  const providerOf = (name: string, over = {}) =>
    serviceProvider(server, name, {
      issuer: `https://${name}.example.test/metadata`,
      audience: `https://${name}.example.test/metadata`,
      logoutCallbackUrl: slo(name),
      ...over,
    });
  const signing = () => ({ privateKey: key.privateKey });
  async function logInAt(agent: Agent, name: string, over = {}): Promise<{ sp: SAML; profile: Profile }> {
    const sp = await providerOf(name, over);
    const { profile } = await signOn(agent, server, sp);
    return { sp, profile };
  }
  async function isLoggedIn(agent: Agent): Promise<boolean> {
    const answer = responseOf(
      await follow(agent, await authorize(agent, webRequest({ prompt: 'none' })), server.url),
    );
    return answer.code !== undefined;
  }
  const leftOver = async () => [
    ...(await server.store.collection('samlSessions').list()).records,
    ...(await server.store.collection('samlLogouts').list()).records,
  ];

  /** What an application does with a LogoutRequest: it ends its session and answers. */
  async function agree(agent: Agent, page: Answer, sp: SAML, success = true): Promise<Answer> {
    const { fields } = posted(page, 'SAMLRequest');
    const { profile } = await sp.validatePostRequestAsync(fields);
    const address = await sp.getLogoutResponseUrlAsync(profile!, '', {}, success);
    return follow(agent, await agent.get(address), server.url);
  }

  describe('started by a service provider', () => {
    it('ends the session, and is answered with a signed LogoutResponse by POST', async () => {
      const agent = createAgent(server);
      const { sp, profile } = await logInAt(agent, 'one');
      const address = await sp.getLogoutUrlAsync(profile, 'the-state', {});
      const page = posted(await follow(agent, await agent.get(address), server.url));
      expect(page.action).to.equal(slo('one'));
      expect(page.fields.RelayState).to.equal('the-state');
      expect(page.xml)
        .to.include('<ds:Signature')
        .and.include(`Destination="${slo('one')}"`);
      expect(await schemaFaults(page.xml)).to.deep.equal([]);
      expect(await isSignedBy(page.xml, 'LogoutResponse', await certificateOf(server))).to.equal(true);
      const { loggedOut } = await sp.validatePostResponseAsync(page.fields);
      expect(loggedOut).to.equal(true);
      expect(await isLoggedIn(agent)).to.equal(false);
      expect(await leftOver()).to.deep.equal([]);
    });

    it('is answered by a signed redirect if the addon says so', async () => {
      const agent = createAgent(server);
      const { sp, profile } = await logInAt(agent, 'by-redirect');
      const address = await sp.getLogoutUrlAsync(profile, 'the-state', {});
      const { location } = await follow(agent, await agent.get(address), server.url);
      const { searchParams, search, origin, pathname } = new URL(location);
      expect(origin + pathname).to.equal(slo('by-redirect'));
      const { loggedOut } = await sp.validateRedirectAsync(Object.fromEntries(searchParams), search.slice(1));
      expect(loggedOut).to.equal(true);
      expect(await isLoggedIn(agent)).to.equal(false);
    });

    it('logs out the other service providers one after another, then answers', async () => {
      const agent = createAgent(server);
      const [one, two, redirected] = [
        await logInAt(agent, 'one'),
        await logInAt(agent, 'two'),
        await logInAt(agent, 'by-redirect'),
      ];
      const first = await follow(
        agent,
        await agent.get(await one.sp.getLogoutUrlAsync(one.profile, 'state', {})),
        server.url,
      );
      // Either may be asked first. The session here has ended by now.
      expect(await isLoggedIn(agent)).to.equal(false);
      let current = first;
      const asked: string[] = [];
      for (let hops = 0; hops < 2; hops++) {
        if (current.location.startsWith(slo('by-redirect'))) {
          asked.push('by-redirect');
          const { searchParams, search } = new URL(current.location);
          const { profile } = await redirected.sp.validateRedirectAsync(
            Object.fromEntries(searchParams),
            search.slice(1),
          );
          expect(profile?.nameID).to.equal(redirected.profile.nameID);
          const back = await redirected.sp.getLogoutResponseUrlAsync(profile!, '', {}, true);
          current = await follow(agent, await agent.get(back), server.url);
        } else {
          asked.push('two');
          expect(posted(current, 'SAMLRequest').action).to.equal(slo('two'));
          current = await agree(agent, current, two.sp);
        }
      }
      expect(asked.sort()).to.deep.equal(['by-redirect', 'two']);
      const page = posted(current);
      expect(page.action).to.equal(slo('one'));
      expect((await one.sp.validatePostResponseAsync(page.fields)).loggedOut).to.equal(true);
      expect(await leftOver()).to.deep.equal([]);
    });

    it('is answered as partial when another service provider failed', async () => {
      const agent = createAgent(server);
      const one = await logInAt(agent, 'one');
      const two = await logInAt(agent, 'two');
      const asked = await follow(
        agent,
        await agent.get(await one.sp.getLogoutUrlAsync(one.profile, '', {})),
        server.url,
      );
      const { xml } = posted(await agree(agent, asked, two.sp, false));
      expect(xml).to.include(':status:Responder"').and.include(':status:PartialLogout"');
      expect(await leftOver()).to.deep.equal([]);
    });

    it('skips service providers that are switched off or have no callback', async () => {
      const agent = createAgent(server);
      const one = await logInAt(agent, 'one');
      await logInAt(agent, 'deaf');
      await logInAt(agent, 'silent');
      const address = await one.sp.getLogoutUrlAsync(one.profile, '', {});
      const page = posted(await follow(agent, await agent.get(address), server.url));
      expect((await one.sp.validatePostResponseAsync(page.fields)).loggedOut).to.equal(true);
      expect(await leftOver()).to.deep.equal([]);
    });

    it('ends sessions of other browsers only when it is signed', async () => {
      const agent = createAgent(server);
      const signed = await logInAt(agent, 'signed', signing());
      const elsewhere = createAgent(server);
      const address = await signed.sp.getLogoutUrlAsync(signed.profile, '', {});
      const page = posted(await follow(elsewhere, await elsewhere.get(address), server.url));
      expect((await signed.sp.validatePostResponseAsync(page.fields)).loggedOut).to.equal(true);
      expect(await isLoggedIn(agent)).to.equal(false);

      const one = await logInAt(agent, 'one');
      const unsigned = await one.sp.getLogoutUrlAsync(one.profile, '', {});
      const answer = posted(await follow(elsewhere, await elsewhere.get(unsigned), server.url));
      expect(answer.xml).to.include(':status:Success"');
      expect(await isLoggedIn(agent)).to.equal(true);
    });

    it('is answered as partial when participants in another browser cannot be reached', async () => {
      const agent = createAgent(server);
      const signed = await logInAt(agent, 'signed', signing());
      await logInAt(agent, 'two');
      const elsewhere = createAgent(server);
      const address = await signed.sp.getLogoutUrlAsync(signed.profile, '', {});
      const { xml } = posted(await follow(elsewhere, await elsewhere.get(address), server.url));
      expect(xml).to.include(':status:PartialLogout"');
      expect(await isLoggedIn(agent)).to.equal(false);
    });

    it('ends the session of an IdP-initiated login, whose service provider has not sent its issuer before', async () => {
      const agent = createAgent(server);
      const sp = await providerOf('one', { audience: false });
      const { fields } = await logInByAddress(agent, server, '/samlp/one');
      const { profile } = await sp.validatePostResponseAsync(fields);
      const page = posted(
        await follow(agent, await agent.get(await sp.getLogoutUrlAsync(profile!, '', {})), server.url),
      );
      expect((await sp.validatePostResponseAsync(page.fields)).loggedOut).to.equal(true);
      expect(await isLoggedIn(agent)).to.equal(false);
    });

    it('is answered with success when the session has ended', async () => {
      const agent = createAgent(server);
      const { sp, profile } = await logInAt(agent, 'one');
      await follow(agent, await agent.get(await sp.getLogoutUrlAsync(profile, '', {})), server.url);
      const again = posted(await agent.get(await sp.getLogoutUrlAsync(profile, '', {})));
      expect((await sp.validatePostResponseAsync(again.fields)).loggedOut).to.equal(true);
    });
  });

  describe('started by a service provider without a logout callback', () => {
    const leave = async (agent: Agent, name: string, relayState: string) => {
      const { sp, profile } = await logInAt(agent, name);
      return agent.get(await sp.getLogoutUrlAsync(profile, relayState, {}));
    };

    it('ends the session and shows the signed-out page', async () => {
      for (const relayState of ['', 'the-state', 'https://evil.example/', HOME]) {
        const agent = createAgent(server);
        const page = await follow(agent, await leave(agent, 'silent', relayState), server.url);
        expect([page.status, page.location]).to.deep.equal([200, '']);
        expect(await isLoggedIn(agent)).to.equal(false);
        const html = await agent.get('/logout/done', { accept: 'text/html' });
        expect(html.text).to.include('You are logged out');
      }
      expect(await leftOver()).to.deep.equal([]);
    });

    it('goes to its RelayState if that is an allowed logout URL', async () => {
      const agent = createAgent(server);
      const end = await follow(agent, await leave(agent, 'homely', HOME), server.url);
      expect(end.location).to.equal(HOME);
      expect(await isLoggedIn(agent)).to.equal(false);
      for (const other of [
        `${HOME}/`,
        `${HOME}?x`,
        'https://*.homely.example.test/bye',
        'https://a.homely.example.test/bye',
      ]) {
        const page = await follow(agent, await leave(agent, 'homely', other), server.url);
        expect([page.status, page.location], other).to.deep.equal([200, '']);
      }
    });

    it('logs out the other service providers first', async () => {
      const agent = createAgent(server);
      const one = await logInAt(agent, 'one');
      const asked = await follow(agent, await leave(agent, 'homely', HOME), server.url);
      expect(posted(asked, 'SAMLRequest').action).to.equal(slo('one'));
      expect((await agree(agent, asked, one.sp)).location).to.equal(HOME);
      expect(await leftOver()).to.deep.equal([]);
    });

    it('shows the signed-out page in a browser without the session, rejects another NameID, and keeps the session', async () => {
      const agent = createAgent(server);
      const { sp, profile } = await logInAt(agent, 'silent');
      const elsewhere = createAgent(server);
      const away = await follow(
        elsewhere,
        await elsewhere.get(await sp.getLogoutUrlAsync(profile, '', {})),
        server.url,
      );
      expect([away.status, away.location]).to.deep.equal([200, '']);
      expect(await isLoggedIn(agent)).to.equal(true);
      const stranger = { ...profile, nameID: 'somebody-else' };
      const refused = await agent.get(await sp.getLogoutUrlAsync(stranger, '', {}));
      expect([refused.status, refused.text.includes('Invalid Session Participant')]).to.deep.equal([
        400,
        true,
      ]);
      expect(await isLoggedIn(agent)).to.equal(true);
    });
  });

  it('continues when a service provider has lost its logout callback meanwhile', async () => {
    const agent = createAgent(server);
    const one = await logInAt(agent, 'one');
    await logInAt(agent, 'two');
    const clients = server.store.collection('clients');
    const { addons } = structuredClone((await clients.get('two'))!) as { addons: { samlp: object } };
    const change = (samlp: object) =>
      clients.update(
        'two',
        (client) => ({ ...(structuredClone(client) as object), addons: { samlp } }) as never,
      );
    const started = await agent.get(await one.sp.getLogoutUrlAsync(one.profile, '', {}));
    await change({ ...addons.samlp, logout: undefined });
    const end = await follow(agent, started, server.url).finally(() => change(addons.samlp));
    const page = posted(end);
    expect([page.action, page.xml.includes(':status:PartialLogout"')]).to.deep.equal([slo('one'), true]);
  });

  describe('started here', () => {
    it('goes from /v2/logout to every service provider, and on to the application', async () => {
      const agent = createAgent(server);
      const [one, two] = [await logInAt(agent, 'one'), await logInAt(agent, 'two')];
      const returnTo = `${WEB_CALLBACK}/bye`;
      await server.store.collection('clients').update(
        'web',
        (client) =>
          ({
            ...(structuredClone(client) as typeof client & object),
            allowed_logout_urls: [returnTo],
          }) as never,
      );
      const query = new URLSearchParams({ client_id: 'web', returnTo });
      let current = await follow(agent, await agent.get(`/v2/logout?${query}`), server.url);
      expect(await isLoggedIn(agent)).to.equal(false);
      for (let hops = 0; hops < 2; hops++) {
        const { action, xml } = posted(current, 'SAMLRequest');
        expect(await schemaFaults(xml)).to.deep.equal([]);
        expect(await isSignedBy(xml, 'LogoutRequest', await certificateOf(server))).to.equal(true);
        current = await agree(agent, current, action === slo('one') ? one.sp : two.sp);
      }
      expect(current.location).to.equal(returnTo);
      expect(await leftOver()).to.deep.equal([]);
    });

    it('continues when a service provider fails, or answers incorrectly', async () => {
      const agent = createAgent(server);
      const one = await logInAt(agent, 'one');
      const signed = await logInAt(agent, 'signed', signing());
      let current = await follow(agent, await agent.get('/v2/logout'), server.url);
      for (let hops = 0; hops < 2; hops++) {
        const { action } = posted(current, 'SAMLRequest');
        // One answers with a failure; the other does not sign although it must.
        const sp = action === slo('one') ? one.sp : await providerOf('signed');
        current = await agree(agent, current, sp, action !== slo('one'));
      }
      expect([current.status, current.text]).to.deep.equal([200, 'OK']);
      expect(signed.profile.nameID).to.be.a('string');
      expect(await leftOver()).to.deep.equal([]);
    });
  });
});
