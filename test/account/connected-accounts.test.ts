// Connected accounts of the My Account API: an application begins the connection, the user completes it in their
// browser, and the application stores it once.
import { createHash } from 'node:crypto';
import { expect } from 'chai';
import { removeConnectionParts } from '../../src/features/management/resources/connections/connections-calls.ts';
import type { CollectionName } from '../../src/records/collections.ts';
import type { Store } from '../../src/store/contract.ts';
import { openStore } from '../../src/store/open.ts';
import { codeOf } from '../factors/tenant.ts';
import { createAgent } from '../support/agent.ts';
import { authorize, logIn, USER, WEB_CALLBACK, webRequest } from '../support/flows.ts';
import { type OAuth2Provider, optionsFor, startProvider } from '../support/oauth2-provider.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { openAccount, send } from './support.ts';
import { callsOf, tenant } from './tenant.ts';

const SCOPES = ['create', 'read', 'delete'].map((verb) => `${verb}:me:connected_accounts`);
const VERIFIER = 'v'.repeat(43);
const CHALLENGE = createHash('sha256').update(VERIFIER).digest('base64url');

describe('connected accounts', () => {
  let server: TestServer;
  let provider: OAuth2Provider;
  let calls: ReturnType<typeof callsOf>;
  let people = 0;
  /** Runs right before an account is stored. */
  let beforeKept: (() => Promise<void>) | undefined;

  before(async () => {
    provider = await startProvider();
    const connection = (name: string, more: object) => ({
      name,
      strategy: 'oauth2',
      enabled_clients: ['web', 'leeway'],
      options: optionsFor(provider),
      ...more,
    });
    server = await startServer({
      open: async (options) => {
        const store = await openStore(options);
        const accounts = store.collection('connectedAccounts');
        const upsert: typeof accounts.upsert = async (...given) => {
          await beforeKept?.();
          return accounts.upsert(...given);
        };
        const collection = ((name: CollectionName) =>
          name === 'connectedAccounts'
            ? { ...accounts, upsert }
            : store.collection(name)) as Store['collection'];
        return { ...store, collection };
      },
      tenant: {
        ...tenant,
        clientGrants: tenant.clientGrants.map((grant) =>
          grant.audience.endsWith('/me/') && grant.client_id !== 'spa'
            ? { ...grant, scope: [...grant.scope, ...SCOPES] }
            : grant,
        ),
        tenant: { ...tenant.tenant, account_page: { client_id: 'web', allow_deletion: true } },
        connections: [
          connection('drive', { connected_accounts: { active: true }, authentication: { active: false } }),
          connection('calendar', { connected_accounts: { active: true } }),
          connection('login-only', {}),
          connection('not-ours', { connected_accounts: { active: true }, enabled_clients: ['spa'] }),
        ],
      },
    });
    calls = callsOf(server);
  });
  after(async () => {
    await server.stop();
    await provider.stop();
  });

  const someone = () => `mfa-${people++}@example.test`;
  const tokenOf = (email: string, clientId = 'web') =>
    calls.accountToken(email, { scope: SCOPES.join(' ') }, clientId);
  const wanted = (more: object = {}) => ({
    connection: 'drive',
    redirect_uri: WEB_CALLBACK,
    scopes: ['files.read'],
    state: 'of the application',
    code_challenge: CHALLENGE,
    code_challenge_method: 'S256',
    ...more,
  });
  const connect = async (bearer: string, more: object = {}) => {
    const answer = await calls.me(bearer, 'connected-accounts/connect', wanted(more));
    if (answer.status !== 201) throw new Error(answer.text);
    return answer.json() as {
      connect_uri: string;
      auth_session: string;
      connect_params: { ticket: string };
      expires_in: number;
    };
  };
  /** Returns where the ticket sends the browser. */
  const leave = (
    begun: { connect_uri: string; connect_params: { ticket: string } },
    agent = createAgent(server),
  ) =>
    agent
      .get(`${new URL(begun.connect_uri).pathname}?ticket=${begun.connect_params.ticket}`)
      .then((answer) => ({ agent, answer }));
  /** Runs the whole connection in a browser. @returns the parameters that it brings to the application. */
  const browse = async (begun: Parameters<typeof leave>[0], agent = createAgent(server)) => {
    const { answer } = await leave(begun, agent);
    const gone = await fetch(answer.location, { redirect: 'manual' });
    const back = await agent.get(gone.headers.get('location') ?? '');
    return new URL(back.location).searchParams;
  };
  const complete = (
    bearer: string,
    begun: { auth_session: string },
    connect_code: string | null,
    more: object = {},
  ) =>
    calls.me(bearer, 'connected-accounts/complete', {
      auth_session: begun.auth_session,
      connect_code,
      redirect_uri: WEB_CALLBACK,
      code_verifier: VERIFIER,
      ...more,
    });
  const connected = async (bearer: string, more: object = {}) => {
    const started = await connect(bearer, more);
    const code = (await browse(started)).get('connect_code');
    const answer = await complete(bearer, started, code);
    if (answer.status !== 201) throw new Error(answer.text);
    return answer.json();
  };
  const list = async (bearer: string, query = '') =>
    (await calls.me(bearer, `connected-accounts/accounts${query}`)).json();

  it('can be begun, connected in the browser, completed, listed and removed', async () => {
    const email = someone();
    const bearer = await tokenOf(email);
    const started = await connect(bearer, {
      authorization_params: { login_hint: 'grace@upstream.test', hd: 'x' },
    });
    expect(started.connect_uri).to.equal(`${server.issuer}connected-accounts/connect`);
    expect(started.expires_in).to.equal(300);
    const returned = await browse(started);
    expect(returned.get('state')).to.equal('of the application');
    const authorizeQuery = provider.last('/authorize').query;
    expect(authorizeQuery).to.include({
      login_hint: 'grace@upstream.test',
      hd: 'x',
      scope: 'profile email files.read',
    });
    expect(authorizeQuery.redirect_uri).to.equal(`${server.url}/login/callback`);
    const answer = await complete(bearer, started, returned.get('connect_code'));
    expect(answer.status, answer.text).to.equal(201);
    const created = answer.json();
    expect(created).to.include({ connection: 'drive', access_type: 'offline' });
    expect(created.scopes).to.deep.equal(['files.read']);
    expect(created).to.not.have.any.keys('access_token', 'refresh_token', 'grant', 'expires_at');
    expect(await list(bearer)).to.deep.equal({ accounts: [created] });
    expect(await list(bearer, '?connection=calendar')).to.deep.equal({ accounts: [] });
    const removed = await calls.me(bearer, `connected-accounts/accounts/${created.id}`, undefined, 'DELETE');
    expect(removed.status).to.equal(204);
    expect(await list(bearer)).to.deep.equal({ accounts: [] });
    const [user] = await server.users.withEmail(email);
    const logs = await server.store.collection('logs').findBy('user', user?.id ?? '');
    expect(logs.map(({ type }) => type)).to.include.members(['account_connected', 'account_disconnected']);
  });

  it('cannot be used to log in, and create no user', async () => {
    const email = someone();
    const bearer = await tokenOf(email);
    provider.user = { id: 'only-connected', email: 'only-connected@upstream.test', email_verified: true };
    await connected(bearer);
    expect(await server.users.withEmail('only-connected@upstream.test')).to.deep.equal([]);
    const [user] = await server.users.withEmail(email);
    expect(await server.users.identitiesOf(user?.id ?? '')).to.have.length(1);
    const answer = await authorize(createAgent(server), webRequest({ connection: 'drive' }));
    expect(answer.location).to.not.include(provider.url);
  });

  it('are stored encrypted, and connecting the same account again replaces it', async () => {
    const bearer = await tokenOf(someone());
    const first = await connected(bearer, { scopes: ['files.read'] });
    provider.tokenAnswer = { scope: 'files.read files.write' };
    const again = await connected(bearer, { scopes: ['files.read', 'files.write'] });
    provider.tokenAnswer = {};
    expect(again.id).to.equal(first.id);
    expect(again.scopes).to.deep.equal(['files.read', 'files.write']);
    expect((await list(bearer)).accounts).to.have.length(1);
    const stored = await server.store.collection('connectedAccounts').get(first.id);
    expect(stored?.grant.access_token).to.match(/^token-/);
    expect(stored?.grant.refresh_token).to.match(/^refresh-/);
    // The data that waits for the application is encrypted, too.
    const started = await connect(bearer);
    await browse(started);
    const { records } = await server.store.collection('challenges').list({ limit: 500 });
    const waiting = JSON.stringify(records);
    expect(waiting).to.include('connect_code');
    expect(waiting).to.not.match(/token-\d|refresh-\d/);
  });

  it('lists the connections that can connect accounts, page by page', async () => {
    const bearer = await tokenOf(someone());
    const all = (await calls.me(bearer, 'connected-accounts/connections')).json();
    expect(all.connections).to.deep.equal([
      { name: 'calendar', strategy: 'oauth2', scopes: ['profile', 'email'] },
      { name: 'drive', strategy: 'oauth2', scopes: ['profile', 'email'] },
    ]);
    const first = (await calls.me(bearer, 'connected-accounts/connections?take=1')).json();
    expect(first).to.include({ next: 'calendar' });
    const rest = (await calls.me(bearer, `connected-accounts/connections?take=1&from=${first.next}`)).json();
    expect(rest.connections.map(({ name }: { name: string }) => name)).to.deep.equal(['drive']);
    expect(rest).to.not.have.property('next');
    for (const query of ['take=0', 'take=x', 'take=101'])
      expect((await calls.me(bearer, `connected-accounts/connections?${query}`)).status, query).to.equal(400);
  });

  it('rejects a request with parameters that are not allowed', async () => {
    const bearer = await tokenOf(someone());
    for (const [more, field] of [
      [{ connection: 'login-only' }, 'connection'],
      [{ connection: 'not-ours' }, 'connection'],
      [{ connection: 'users' }, 'connection'],
      [{ connection: 'nowhere' }, 'connection'],
      [{ redirect_uri: 'https://evil.example.test/' }, 'redirect_uri'],
      [{ redirect_uri: `${WEB_CALLBACK}/more` }, 'redirect_uri'],
      [{ code_challenge: 'short' }, 'code_challenge'],
      [{ code_challenge_method: 'plain' }, 'code_challenge_method'],
      [{ scopes: ['two scopes'] }, 'scopes'],
      [{ authorization_params: { nested: {} } }, 'authorization_params'],
    ] as const) {
      const answer = await calls.me(bearer, 'connected-accounts/connect', wanted(more));
      expect(answer.status, JSON.stringify(more)).to.equal(400);
      expect(answer.json().validation_errors[0].field).to.equal(field);
    }
  });

  it('requires a token with the scope, and the second factor that the user has', async () => {
    const email = someone();
    const reading = await calls.accountToken(email, { scope: 'read:me:connected_accounts' });
    expect((await calls.me(reading, 'connected-accounts/connect', wanted())).status).to.equal(403);
    expect((await calls.me(reading, 'connected-accounts/accounts/x', undefined, 'DELETE')).status).to.equal(
      403,
    );
    const before = await tokenOf(email);
    const methods = await calls.accountToken(email);
    const { begun, verify } = await calls.begin(methods, { type: 'totp' });
    expect((await verify({ otp_code: codeOf(begun.manual_input_code) })).status).to.equal(201);
    for (const [path, json] of [
      ['connect', wanted()],
      ['accounts', undefined],
    ] as const)
      expect((await calls.me(before, `connected-accounts/${path}`, json)).status, path).to.equal(401);
  });

  it('are completed once by concurrent requests', async () => {
    const bearer = await tokenOf(someone());
    const started = await connect(bearer);
    const code = (await browse(started)).get('connect_code');
    const answers = await Promise.all(Array.from({ length: 5 }, () => complete(bearer, started, code)));
    expect(answers.map(({ status }) => status).sort()).to.deep.equal([201, 400, 400, 400, 400]);
    expect((await list(bearer)).accounts).to.have.length(1);
  });

  it('are only completed for the user, login and application that began, with their code and verifier', async () => {
    const [victim, thief] = [someone(), someone()];
    const mine = await tokenOf(victim);
    const started = await connect(mine);
    const code = (await browse(started)).get('connect_code');
    const theirs = await tokenOf(thief);
    const other = await connect(theirs);
    const failures = [
      await complete(theirs, started, code),
      // A planted code: it was issued for another session.
      await complete(theirs, other, code),
      await complete(await tokenOf(victim), started, code),
      await complete(await tokenOf(victim, 'leeway'), started, code),
      await complete(mine, started, code, { redirect_uri: 'https://evil.example.test/' }),
      await complete(mine, started, 'x'.repeat(43)),
      await complete(mine, { auth_session: 'x'.repeat(43) }, code),
    ];
    for (const [index, answer] of failures.entries()) {
      expect(answer.status, `${index}`).to.equal(400);
      expect(answer.json().type, `${index}`).to.equal('urn:gatehouse:error:invalid_grant');
    }
    // A wrong verifier uses the code up.
    expect((await complete(mine, started, code, { code_verifier: 'w'.repeat(43) })).status).to.equal(400);
    expect((await complete(mine, started, code)).status).to.equal(400);
    expect((await list(mine)).accounts).to.deep.equal([]);
    expect((await list(theirs)).accounts).to.deep.equal([]);
  });

  it('ends a code and a ticket after five minutes, and accepts each once', async () => {
    const own = await startServer({
      tenant: {
        ...tenant,
        clientGrants: tenant.clientGrants.map((grant) => ({ ...grant, scope: [...grant.scope, ...SCOPES] })),
        connections: [
          {
            name: 'drive',
            strategy: 'oauth2',
            enabled_clients: ['web'],
            connected_accounts: { active: true },
            options: optionsFor(provider),
          },
        ],
      },
    });
    try {
      const here = callsOf(own);
      const bearer = await here.accountToken('mfa-1@example.test', { scope: SCOPES.join(' ') });
      const begin = async () =>
        (await here.me(bearer, 'connected-accounts/connect', wanted())).json() as Awaited<
          ReturnType<typeof connect>
        >;
      const browser = createAgent(own);
      const first = await begin();
      const path = `/connected-accounts/connect?ticket=${first.connect_params.ticket}`;
      const away = await browser.get(path);
      expect(away.status).to.equal(302);
      expect((await browser.get(path)).status).to.equal(400);
      const gone = await fetch(away.location, { redirect: 'manual' });
      const back = await browser.get(gone.headers.get('location') ?? '');
      const code = new URL(back.location).searchParams.get('connect_code');
      own.tick(301_000);
      const late = await here.me(bearer, 'connected-accounts/complete', {
        auth_session: first.auth_session,
        connect_code: code,
        redirect_uri: WEB_CALLBACK,
        code_verifier: VERIFIER,
      });
      expect(late.status, late.text).to.equal(400);
      const second = await begin();
      own.tick(301_000);
      const ticket = second.connect_params.ticket;
      expect((await browser.get(`/connected-accounts/connect?ticket=${ticket}`)).status).to.equal(400);
      for (const bad of ['', '?ticket=', `?ticket=${'x'.repeat(43)}`, '?ticket=a&ticket=b'])
        expect((await browser.get(`/connected-accounts/connect${bad}`)).status, bad).to.equal(400);
    } finally {
      await own.stop();
    }
  });

  it("are not connected in another user's browser, nor by an answer to a request of another browser", async () => {
    const started = await connect(await tokenOf(someone()));
    const browser = createAgent(server);
    await logIn(browser, server, webRequest(), { email: someone(), password: USER.password });
    const { answer } = await leave(started, browser);
    const refused = new URL(answer.location).searchParams;
    expect(refused.get('error')).to.equal('access_denied');
    expect(refused.get('state')).to.equal('of the application');
    const next = await connect(await tokenOf(someone()));
    const { answer: away } = await leave(next);
    const gone = await fetch(away.location, { redirect: 'manual' });
    const strangersCallback = await createAgent(server).get(gone.headers.get('location') ?? '');
    expect(strangersCallback.status).to.equal(400);
  });

  it('reports to the application that the provider issued no token', async () => {
    const bearer = await tokenOf(someone());
    provider.token = (response) =>
      void response.writeHead(200, { 'content-type': 'application/json' }).end('{"error":"access_denied"}');
    const returned = await browse(await connect(bearer));
    provider.token = undefined;
    expect(returned.get('error')).to.be.a('string');
    expect(returned.get('connect_code')).to.equal(null);
    expect(returned.get('state')).to.equal('of the application');
  });

  it('are not completed when the connection no longer connects accounts', async () => {
    const bearer = await tokenOf(someone());
    const started = await connect(bearer, { connection: 'calendar' });
    const code = (await browse(started)).get('connect_code');
    const [connection] = await server.store.collection('connections').findBy('name', 'calendar');
    const set = (active: boolean) =>
      server.store
        .collection('connections')
        .update(connection?.id ?? '', (now) => ({ ...now, connected_accounts: { active } }));
    await set(false);
    expect((await complete(bearer, started, code)).status).to.equal(400);
    await set(true);
    expect((await list(bearer)).accounts).to.deep.equal([]);
  });

  it('are not stored when the connection is removed during the completion', async () => {
    const connections = server.store.collection('connections');
    const [calendar] = await connections.findBy('name', 'calendar');
    if (calendar === undefined) throw new Error('there is no such connection');
    const id = 'con_removed';
    await connections.insert({ ...calendar, id, name: 'removed' });
    const bearer = await tokenOf(someone());
    const started = await connect(bearer, { connection: 'removed' });
    const code = (await browse(started)).get('connect_code');
    beforeKept = async () => {
      await connections.delete(id);
      await removeConnectionParts(server.store, id);
    };
    const answer = await complete(bearer, started, code);
    beforeKept = undefined;
    expect(answer.status, answer.text).to.equal(400);
    expect(await server.store.collection('connectedAccounts').findBy('connection', id)).to.deep.equal([]);
  });

  it('appear on the account page and in the copy of the data, and are deleted with the account', async () => {
    const email = someone();
    const bearer = await tokenOf(email);
    const created = await connected(bearer);
    const browser = createAgent(server);
    const user = { email, password: USER.password };
    await openAccount(browser, server, '/account?client_id=web', user);
    const page = await browser.get('/account/applications');
    expect(page.text).to.include('drive').and.to.include('files.read');
    const copy = (await send(browser, await browser.get('/account/data'), '/account/data/copy')).json();
    expect(copy.connected_accounts).to.deep.equal([created]);
    expect(JSON.stringify(copy)).to.not.match(/token-\d|refresh-\d/);
    const gone = await send(browser, page, '/account/applications/connected');
    expect(gone.location).to.match(/\/account\/applications\?said=disconnected$/);
    expect((await list(bearer)).accounts).to.deep.equal([]);
    const again = await connected(bearer);
    const data = await browser.get('/account/data');
    expect((await send(browser, data, '/account/data/delete', { confirm: email })).status).to.equal(200);
    expect(await server.store.collection('connectedAccounts').get(again.id)).to.equal(undefined);
  });
});
