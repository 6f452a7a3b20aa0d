// Logins at a SAML identity provider, and the users that they create.
import { expect } from 'chai';
import { samlClient } from '../../saml/support.ts';
import { createAgent, readForm } from '../../support/agent.ts';
import { authorize, follow, responseOf, submitLogin, tenant, webRequest } from '../../support/flows.ts';
import { startServer, type TestServer } from '../../support/server.ts';
import { tenantWith } from '../../support/tenant.ts';
import { failedLogins } from '../../support/upstream-login.ts';
import {
  assertion,
  BINDING,
  CLAIMS,
  response,
  type SamlWorld,
  SIGN_IN,
  samlWorld,
  signed,
} from './provider.ts';

describe('a login at a SAML identity provider', () => {
  let world: SamlWorld;
  before(async () => {
    world = await samlWorld(undefined, (key, foreign) => ({
      connections: [
        {
          name: 'posting',
          strategy: 'samlp',
          enabled_clients: ['web'],
          options: {
            signInEndpoint: `${SIGN_IN}?tenant=1`,
            signingCert: [foreign.certificate, Buffer.from(key.certificate).toString('base64')],
            protocolBinding: `${BINDING}POST`,
            signSAMLRequest: true,
            user_id_attribute: 'employee',
            fieldsMap: { email: ['mail2', 'mail'], team: 'groups' },
            entityId: 'urn:our:own',
          },
        },
        {
          name: 'ping',
          strategy: 'pingfederate',
          enabled_clients: ['web'],
          options: {
            pingFederateBaseUrl: 'https://ping.example.test/',
            signingCert: key.certificate.replaceAll(/-----[^-]+-----|\s/g, ''),
            requestTemplate:
              '<samlp:AuthnRequest xmlns:samlp="urn:oasis:names:tc:SAML:2.0:protocol" @@AssertServiceURLAndDestination@@ ID="@@ID@@" IssueInstant="@@IssueInstant@@" ProtocolBinding="@@ProtocolBinding@@" ForceAuthn="@@ForceAuthn@@" Version="2.0" ProviderName="@@hint@@@@Nothing@@"><saml:Issuer xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion">@@Issuer@@</saml:Issuer></samlp:AuthnRequest>',
            upstream_params: {
              hint: { alias: 'login_hint' },
              leaked: { alias: 'state' },
              bound: { alias: 'code_challenge' },
            },
            deflate: false,
          },
        },
      ],
    }));
  });
  after(() => world.server.stop());

  const userOf = async (id: string) => {
    const { server } = world;
    const user = await server.users.get(id);
    const identities = await server.users.identitiesOf(id);
    return { user, identity: identities[0] };
  };

  it('redirects to the provider with a deflated AuthnRequest', async () => {
    const { at, request, relayState } = await world.away();
    expect(`${at.origin}${at.pathname}`).to.equal(SIGN_IN);
    expect(relayState).to.match(/^[\w-]{43}$/);
    expect(request).to.match(/^<samlp:AuthnRequest [^>]*Version="2\.0"/);
    expect(request).to.include(
      `AssertionConsumerServiceURL="${world.server.url}/login/callback?connection=acme"`,
    );
    expect(request).to.include(`Destination="${SIGN_IN}"`);
    expect(request).to.include('<saml:Issuer>urn:auth0:localhost:acme</saml:Issuer>');
    expect(request).not.to.include('ForceAuthn');
    expect([...at.searchParams.keys()]).to.deep.equal(['SAMLRequest', 'RelayState']);
    expect((await world.away({ prompt: 'login' })).request).to.include('ForceAuthn="true"');
    // SAML has no max_age.
    expect((await world.away({ max_age: '60' })).request).to.include('ForceAuthn="true"');
  });

  it('rejects an old AuthnInstant if the request has prompt=login or max_age', async () => {
    const hoursAgo = (hours: number) => new Date(Date.now() - hours * 3_600_000).toISOString();
    const outcomeOf = async (more: Record<string, string>, authnInstant: string) => {
      const agent = createAgent(world.server);
      const away = await world.away(more, agent);
      return world.finish(agent, await world.post(away, world.answer(away, { authnInstant })));
    };
    const refused = 'The identity provider did not have its user log in again.';
    for (const more of [{ prompt: 'login' }, { max_age: '60' }]) {
      expect((await outcomeOf(more, hoursAgo(1))).error_description).to.equal(refused);
      expect(await outcomeOf(more, hoursAgo(0))).to.have.property('code');
    }
    // Without such a limit, any age is accepted.
    expect(await outcomeOf({}, hoursAgo(48))).to.have.property('code');
    expect(await outcomeOf({ max_age: '7200' }, hoursAgo(1))).to.have.property('code');
  });

  it('creates a user of the connection from a signed assertion', async () => {
    const away = await world.away();
    const xml = world.answer(away, {
      nameId: 'grace.1',
      attributes: {
        [`${CLAIMS}emailaddress`]: 'Grace@upstream.test',
        [`${CLAIMS}givenname`]: 'Grace',
        [`${CLAIMS}surname`]: 'Hopper',
        groups: ['navy', 'compilers'],
      },
    });
    const { code, state } = await world.finish(
      away.agent,
      await world.post(away, xml, '/login/callback?connection=acme'),
    );
    expect([code !== undefined, state]).to.deep.equal([true, webRequest({}).state]);
    const { user, identity } = await userOf('samlp|acme|grace.1');
    expect(user).to.include({
      email: 'grace@upstream.test',
      email_verified: false,
      given_name: 'Grace',
      family_name: 'Hopper',
    });
    expect(identity).to.include({ connection: 'acme', provider: 'samlp', isSocial: false });
    expect(identity?.attributes).to.deep.include({ groups: ['navy', 'compilers'] });
  });

  it('accepts a signed Response, with or without a signed assertion', async () => {
    for (const inside of [false, true]) {
      const away = await world.away();
      const contents = { inResponseTo: away.requestId };
      const plain = assertion(world.server, contents);
      const content = inside ? signed(plain, 'Assertion', world.key.privateKey) : plain;
      const xml = signed(response(world.server, content, contents), 'Response', world.key.privateKey);
      expect(await world.finish(away.agent, await world.post(away, xml))).to.have.property('code');
    }
  });

  it('accepts a Response with a thousand groups', async () => {
    const away = await world.away();
    const groups = Array.from(
      { length: 1000 },
      (_, index) => `cn=group-${index},ou=groups,dc=example,dc=test`,
    );
    const xml = world.answer(away, { attributes: { groups } });
    expect(xml.length).to.be.above(65_536);
    expect(await world.finish(away.agent, await world.post(away, xml))).to.have.property('code');
  });

  it('posts a signed request, and supports two certificates, fieldsMap and entityId', async () => {
    const agent = createAgent(world.server);
    const page = await follow(
      agent,
      await authorize(agent, webRequest({ connection: 'posting' })),
      world.server.url,
    );
    const { action, fields } = readForm(page, 'SAMLRequest');
    expect(action).to.equal(`${SIGN_IN}?tenant=1`);
    const request = Buffer.from(fields.SAMLRequest ?? '', 'base64').toString('utf8');
    expect(request).to.match(/<saml:Issuer>urn:our:own<\/saml:Issuer><ds:Signature/);
    const away = {
      agent,
      relayState: fields.RelayState ?? '',
      requestId: / ID="([^"]*)"/.exec(request)?.[1] ?? '',
    };
    const attributes = { employee: '4711', mail: 'g@upstream.test', groups: 'navy' };
    const xml = world.answer(away, { audience: 'urn:our:own', attributes });
    expect(await world.finish(agent, await world.post(away, xml))).to.have.property('code');
    const { user, identity } = await userOf('samlp|posting|4711');
    expect(user).to.include({ email: 'g@upstream.test' });
    expect(identity?.attributes).to.include({ team: 'navy' });
  });

  it('fills in the requestTemplate with escaped values', async () => {
    const { at, request } = await world.away({
      connection: 'ping',
      login_hint: '"><evil/>&',
      prompt: 'login',
    });
    expect(`${at.origin}${at.pathname}`).to.equal('https://ping.example.test/idp/SSO.saml2');
    expect(at.searchParams.get('hint')).to.equal('"><evil/>&');
    expect(request).to.include('ProviderName="&quot;&gt;&lt;evil/&gt;&amp;"');
    expect(request).to.include('ForceAuthn="true"');
    expect(request).to.include('Destination="https://ping.example.test/idp/SSO.saml2"');
  });

  it('never sends the application’s own state or code_challenge to the provider', async () => {
    const bound = {
      state: 'of-the-application',
      code_challenge: 'c'.repeat(43),
      code_challenge_method: 'S256',
    };
    const { at } = await world.away({ connection: 'ping', login_hint: 'ada', ...bound });
    expect([...at.searchParams.keys()]).to.have.members(['hint', 'SAMLRequest', 'RelayState']);
  });

  it('does not identify a user by a transient NameID', async () => {
    const away = await world.away();
    const format = 'urn:oasis:names:tc:SAML:2.0:nameid-format:transient';
    const refused = await world.finish(away.agent, await world.post(away, world.answer(away, { format })));
    expect(refused).to.include({ error: 'access_denied' });
    const again = await world.away();
    const attributes = { [`${CLAIMS}upn`]: 'grace@corp' };
    const xml = world.answer(again, { format, attributes });
    expect(await world.finish(again.agent, await world.post(again, xml))).to.have.property('code');
    expect((await userOf('samlp|acme|grace@corp')).user).to.not.equal(undefined);
  });

  it('returns the provider’s refusal to the application, and records it', async () => {
    const away = await world.away();
    const status =
      '<samlp:StatusCode Value="urn:oasis:names:tc:SAML:2.0:status:Responder"><samlp:StatusCode Value="urn:oasis:names:tc:SAML:2.0:status:AuthnFailed"/></samlp:StatusCode><samlp:StatusMessage>No way</samlp:StatusMessage>';
    const xml = response(world.server, '', { inResponseTo: away.requestId, status });
    const outcome = await world.finish(away.agent, await world.post(away, xml));
    expect(outcome).to.include({ error: 'access_denied', error_description: 'No way' });
    expect(await failedLogins(world.server)).to.include('No way');
  });

  it('publishes our service provider metadata for each SAML connection', async () => {
    const agent = createAgent(world.server);
    const { status, text, headers } = await agent.get('/samlp/metadata?connection=acme');
    expect([status, headers['content-type']]).to.deep.equal([200, 'application/xml; charset=utf-8']);
    expect(text).to.include('entityID="urn:auth0:localhost:acme"');
    expect(text).to.include(`Location="${world.server.url}/login/callback?connection=acme"`);
    expect(text).to.match(/<KeyDescriptor use="signing">[\s\S]*<KeyDescriptor use="encryption">/);
    const formats = [...text.matchAll(/<NameIDFormat>([^<]*)</g)].map(([, uri = '']) =>
      uri.split(':').at(-1),
    );
    expect(formats)
      .to.include.members(['emailAddress', 'persistent', 'unspecified'])
      .and.not.include('transient');
    const methods = [...text.matchAll(/<EncryptionMethod Algorithm="([^"]+)">/g)].map(([, one]) => one);
    expect(methods[0]).to.equal('http://www.w3.org/2009/xmlenc11#aes128-gcm');
    expect(methods).to.include('http://www.w3.org/2001/04/xmlenc#rsa-oaep-mgf1p');
    expect(text.indexOf('<EncryptionMethod')).to.be.greaterThan(text.indexOf('use="encryption"'));
    expect(text).to.include(
      `<SingleLogoutService Binding="${BINDING}Redirect" Location="${world.server.url}/logout">`,
    );
    for (const path of [
      '/samlp/metadata?connection=users',
      '/samlp/metadata?connection=none',
      '/samlp/metadata',
    ]) {
      expect((await agent.get(path)).status).to.equal(404);
    }
  });
});

