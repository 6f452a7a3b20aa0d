// A whole server over PostgreSQL.
import { expect } from 'chai';
import { openStore } from '../../src/store/open.ts';
import { createAgent } from '../support/agent.ts';
import { countStore } from '../support/counted-store.ts';
import {
  logIn,
  pkce,
  responseOf,
  SPA_CALLBACK,
  spaRequest,
  spaTokens,
  tenant,
  token,
  USER,
} from '../support/flows.ts';
import { type Cluster, startCluster } from '../support/postgres.ts';
import { startServer, type TestServer } from '../support/server.ts';

const SECRETS_KEY = '0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f9';

describe('a server on PostgreSQL', () => {
  let cluster: Cluster;
  let env: Record<string, string>;
  const running: TestServer[] = [];
  const start = async (over: Record<string, string> = {}, open = openStore) => {
    const server = await startServer({ tenant, env: { ...env, ...over }, open });
    running.push(server);
    return server;
  };
  before(async () => {
    cluster = await startCluster();
    env = { DATABASE_URL: cluster.url(), SECRETS_KEY };
  });
  afterEach(async () => {
    for (const server of running.splice(0)) await server.stop();
  });
  after(() => cluster.stop());

  it('logs a user in, and accepts the tokens after a restart', async () => {
    const first = await start();
    const tokens = await spaTokens(createAgent(first), first, { scope: 'openid offline_access' });
    expect(tokens.id_token).to.be.a('string');
    await first.stop();
    const second = await start();
    const refreshed = await token(createAgent(second), {
      grant_type: 'refresh_token',
      client_id: 'spa',
      refresh_token: tokens.refresh_token,
    });
    expect(refreshed.status).to.equal(200);
  });

  it('queries the database once for userinfo, and once for a refresh before it sends all writes together', async () => {
    const count = countStore();
    // Periodic queries of the process belong to no request.
    const asked = () =>
      count
        .trips()
        .flat()
        .filter((name) => /artifacts|users|credentials|identities/.test(name));
    const agent = createAgent(await start({}, count.open));
    const web = { client_id: 'web', client_secret: 'web-secret' };
    const login = { ...web, grant_type: 'password', username: USER.email, password: USER.password };
    const tokens = (await token(agent, { ...login, scope: 'openid profile offline_access' })).json();
    count.reset();
    const profile = await agent.get('/userinfo', { authorization: `Bearer ${tokens.access_token}` });
    expect(profile.status, profile.text).to.equal(200);
    expect(asked()).to.deep.equal(['artifacts.getWithNamed']);
    count.reset();
    const { refresh_token } = tokens;
    const refreshed = await token(agent, { ...web, grant_type: 'refresh_token', refresh_token });
    expect(refreshed.status, refreshed.text).to.equal(200);
    expect(asked()).to.deep.equal(['artifacts.getWithNamed', 'batch(artifacts)']);
  });

  it('shares codes between processes: of two that exchange one, only one gets tokens', async () => {
    const [one, other] = [await start(), await start()];
    const { verifier, challenge } = pkce();
    const { code } = responseOf(await logIn(createAgent(one), one, spaRequest(challenge)));
    const exchange = (server: TestServer) =>
      token(createAgent(server), {
        grant_type: 'authorization_code',
        client_id: 'spa',
        code,
        code_verifier: verifier,
        redirect_uri: SPA_CALLBACK,
      });
    const answers = await Promise.all([exchange(one), exchange(other)]);
    expect(answers.map(({ status }) => status).sort()).to.deep.equal([200, 400]);
  });

  it('refuses to start with another key than the other processes', async () => {
    await start();
    const other = SECRETS_KEY.replaceAll('0', '1');
    const refused = await startServer({ tenant, env: { ...env, SECRETS_KEY: other } }).then(
      () => 'started',
      (error: Error) => error.message,
    );
    expect(refused).to.match(/^SECRETS_KEY is another key than the secrets in the database are sealed with/);
  });

  it('refuses to start on an unreachable database, without quoting the password', async () => {
    const refused = await startServer({
      tenant,
      env: { ...env, DATABASE_URL: 'postgres://user:hidden@127.0.0.1:1/none' },
    }).then(
      () => 'started',
      (error: Error) => error.message,
    );
    expect(refused)
      .to.match(/database/)
      .and.not.contain('hidden');
  });
});
