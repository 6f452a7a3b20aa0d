// What the hosted service keeps although it cannot work is taken from its files, too: a warning says what becomes of it, it is the
// same after a second apply, and it is safe in force.
import { expect } from 'chai';
import { parse, stringify } from 'yaml';
import { loadTenantFile } from '../../src/tenant/load.ts';
import { createAgent } from '../support/agent.ts';
import {
  API,
  tenant as base,
  header,
  PASSWORD_REQUEST,
  payload,
  SPA_CALLBACK,
  spaTokens,
  token,
} from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { order, type TenantFolder, tenantFolder } from '../support/tenant-folder.ts';

const POST_LOGIN =
  'exports.onExecutePostLogin = async (event, api) => { api.idToken.setCustomClaim("https://x.test/c", VALUE); };';
const codeOf = (value: string) => POST_LOGIN.replace('VALUE', JSON.stringify(value));

describe('a combination that the hosted service keeps', () => {
  let server: TestServer;
  let folder: TenantFolder;
  before(async () => {
    folder = await tenantFolder();
    server = await startServer({ tenant: base });
  });
  after(async () => {
    await server.stop();
    await folder.remove();
  });

  /** Checks and applies the base tenant with changes; a second apply has nothing to do. @returns the warnings. */
  const apply = async (
    change: (tenant: typeof base & Record<string, unknown>) => object,
  ): Promise<string> => {
    const path = await folder.write('tenant.yaml', stringify(change(structuredClone(base))));
    const { report } = await loadTenantFile(path, {});
    expect(await order(server, 'plan', { path })).to.deep.equal(await order(server, 'apply', { path }));
    expect(await order(server, 'plan', { path })).to.deep.equal([]);
    expect(await order(server, 'apply', { path })).to.deep.equal([]);
    return report.join('\n').replaceAll(`${folder.path}/`, '');
  };
  const withClient = (over: object) => (tenant: typeof base) => ({
    ...tenant,
    clients: tenant.clients.map((client) => (client.client_id === 'spa' ? { ...client, ...over } : client)),
  });
  const password = () => token(createAgent(server), { ...PASSWORD_REQUEST, scope: 'openid', audience: API });

  it('client_credentials of a public application is kept, and never granted', async () => {
    const grant_types = ['authorization_code', 'refresh_token', 'client_credentials'];
    expect(await apply(withClient({ grant_types }))).to.contain(
      'client_credentials is kept, and never granted: Single page does not prove who it is',
    );
    expect((await server.store.collection('clients').get('spa'))?.grant_types).to.deep.equal(grant_types);
    const request = { grant_type: 'client_credentials', client_id: 'spa', audience: API };
    for (const secret of [{}, { client_secret: 'x'.repeat(40) }]) {
      const answer = await token(createAgent(server), { ...request, ...secret });
      expect(answer.status).to.be.oneOf([401, 403]);
      expect(answer.json()).to.not.have.property('access_token');
    }
  });

  it('HS256 of a public application gives ID tokens with RS256, never one that everybody could sign', async () => {
    for (const secret of [{}, { client_secret: 's'.repeat(64) }]) {
      const warnings = await apply(withClient({ jwt_configuration: { alg: 'HS256' }, ...secret }));
      expect(warnings).to.contain(
        'ID tokens of Single page are signed with RS256: it has no secret for HS256',
      );
      const { id_token } = await spaTokens(createAgent(server), server, { scope: 'openid' });
      expect(header(id_token)).to.include({ alg: 'RS256' });
    }
  });

  it('a custom database without scripts logs nobody in', async () => {
    const options = { enabledDatabaseCustomization: true };
    const warnings = await apply((tenant) => ({
      ...tenant,
      users: [],
      databases: [...tenant.databases, { name: 'old', options, enabled_clients: ['web'] }],
    }));
    expect(warnings).to.contain('options.customScripts.login: without it nobody can log in in old');
    const answer = await token(createAgent(server), {
      ...PASSWORD_REQUEST,
      grant_type: 'http://auth0.com/oauth/grant-type/password-realm',
      realm: 'old',
    });
    expect(answer.status).to.be.within(400, 500);
    expect(answer.json()).to.not.have.property('access_token');
  });

  it('a database that moves its users takes no sign-ups without the scripts for it', async () => {
    const signUp = (connection: string, email: string) =>
      createAgent(server).request('/dbconnections/signup', {
        json: { client_id: 'web', connection, email, password: 'Correct-Horse-9' },
      });
    for (const customScripts of [undefined, { login: 'function login(u, p, cb) { cb(null); }' }]) {
      const options = { enabledDatabaseCustomization: true, import_mode: true, customScripts };
      const warnings = await apply((tenant) => ({
        ...tenant,
        users: [],
        databases: [...tenant.databases, { name: 'moving', options, enabled_clients: ['web'] }],
      }));
      expect(warnings).to.match(
        /databases\[\d\]\.options\.customScripts: without .*get_user.* can sign up in moving/,
      );
      expect((await signUp('moving', 'somebody@example.test')).status).to.equal(400);
    }
    expect((await signUp('users', 'somebody@example.test')).status).to.equal(200);
  });

  it('an empty text in place of a list, a choice or an address is one that is not set', async () => {
    const warnings = await apply((tenant) => ({
      ...withClient({ logo_uri: '', callbacks: [SPA_CALLBACK], web_origins: '', organization_usage: '' })(
        tenant,
      ),
      emailProvider: { name: 'smtp', enabled: false, default_from_address: '' },
      tenant: { ...tenant.tenant, default_audience: '', support_url: '' },
    }));
    expect(warnings).to.not.contain('organization_usage');
    const stored = await server.store.collection('clients').get('spa');
    expect(stored?.web_origins).to.deep.equal([]);
    expect(stored).to.not.have.property('organization_usage');
  });

  describe('an action that is bound as a draft', () => {
    const bound = (action: object, on_error?: string) => (tenant: typeof base) => ({
      ...tenant,
      actions: [{ name: 'Gate', supported_triggers: [{ id: 'post-login', version: 'v3' }], ...action }],
      triggers: { 'post-login': [{ action_name: 'Gate', ...(on_error && { on_error }) }] },
    });

    it('fails the login, as a gate that is not there must not let anybody in', async () => {
      const warnings = await apply(bound({ code: codeOf('draft'), deployed: false }));
      expect(warnings.split('\n')[0]).to.contain(
        'actions[0].deployed: Gate is bound to post-login, and the file has only a draft of it',
      );
      expect((await password()).status).to.equal(403);
      const optional = await apply(bound({ code: codeOf('draft'), deployed: false }, 'continue'));
      expect(optional).to.contain('until one is deployed it does not run');
      expect(payload((await password()).json().id_token)).to.not.have.property('https://x.test/c');
    });

    it('runs in its deployed version where there is one, which the draft does not replace', async () => {
      const claim = async () => payload((await password()).json().id_token)['https://x.test/c'];
      await apply(bound({ code: codeOf('first'), deployed: true }));
      expect(await claim()).to.equal('first');
      await apply(bound({ code: codeOf('second'), deployed: false }));
      expect(await claim()).to.equal('first');
      await apply(bound({ code: codeOf('second'), deployed: true }));
      expect(await claim()).to.equal('second');
    });

    it('fails also where the file does not have it at all, until it does', async () => {
      const warnings = await apply((tenant) => ({
        ...bound({ code: codeOf('x'), deployed: true })(tenant),
        actions: [],
      }));
      expect(warnings).to.contain('there is no action Gate: until there is, what it is bound to fails');
      expect((await password()).status).to.equal(403);
      await apply(bound({ code: codeOf('there'), deployed: true }));
      expect((await password()).status).to.equal(200);
      await apply((tenant) => ({ ...tenant, actions: [], triggers: { 'post-login': [] } }));
    });
  });

  it('a client grant for what is not there grants nothing', async () => {
    const warnings = await apply((tenant) => ({
      ...tenant,
      clientGrants: [
        { client_id: 'web', audience: 'https://gone.test/', scope: ['read:x'] },
        { client_id: 'Gone', audience: API, scope: [] },
      ],
    }));
    expect(warnings).to.contain(
      '2 client grants are for what is not there; they are kept, and grant nothing',
    );
    for (const audience of ['https://gone.test/', API]) {
      const fields = {
        grant_type: 'client_credentials',
        client_id: 'web',
        client_secret: 'web-secret',
        audience,
      };
      expect((await token(createAgent(server), fields)).status).to.equal(403);
    }
  });

  it('a token exchange profile of a reserved type is kept, and exchanges nothing', async () => {
    const type = 'urn:ietf:params:oauth:token-type:custom';
    const warnings = await apply((tenant) => ({
      ...tenant,
      actions: [{ name: 'X', code: 'exports.onExecuteCustomTokenExchange = () => {};', deployed: true }],
      tokenExchangeProfiles: [{ name: 'Reserved', subject_token_type: type, action: 'X' }],
    }));
    expect(warnings).to.contain(`${type} is in a namespace that is reserved: Reserved is kept`);
    const answer = await token(createAgent(server), {
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      client_id: 'web',
      client_secret: 'web-secret',
      subject_token: 'x',
      subject_token_type: type,
      audience: API,
    });
    expect(answer.status).to.be.within(400, 403);
  });

  it('a key that an export only names lets nobody in, and keeps the stored one', async () => {
    const keyed = (credential: object) => (tenant: typeof base) => ({
      ...tenant,
      clients: [
        ...tenant.clients,
        {
          client_id: 'keyed',
          name: 'Keyed',
          app_type: 'non_interactive',
          grant_types: ['client_credentials'],
          client_authentication_methods: { private_key_jwt: { credentials: [credential] } },
        },
      ],
      clientGrants: [{ client_id: 'keyed', audience: API, scope: [] }],
    });
    await apply(keyed({ id: 'cred_1' }));
    const request = { grant_type: 'client_credentials', client_id: 'keyed', audience: API };
    for (const secret of [{}, { client_secret: 'x'.repeat(40) }])
      expect((await token(createAgent(server), { ...request, ...secret })).status).to.equal(401);
    const { publicKey } = await crypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, true, [
      'sign',
      'verify',
    ]);
    const jwk = (await crypto.subtle.exportKey('jwk', publicKey)) as object;
    await apply(keyed({ id: 'cred_1', alg: 'ES256', jwk }));
    await apply(keyed({ id: 'cred_1' }));
    const stored = JSON.stringify(await server.store.collection('clients').get('keyed'));
    expect(stored).to.contain((jwk as { x: string }).x);
  });

  it('is in one line of warnings with all of its kind, the most important first', async () => {
    const yaml = stringify({
      clients: ['One', 'Two'].map((name) => ({
        name,
        app_type: 'spa',
        grant_types: ['client_credentials'],
        sso: true,
      })),
      connections: ['a', 'b'].map((name) => ({ name, strategy: 'telegraph' })),
      hooks: [{ name: 'old' }],
      actions: [{ name: 'Draft', code: '//', deployed: false }],
      triggers: { 'post-login': [{ action_name: 'Draft' }] },
      tide: 1,
    });
    const path = await folder.write('many.yaml', yaml);
    const lines = (await loadTenantFile(path, {})).report.map((line) =>
      line.replaceAll(`${folder.path}/`, ''),
    );
    const at = (text: string) => yaml.split('\n').findIndex((line) => line.includes(text)) + 1;
    expect(parse(yaml)).to.have.property('tide');
    expect(lines.map((line) => line.slice(0, 60))).to.deep.equal([
      'actions[0].deployed: Draft is bound to post-login, and the f',
      '2 connections are of types that are not built in, so that no',
      '2 applications that do not prove who they are have client_cr',
      '3 members are deprecated at the hosted service, and have no ',
      `tide is not known here: it is kept, and has no effect (many.yaml:${at('tide')})`.slice(0, 60),
    ]);
    expect(lines[1]).to.match(/: a: telegraph \(line \d+\); b: telegraph \(line \d+\)$/);
    expect(lines[3])
      .to.contain('hooks (instead: actions of the same trigger)')
      .and.contain('clients[].sso (instead');
  });
});
