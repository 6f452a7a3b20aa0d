// `gatehouse move sessions` and `move tokens` switch the bridges for those who are logged in at the old tenant.
import { expect } from 'chai';
import { createAgent } from '../support/agent.ts';
import { runCommand } from '../support/command.ts';
import { logIn, payload, redeem, responseOf, token, webRequest } from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { CNAME_API_KEY, MOVE_CLIENT, OLD, SESSION_CLIENT, type StandIn, startStandIn } from './stand-in.ts';
import { browserAt, newTenant } from './support.ts';

describe('gatehouse move sessions and move tokens', () => {
  let old: StandIn;
  let server: TestServer;
  before(async () => {
    old = await startStandIn({ customDomain: 'https://login.example.test' });
    // Without the users of the old tenant.
    server = await startServer({ tenant: newTenant });
    await run(
      'move',
      'open',
      '--tenant',
      old.origin,
      '--client-id',
      MOVE_CLIENT.client_id,
      '--until',
      day(30),
    );
  });
  after(async () => {
    await server?.stop();
    await old?.stop();
  });
  afterEach(() => old.reset());

  const day = (later: number) => new Date(Date.now() + later * 86_400_000).toISOString().slice(0, 10);
  const SECRETS = {
    MOVE_CLIENT_SECRET: MOVE_CLIENT.client_secret,
    MOVE_SESSIONS_SECRET: SESSION_CLIENT.client_secret,
  };
  const command = (args: string[], env: Record<string, string> = {}) =>
    runCommand({ cwd: server.dataDir, env: { DATA_DIR: server.dataDir, ...SECRETS, ...env }, args });
  const run = async (...args: string[]) => {
    const { code, stdout, stderr } = await command(args);
    expect(code, stderr).to.equal(0);
    return stdout;
  };
  const SESSIONS = ['move', 'sessions', '--client-id', SESSION_CLIENT.client_id];
  const atOld = (members: object) =>
    old.gatehouse.store
      .collection('clients')
      .update(SESSION_CLIENT.client_id, (client) => ({ ...client, ...members }));

  it('say what is missing at the old tenant before they open anything', async () => {
    const wrong = await command(SESSIONS, { MOVE_SESSIONS_SECRET: 'wrong' });
    expect(wrong.code).to.equal(1);
    expect(wrong.stderr).to.contain('does not take the application move-sessions').and.not.contain('wrong-');
    await atOld({ callbacks: [] });
    expect((await command(SESSIONS)).stderr).to.contain(
      `${server.url}/move/callback is none of the callback URLs of move-sessions`,
    );
    await atOld({ callbacks: [`${server.url}/move/callback`] });
    expect((await command(SESSIONS)).stderr).to.contain(
      `${server.url}/logout/callback is none of the logout URLs of move-sessions`,
    );
    expect((await command(['move', 'sessions'])).stderr).to.contain('--client-id');
    expect((await command(['move', 'tokens', '--exclude'])).stderr).to.contain('--application');
    expect((await command(['move', 'tokens', '--application', 'nothing', '--exclude'])).stderr).to.contain(
      'there is no application nothing',
    );
    expect(await run('move', 'status')).to.contain('Nothing of it is accepted yet');
  });

  it('open the bridges until a date, and move status counts what they move', async () => {
    await atOld({ allowed_logout_urls: [`${server.url}/logout/callback`] });
    const opened = await run(...SESSIONS, '--until', day(10));
    expect(opened).to.contain('Sessions, open until').and.contain('the canonical name of the old tenant');
    expect(opened).not.to.contain(SESSION_CLIENT.client_secret);
    const tokens = await run('move', 'tokens');
    expect(tokens)
      .to.contain('Refresh tokens, open until')
      .and.contain('Refresh Token Revocation Deletes Grant');
    // Their users come as with the passwords of their connection.
    await run('move', 'trickle', 'users');

    const browser = browserAt(server, old);
    await logIn(browser.there, { url: old.origin }, webRequest(), OLD.bcrypt);
    const there = await browser.follow(
      await browser.here.get(`/authorize?${new URLSearchParams(webRequest())}`),
    );
    const { id_token } = (await redeem(browser.here, responseOf(there).code)).json();
    expect(payload(id_token)).to.include({ sub: OLD.bcrypt.id });

    const theirs = await token(createAgent({ url: old.origin, ca: old.ca }), {
      grant_type: 'password',
      client_id: 'web',
      client_secret: 'web-secret',
      username: OLD.argon2.email,
      password: OLD.argon2.password,
      scope: 'openid offline_access',
    });
    const ours = await token(createAgent(server), {
      grant_type: 'refresh_token',
      client_id: 'web',
      client_secret: 'web-secret',
      refresh_token: theirs.json().refresh_token,
    });
    expect(ours.status, ours.text).to.equal(200);
    expect(payload(ours.json().id_token)).to.include({ sub: OLD.argon2.id });
    const { bridges } = JSON.parse(await run('move', 'status', '--json'));
    for (const kind of ['sessions', 'refresh_tokens'])
      expect(bridges.find((one: { kind: string }) => one.kind === kind)).to.include({
        moved: 1,
        refused: 0,
        failed: 0,
        is_open: true,
      });
  });

  it('ask for sessions of the custom domain where it led to, once that answers for it', async () => {
    const through = (...more: string[]) => [...SESSIONS, '--through', ...more];
    const key = { MOVE_CNAME_API_KEY: CNAME_API_KEY };
    const wrong = await command(through(old.edge), { MOVE_CNAME_API_KEY: 'another-key' });
    expect(wrong.stderr).to.contain('does not answer for the old tenant with this key');
    expect(wrong.stderr).not.to.contain('another-key');
    const without = await command(through(old.edge));
    expect(without.stderr, 'this custom domain is none of the old tenant').to.contain('without a key');
    for (const own of [new URL(server.url).host, `${new URL(server.url).host}/x`])
      expect((await command(through(own), key)).code, own).to.equal(1);
    expect((await command(['move', 'sessions', '--cname-api-key-file', 'x'])).stderr).to.contain('--through');
    const opened = await command(through(old.edge), key);
    expect(opened.code, opened.stderr).to.equal(0);
    expect(opened.stdout).to.contain(`those of the custom domain: through ${old.edge}`);
    expect(opened.stdout).not.to.contain('login page once').and.not.to.contain(CNAME_API_KEY);
    const sessions = async () => (await server.store.collection('moves').get('move'))?.sessions?.through;
    expect(await sessions()).to.deep.equal({ host: old.edge, by_key: true, cname_api_key: CNAME_API_KEY });
    await run('move', 'sessions', '--until', day(9));
    expect(await sessions(), 'kept').to.include({ host: old.edge });
    expect(await run(...SESSIONS), 'as if for the first time').to.contain('login page once');
    expect(await sessions()).to.equal(undefined);
    const { records } = await server.store.collection('logs').list({ limit: 500 });
    expect(JSON.stringify(records)).not.to.contain(CNAME_API_KEY);
  });

  it('take what an application is at the old tenant, leave one out, and end the bridges', async () => {
    await run('move', 'tokens', '--application', 'web', '--old-client-id', 'web-there');
    await run('move', 'tokens', '--application', 'spa', '--exclude');
    const record = await server.store.collection('moves').get('move');
    expect(record?.refresh_tokens?.applications).to.deep.equal({
      web: { client_id: 'web-there' },
      spa: null,
    });
    expect(await run('move', 'tokens', '--end')).to.contain('Refresh tokens, ended at');
    expect(await run('move', 'sessions', '--end')).to.contain('Sessions, ended at');
    const again = await run('move', 'sessions');
    expect(again, 'with the application of before').to.contain('Sessions, open until');
    const sapi = (await server.store.collection('logs').list({ limit: 500 })).records.filter(
      ({ type }) => type === 'sapi',
    );
    expect(JSON.stringify(sapi)).to.contain('move sessions').and.not.contain(SESSION_CLIENT.client_secret);
  });
});
