// The strategies of well-known OpenID providers, against a test provider in their place.
import { createPrivateKey } from 'node:crypto';
import type http from 'node:http';
import { expect } from 'chai';
import { decodeProtectedHeader, exportPKCS8, exportSPKI, generateKeyPair, importSPKI, jwtVerify } from 'jose';
import { makeCertificate } from '../../saml/support.ts';
import { createAgent } from '../../support/agent.ts';
import { authorize, follow, responseOf, tenant, webRequest } from '../../support/flows.ts';
import { json } from '../../support/oauth2-provider.ts';
import { type OpenIdProvider, signingKey, startOpenIdProvider } from '../../support/openid-provider.ts';
import { startServer, type TestServer } from '../../support/server.ts';
import { logInUpstream } from '../../support/upstream-login.ts';

const TENANT = '11111111-2222-3333-4444-555555555555';
const OTHER_TENANT = '99999999-2222-3333-4444-555555555555';
const OID = 'AAAAAAAA-bbbb-cccc-dddd-eeeeeeeeeeee';

/** Returns the parts of AD FS's federation metadata that are read. */
function federationMetadata(url: string, certificate: string): string {
  const key = `<KeyDescriptor use="signing"><KeyInfo xmlns="http://www.w3.org/2000/09/xmldsig#"><X509Data><X509Certificate>${certificate.replaceAll(/-----[^-]+-----|\s/g, '')}</X509Certificate></X509Data></KeyInfo></KeyDescriptor>`;
  const signOn = `<SingleSignOnService Binding="urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect" Location="${url}/adfs/ls/"/>`;
  return `<EntityDescriptor xmlns="urn:oasis:names:tc:SAML:2.0:metadata" entityID="http://sts.example.test/adfs/services/trust"><IDPSSODescriptor protocolSupportEnumeration="urn:oasis:names:tc:SAML:2.0:protocol">${key}${signOn}</IDPSSODescriptor></EntityDescriptor>`;
}

