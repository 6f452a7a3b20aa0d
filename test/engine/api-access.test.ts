// Which applications get tokens for an API, for users and for themselves (`subject_type_authorization`), with every
// grant and with a refresh token of another API.
import { expect } from 'chai';
import { createAgent } from '../support/agent.ts';
import {
  API,
  authorize,
  follow,
  payload,
  responseOf,
  submitLogin,
  tenant,
  token,
  USER,
  WEB_CALLBACK,
  webRequest,
} from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';

const SCOPES = ['read', 'write'];
const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';

/**
 * The APIs by their policies; `granted` has a client grant of `web` for users, `machines` one for the application
 * itself.
 */
const APIS: Record<string, { user?: { policy: string }; client?: { policy: string } }> = {
  closed: { user: { policy: 'deny_all' } },
  granted: { user: { policy: 'require_client_grant' } },
  machines: { user: { policy: 'require_client_grant' }, client: { policy: 'require_client_grant' } },
  people: { client: { policy: 'deny_all' } },
};

/** What third-party applications may do that have no grant of their own. */
const DEFAULT_GRANTS = [
  { default_for: 'third_party_clients', audience: 'granted', subject_type: 'user', scope: ['write'] },
  { default_for: 'third_party_clients', audience: 'machines', scope: ['read'] },
];

/** A third-party application without grants, one with a grant of its own, and a first-party application without. */
const OTHERS = [
  { client_id: 'others', is_first_party: false },
  { client_id: 'granted-others', is_first_party: false },
  { client_id: 'ours', is_first_party: true },
].map((one) => ({
  ...one,
  name: one.client_id,
  client_secret: `${one.client_id}-secret`,
  app_type: 'regular_web',
  grant_types: ['client_credentials', 'password'],
}));

const ownTenant = {
  ...tenant,
  clients: [...tenant.clients, ...OTHERS].map((client) =>
    client.client_id === 'web'
      ? {
          ...client,
          grant_types: [...client.grant_types, EXCHANGE],
          refresh_token: {
            rotation_type: 'non-rotating',
            expiration_type: 'non-expiring',
            policies: Object.keys(APIS).map((audience) => ({ audience, scope: SCOPES })),
          },
        }
      : client,
  ),
  resourceServers: [
    ...tenant.resourceServers,
    ...Object.entries(APIS).map(([identifier, subject_type_authorization]) => ({
      name: identifier,
      identifier,
      scopes: SCOPES.map((value) => ({ value })),
      allow_offline_access: true,
      subject_type_authorization,
    })),
  ],
  clientGrants: [
    ...tenant.clientGrants,
    { client_id: 'web', audience: 'granted', subject_type: 'user', scope: ['read'] },
    { client_id: 'web', audience: 'machines', subject_type: 'client', scope: SCOPES },
    { client_id: 'web', audience: 'people', scope: SCOPES },
    ...DEFAULT_GRANTS,
    { client_id: 'granted-others', audience: 'machines', scope: ['write'] },
  ],
};

describe('access to an API (subject_type_authorization)', () => {
  let server: TestServer;
  before(async () => {
    server = await startServer({ tenant: ownTenant });
  });
  after(() => server.stop());

  const client = { client_id: 'web', client_secret: 'web-secret' };
  const ask = async (fields: Record<string, string>) => {
    const answer = await token(createAgent(server), { ...client, ...fields });
    return { status: answer.status, body: answer.json() };
  };
  const user = { username: USER.email, password: USER.password };
  const scope = SCOPES.join(' ');

  /** Logs in at the pages, if the request is not refused before. */
  const begun = async (params: Record<string, string>) => {
    const agent = createAgent(server);
    const answer = await follow(agent, await authorize(agent, params), server.url);
    return answer.status < 400 && answer.status >= 300 ? answer : submitLogin(agent, server, answer);
  };

  /**
   * Functions that ask for a user's token for an API, each with another grant, and return the access token or the
   * error.
   */
  const ways: [string, (audience: string) => Promise<string>][] = [
    ['a password', async (audience) => said(await ask({ grant_type: 'password', ...user, audience, scope }))],
    [
      'a code',
      async (audience) => {
        const answered = responseOf(await begun(webRequest({ audience, scope })));
        if (answered.code === undefined) return answered.error ?? '';
        const { code } = answered;
        return said(await ask({ grant_type: 'authorization_code', code, redirect_uri: WEB_CALLBACK }));
      },
    ],
    [
      'a refresh token of another API',
      async (audience) => {
        const first = await ask({
          grant_type: 'password',
          ...user,
          audience: API,
          scope: 'openid offline_access',
        });
        const { refresh_token } = first.body;
        return said(await ask({ grant_type: 'refresh_token', refresh_token, audience, scope }));
      },
    ],
  ];
  const said = ({ body }: { body: Record<string, string> }) => body.access_token ?? body.error ?? '';

  for (const [by, tokenFor] of ways) {
    it(`refuses a user’s token by ${by} when the API denies users, or there is no client grant for users`, async () => {
      expect(await tokenFor('closed')).to.equal('access_denied');
      // A client grant for the application itself does not allow tokens for users.
      expect(await tokenFor('machines')).to.equal('access_denied');
    });

    it(`limits a user’s token by ${by} to the scopes of the client grant for users`, async () => {
      expect(payload(await tokenFor('granted'))).to.include({ scope: 'read' });
      expect(payload(await tokenFor('people'))).to.include({ scope });
    });
  }

  it('refuses a token exchange for another API than that of the subject token', async () => {
    const first = await ask({ grant_type: 'password', ...user, audience: 'people', scope });
    const exchanged = await ask({
      grant_type: EXCHANGE,
      subject_token: first.body.access_token ?? '',
      subject_token_type: 'urn:ietf:params:oauth:token-type:access_token',
      audience: 'closed',
      scope,
    });
    expect(exchanged.status).to.be.within(400, 403);
  });

  it('refuses client_credentials when the API denies clients, or there is only a client grant for users', async () => {
    const machine = (audience: string) => ask({ grant_type: 'client_credentials', audience });
    expect(said(await machine('people'))).to.equal('access_denied');
    expect(said(await machine('granted'))).to.equal('access_denied');
    expect(payload(said(await machine('machines')))).to.include({ scope });
  });

  it('gives a third-party application the grant for all of them, unless it has one of its own', async () => {
    const machine = async (client_id: string, more: Record<string, string> = {}) => {
      const credentials = { client_id, client_secret: `${client_id}-secret` };
      return ask({ grant_type: 'client_credentials', audience: 'machines', ...credentials, ...more });
    };
    expect(payload(said(await machine('others')))).to.include({ scope: 'read' });
    expect(said(await machine('others', { scope: 'write' }))).to.equal('access_denied');
    expect(payload(said(await machine('granted-others')))).to.include({ scope: 'write' });
    expect(said(await machine('ours'))).to.equal('access_denied');
    // A grant for their users is none for themselves.
    expect(said(await machine('others', { audience: 'granted' }))).to.equal('access_denied');
  });
});
