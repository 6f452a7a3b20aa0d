// Attacks by and on applications of strangers: what changes while one of their logins is under way, and what they send.
import { expect } from 'chai';
import { managed } from '../actions/support.ts';
import { startManaged } from '../management/support.ts';
import { type Agent, type Answer, createAgent, readForm } from '../support/agent.ts';
import { createProver, type Prover } from '../support/dpop.ts';
import {
  authorize,
  follow,
  logIn,
  payload,
  pkce,
  responseOf,
  submitLogin,
  tenant,
  webRequest,
} from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';

const MCP = 'https://mcp.example.test/mcp';
const CALLBACK = 'https://agent.example.test/callback';
const WIDE = { capacity: 10_000, perMinute: 10_000 };

const ownTenant = {
  ...tenant,
  tenant: { ...tenant.tenant, flags: { enable_dynamic_client_registration: true } },
  attackProtection: {
    rateLimits: {
      ...tenant.attackProtection.rateLimits,
      registration: WIDE,
      registrationManagement: WIDE,
      newApplications: WIDE,
    },
  },
  clients: [
    ...tenant.clients,
    {
      client_id: 'partner',
      name: 'Partner',
      is_first_party: false,
      token_endpoint_auth_method: 'none',
      callbacks: [CALLBACK],
      organization_usage: 'allow',
    },
  ],
  organizations: [
    {
      id: 'org_acme',
      name: 'acme',
      third_party_client_access: 'allow',
      connections: [{ name: 'users', assign_membership_on_login: true }],
    },
  ],
  databases: tenant.databases.map((one) => ({ ...one, is_domain_connection: one.name === 'users' })),
  resourceServers: [
    ...tenant.resourceServers,
    { name: 'Tools', identifier: MCP, scopes: [{ value: 'tools:read' }], allow_offline_access: true },
    { name: 'Other tools', identifier: `${MCP}-2`, scopes: [{ value: 'tools:read' }] },
  ],
  clientGrants: [
    ...tenant.clientGrants,
    { default_for: 'third_party_clients', audience: MCP, subject_type: 'user', scope: ['tools:read'] },
  ],
};

