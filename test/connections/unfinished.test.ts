// Incomplete connections, as exports of the hosted service have them: they are stored, and rejected when they are used.
import { expect } from 'chai';
import { readTenant } from '../../src/tenant/load.ts';
import { callApi, startManaged } from '../management/support.ts';
import { createAgent } from '../support/agent.ts';
import { authorize, follow, responseOf, tenant, webRequest } from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';

const AT = 'https://idp.example.test';
const UNFINISHED: [string, string, object, string[]][] = [
  ['bare', 'oauth2', {}, ['authorizationURL', 'tokenURL', 'client_id']],
  [
    'keyless',
    'oauth2',
    { authorizationURL: `${AT}/authorize`, tokenURL: `${AT}/token`, client_id: '' },
    ['client_id'],
  ],
  [
    'half',
    'oauth2',
    { authorizationURL: `${AT}/authorize`, tokenURL: null, client_id: 'ours' },
    ['tokenURL'],
  ],
  ['saml', 'samlp', {}, ['signInEndpoint', 'signingCert']],
  ['oidc', 'oidc', {}, ['client_id', 'discovery_url']],
  ['keyless-oidc', 'oidc', { client_id: '', issuer: AT, discovery_url: null }, ['client_id']],
  ['nowhere', 'oidc', { client_id: 'ours', discovery_url: '' }, ['discovery_url']],
  ['okta', 'okta', { client_id: 'ours', domain: '' }, ['domain']],
  ['waad', 'waad', {}, ['client_id', 'tenant_domain']],
  ['waad-nowhere', 'waad', { client_id: 'ours', tenant_domain: '' }, ['tenant_domain']],
  ['google', 'google-apps', {}, ['client_id', 'tenant_domain']],
  ['certless', 'samlp', { signInEndpoint: `${AT}/sso` }, ['signingCert']],
];

describe('an incomplete connection', () => {
  let server: TestServer;
  const connections = UNFINISHED.map(([name, strategy, options]) => ({
    name,
    strategy,
    enabled_clients: ['web'],
    options,
  }));
  before(async () => {
    server = await startManaged({ ...tenant, connections });
  });
  after(() => server.stop());

  it('causes a warning with the missing options when a tenant file is read', () => {
    const { warnings } = readTenant({ ...tenant, connections });
    for (const [index, [name, , , lacking]] of UNFINISHED.entries()) {
      expect(warnings.filter((one) => one.startsWith(`connections[${index}]`))).to.deep.equal(
        lacking.map(
          (member) => `connections[${index}].options.${member} is missing: nobody can log in with ${name}`,
        ),
      );
    }
  });

  for (const [name, strategy, options, [first = '']] of UNFINISHED) {
    it(`fails every login with an error that names a missing option: ${name}`, async () => {
      const agent = createAgent(server);
      const answer = await follow(
        agent,
        await authorize(agent, webRequest({ connection: name })),
        server.url,
      );
      const outcome = responseOf(answer);
      expect(outcome.error).to.equal('invalid_request');
      expect(outcome.error_description).to.contain('The connection has no').and.contain(first);
    });

    it(`can be created and changed by the Management API: ${name}`, async () => {
      const created = await callApi(server, 'POST', '/connections', {
        name: `new-${name}`,
        strategy,
        options,
      });
      expect(created.status).to.equal(201);
      const { id } = (await created.json()) as { id: string };
      const answer = await callApi(server, 'PATCH', `/connections/${id}`, { show_as_button: true });
      expect(answer.status).to.equal(200);
    });
  }
});
