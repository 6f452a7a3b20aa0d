// What a service provider may request, and the answer when it cannot be fulfilled.
import { expect } from 'chai';
import { type Agent, createAgent } from '../support/agent.ts';
import {
  authorize,
  follow,
  logIn,
  responseOf,
  submitLogin,
  token,
  USER,
  webRequest,
} from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';
import { isSignedBy, schemaFaults } from './conformance.ts';
import { authnRequest, postForm, redirectQuery } from './messages.ts';
import {
  ACS,
  certificateOf,
  logInAt,
  posted,
  SP_ISSUER,
  samlClient,
  serviceProvider,
  signOn,
  startSamlServer,
} from './support.ts';

const OTHER_ACS = 'http://localhost:8080/saml?tenant=1';
const STATUS = 'urn:oasis:names:tc:SAML:2.0:status:';
const FORMAT = 'urn:oasis:names:tc:SAML:1.1:nameid-format:';
const FORMAT_2 = 'urn:oasis:names:tc:SAML:2.0:nameid-format:';
const CONTEXT = 'urn:oasis:names:tc:SAML:2.0:ac:classes:';

describe('SAML requests', () => {
  let server: TestServer;

  before(async () => {
    server = await startSamlServer([
      samlClient('sp', {}, { callbacks: [ACS, OTHER_ACS] }),
      samlClient('second'),
      samlClient('third-party', {}, { is_first_party: false, third_party_security_mode: 'permissive' }),
      samlClient('with-code', {}, { grant_types: ['authorization_code'], client_secret: 'a-secret' }),
    ]);
  });
  after(() => server.stop());

  const address = (xml: string, client = 'sp', relayState?: string) =>
    `/samlp/${client}?${redirectQuery(xml, relayState === undefined ? {} : { relayState })}`;
  const ask = (agent: Agent, xml: string, client = 'sp') => logInAt(agent, server, address(xml, client));
  const statuses = (xml: string) =>
    [...xml.matchAll(/<samlp:StatusCode Value="([^"]*)"/g)].map(([, value]) => value?.replace(STATUS, ''));
  const nameIdPolicy = (format: string, more = '') => ({
    content: `<samlp:NameIDPolicy Format="${format}"${more}/>`,
  });
  const nameIdOf = (xml: string) => /<saml:NameID[^>]*>([^<]*)</.exec(xml)?.[1];

  describe('by HTTP-POST', () => {
    it('are answered like those by HTTP-Redirect', async () => {
      const agent = createAgent(server);
      const started = await agent.request('/samlp/sp', {
        form: postForm(authnRequest(), 'SAMLRequest', 'state'),
      });
      const { fields, action } = posted(
        await submitLogin(agent, server, await follow(agent, started, server.url)),
      );
      const sp = await serviceProvider(server, 'sp', {
        identifierFormat: null,
        validateInResponseTo: 'never' as never,
      });
      const { profile } = await sp.validatePostResponseAsync(fields);
      expect([action, fields.RelayState]).to.deep.equal([ACS, 'state']);
      expect(profile?.nameID).to.match(/^auth0\|/);
    });
  });

  describe('with an assertion consumer URL', () => {
    it('are answered there when it is a callback, including its query', async () => {
      const agent = createAgent(server);
      const xml = authnRequest({ attributes: { AssertionConsumerServiceURL: OTHER_ACS } });
      const answer = await ask(agent, xml);
      expect(answer.action).to.equal(OTHER_ACS);
      expect(answer.xml).to.include(`Destination="${OTHER_ACS}"`).and.include(`Recipient="${OTHER_ACS}"`);
    });

    it('are answered at the first callback when they name none', async () => {
      const xml = authnRequest({ attributes: { AssertionConsumerServiceURL: undefined } });
      expect((await ask(createAgent(server), xml)).action).to.equal(ACS);
    });

    it('and another binding than HTTP-POST are answered with UnsupportedBinding', async () => {
      const artifact = 'urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Artifact';
      const page = await createAgent(server).get(
        address(authnRequest({ attributes: { ProtocolBinding: artifact } })),
      );
      expect(statuses(posted(page).xml)).to.deep.equal(['Responder', 'UnsupportedBinding']);
    });
  });

  describe('with IsPassive', () => {
    const passive = () => authnRequest({ attributes: { IsPassive: 'true' } });

    it('are answered with NoPassive when nobody is logged in', async () => {
      const page = await follow(
        createAgent(server),
        await createAgent(server).get(address(passive())),
        server.url,
      );
      expect(page.status).to.equal(400);
      const agent = createAgent(server);
      const answer = posted(await follow(agent, await agent.get(address(passive())), server.url));
      expect(statuses(answer.xml)).to.deep.equal(['Responder', 'NoPassive']);
      expect(answer.xml).not.to.include('<saml:Assertion');
      expect(await schemaFaults(answer.xml)).to.deep.equal([]);
      expect(await isSignedBy(answer.xml, 'Response', await certificateOf(server))).to.equal(true);
    });

    it('are answered with the existing session', async () => {
      const agent = createAgent(server);
      await signOn(agent, server, await serviceProvider(server, 'second'));
      const answer = posted(await follow(agent, await agent.get(address(passive())), server.url));
      expect(statuses(answer.xml)).to.deep.equal(['Success']);
    });

    it('and ForceAuthn are answered with NoPassive', async () => {
      const agent = createAgent(server);
      await signOn(agent, server, await serviceProvider(server, 'second'));
      server.tick(2000);
      const both = authnRequest({ attributes: { IsPassive: '1', ForceAuthn: '1' } });
      const answer = posted(await follow(agent, await agent.get(address(both)), server.url));
      expect(statuses(answer.xml)).to.deep.equal(['Responder', 'NoPassive']);
    });
  });

  describe('with ForceAuthn', () => {
    it('show the login page in spite of the session, and state the new time of login', async () => {
      const agent = createAgent(server);
      const before = await ask(agent, authnRequest());
      server.tick(5000);
      const page = await follow(
        agent,
        await agent.get(address(authnRequest({ attributes: { ForceAuthn: 'true' } }))),
        server.url,
      );
      expect(page.text).to.include('name="password"');
      const after = posted(await submitLogin(agent, server, page));
      const instant = (xml: string) => Date.parse(/AuthnInstant="([^"]*)"/.exec(xml)?.[1] ?? '');
      expect(instant(after.xml) - instant(before.xml)).to.be.at.least(4000);
    });
  });

  it('with ForceAuthn are not answered with an older login, even if the user changes the parameters', async () => {
    const agent = createAgent(server);
    await ask(agent, authnRequest());
    server.tick(5000);
    for (const [attributes, status] of [
      [{ ForceAuthn: 'true' }, 'AuthnFailed'],
      [{ ForceAuthn: 'true', IsPassive: 'true' }, 'NoPassive'],
    ] as const) {
      const started = await agent.get(address(authnRequest({ attributes })));
      const authorization = new URL(started.location);
      for (const parameter of ['prompt', 'max_age']) authorization.searchParams.delete(parameter);
      const answer = posted(await follow(agent, await agent.get(authorization.href), server.url));
      expect(statuses(answer.xml)).to.deep.equal(['Responder', status]);
      expect(answer.xml).not.to.include('<saml:Assertion');
    }
  });

  it('with ForceAuthn are not answered with a newer session in which nobody was there', async () => {
    const agent = createAgent(server);
    const started = await agent.get(address(authnRequest({ attributes: { ForceAuthn: 'true' } })));
    server.tick(5000);
    await ask(agent, authnRequest());
    const artifacts = server.store.collection('artifacts');
    for (const { id, model } of (await artifacts.list({ limit: 1000 })).records)
      if (model === 'Session')
        await artifacts.update(id, (now) => ({ ...now, payload: { ...now.payload, presence: 'absent' } }));
    const authorization = new URL(started.location);
    for (const parameter of ['prompt', 'max_age']) authorization.searchParams.delete(parameter);
    const answer = posted(await follow(agent, await agent.get(authorization.href), server.url));
    expect(statuses(answer.xml)).to.deep.equal(['Responder', 'AuthnFailed']);
  });

  it('are not answered at a callback that was removed meanwhile', async () => {
    const agent = createAgent(server);
    const xml = authnRequest({ attributes: { AssertionConsumerServiceURL: OTHER_ACS } });
    const page = await follow(agent, await agent.get(address(xml)), server.url);
    const change = (callbacks: string[]) =>
      server.store
        .collection('clients')
        .update('sp', (client) => ({ ...(structuredClone(client) as object), callbacks }) as never);
    await change([ACS]);
    const answer = await submitLogin(agent, server, page).finally(() => change([ACS, OTHER_ACS]));
    expect([answer.status, answer.text.includes('SAMLResponse')]).to.deep.equal([400, false]);
  });

  describe('with a NameIDPolicy', () => {
    it('get an e-mail address, a persistent or a transient identifier', async () => {
      const agent = createAgent(server);
      const mail = await ask(agent, authnRequest(nameIdPolicy(`${FORMAT}emailAddress`)));
      expect(nameIdOf(mail.xml)).to.equal(USER.email);
      const lasting = await ask(agent, authnRequest(nameIdPolicy(`${FORMAT_2}persistent`)));
      expect(nameIdOf(lasting.xml)).to.match(/^auth0\|/);
      const passing = await ask(agent, authnRequest(nameIdPolicy(`${FORMAT_2}transient`)));
      expect(nameIdOf(passing.xml)).to.match(/^_[0-9a-f]{40}$/);
      const again = await ask(agent, authnRequest(nameIdPolicy(`${FORMAT_2}transient`)));
      expect(nameIdOf(again.xml)).to.equal(nameIdOf(passing.xml));
      const other = await ask(createAgent(server), authnRequest(nameIdPolicy(`${FORMAT_2}transient`)));
      expect(nameIdOf(other.xml)).not.to.equal(nameIdOf(passing.xml));
    });

    it("get InvalidNameIDPolicy for an unavailable format, and for another's SPNameQualifier", async () => {
      const agent = createAgent(server);
      const kerberos = await ask(agent, authnRequest(nameIdPolicy(`${FORMAT_2}kerberos`)));
      expect(statuses(kerberos.xml)).to.deep.equal(['Responder', 'InvalidNameIDPolicy']);
      const theirs = nameIdPolicy(`${FORMAT_2}persistent`, ' SPNameQualifier="urn:somebody-else"');
      expect(statuses((await ask(agent, authnRequest(theirs))).xml)).to.include('InvalidNameIDPolicy');
      const own = nameIdPolicy(`${FORMAT_2}persistent`, ` SPNameQualifier="${SP_ISSUER}"`);
      expect((await ask(agent, authnRequest(own))).xml).to.include(`SPNameQualifier="${SP_ISSUER}"`);
    });

    it('for one user are not answered with another', async () => {
      const about = (name: string) => ({
        content: `<saml:Subject><saml:NameID>${name}</saml:NameID></saml:Subject>`,
      });
      const agent = createAgent(server);
      const { xml } = await ask(agent, authnRequest());
      expect(statuses((await ask(agent, authnRequest(about(nameIdOf(xml)!)))).xml)).to.deep.equal([
        'Success',
      ]);
      expect(statuses((await ask(agent, authnRequest(about('auth0|other')))).xml)).to.include(
        'UnknownPrincipal',
      );
    });
  });

  describe('with a RequestedAuthnContext', () => {
    const wanting = (...classes: string[]) => ({
      content: `<samlp:RequestedAuthnContext>${classes.map((one) => `<saml:AuthnContextClassRef>${one}</saml:AuthnContextClassRef>`).join('')}</samlp:RequestedAuthnContext>`,
    });

    it('get the context that was met', async () => {
      const password = `${CONTEXT}PasswordProtectedTransport`;
      const { xml } = await ask(createAgent(server), authnRequest(wanting(`${CONTEXT}X509`, password)));
      expect(xml).to.include(`<saml:AuthnContextClassRef>${password}</saml:AuthnContextClassRef>`);
    });

    it('get NoAuthnContext when none was met', async () => {
      const { xml } = await ask(createAgent(server), authnRequest(wanting(`${CONTEXT}X509`)));
      expect(statuses(xml)).to.deep.equal(['Responder', 'NoAuthnContext']);
    });

    it("get the addon's own without asking again", async () => {
      expect((await ask(createAgent(server), authnRequest())).xml).to.include(`${CONTEXT}unspecified`);
    });
  });

  describe('that fail', () => {
    it('tell the service provider that the user may not log in', async () => {
      const agent = createAgent(server);
      const page = await follow(agent, await agent.get(address(authnRequest())), server.url);
      const user = { email: 'blocked@example.test', password: USER.password };
      const answer = posted(await submitLogin(agent, server, page, user));
      expect(statuses(answer.xml)).to.deep.equal(['Responder', 'AuthnFailed']);
      expect(answer.xml).to.include('<samlp:StatusMessage>user is blocked</samlp:StatusMessage>');
    });

    it('ask for no consent', async () => {
      const answer = await ask(createAgent(server), authnRequest(), 'third-party');
      expect(statuses(answer.xml)).to.deep.equal(['Success']);
    });

    it('end with an error when the requested connection does not exist', async () => {
      const agent = createAgent(server);
      const page = await follow(
        agent,
        await agent.get(`${address(authnRequest())}&connection=nobody`),
        server.url,
      );
      expect(statuses(posted(page).xml)).to.deep.equal(['Responder']);
    });
  });

  describe('of the identity provider (IdP-initiated)', () => {
    it('log in at the first callback, without InResponseTo', async () => {
      const answer = await logInAt(createAgent(server), server, '/samlp/sp?RelayState=deep-link');
      expect(answer.action).to.equal(ACS);
      expect(answer.fields.RelayState).to.equal('deep-link');
      expect(answer.xml).not.to.include('InResponseTo');
      const sp = await serviceProvider(server, 'sp', { audience: false });
      expect((await sp.validatePostResponseAsync(answer.fields)).profile?.nameID).to.match(/^auth0\|/);
    });
  });

  describe('are protected inside the server:', () => {
    const callback = (client = 'sp') => `${server.url}/samlp/${client}/callback`;

    it('the internal callback is not a redirect URI of the application', async () => {
      for (const over of [
        {},
        { response_type: 'token' },
        { response_mode: 'web_message' },
        { state: 'x'.repeat(43) },
      ]) {
        const params = webRequest({ client_id: 'with-code', redirect_uri: callback('with-code'), ...over });
        const answer = await authorize(createAgent(server), params);
        expect([answer.status, answer.location]).to.deep.equal([400, '']);
      }
    });

    it('the internal code is rejected at the token endpoint, even from the application', async () => {
      const agent = createAgent(server);
      const page = await follow(agent, await agent.get(address(authnRequest(), 'with-code')), server.url);
      let current = await agent.request(page.text.match(/action="([^"]*)"/)![1]!, {
        form: { ...loginForm(page.text), username: USER.email, password: USER.password },
      });
      while (!current.location.includes('/callback?')) current = await agent.get(current.location);
      const { code, state } = responseOf(current);
      for (const code_verifier of [undefined, state, 'a'.repeat(43)]) {
        const answer = await token(createAgent(server), {
          grant_type: 'authorization_code',
          client_id: 'with-code',
          client_secret: 'a-secret',
          code,
          code_verifier,
          redirect_uri: callback('with-code'),
        });
        expect(answer.status).to.equal(400);
      }
    });

    it('the callback is accepted once, in the browser that began', async () => {
      const agent = createAgent(server);
      const started = await agent.get(address(authnRequest()));
      const page = await follow(agent, started, server.url);
      let current = await agent.request(page.text.match(/action="([^"]*)"/)![1]!, {
        form: { ...loginForm(page.text), username: USER.email, password: USER.password },
      });
      while (!current.location.includes('/callback?')) current = await agent.get(current.location);
      expect((await createAgent(server).get(current.location)).status).to.equal(400);
      expect((await agent.get(current.location.replace('/sp/', '/second/'))).status).to.equal(400);
      expect((await agent.get(current.location)).text).to.include('name="SAMLResponse"');
      expect((await agent.get(current.location)).status).to.equal(400);
    });

    it('a code of another login is rejected at the callback', async () => {
      const agent = createAgent(server);
      const { code } = responseOf(await logIn(agent, server, webRequest()));
      const state = new URL((await agent.get(address(authnRequest()))).location).searchParams.get('state');
      const answer = await agent.get(`/samlp/sp/callback?code=${code}&state=${state}`);
      expect([answer.status, answer.text.includes('SAMLResponse')]).to.deep.equal([400, false]);
    });

    it('an application without authorization_code cannot use codes', async () => {
      const params = webRequest({ client_id: 'sp', redirect_uri: ACS });
      expect(responseOf(await authorize(createAgent(server), params)).error).to.equal('unauthorized_client');
      expect(responseOf(await logIn(createAgent(server), server, webRequest())).code).to.be.a('string');
    });

    it('no grant is left behind', async () => {
      const agent = createAgent(server);
      const artifacts = server.store.collection('artifacts');
      const before = new Set((await artifacts.list({ limit: 10_000 })).records.map(({ id }) => id));
      await ask(agent, authnRequest());
      const left = (await artifacts.list({ limit: 10_000 })).records.filter(({ id }) => !before.has(id));
      expect(left.map(({ model }) => model)).to.deep.equal(['Session']);
    });
  });
});

function loginForm(html: string): Record<string, string> {
  return { _csrf: /name="_csrf" value="([^"]*)"/.exec(html)?.[1] ?? '' };
}