describe('an application of a stranger', () => {
  let server: TestServer;
  before(async () => {
    server = await startManaged(ownTenant);
  });
  after(() => server?.stop());

  const registered = async (body: object = {}) => {
    const answer = await createAgent(server).request('/oidc/register', {
      json: {
        client_name: 'Some agent',
        redirect_uris: [CALLBACK],
        token_endpoint_auth_method: 'none',
        ...body,
      },
    });
    expect(answer.status, answer.text).to.equal(201);
    return answer.json().client_id as string;
  };
  const { verifier, challenge } = pkce();
  const request = (client_id: string, over: Record<string, string> = {}) => ({
    client_id,
    response_type: 'code',
    redirect_uri: CALLBACK,
    resource: MCP,
    scope: 'openid tools:read offline_access',
    state: 'the-state',
    code_challenge: challenge,
    code_challenge_method: 'S256',
    ...over,
  });
  const decide = async (agent: Agent, page: Answer) => {
    const { action, fields } = readForm(page, '_csrf');
    return follow(
      agent,
      await agent.request(action, { form: { ...fields, decision: 'accept' } }),
      server.url,
    );
  };
  const login = async (client_id: string, over: Record<string, string> = {}) => {
    const agent = createAgent(server);
    const page = await logIn(agent, server, request(client_id, over));
    return responseOf(page.status === 302 ? page : await decide(agent, page));
  };
  const redeem = async (client_id: string, code: string | undefined, prover?: Prover) => {
    const proof = await prover?.proof('POST', `${server.url}/oauth/token`);
    const form = {
      grant_type: 'authorization_code',
      client_id,
      code: code ?? '',
      code_verifier: verifier,
      redirect_uri: CALLBACK,
    };
    return createAgent(server).request('/oauth/token', { form, headers: proof ? { DPoP: proof } : {} });
  };
  const refresh = async (client_id: string, refresh_token: string, prover?: Prover) => {
    const proof = await prover?.proof('POST', `${server.url}/oauth/token`);
    const form = { grant_type: 'refresh_token', client_id, refresh_token };
    return createAgent(server).request('/oauth/token', { form, headers: proof ? { DPoP: proof } : {} });
  };

  describe('while its connection is closed to third parties', () => {
    let id: string;
    before(async () => {
      const { body } = await managed(server, 'GET', '/connections?name=users');
      id = body[0].id;
    });
    const open = async (is_domain_connection: boolean) => {
      const answer = await managed(server, 'PATCH', `/connections/${id}`, { is_domain_connection });
      expect(answer.status, JSON.stringify(answer.body)).to.equal(200);
    };
    afterEach(() => open(true));

    it('gets no code for a password that is entered then', async () => {
      const client = await registered();
      const agent = createAgent(server);
      const page = await follow(agent, await authorize(agent, request(client)), server.url);
      await open(false);
      const answer = await submitLogin(agent, server, page);
      expect(answer.text + (answer.headers.location ?? '')).not.to.match(/name="decision"|[?&]code=/);
    });

    it('gets no code for a consent that is given then', async () => {
      const client = await registered();
      const agent = createAgent(server);
      const page = await logIn(agent, server, request(client));
      await open(false);
      const answer = await decide(agent, page);
      expect(answer.headers.location ?? '').not.to.contain('code=');
    });

    it('is not answered by a session that another application began by it', async () => {
      const client = await registered();
      const agent = createAgent(server);
      await open(false);
      expect(responseOf(await logIn(agent, server, webRequest()))).to.have.property('code');
      const silent = await authorize(agent, request(client, { prompt: 'none' }));
      expect(silent.text + (silent.headers.location ?? '')).to.contain('login_required');
      const asked = await follow(agent, await authorize(agent, request(client)), server.url);
      expect(asked.text).not.to.contain('name="decision"');
      await open(true);
      const allowed = await follow(agent, await authorize(agent, request(client)), server.url);
      expect(allowed.text, 'open again').to.contain('name="decision"');
    });

    it('gets no tokens for a code and a refresh token from before', async () => {
      const client = await registered();
      const { refresh_token } = (await redeem(client, (await login(client)).code)).json();
      const { code } = await login(client, { prompt: 'consent' });
      await open(false);
      expect((await redeem(client, code)).status, 'code').to.be.within(400, 403);
      expect((await refresh(client, refresh_token)).status, 'refresh token').to.be.within(400, 403);
      await open(true);
      expect((await refresh(client, refresh_token)).status, 'open again').to.equal(200);
    });
  });

  it('gets nothing for an organization that has closed itself to third parties meanwhile', async () => {
    const set = async (third_party_client_access: string) => {
      const answer = await managed(server, 'PATCH', '/organizations/org_acme', { third_party_client_access });
      expect(answer.status, JSON.stringify(answer.body)).to.equal(200);
    };
    const asked = { organization: 'org_acme' };
    const { code: first } = await login('partner', asked);
    const { access_token, refresh_token } = (await redeem('partner', first)).json();
    expect(payload(access_token).org_id).to.equal('org_acme');
    const { code } = await login('partner', asked);
    const agent = createAgent(server);
    const page = await logIn(agent, server, request('partner', { ...asked, prompt: 'consent' }));
    await set('block');
    try {
      expect((await redeem('partner', code)).status, 'code').to.be.within(400, 403);
      expect((await refresh('partner', refresh_token)).status, 'refresh token').to.be.within(400, 403);
      const answer = await decide(agent, page);
      expect(answer.headers.location ?? '', 'consent').not.to.contain('code=');
    } finally {
      await set('allow');
    }
    expect((await refresh('partner', refresh_token)).status, 'open again').to.equal(200);
  });

  it('gets a token for the API that it named exactly, however else it spells the resource', async () => {
    const client = await registered();
    for (const resource of [
      `${MCP}/`,
      `${MCP}?`,
      `${MCP}#x`,
      `${MCP}%20`,
      `${MCP} `,
      MCP.replace('mcp.', 'MCP.'),
      MCP.replace('https', 'HTTPS'),
      MCP.replace('/mcp', '/%6dcp'),
      MCP.replace('/mcp', '/./mcp'),
      MCP.replace('/mcp', '//mcp'),
      MCP.replace('.test', '.test:443'),
      `${MCP}-2`,
      `${server.issuer}api/v2/`,
      `${server.issuer}me/`,
    ]) {
      const answer = await authorize(createAgent(server), request(client, { resource }));
      expect(answer.headers.location ?? '', resource).not.to.match(/^\/u\/|[?&]code=/);
      const { code } = await login(client);
      const tokens = await createAgent(server).request('/oauth/token', {
        form: {
          grant_type: 'authorization_code',
          client_id: client,
          code: code ?? '',
          code_verifier: verifier,
          redirect_uri: CALLBACK,
          resource,
        },
      });
      expect([tokens.status, tokens.json().error], resource).to.deep.equal([400, 'invalid_target']);
    }
  });

  it('that is public has its refresh token bound to the key that it proved', async () => {
    const client = await registered();
    const [own, other] = await Promise.all([createProver(), createProver()]);
    const { code } = await login(client);
    const answer = await redeem(client, code, own);
    expect(answer.json(), answer.text).to.include({ token_type: 'DPoP' });
    const { refresh_token, access_token } = answer.json();
    expect(payload(access_token).cnf).to.have.property('jkt');
    expect((await refresh(client, refresh_token)).status, 'without a key').to.be.within(400, 401);
    expect((await refresh(client, refresh_token, other)).status, 'another key').to.be.within(400, 401);
    expect((await refresh(client, refresh_token, own)).json().token_type).to.equal('DPoP');
  });

  it('has its codes and refresh tokens used by no other one', async () => {
    const [client, thief] = [await registered(), await registered()];
    const { code } = await login(client);
    expect((await redeem(thief, code)).status).to.be.within(400, 403);
    const { refresh_token } = (await redeem(client, (await login(client)).code)).json();
    expect((await refresh(thief, refresh_token)).status).to.be.within(400, 403);
    expect((await refresh(client, refresh_token)).status, 'a theft that failed ends nothing').to.equal(200);
  });

  it('asks nobody for approval without a browser, and gets nobody’s connected accounts', async () => {
    const client = await registered({ token_endpoint_auth_method: 'client_secret_post' });
    for (const path of ['/bc-authorize', '/oauth/device/code']) {
      const answer = await createAgent(server).request(path, {
        form: { client_id: client, scope: 'openid', login_hint: '{}' },
      });
      expect(answer.status, path).to.be.within(400, 403);
      expect(answer.json(), path).not.to.have.any.keys('auth_req_id', 'device_code');
    }
  });

  it('is not registered more often by an address that names others in X-Forwarded-For', async () => {
    const { registration: _, ...rateLimits } = ownTenant.attackProtection.rateLimits;
    const limited = await startManaged({ ...ownTenant, attackProtection: { rateLimits } });
    try {
      const answers = await Promise.all(
        Array.from({ length: 40 }, async (_one, at) => {
          const address = at % 2 === 0 ? `198.51.${at}.7` : `2001:db8:${at}::7`;
          const answer = await createAgent(limited).request('/oidc/register', {
            json: { redirect_uris: [CALLBACK], token_endpoint_auth_method: 'none' },
            headers: { 'x-forwarded-for': address, forwarded: `for=${address}` },
          });
          return answer.status;
        }),
      );
      expect(answers.filter((status) => status === 201).length).to.be.at.most(31);
      expect(answers).to.include(429);
    } finally {
      await limited.stop();
    }
  });
});
