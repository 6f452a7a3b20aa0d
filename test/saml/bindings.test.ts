// The bindings: which parameters of a query are used, and how messages are encoded.
import { deflateRawSync } from 'node:zlib';
import { expect } from 'chai';
import { type Agent, createAgent, readForm } from '../support/agent.ts';
import { authorize, follow, responseOf, submitLogin, webRequest } from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';
import { authnRequest, idOf, logoutRequest, logoutResponse, redirectQuery, sign } from './messages.ts';
import {
  ACS,
  type KeyAndCertificate,
  makeCertificate,
  posted,
  SLO,
  samlClient,
  serviceProvider,
  signOn,
  startSamlServer,
} from './support.ts';

describe('the SAML bindings', () => {
  let server: TestServer;
  let key: KeyAndCertificate;

  before(async () => {
    key = await makeCertificate();
    const logout = { logout: { callback: SLO } };
    server = await startSamlServer([
      samlClient('open', logout),
      samlClient('strict', { ...logout, signingCert: key.certificate }),
    ]);
  });
  after(() => server.stop());

  const signing = () => ({ privateKey: key.privateKey });
  const address = (path: string) => `${server.url}${path}`;
  async function isLoggedIn(agent: Agent): Promise<boolean> {
    const asked = await authorize(agent, webRequest({ prompt: 'none' }));
    return responseOf(await follow(agent, asked, server.url)).code !== undefined;
  }

  /** Queries in which one parser might read an unsigned parameter in place of the signed one. */
  const smuggled = (query: string, parameter: string): string[] => [
    `${query}&RelayStat%65=evil`,
    `${query}&%52elayState=evil`,
    `RelayStat%65=evil&${query}`,
    `${query}&RelayState=evil&RelayState=evil`,
    `${query}&${parameter.replace('S', '%53')}=evil`,
    `${query}&Sig%41lg=evil`,
    `${query}&Signatur%65=evil`,
    query.replace(`${parameter}=`, `${parameter.replace('S', '%53')}=`),
    query.replace('SigAlg=', 'SigAl%67='),
    query.replace('Signature=', 'Signatur%65='),
    `${query}&RelayState=%ff`,
    `${query}&RelayState=%`,
  ];

  describe('with a signed query', () => {
    it('use no unsigned parameter for a login', async () => {
      const agent = createAgent(server);
      const query = () =>
        redirectQuery(authnRequest({ attributes: { Destination: address('/samlp/strict') } }), signing());
      for (const wrong of smuggled(query(), 'SAMLRequest')) {
        const { status, location } = await agent.get(`/samlp/strict?${wrong}`);
        expect([status, location], wrong).to.deep.equal([400, '']);
      }
      expect((await agent.get(`/samlp/strict?${query()}`)).status).to.equal(302);
    });

    it('use no unsigned parameter for a logout', async () => {
      const agent = createAgent(server);
      const { profile } = await signOn(agent, server, await serviceProvider(server, 'strict', signing()));
      const query = () =>
        redirectQuery(
          logoutRequest({
            nameId: profile.nameID,
            attributes: { Destination: address('/samlp/strict/logout') },
          }),
          signing(),
        );
      for (const wrong of smuggled(query(), 'SAMLRequest')) {
        expect((await agent.get(`/samlp/strict/logout?${wrong}`)).status, wrong).to.equal(400);
        expect(await isLoggedIn(agent)).to.equal(true);
      }
      const done = await follow(agent, await agent.get(`/samlp/strict/logout?${query()}`), server.url);
      expect(posted(done).fields).not.to.have.property('RelayState');
      expect(await isLoggedIn(agent)).to.equal(false);
    });

    it('use no unsigned parameter for the answer to a logout', async () => {
      const agent = createAgent(server);
      await signOn(agent, server, await serviceProvider(server, 'strict', signing()));
      const asked = posted(await follow(agent, await agent.get('/v2/logout'), server.url), 'SAMLRequest');
      const query = redirectQuery(
        logoutResponse({
          inResponseTo: idOf(asked.xml),
          attributes: { Destination: address('/samlp/strict/logout') },
        }),
        { parameter: 'SAMLResponse', ...signing() },
      );
      for (const wrong of smuggled(query, 'SAMLResponse')) {
        expect((await agent.get(`/samlp/strict/logout?${wrong}`)).status, wrong).to.equal(400);
      }
      expect((await agent.get(`/samlp/strict/logout?${query}`)).status).to.equal(302);
    });

    it('pass other parameters on to the login', async () => {
      const query = redirectQuery(authnRequest({ attributes: { Destination: address('/samlp/strict') } }), {
        ...signing(),
        relayState: 'a b+c/ä&d',
      });
      const agent = createAgent(server);
      const started = await agent.get(`/samlp/strict?ui_locales=de&${query}&%zz=x&login_hint=a%40b.test`);
      expect(started.status).to.equal(302);
      expect(started.location).to.include('ui_locales=de').and.include('login_hint=a%40b.test');
      const page = await submitLogin(agent, server, await follow(agent, started, server.url));
      expect(posted(page).fields.RelayState).to.equal('a b+c/ä&d');
    });
  });

  it('read an unsigned query in the same way', async () => {
    for (const wrong of smuggled(redirectQuery(authnRequest()), 'SAMLRequest').slice(0, 5)) {
      expect((await createAgent(server).get(`/samlp/open?${wrong}`)).status, wrong).to.equal(400);
    }
    expect((await createAgent(server).get('/samlp/open?RelayStat%65=x')).status).to.equal(400);
  });

  describe('by HTTP-POST', () => {
    const post = (client: string, bytes: Buffer, path = '', parameter = 'SAMLRequest') =>
      createAgent(server).request(`/samlp/${client}${path}`, {
        form: { [parameter]: bytes.toString('base64') },
      });
    const request = (client: string) =>
      authnRequest({ attributes: { Destination: address(`/samlp/${client}`) } });

    it('accept a message deflated, as passport-saml sends it, or not', async () => {
      for (const skipRequestCompression of [false, true]) {
        const agent = createAgent(server);
        const sp = await serviceProvider(server, 'open', {
          authnRequestBinding: 'HTTP-POST',
          skipRequestCompression,
        });
        const html = await sp.getAuthorizeFormAsync('the-state', undefined);
        const { fields } = readForm({ text: html } as never, 'SAMLRequest');
        const started = await agent.request('/samlp/open', { form: fields });
        const page = await submitLogin(agent, server, await follow(agent, started, server.url));
        const { profile } = await sp.validatePostResponseAsync(posted(page).fields);
        expect(profile?.nameID).to.be.a('string');
        expect(posted(page).fields.RelayState).to.equal('the-state');
      }
    });

    it('verify the signature inside a deflated message', async () => {
      const signed = sign(request('strict'), key.privateKey);
      expect((await post('strict', deflateRawSync(signed))).status).to.equal(302);
      const unsigned = await post('strict', deflateRawSync(request('strict')));
      expect([unsigned.status, unsigned.text]).to.satisfy(
        ([status, text]: [number, string]) => status === 400 && text.includes('must be signed'),
      );
      const changed = sign(request('strict'), key.privateKey).replace(ACS, `${ACS}/other`);
      expect((await post('strict', deflateRawSync(changed))).status).to.equal(400);
    });

    it('accept a deflated logout message', async () => {
      const agent = createAgent(server);
      const { profile } = await signOn(agent, server, await serviceProvider(server, 'open'));
      const xml = logoutRequest({ nameId: profile.nameID });
      const form = { SAMLRequest: deflateRawSync(xml).toString('base64'), RelayState: 's' };
      const done = await follow(agent, await agent.request('/samlp/open/logout', { form }), server.url);
      expect(posted(done).xml).to.include(':status:Success"');
      expect(await isLoggedIn(agent)).to.equal(false);
    });

    it('never inflate a message without bound', async () => {
      const bomb = deflateRawSync(Buffer.alloc(8 * 1024 * 1024, 'a'), { level: 9 });
      const before = process.memoryUsage().rss;
      const { status, text } = await post('open', bomb);
      expect([status, text.includes('too large')]).to.deep.equal([400, true]);
      expect(process.memoryUsage().rss - before).to.be.below(64 * 1024 * 1024);
    });

    it('reject what is neither XML nor deflated', async () => {
      for (const bytes of ['hello', '\u0000\u0001', '<', '<a>', ' <', '\u{feff}']) {
        expect((await post('open', Buffer.from(bytes))).status, bytes).to.equal(400);
      }
      const twice = deflateRawSync(deflateRawSync(request('open')));
      expect((await post('open', twice)).status).to.equal(400);
    });

    it('read only forms', async () => {
      const json = { SAMLRequest: Buffer.from(request('open')).toString('base64') };
      expect((await createAgent(server).request('/samlp/open', { json })).status).to.equal(400);
    });
  });
});
