// "Try connection" for OpenID and SAML providers, directories and custom databases. connections.test.ts tests it for
// OAuth 2.0.
import { inflateRawSync } from 'node:zlib';
import { expect } from 'chai';
import {
  BASE,
  SERVICE,
  SERVICE_PASSWORD,
  startDirectory,
  type TestDirectory,
} from '../connections/ldap/directory.ts';
import { metadata, publish } from '../connections/samlp/metadata-server.ts';
import {
  assertion,
  BINDING,
  CLAIMS,
  idOf,
  response,
  SIGN_IN,
  signed,
} from '../connections/samlp/provider.ts';
import { type KeyAndCertificate, makeCertificate } from '../saml/support.ts';
import { type ConsoleAgent, openConsole, startConsole } from '../support/console.ts';
import { tenant } from '../support/flows.ts';
import {
  elsewhereOptions,
  KEY,
  type LegacyDatabase,
  startLegacyDatabase,
} from '../support/legacy-database.ts';
import { type OpenIdProvider, signingKey, startOpenIdProvider } from '../support/openid-provider.ts';
import type { TestServer } from '../support/server.ts';

const SECRET = 'upstream-secret-of-thirty-two-bytes!';

describe('trying a connection in the console', () => {
  let provider: OpenIdProvider;
  let legacy: LegacyDatabase;
  let server: TestServer;
  let owner: ConsoleAgent;
  let directory: TestDirectory;
  let saml: KeyAndCertificate;
  let published: Awaited<ReturnType<typeof publish>>;

  before(async () => {
    provider = await startOpenIdProvider(await signingKey('k1'));
    legacy = await startLegacyDatabase();
    legacy.add('grace@old.test', 'Correct-Horse-9');
    saml = await makeCertificate();
    published = await publish();
    published.set(metadata([saml.certificate]));
    const ada = { uid: 'ada', cn: 'Ada Lovelace', mail: 'ada@corp.test' };
    directory = await startDirectory([
      { dn: `uid=ada,ou=people,${BASE}`, password: 'Ein-Passwort-2', attributes: ada },
    ]);
    const ldap = { LDAP_URL: directory.ldapsUrl, LDAP_CA: directory.ca, LDAP_BASE: BASE };
    const bind = { LDAP_BIND_USER: SERVICE, LDAP_BIND_PASSWORD: SERVICE_PASSWORD };
    const idp = { signInEndpoint: SIGN_IN, signingCert: saml.certificate };
    const discovery_url = `${provider.url}/.well-known/openid-configuration`;
    const options = { type: 'back_channel', discovery_url, client_id: 'gatehouse', client_secret: SECRET };
    server = await startConsole({
      tenant: {
        ...tenant,
        databases: [...tenant.databases, { name: 'old', options: elsewhereOptions(legacy) }],
        connections: [
          { name: 'acme', strategy: 'oidc', options },
          { name: 'works', strategy: 'samlp', options: idp },
          { name: 'posting', strategy: 'samlp', options: { ...idp, protocolBinding: `${BINDING}POST` } },
          { name: 'published', strategy: 'samlp', options: { metadataUrl: published.url } },
          { name: 'corp', strategy: 'ad', options: { ...ldap, ...bind } },
          { name: 'lost', strategy: 'ad', options: { ...ldap, ...bind, LDAP_BIND_PASSWORD: 'not-this-one' } },
        ],
      },
    });
    owner = await openConsole(server);
  });
  after(async () => {
    await server?.stop();
    await Promise.all([provider?.stop(), legacy?.stop(), directory?.stop(), published?.stop()]);
  });

  const pathOf = async (name: string) => {
    const [found] = await server.store.collection('connections').findBy('name', name);
    return `/console/connections/${found?.id}`;
  };

  it('shows the metadata and answers of an OpenID provider, without its tokens', async () => {
    const before = await server.store.collection('users').count();
    const page = await owner.post(`${await pathOf('acme')}/try`);
    const [, href = ''] = /class="button primary" href="([^"]+)" rel/.exec(page.text) ?? [];
    const gone = await fetch(href.replaceAll('&amp;', '&'), { redirect: 'manual' });
    const back = await owner.agent.get(gone.headers.get('location') ?? '');
    const { text } = await owner.get(back.location);
    expect(text).to.contain('The login succeeded').and.contain('<li class="profile">');
    expect(text).to.contain('/.well-known/openid-configuration').and.contain(`POST ${provider.url}`);
    expect(text)
      .to.not.contain(SECRET)
      .and.not.match(/eyJ[\w-]+\.eyJ/);
    expect(await server.store.collection('users').count()).to.equal(before);
  });

  /** Begins a login at a SAML provider. @returns the ID of its request, and the RelayState to return. */
  const toIdp = async (name: string) => {
    const page = await owner.post(`${await pathOf(name)}/try`);
    const [, href = ''] = /class="button primary" href="([^"]+)" rel/.exec(page.text) ?? [];
    const at = new URL(href.replaceAll('&amp;', '&'));
    expect(`${at.origin}${at.pathname}`).to.equal(SIGN_IN);
    const request = inflateRawSync(Buffer.from(at.searchParams.get('SAMLRequest') ?? '', 'base64'));
    return { id: idOf(request.toString()), RelayState: at.searchParams.get('RelayState') ?? '' };
  };
  const answerOf = (id: string, { key = saml, name = 'works' } = {}) => {
    const said = { inResponseTo: id, audience: `urn:auth0:localhost:${name}`, nameId: 'grace.1' };
    const attributes = { [`${CLAIMS}emailaddress`]: 'grace@idp.test', team: '&lt;b&gt;navy&lt;/b&gt;' };
    const xml = assertion(server, { ...said, attributes });
    const whole = response(server, signed(xml, 'Assertion', key.privateKey), said);
    return Buffer.from(whole).toString('base64');
  };
  const bringBack = async (form: Record<string, string>) => {
    const back = await owner.agent.request('/login/callback', { form });
    expect(back.status, back.text).to.equal(303);
    return owner.get(back.location);
  };

  it('shows the profile from a SAML provider, and creates no user', async () => {
    const before = await server.store.collection('users').count();
    const { id, RelayState } = await toIdp('works');
    const SAMLResponse = answerOf(id);
    const { text } = await bringBack({ SAMLResponse, RelayState });
    expect(text).to.contain('The login succeeded').and.contain('<li class="profile">');
    expect(text).to.contain('grace@idp.test').and.contain('grace.1');
    // The response is as confidential as a code.
    expect(text).to.not.contain(SAMLResponse.slice(0, 60)).and.not.contain('<b>navy');
    expect(await server.store.collection('users').count()).to.equal(before);
  });

  it('shows the request for the metadata of a SAML provider, also when it was fetched before', async () => {
    await toIdp('published');
    const { id, RelayState } = await toIdp('published');
    const { text } = await bringBack({ SAMLResponse: answerOf(id, { name: 'published' }), RelayState });
    expect(text).to.contain('The login succeeded').and.contain(published.url);
  });

  it('shows why a SAML response is rejected: another key, another request', async () => {
    const first = await toIdp('works');
    const key = await makeCertificate();
    const forged = await bringBack({
      SAMLResponse: answerOf(first.id, { key }),
      RelayState: first.RelayState,
    });
    expect(forged.text).to.contain('The login failed').and.contain('<li class="error">');
    const second = await toIdp('works');
    const { RelayState } = second;
    const foreign = await bringBack({ SAMLResponse: answerOf(first.id), RelayState });
    expect(foreign.text).to.contain('The login failed').and.not.contain('<li class="profile">');
  });

  it('sends a form to a SAML provider that requires the POST binding', async () => {
    const page = await owner.post(`${await pathOf('posting')}/try`);
    expect(page.status).to.equal(200);
    expect(page.text).to.contain(`action="${SIGN_IN}"`).and.contain('name="SAMLRequest"');
    // The provider may send the form on to anywhere, and browsers apply form-action to that, too.
    expect(String(page.headers['content-security-policy']))
      .to.contain("default-src 'none'")
      .and.not.to.contain('form-action');
  });

  it('shows the user whom a directory has found, or why it could not be asked', async () => {
    const before = await server.store.collection('users').count();
    const typed = { identifier: 'ada', password: 'Ein-Passwort-2' };
    const right = await owner.post(`${await pathOf('corp')}/try`, typed);
    expect(right.text).to.contain('The login succeeded').and.contain('<li class="profile">');
    expect(right.text)
      .to.contain('ada@corp.test')
      .and.not.contain(typed.password)
      .and.not.contain(SERVICE_PASSWORD);
    const wrong = await owner.post(`${await pathOf('corp')}/try`, { ...typed, password: 'Ein-Passwort-3' });
    expect(wrong.text).to.contain('invalid_grant').and.not.contain('<li class="profile">');
    const lost = await owner.post(`${await pathOf('lost')}/try`, typed);
    expect(lost.text).to.contain('<li class="error">').and.not.contain('not-this-one');
    expect(await server.store.collection('users').count()).to.equal(before);
  });

  it('asks a custom database by its script, and creates no user', async () => {
    const before = await server.store.collection('users').count();
    const typed = { identifier: 'grace@old.test', password: 'Correct-Horse-9' };
    const right = await owner.post(`${await pathOf('old')}/try`, typed);
    expect(right.text).to.contain('The login succeeded').and.contain('<li class="script">');
    expect(right.text)
      .to.contain('<li class="profile">')
      .and.not.contain(KEY)
      .and.not.contain(typed.password);
    const wrong = await owner.post(`${await pathOf('old')}/try`, { ...typed, password: 'Wrong-Horse-1' });
    expect(wrong.text).to.contain('invalid_grant').and.not.contain('Wrong-Horse-1');
    expect(await server.store.collection('users').count()).to.equal(before);
  });
});
