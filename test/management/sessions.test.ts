// Sessions and refresh tokens with the published management client.
import type { ManagementClient } from 'auth0';
import { expect } from 'chai';
import { isLoggedIn, logInAtTwo, moreTokens } from '../logout/support.ts';
import { createAgent } from '../support/agent.ts';
import { API, payload, spaTokens, tenant, token, webRequest } from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';
import { authorizeAs, callApi, managementClient, managementToken, startManaged } from './support.ts';

describe('/sessions and /refresh-tokens', () => {
  let server: TestServer;
  let management: ManagementClient;

  beforeEach(async () => {
    server = await startManaged(tenant);
    management = managementClient(server);
  });
  afterEach(() => server.stop());

  const refresh = (refresh_token: string) =>
    token(createAgent(server), { grant_type: 'refresh_token', client_id: 'spa', refresh_token });
  /** Logs a user in to two clients. */
  const loggedIn = async () => {
    const browser = createAgent(server);
    await logInAtTwo(browser, server);
    const { id_token } = await moreTokens(browser);
    return { browser, userId: String(payload(id_token).sub), sid: String(payload(id_token).sid) };
  };
  const offline = async () => {
    const tokens = await spaTokens(createAgent(server), server, {
      scope: 'openid offline_access read:things',
      audience: API,
    });
    const userId = String(payload(tokens.id_token).sub);
    const [shown] = (await management.users.refreshToken.list(userId)).data;
    if (shown?.id === undefined) throw new Error('no refresh token is listed');
    return { tokens, userId, id: shown.id, shown };
  };
  const gone = async (asked: PromiseLike<unknown>) =>
    expect(await Promise.resolve(asked).catch((thrown: unknown) => thrown)).to.include({ statusCode: 404 });

  describe('a session', () => {
    it('is shown with the sid of its ID tokens as id, and without its cookie', async () => {
      const { browser, userId, sid } = await loggedIn();
      const { data } = await management.users.sessions.list(userId);
      expect(data).to.have.length(1);
      const [session] = data;
      expect(session).to.deep.include({
        id: sid,
        user_id: userId,
        clients: [{ client_id: 'web' }, { client_id: 'spa' }],
        cookie: { mode: 'persistent' },
      });
      expect(session?.authentication?.methods?.map(({ name }) => name)).to.deep.equal(['pwd']);
      expect(session?.device).to.include({ initial_ip: '127.0.0.1', last_ip: '127.0.0.1' });
      const at = (name: string) => Date.parse(String((session as Record<string, unknown>)[name]));
      expect(at('expires_at') - at('authenticated_at')).to.equal(168 * 3_600_000);
      expect(at('idle_expires_at')).to.be.below(at('expires_at'));
      expect(await management.sessions.get(sid)).to.deep.equal(session);
      for (const { value } of browser.cookies())
        expect(JSON.stringify(session)).not.to.contain(value.slice(0, 20));
    });

    it('cannot be used by its id', async () => {
      const { sid, browser } = await loggedIn();
      const answerWith = (cookie: string) =>
        fetch(`${server.url}/authorize?${new URLSearchParams(webRequest({ prompt: 'none' }))}`, {
          headers: { cookie },
          redirect: 'manual',
        });
      const all = browser.cookies();
      const entered = await answerWith(all.map(({ name, value }) => `${name}=${value}`).join('; '));
      expect(entered.headers.get('location')).to.contain('code=');
      const refused = await answerWith(all.map(({ name }) => `${name}=${sid}`).join('; '));
      expect(refused.headers.get('location')).to.contain('error=login_required');
    });

    it('can be deleted, which logs the user out', async () => {
      const { browser, sid } = await loggedIn();
      await management.sessions.delete(sid);
      expect(await isLoggedIn(browser)).to.equal(false);
      await gone(management.sessions.get(sid));
      // Deleting again succeeds; revoking is a 404.
      await management.sessions.delete(sid);
      await gone(management.sessions.revoke(sid));
    });

    it('notifies its clients by back-channel logout when it is deleted', async () => {
      await management.clients.update('web', {
        oidc_logout: {
          backchannel_logout_urls: ['https://localhost:1/backchannel'],
          backchannel_logout_initiators: { mode: 'all' },
        },
      });
      const { sid } = await loggedIn();
      await management.sessions.delete(sid);
      await server.tenant.close();
      // The client's server does not answer, so the logout token is queued.
      const { records } = await server.store.collection('deliveries').list({ limit: 100 });
      const tokens = records.filter(({ kind }) => kind === 'logout-token');
      expect(tokens.map(({ content }) => JSON.parse(content))).to.have.nested.property('[0].clientId', 'web');
      expect(tokens.length).to.equal(1);
    });

    it('keeps its refresh tokens when it is deleted, and ends them when it is revoked', async () => {
      const first = await offline();
      await management.sessions.delete(String(first.shown.session_id));
      const { refresh_token } = (await refresh(first.tokens.refresh_token)).json();
      expect(refresh_token).to.be.a('string');
      await management.users.refreshToken.delete(first.userId);
      const second = await offline();
      await management.sessions.revoke(String(second.shown.session_id));
      expect((await refresh(second.tokens.refresh_token)).status).to.equal(400);
    });

    it("has metadata that can be replaced and removed, and that the engine's own writes keep", async () => {
      const { browser, sid } = await loggedIn();
      const noted = await management.sessions.update(sid, { session_metadata: { desk: '7' } });
      expect(noted.session_metadata).to.deep.equal({ desk: '7' });
      await moreTokens(browser);
      expect((await management.sessions.get(sid)).session_metadata).to.deep.equal({ desk: '7' });
      await management.sessions.update(sid, {});
      expect((await management.sessions.get(sid)).session_metadata).to.deep.equal({ desk: '7' });
      await management.sessions.update(sid, { session_metadata: {} });
      expect(await management.sessions.get(sid)).not.to.have.property('session_metadata');
      await gone(management.sessions.update('unknown', { session_metadata: { a: 'b' } }));
      const many = Object.fromEntries(Array.from({ length: 26 }, (_, i) => [`k${i}`, 'v']));
      for (const session_metadata of [{ a: 1 }, { a: 'x'.repeat(256) }, many]) {
        const answer = await callApi(server, 'PATCH', `/sessions/${sid}`, { session_metadata });
        expect(answer.status).to.equal(400);
      }
    });
  });

  describe('the sessions of a user', () => {
    it('can all be deleted, without effect on other users', async () => {
      const { browser, userId } = await loggedIn();
      const other = await createOther();
      expect((await management.users.sessions.list(other)).data).to.deep.equal([]);
      await management.users.sessions.delete(other);
      expect(await isLoggedIn(browser)).to.equal(true);
      await management.users.sessions.delete(userId);
      expect(await isLoggedIn(browser)).to.equal(false);
      await gone(management.users.sessions.delete('auth0|nobody'));
      await gone(management.users.sessions.list('auth0|nobody'));
    });

    const createOther = async () =>
      String(
        (
          await management.users.create({
            connection: 'users',
            email: 'grace@example.test',
            password: 'Correct-Horse-2',
          })
        ).user_id,
      );

    it("end when all access is revoked, but not by the id of another user's session", async () => {
      const { tokens, userId, shown } = await offline();
      const session_id = String(shown.session_id);
      await management.users.revokeAccess(await createOther(), { session_id });
      expect(await management.sessions.get(session_id)).to.have.property('user_id', userId);
      await management.users.revokeAccess(userId, { session_id, preserve_refresh_tokens: true });
      await gone(management.sessions.get(session_id));
      const again = (await refresh(tokens.refresh_token)).json();
      expect(again).to.have.property('refresh_token');
      await management.users.revokeAccess(userId, {});
      expect((await refresh(again.refresh_token)).status).to.equal(400);
    });

    it('are logged when they are deleted', async () => {
      const { sid } = await loggedIn();
      await management.sessions.delete(sid);
      await server.tenant.close();
      const { records } = await server.store.collection('logs').list({ limit: 100 });
      const changes = records.filter(({ type }) => type === 'sapi');
      expect(JSON.stringify(changes)).to.contain('Delete a session').and.to.contain(sid);
    });
  });

  describe('a refresh token', () => {
    it('is shown with its details, and cannot be used by its id', async () => {
      const { tokens, userId, id, shown } = await offline();
      expect(shown).to.deep.include({
        user_id: userId,
        client_id: 'spa',
        rotating: true,
        session_id: payload(tokens.id_token).sid,
        resource_servers: [{ audience: API, scopes: ['read:things'] }],
        last_exchanged_at: null,
      });
      expect(tokens.refresh_token).not.to.contain(id.slice(3));
      for (const value of [id, id.slice(3)]) expect((await refresh(value)).status).to.equal(400);
      expect(await management.refreshTokens.get(id)).to.deep.equal(shown);
    });

    it('keeps its id and metadata when it is exchanged', async () => {
      const { tokens, id } = await offline();
      const noted = { device: 'till 7' };
      await management.refreshTokens.update(id, { refresh_token_metadata: noted });
      expect((await refresh(tokens.refresh_token)).status).to.equal(200);
      const shown = await management.refreshTokens.get(id);
      expect(shown.refresh_token_metadata).to.deep.equal(noted);
      expect(shown.last_exchanged_at).to.be.a('string');
      await management.refreshTokens.update(id, { refresh_token_metadata: null });
      expect(await management.refreshTokens.get(id)).not.to.have.property('refresh_token_metadata');
      await gone(management.refreshTokens.update('rt_unknown', { refresh_token_metadata: noted }));
    });

    it('cannot be used once it is deleted or revoked, by any call', async () => {
      const ways: ((one: { id: string; userId: string }) => PromiseLike<unknown>)[] = [
        ({ id }) => management.refreshTokens.delete(id),
        ({ id }) => management.refreshTokens.revoke({ ids: ['rt_unknown', id] }),
        ({ userId }) => management.refreshTokens.revoke({ user_id: userId, client_id: 'spa' }),
        ({ userId }) => management.refreshTokens.revoke({ user_id: userId, audience: API }),
        ({ userId }) => management.users.refreshToken.delete(userId),
      ];
      for (const [index, way] of ways.entries()) {
        const one = await offline();
        await management.refreshTokens.revoke({ user_id: one.userId, client_id: 'web' });
        await management.refreshTokens.revoke({ user_id: one.userId, audience: 'guarded-api' });
        expect(await management.refreshTokens.get(one.id), String(index)).to.have.property('id', one.id);
        await way(one);
        expect((await refresh(one.tokens.refresh_token)).status, String(index)).to.equal(400);
        await gone(management.refreshTokens.get(one.id));
      }
    });

    it('is listed by user and client, page by page', async () => {
      const { userId } = await offline();
      await offline();
      const listed = await management.refreshTokens.list({ user_id: userId, client_id: 'spa', take: 1 });
      const ids: unknown[] = [];
      for await (const { id } of listed) ids.push(id);
      expect(new Set(ids)).to.have.property('size', 2);
      expect((await management.refreshTokens.list({ user_id: userId, client_id: 'web' })).data).to.deep.equal(
        [],
      );
      expect((await callApi(server, 'GET', '/refresh-tokens')).status).to.equal(400);
      expect((await callApi(server, 'GET', '/refresh-tokens?user_id=nobody')).status).to.equal(404);
    });
  });

  it('rejects callers without the scopes', async () => {
    const { id } = await offline();
    const reading = await managementToken(server, 'read:sessions read:refresh_tokens delete:sessions');
    for (const [method, path] of [
      ['DELETE', `/refresh-tokens/${id}`],
      ['PATCH', `/refresh-tokens/${id}`],
      ['POST', '/sessions/any/revoke'],
    ] as const) {
      expect((await authorizeAs(server, reading, method, path)).status, path).to.equal(403);
    }
  });
});