describe('another Gatehouse as the SAML identity provider', () => {
  let upstream: TestServer;
  let server: TestServer;
  before(async () => {
    upstream = await startServer({
      tenant: tenantWith({
        add: { clients: [samlClient('sp', { audience: 'urn:auth0:localhost:gatehouse' })] },
        enable: ['sp'],
      }),
    });
    const metadataXml = (await createAgent(upstream).get('/samlp/metadata/sp')).text;
    const connection = {
      name: 'gatehouse',
      strategy: 'samlp',
      enabled_clients: ['web'],
      options: { metadataXml },
    };
    server = await startServer({ tenant: { ...tenant, users: [], connections: [connection] } });
    await upstream.store.collection('clients').update('sp', (client) => ({
      ...client,
      callbacks: [`${server.url}/login/callback?connection=gatehouse`],
    }));
  });
  after(async () => {
    await server?.stop();
    await upstream?.stop();
  });

  it('logs its users in, configured by its metadata only', async () => {
    const [agent, there] = [createAgent(server), createAgent(upstream)];
    const away = await authorize(agent, webRequest({ connection: 'gatehouse' }));
    expect(new URL(away.location).origin).to.equal(upstream.url);
    const page = await follow(there, await there.get(away.location), upstream.url);
    const { action, fields } = readForm(await submitLogin(there, upstream, page), 'SAMLResponse');
    const back = await agent.request(action, { form: fields });
    expect(responseOf(await follow(agent, back, server.url))).to.have.property('code');
    const { records } = await server.store.collection('users').list({ limit: 10 });
    expect(records.map(({ id }) => id)).to.have.length(1);
    expect(records[0]?.id).to.match(/^samlp\|gatehouse\|auth0\|/);
    expect(records[0]).to.include({ email: 'ada@example.test', email_verified: false });
  });
});
