// Options of connections that `gatehouse move check` calls in force: each has an effect at a server that has it from a tenant of the deploy tool.
import { once } from 'node:events';
import { mkdtempSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import https from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { localCertificate } from '../../src/capabilities/tls/authority.ts';
import { RULES } from '../../src/moving/assess.ts';
import { objectStatements } from '../../src/moving/verdicts/object-verdicts.ts';
import { statementsOf } from '../../src/moving/verdicts/verdict.ts';
import {
  BASE,
  SERVICE,
  SERVICE_PASSWORD,
  startDirectory,
  type TestDirectory,
} from '../connections/ldap/directory.ts';
import { KNOWN } from '../connections/social/answers.ts';
import { makeCertificate } from '../saml/support.ts';
import { createAgent, readForm } from '../support/agent.ts';
import { authorize, tenant as base, follow, payload, token, webRequest } from '../support/flows.ts';
import { json } from '../support/oauth2-provider.ts';
import { type OpenIdProvider, signingKey, startOpenIdProvider } from '../support/openid-provider.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { startMailServer, type TestMailServer } from '../support/smtp.ts';
import { type SocialProvider, startSocialProvider } from '../support/social-provider.ts';
import { trust } from '../support/trust.ts';
import { startTwilio, TWILIO } from '../support/twilio.ts';
import { logInUpstream } from '../support/upstream-login.ts';
import { until } from '../support/wait-until.ts';

const SIGN_IN = 'https://saml.example.test/sign-in';
const POST = 'urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST';
const ENTRA_TENANT = '11111111-2222-3333-4444-555555555555';
const PASSWORD = 'A-good-Passw0rd';
const REALM_GRANT = 'http://auth0.com/oauth/grant-type/password-realm';
const OTP_GRANT = 'http://auth0.com/oauth/grant-type/passwordless/otp';
const ADA = `uid=ada,ou=people,${BASE}`;

const connection = (name: string, strategy: string, options: object, over: object = {}) => ({
  name,
  strategy,
  enabled_clients: ['web', 'page'],
  options,
  ...over,
});

/** The metadata of AD FS, at a host with a certificate. */
async function startAdfs(documentOf: (url: string) => object) {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-adfs-'));
  const { cert, key, caFile } = await localCertificate(folder, ['localhost'], Date.now);
  trust(await readFile(caFile, 'utf8'));
  const paths: string[] = [];
  const server = https.createServer({ cert, key }, (request, response) => {
    paths.push(request.url ?? '');
    json(response, documentOf(`https://${request.headers.host}/adfs`));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    host: `localhost:${(server.address() as AddressInfo).port}`,
    paths,
    stop: async () => {
      server.closeAllConnections();
      server.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

describe('an option of a connection in force', () => {
  let provider: OpenIdProvider;
  let social: SocialProvider;
  let directory: TestDirectory;
  let adfs: Awaited<ReturnType<typeof startAdfs>>;
  let mail: TestMailServer;
  let twilio: Awaited<ReturnType<typeof startTwilio>>;
  let server: TestServer;
  before(async () => {
    provider = await startOpenIdProvider(await signingKey('k1'));
    social = await startSocialProvider();
    directory = await startDirectory([
      {
        dn: ADA,
        password: PASSWORD,
        attributes: {
          uid: 'ada',
          cn: 'Ada',
          displayName: 'Ada Lovelace',
          mail: 'ada@corp.test',
          department: 'Engines',
        },
      },
    ]);
    adfs = await startAdfs((issuer) => ({
      issuer,
      authorization_endpoint: `${provider.url}/authorize`,
      token_endpoint: `${provider.url}/token`,
      userinfo_endpoint: `${provider.url}/userinfo`,
      jwks_uri: `${provider.url}/jwks`,
    }));
    mail = await startMailServer();
    twilio = await startTwilio();
    const { certificate: signingCert } = await makeCertificate();
    const saml = (name: string, options: object) =>
      connection(name, 'samlp', { signInEndpoint: SIGN_IN, signingCert, ...options });
    const openid = { client_id: 'gatehouse', client_secret: 'upstream-secret' };
    const entra = (options: object) => ({
      ...openid,
      tenantId: ENTRA_TENANT,
      discovery_url: `${provider.url}/.well-known/openid-configuration`,
      ext_groups: true,
      ext_street: true,
      ext_street_address: true,
      ...options,
    });
    const github = (options: object) => ({
      client_id: 'our id',
      client_secret: 'our-secret',
      authorizationURL: `${social.url}/authorize`,
      tokenURL: `${social.url}/token`,
      userInfoURL: `${social.url}/userinfo`,
      ...options,
    });
    const ldap = (options: object) => ({
      LDAP_URL: directory.ldapsUrl,
      LDAP_BASE: BASE,
      LDAP_CA: directory.ca,
      LDAP_BIND_USER: SERVICE,
      LDAP_BIND_PASSWORD: SERVICE_PASSWORD,
      ...options,
    });
    const identifier = { identifier: { active: true }, profile_required: false };
    const attributes = { email: identifier, phone_number: identifier, username: identifier };
    const script = `function login(name, password, callback) {
      callback(null, { user_id: 'legacy-1', email: 'legacy@example.test', team: 'blue', city: 'Graz' });
    }`;
    server = await startServer({
      env: {
        SMTP_URL: mail.url,
        MAIL_FROM: 'usual@example.test',
        TWILIO_ACCOUNT_SID: TWILIO.accountSid,
        TWILIO_AUTH_TOKEN: TWILIO.authToken,
        TWILIO_FROM: '+15005550006',
        TWILIO_API_URL: twilio.url,
      },
      tenant: {
        ...base,
        clients: [
          ...base.clients.map((one) =>
            one.client_id === 'web'
              ? { ...one, grant_types: [...one.grant_types, REALM_GRANT, OTP_GRANT] }
              : one,
          ),
          {
            client_id: 'page',
            name: 'Page',
            app_type: 'regular_web',
            callbacks: ['http://localhost:3001/callback'],
            grant_types: ['authorization_code'],
          },
        ],
        databases: [
          { name: 'users', enabled_clients: ['web'], options: {} },
          {
            name: 'by-username',
            enabled_clients: ['web'],
            options: { attributes, precedence: ['username', 'email', 'phone_number'] },
          },
          {
            name: 'by-phone',
            enabled_clients: ['web'],
            options: { attributes, precedence: ['phone_number', 'username'] },
          },
          {
            name: 'legacy',
            enabled_clients: ['web'],
            options: {
              enabledDatabaseCustomization: true,
              customScripts: { login: script },
              non_persistent_attrs: ['team'],
            },
          },
        ],
        connections: [
          saml('unsigned', { signSAMLRequest: false }),
          saml('sha256', { signSAMLRequest: true }),
          saml('sha512', {
            signSAMLRequest: true,
            signatureAlgorithm: 'rsa-sha512',
            digestAlgorithm: 'sha512',
          }),
          saml('sha1', { signSAMLRequest: true, signatureAlgorithm: 'rsa-sha1', digestAlgorithm: 'sha1' }),
          saml('posted', {
            signSAMLRequest: true,
            signatureAlgorithm: 'rsa-sha512',
            digestAlgorithm: 'sha512',
            protocolBinding: POST,
          }),
          connection('corp', 'ad', ldap({}), { display_name: 'The archive', show_as_button: true }),
          connection(
            'corp-first',
            'auth0-adldap',
            ldap({ set_user_root_attributes: 'on_first_login', non_persistent_attrs: ['department'] }),
          ),
          connection('adfs-host', 'adfs', { ...openid, adfs_server: adfs.host }),
          connection('adfs-metadata', 'adfs', {
            ...openid,
            adfs_server: `https://${adfs.host}/FederationMetadata/2007-06/FederationMetadata.xml`,
          }),
          connection('entra', 'waad', entra({})),
          connection('entra-v1', 'waad', entra({ identity_api: 'azure-active-directory-v1.0' })),
          connection('first', 'github', github({ set_user_root_attributes: 'on_first_login' })),
          connection(
            'never',
            'gitlab',
            github({ set_user_root_attributes: 'never_on_login', non_persistent_attrs: ['groups'] }),
          ),
          connection('shown', 'bitbucket', github({ icon_url: 'https://cdn.example.test/logo.svg' }), {
            display_name: 'The workshop',
          }),
          connection('hidden', 'facebook', github({}), { display_name: 'The attic', show_as_button: false }),
          connection('email', 'email', {
            totp: { length: 4, time_step: 600 },
            email: {
              from: 'codes@example.test',
              subject: 'Code {{ code }}',
              body: '<b>@@password@@</b>',
              syntax: 'liquid',
            },
          }),
          connection('sms', 'sms', {
            totp: { length: 9, time_step: 60 },
            from: '+15005550009',
            template: 'Yours: @@password@@',
            syntax: 'md_with_macros',
          }),
        ],
        // A name in the form of a number, which a sign-up and an import refuse.
        users: ['by-username', 'by-phone'].map((connection) => ({
          connection,
          email: 'username@example.test',
          username: '+12025550123',
          password: PASSWORD,
        })),
      },
    });
  });
  after(async () => {
    await server?.stop();
    await Promise.all([provider, social, directory, adfs, mail, twilio].map((one) => one?.stop()));
  });
  beforeEach(() => {
    Object.assign(provider, { document: {}, claims: {}, userInfo: {}, answer: {}, instead: {} });
  });

  const web = { client_id: 'web', client_secret: 'web-secret' };
  const byPassword = async (realm: string, username: string) => {
    const answer = await token(createAgent(server), {
      grant_type: REALM_GRANT,
      ...web,
      realm,
      username,
      password: PASSWORD,
      scope: 'openid profile email',
    });
    expect(answer.status, answer.text).to.equal(200);
    return payload(answer.json().id_token);
  };
  const attributesOf = async (id: string) => (await server.users.identitiesOf(id))[0]?.attributes ?? {};
  const away = async (name: string) =>
    new URL((await authorize(createAgent(server), webRequest({ connection: name }))).location);

  /** Requests a code. @returns its message, of those that a provider gets. */
  const sentBy = async <M>(messages: readonly M[], fields: object): Promise<M> => {
    const before = messages.length;
    const answer = await createAgent(server).request('/passwordless/start', { json: { ...web, ...fields } });
    expect(answer.status, answer.text).to.equal(200);
    await until(() => messages.length > before);
    return messages[before] as M;
  };

  /** Each option with what it does, and how that is seen. */
  const EFFECTS: readonly [option: string, does: string, see: () => Promise<void>][] = [
    [
      'signSAMLRequest',
      'is whether requests by HTTP-Redirect are signed, by signatureAlgorithm',
      async () => {
        const signatureOf = async (name: string) => (await away(name)).searchParams.get('SigAlg');
        expect(await signatureOf('unsigned')).to.equal(null);
        expect(await signatureOf('sha256')).to.equal('http://www.w3.org/2001/04/xmldsig-more#rsa-sha256');
        expect(await signatureOf('sha512')).to.equal('http://www.w3.org/2001/04/xmldsig-more#rsa-sha512');
        expect(await signatureOf('sha1')).to.equal('http://www.w3.org/2000/09/xmldsig#rsa-sha1');
      },
    ],
    [
      'protocolBinding',
      'HTTP-POST has the browser post the request, which is signed by signatureAlgorithm and digestAlgorithm',
      async () => {
        const agent = createAgent(server);
        const first = await authorize(agent, webRequest({ connection: 'posted' }));
        const { action, fields } = readForm(await follow(agent, first, server.url), 'SAMLRequest');
        expect(action).to.equal(SIGN_IN);
        const request = Buffer.from(fields.SAMLRequest ?? '', 'base64').toString();
        expect(request).to.contain(
          'SignatureMethod Algorithm="http://www.w3.org/2001/04/xmldsig-more#rsa-sha512"',
        );
        expect(request).to.contain('DigestMethod Algorithm="http://www.w3.org/2001/04/xmlenc#sha512"');
      },
    ],
    [
      'set_user_root_attributes',
      'of a directory keeps what was changed here, and non_persistent_attrs are not stored',
      async () => {
        for (const [name, strategy, isKept] of [
          ['corp', 'ad', false],
          ['corp-first', 'auth0-adldap', true],
        ] as const) {
          const { sub } = await byPassword(name, 'ada');
          expect(sub).to.equal(`${strategy}|${name}|ada`);
          await server.users.update(sub, { name: 'Named here' });
          expect((await byPassword(name, 'ada')).name).to.equal(isKept ? 'Named here' : 'Ada Lovelace');
          expect('department' in (await attributesOf(sub))).to.equal(!isKept);
        }
      },
    ],
    [
      'adfs_server',
      'is where the provider is asked, also as the address of its federation metadata',
      async () => {
        provider.claims = { iss: `https://${adfs.host}/adfs` };
        for (const name of ['adfs-host', 'adfs-metadata'])
          expect(await logInUpstream(server, { connection: name }), name).to.have.property('code');
        expect([...new Set(adfs.paths)]).to.deep.equal(['/adfs/.well-known/openid-configuration']);
      },
    ],
    [
      'identity_api',
      'is whether ext_groups and ext_street are read from Microsoft, as the verdict on each says',
      async () => {
        const { host } = new URL(provider.url);
        provider.document = { msgraph_host: host };
        provider.claims = { tid: ENTRA_TENANT };
        provider.instead = {
          '/v1.0/me': (response) => {
            expect(response.req.url).to.match(/select=streetAddress$/);
            json(response, { streetAddress: 'Sporgasse 1' });
          },
          '/v1.0/me/memberOf': (response) =>
            json(response, {
              value: [{ '@odata.type': '#microsoft.graph.group', id: '1', displayName: 'crew' }],
            }),
        };
        const verdicts = (options: object) => {
          const item = { strategy: 'waad', options };
          const said = [
            ...objectStatements('connections', item, 'entra', {}),
            ...statementsOf(RULES, item, ['connections'], item),
          ];
          return said.map(({ path }) => path?.at(-1));
        };
        const asked = { ext_groups: true, ext_street: true };
        for (const [name, identity_api, isRead] of [
          ['entra', 'microsoft-identity-platform-v2.0', true],
          ['entra-v1', 'azure-active-directory-v1.0', false],
        ] as const) {
          const sub = `user-of-${name}`;
          provider.claims = { tid: ENTRA_TENANT, sub };
          provider.userInfo = { sub };
          expect(await logInUpstream(server, { connection: name })).to.have.property('code');
          const found = await attributesOf(`waad|${sub}`);
          expect(found.groups).to.deep.equal(isRead ? ['crew'] : undefined);
          expect(found.street).to.equal(isRead ? 'Sporgasse 1' : undefined);
          expect(verdicts({ ...asked, identity_api })).to.deep.equal(isRead ? [] : ['identity_api']);
        }
        const unread = { ext_is_suspended: true, ext_admin: true, ext_agreed_terms: true, ext_puid: true };
        expect(verdicts(unread)).to.have.members(Object.keys(unread));
      },
    ],
    [
      'set_user_root_attributes',
      'of a social provider keeps what was changed here, and non_persistent_attrs are not stored',
      async () => {
        const answer = (answers: Record<string, object>) => {
          for (const [path, one] of Object.entries(answers)) social.answers[`/userinfo${path}`] = one;
        };
        answer(KNOWN.github.answers);
        const id = `github|${KNOWN.github.id}`;
        await logInUpstream(server, { connection: 'first' });
        await server.users.update(id, { name: 'Named here' });
        await logInUpstream(server, { connection: 'first' });
        expect(await server.users.get(id)).to.include({ name: 'Named here', logins_count: 2 });
        answer(KNOWN.gitlab.answers);
        await logInUpstream(server, { connection: 'never' });
        const other = `gitlab|${KNOWN.gitlab.id}`;
        expect(await server.users.get(other)).to.not.have.any.keys('name', 'email');
        expect(await attributesOf(other)).to.not.have.property('groups');
      },
    ],
    [
      'icon_url',
      'is the picture on the button of the login page, and display_name its text',
      async () => {
        const agent = createAgent(server);
        const first = await authorize(agent, webRequest({ client_id: 'page' }));
        const { text } = await follow(agent, first, server.url);
        expect(text).to.contain('src="https://cdn.example.test/logo.svg"').and.contain('The workshop');
        expect(text).to.not.contain('The attic');
        // Of a directory there is no button, which its verdict says.
        expect(text).to.not.contain('The archive');
        const said = (strategy: string) =>
          statementsOf(RULES, { strategy, show_as_button: true }, ['connections'], { strategy });
        expect(said('ad').map(({ verdict }) => verdict)).to.deep.equal(['not in force']);
        expect(said('bitbucket')).to.deep.equal([]);
      },
    ],
    [
      'email',
      'is the sender, subject and text of the mail with a code, whose length is totp.length',
      async () => {
        const to = 'grace@example.test';
        const sent = await sentBy(mail.messages, { connection: 'email', email: to, send: 'code' });
        const code = /<b>(\d+)<\/b>/.exec(sent.html ?? '')?.[1];
        expect(code).to.match(/^\d{4}$/);
        expect(sent.from?.address).to.equal('codes@example.test');
        expect(sent.subject).to.equal(`Code ${code}`);
        server.tick(590_000);
        const fields = { grant_type: OTP_GRANT, ...web, username: to, otp: code, realm: 'email' };
        expect((await token(createAgent(server), fields)).status).to.equal(200);
      },
    ],
    [
      'template',
      'is the text of the SMS with a code, of totp.length and time_step, and from its sender',
      async () => {
        const to = '+12025550199';
        const codeOf = async () => {
          const { Body = '', From } = await sentBy(twilio.messages, { connection: 'sms', phone_number: to });
          expect(From).to.equal('+15005550009');
          return /^Yours: (\d{9})$/.exec(Body)?.[1];
        };
        const redeem = async (otp: string | undefined) => {
          const fields = { grant_type: OTP_GRANT, ...web, username: to, otp, realm: 'sms' };
          return (await token(createAgent(server), fields)).status;
        };
        const late = await codeOf();
        server.tick(61_000);
        expect(await redeem(late)).to.equal(403);
        expect(await redeem(await codeOf())).to.equal(200);
      },
    ],
    [
      'precedence',
      'is who logs in by a name that is one user’s name and another’s number',
      async () => {
        for (const connection of ['by-username', 'by-phone']) {
          const json = {
            client_id: 'web',
            connection,
            email: 'phone@example.test',
            phone_number: '+12025550123',
          };
          const signUp = { json: { ...json, password: PASSWORD } };
          expect((await createAgent(server).request('/dbconnections/signup', signUp)).status).to.equal(200);
        }
        const email = async (realm: string) => (await byPassword(realm, '+12025550123')).email;
        expect(await email('by-username')).to.equal('username@example.test');
        expect(await email('by-phone')).to.equal('phone@example.test');
      },
    ],
    [
      'non_persistent_attrs',
      'of a custom database are not stored',
      async () => {
        const { sub } = await byPassword('legacy', 'legacy@example.test');
        expect(await attributesOf(sub))
          .to.include({ city: 'Graz' })
          .and.not.have.property('team');
      },
    ],
  ];
  for (const [option, does, see] of EFFECTS) it(`${option} ${does}`, see);
});