describe('the strategies of OpenID providers', () => {
  let provider: OpenIdProvider;
  let server: TestServer;
  let teamKey = '';

  before(async () => {
    provider = await startOpenIdProvider(await signingKey('k1'));
    const { privateKey, publicKey } = await generateKeyPair('ES256', { extractable: true });
    teamKey = await exportSPKI(publicKey);
    const { certificate } = await makeCertificate();
    const document = '.well-known/openid-configuration';
    const connection = (name: string, strategy: string, options: object, path = '') => ({
      name,
      strategy,
      enabled_clients: ['web'],
      options: {
        client_id: 'gatehouse',
        client_secret: 'upstream-secret',
        discovery_url: `${provider.url}/${path}${document}`,
        ...options,
      },
    });
    server = await startServer({
      tenant: {
        ...tenant,
        connections: [
          connection('okta', 'okta', {
            domain: 'acme.okta.example.test',
            attribute_map: { mapping_mode: 'basic_profile' },
          }),
          connection(
            'entra',
            'waad',
            { tenantId: TENANT, userid_attribute: 'oid', tenant_domain: 'acme.example.test' },
            'common/v2.0/',
          ),
          connection(
            'entra-all',
            'waad',
            {
              useCommonEndpoint: true,
              should_trust_email_verified_connection: 'always_set_emails_as_verified',
            },
            'common/v2.0/',
          ),
          connection(
            'entra-groups',
            'waad',
            {
              tenantId: TENANT,
              ext_profile: true,
              ext_account_enabled: true,
              ext_nested_groups: true,
              ext_group_ids: true,
              max_groups_to_retrieve: '3',
            },
            // Documents are cached by their URL.
            'groups/v2.0/',
          ),
          connection('federation', 'waad', { discovery_url: '', waad_protocol: 'ws-federation' }),
          connection('adfs', 'adfs', { adfs_server: 'sts.example.test', user_id_attribute: 'upn' }),
          connection('adfs-metadata', 'adfs', {
            discovery_url: '',
            fedMetadataXml: federationMetadata(provider.url, certificate),
          }),
          connection('google', 'google-oauth2', { offline_access: true }),
          connection('google-apis', 'google-oauth2', {
            profile: false,
            gmail_readonly: true,
            orkut: true,
            freeform_scopes: ['https://www.googleapis.com/auth/documents'],
          }),
          connection('workspace', 'google-apps', { domain: 'acme.example.test' }),
          connection('workspace-id', 'google-apps', {
            domain: 'acme.example.test',
            map_user_id_to_id: true,
          }),
          connection('apple-nameless', 'apple', { name: false, email: true, team_id: 'TEAM', kid: 'KEY' }),
          connection('apple', 'apple', {
            client_secret: '',
            team_id: 'TEAM',
            kid: 'KEY',
            app_secret: await exportPKCS8(privateKey),
          }),
          connection('apple-sec1', 'apple', {
            client_secret: '',
            team_id: 'TEAM',
            kid: 'KEY',
            app_secret: createPrivateKey(await exportPKCS8(privateKey)).export({
              type: 'sec1',
              format: 'pem',
            }),
          }),
        ],
      },
    });
  });
  after(async () => {
    await server?.stop();
    await provider?.stop();
  });
  beforeEach(() => {
    Object.assign(provider, { document: {}, claims: {}, userInfo: {}, answer: {} });
  });

  const logIn = (connection: string, claims: Record<string, unknown> = {}) => {
    provider.claims = claims;
    provider.userInfo = { sub: claims.sub ?? 'grace' };
    return logInUpstream(server, { connection });
  };
  const user = (id: string) => server.store.collection('users').get(id);

  it('okta: creates a user of the connection, with standard claims only for basic_profile', async () => {
    expect(await logIn('okta', { name: 'Grace', groups: ['a'] })).to.have.property('code');
    expect(await user('okta|okta|grace')).to.include({ name: 'Grace' });
    const identity = await server.store.collection('identities').get('okta|okta|grace');
    expect(identity?.attributes ?? {}).to.not.have.property('groups');
  });

  describe('waad', () => {
    const issuer = (tid: string) => `${provider.url}/${tid}/v2.0`;
    beforeEach(async () => {
      provider.document = { issuer: `${provider.url}/{tenantid}/v2.0` };
    });

    it('identifies users of its organization by userid_attribute, with an unverified address', async () => {
      const claims = {
        iss: issuer(TENANT),
        tid: TENANT,
        oid: OID,
        preferred_username: 'grace@acme.example.test',
      };
      expect(await logIn('entra', claims)).to.have.property('code');
      const found = await user(`waad|${OID.toLowerCase()}`);
      // An administrator of the directory can set any address.
      expect(found).to.include({ email: 'grace@acme.example.test', email_verified: false });
    });

    const others: [string, () => Record<string, unknown>][] = [
      ['of another organization', () => ({ iss: issuer(OTHER_TENANT), tid: OTHER_TENANT, oid: OID })],
      ['whose issuer and organization differ', () => ({ iss: issuer(TENANT), tid: OTHER_TENANT, oid: OID })],
      [
        'with the placeholder as the organization',
        () => ({ iss: issuer('{tenantid}'), tid: '{tenantid}', oid: OID }),
      ],
      ['without an organization', () => ({ iss: issuer(TENANT), oid: OID })],
      ['without the claim of userid_attribute', () => ({ iss: issuer(TENANT), tid: TENANT })],
    ];
    for (const [what, claims] of others) {
      it(`rejects an ID token ${what}`, async () => {
        expect(await logIn('entra', claims())).to.include({ error: 'access_denied' });
      });
    }

    it('accepts users of every organization with useCommonEndpoint', async () => {
      for (const tid of [TENANT, OTHER_TENANT]) {
        const claims = { iss: issuer(tid), tid, sub: `pairwise-${tid}`, email: 'g@any.example.test' };
        expect(await logIn('entra-all', claims)).to.have.property('code');
        expect(await user(`waad|pairwise-${tid}`)).to.include({ email_verified: true });
      }
      const lie = { iss: issuer(TENANT), tid: OTHER_TENANT };
      expect(await logIn('entra-all', lie)).to.include({ error: 'access_denied' });
    });

    describe('with attributes and groups of Microsoft Graph', () => {
      const group = (name: string, type = 'group') => ({
        '@odata.type': `#microsoft.graph.${type}`,
        id: `id of ${name}`,
        displayName: name,
      });
      const answer = (body: object) => (response: http.ServerResponse) => json(response, body);
      const failing = (status: number) => (response: http.ServerResponse) => json(response, {}, status);
      const ME = '/v1.0/me';
      const GROUPS = `${ME}/transitiveMemberOf`;
      const claims = () => ({
        iss: issuer(TENANT),
        tid: TENANT,
        sub: 'pairwise-groups',
        groups: ['of the token'],
        department: 'of the token',
      });
      const attributes = async () =>
        (await server.store.collection('identities').get('entra-groups|pairwise-groups'))?.attributes ?? {};
      beforeEach(() => {
        Object.assign(provider.document, { msgraph_host: new URL(provider.url).host });
        provider.instead = {
          [ME]: answer({ accountEnabled: true, jobTitle: 'Admiral', city: null, mail: 'evil@x.test' }),
          [GROUPS]: answer({
            value: [group('crew'), group('Global Administrator', 'directoryRole'), null],
            '@odata.nextLink': `${provider.url}${GROUPS}/2`,
          }),
          [`${GROUPS}/2`]: answer({
            value: [group('officers'), group('admirals'), group('one too many')],
            '@odata.nextLink': `${provider.url}${GROUPS}/2`,
          }),
        };
      });
      afterEach(() => {
        provider.instead = {};
      });

      it('reads them with the user’s own token, up to max_groups_to_retrieve', async () => {
        const away = await authorize(createAgent(server), webRequest({ connection: 'entra-groups' }));
        expect(new URL(away.location).searchParams.get('scope')?.split(' ')).to.include.members([
          'User.Read',
          'GroupMember.Read.All',
        ]);
        expect(await logIn('entra-groups', claims())).to.have.property('code');
        expect(await attributes()).to.include({ job_title: 'Admiral', account_enabled: true });
        const { groups, group_ids } = await attributes();
        expect(groups).to.deep.equal(['crew', 'officers', 'admirals']);
        expect(group_ids).to.deep.equal(['id of crew', 'id of officers', 'id of admirals']);
        const graphRequests = provider.seen.filter(({ path }) => path.startsWith(ME));
        expect(
          graphRequests.every(({ headers }) => headers.authorization?.startsWith('Bearer access-')),
        ).to.equal(true);
        // Other members of Graph's user are not read: an administrator can set any address there.
        expect((await user('waad|pairwise-groups'))?.email).to.equal(undefined);
      });

      it('does not follow a link to another origin, which would receive the token', async () => {
        provider.instead[GROUPS] = answer({
          value: [group('crew')],
          '@odata.nextLink': `http://localhost:${new URL(provider.url).port}${GROUPS}/elsewhere`,
        });
        expect(await logIn('entra-groups', claims())).to.have.property('code');
        expect((await attributes()).groups).to.deep.equal(['crew']);
        expect(provider.count(`${GROUPS}/elsewhere`)).to.equal(0);
      });

      it('stops after 20 pages of an endless list', async () => {
        provider.instead[GROUPS] = answer({ value: [], '@odata.nextLink': `${provider.url}${GROUPS}` });
        const before = provider.count(GROUPS);
        expect(await logIn('entra-groups', claims())).to.have.property('code');
        expect(provider.count(GROUPS) - before).to.equal(20);
      });

      it('leaves out what was not consented to, and fails the login when Graph fails', async () => {
        provider.instead[GROUPS] = failing(403);
        expect(await logIn('entra-groups', claims())).to.have.property('code');
        expect(await attributes())
          .to.include({ job_title: 'Admiral' })
          .and.not.have.property('group_ids');
        provider.instead[GROUPS] = failing(503);
        expect(await logIn('entra-groups', claims())).to.include({ error: 'invalid_request' });
      });
    });

    it('rejects a connection that uses WS-Federation', async () => {
      const agent = createAgent(server);
      const end = await follow(
        agent,
        await authorize(agent, webRequest({ connection: 'federation' })),
        server.url,
      );
      expect(responseOf(end).error_description).to.contain('WS-Federation');
    });
  });

  it('adfs: identifies the user by the claim of user_id_attribute', async () => {
    expect(await logIn('adfs', { upn: 'grace@corp.example.test' })).to.have.property('code');
    expect(await user('adfs|adfs|grace@corp.example.test')).to.include({ email_verified: false });
    expect(await logIn('adfs', {})).to.include({ error: 'access_denied' });
  });

  it('adfs: finds the provider by its federation metadata', async () => {
    provider.document = { issuer: `${provider.url}/adfs` };
    expect(await logIn('adfs-metadata', { iss: `${provider.url}/adfs` })).to.have.property('code');
  });

  it('request the scopes of their boolean options', async () => {
    const scopesOf = async (connection: string) => {
      const away = await authorize(createAgent(server), webRequest({ connection }));
      return new URL(away.location).searchParams.get('scope')?.split(' ');
    };
    expect(await scopesOf('google-apis')).to.have.members([
      'openid',
      'email',
      'https://www.googleapis.com/auth/gmail.readonly',
      'https://www.googleapis.com/auth/documents',
    ]);
    expect(await scopesOf('apple-nameless')).to.have.members(['openid', 'email']);
    expect(await scopesOf('apple')).to.have.members(['openid', 'name', 'email']);
  });

  it('google-oauth2: identifies the user by Google’s sub', async () => {
    expect(
      await logIn('google', { sub: '1234567890', email: 'g@x.test', email_verified: true }),
    ).to.have.property('code');
    expect(await user('google-oauth2|1234567890')).to.include({ email: 'g@x.test', email_verified: true });
  });

  describe('google-apps', () => {
    const account = { hd: 'Acme.example.test', email: 'Grace@acme.example.test', email_verified: true };

    it('identifies accounts of its domain by their address, or by sub with map_user_id_to_id', async () => {
      expect(await logIn('workspace', account)).to.have.property('code');
      expect(await user('google-apps|grace@acme.example.test')).to.not.equal(undefined);
      expect(await logIn('workspace-id', { ...account, sub: '77' })).to.have.property('code');
      expect(await user('google-apps|77')).to.not.equal(undefined);
    });

    it('does not enter the account of whoever had the address before', async () => {
      const email = 'reused@acme.example.test';
      const identities = server.store.collection('identities');
      expect(await logIn('workspace', { ...account, email, sub: 'first' })).to.have.property('code');
      expect(await logIn('workspace', { ...account, email, sub: 'second' })).to.have.property('code');
      const ids = (await identities.list({ limit: 1000 })).records.map(({ user_id, stable_id }) => [
        user_id,
        stable_id,
      ]);
      expect(ids).to.deep.include.members([
        [`google-apps|${email}`, 'first'],
        ['google-apps|second', 'second'],
      ]);
    });

    for (const [what, claims] of [
      ['of another domain', { hd: 'evil.example.test' }],
      ['without hd', { hd: undefined }],
      ['with a list as hd', { hd: ['acme.example.test'] }],
      ['without a verified address', { email_verified: false }],
    ] as [string, object][]) {
      it(`rejects an account ${what}`, async () => {
        expect(await logIn('workspace', { ...account, ...claims })).to.include({ error: 'access_denied' });
      });
    }
  });

  describe('apple', () => {
    /** Posts the answer as Apple's page does. @param user the parameter of the first login. */
    const back = async (user?: string, connection = 'apple') => {
      const agent = createAgent(server);
      const away = await authorize(agent, webRequest({ connection }));
      const at = new URL(away.location);
      expect(at.searchParams.get('response_mode')).to.equal('form_post');
      const answer = new URL((await fetch(at, { redirect: 'manual' })).headers.get('location') ?? '');
      const form = { ...Object.fromEntries(answer.searchParams), ...(user !== undefined && { user }) };
      return responseOf(await follow(agent, await agent.request('/login/callback', { form }), server.url));
    };

    it('authenticates with a JWT signed by the team’s key', async () => {
      provider.claims = { sub: '000.apple' };
      provider.userInfo = { sub: '000.apple' };
      expect(await back()).to.have.property('code');
      const secret = provider.seen.findLast(({ path }) => path === '/token')?.form.client_secret ?? '';
      expect(decodeProtectedHeader(secret)).to.deep.equal({ alg: 'ES256', kid: 'KEY' });
      const { payload } = await jwtVerify(secret, await importSPKI(teamKey, 'ES256'));
      expect(payload).to.include({ iss: 'TEAM', sub: 'gatehouse', aud: provider.url });
    });

    it('does not take the answer from a query, because it asked for a posted one', async () => {
      provider.claims = { sub: '003.apple' };
      provider.userInfo = { sub: '003.apple' };
      const seen = provider.seen.length;
      const agent = createAgent(server);
      const away = await authorize(agent, webRequest({ connection: 'apple' }));
      const answer = new URL(
        (await fetch(away.location, { redirect: 'manual' })).headers.get('location') ?? '',
      );
      const end = await follow(agent, await agent.get(`/login/callback${answer.search}`), server.url);
      expect(responseOf(end)).to.include({ error: 'invalid_request' });
      expect(provider.seen.slice(seen).map(({ path }) => path)).not.to.include('/token');
      expect(await user('apple|003.apple')).to.equal(undefined);
    });

    it('accepts the team’s key in SEC 1 form, too', async () => {
      provider.claims = { sub: '002.apple' };
      provider.userInfo = { sub: '002.apple' };
      expect(await back(undefined, 'apple-sec1')).to.have.property('code');
    });

    it('reads only the name of the unsigned parameter user, and keeps it at later logins', async () => {
      provider.claims = { sub: '001.apple', email: 'grace@privaterelay.test', email_verified: 'true' };
      provider.userInfo = { sub: '001.apple' };
      const name = { firstName: 'Grace', lastName: 'Hopper' };
      await back(JSON.stringify({ name, email: 'evil@x.test', sub: 'evil' }));
      await back();
      await back('{"name":7}');
      await back('no JSON');
      const found = await user('apple|001.apple');
      expect(found).to.include({ name: 'Grace Hopper', given_name: 'Grace', email_verified: true });
      expect(found?.email).to.equal('grace@privaterelay.test');
    });
  });
});
