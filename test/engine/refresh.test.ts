import { expect } from 'chai';
import { listAll } from '../../src/store/list-all.ts';
import { createAgent } from '../support/agent.ts';
import {
  API,
  logIn,
  payload,
  responseOf,
  spaTokens,
  tenant,
  token,
  USER,
  webRequest,
} from '../support/flows.ts';
import { resetPassword } from '../support/reset.ts';
import { startServer, type TestServer } from '../support/server.ts';

const INVALID = { error: 'invalid_grant', error_description: 'Unknown or invalid refresh token.' };

describe('refresh tokens', () => {
  let server: TestServer;
  beforeEach(async () => {
    server = await startServer({ tenant });
  });
  afterEach(() => server.stop());

  const agent = () => createAgent(server);
  const refresh = (refresh_token: string, over: Record<string, string | undefined> = {}) =>
    token(agent(), { grant_type: 'refresh_token', client_id: 'spa', refresh_token, ...over });
  const spa = async (scope = 'openid profile offline_access', audience?: string): Promise<string> =>
    (await spaTokens(agent(), server, { scope, audience })).refresh_token;
  const byPassword = async (
    client_id: string,
    over: Record<string, string | undefined> = {},
  ): Promise<string> =>
    (
      await token(agent(), {
        grant_type: 'password',
        client_id,
        client_secret: `${client_id}-secret`,
        username: USER.email,
        password: USER.password,
        scope: 'openid offline_access',
        ...over,
      })
    ).json().refresh_token;

  describe('the ID token of a refresh (OpenID Connect Core §12.2)', () => {
    const KEPT = ['iss', 'sub', 'aud', 'auth_time', 'sid', 'amr', 'acr'] as const;
    const kept = (idToken: string) => KEPT.map((claim) => payload(idToken)[claim]);

    it('has the login claims of the first one and no nonce, after any number of refreshes', async () => {
      const first = await spaTokens(agent(), server, { scope: 'openid offline_access' });
      expect(payload(first.id_token)).to.include.keys('nonce', 'sid', 'auth_time');
      let tokens = first;
      for (let i = 0; i < 3; i++) {
        server.tick(60_000);
        tokens = (await refresh(tokens.refresh_token)).json();
        expect(payload(tokens.id_token)).not.to.have.property('nonce');
        expect(kept(tokens.id_token)).to.deep.equal(kept(first.id_token));
        expect(payload(tokens.id_token).iat).to.be.above(payload(first.id_token).iat);
      }
    });

    it('has no nonce either when the refresh token does not rotate', async () => {
      const browser = agent();
      const request = webRequest({ nonce: 'the-nonce', scope: 'openid offline_access' });
      const web = { client_id: 'web', client_secret: 'web-secret' };
      const first = await token(browser, {
        grant_type: 'authorization_code',
        code: responseOf(await logIn(browser, server, request)).code,
        redirect_uri: request.redirect_uri,
        ...web,
      });
      expect(payload(first.json().id_token)).to.have.property('nonce', 'the-nonce');
      for (let i = 0; i < 2; i++) {
        const again = (await refresh(first.json().refresh_token, web)).json();
        expect(payload(again.id_token)).not.to.have.property('nonce');
        expect(kept(again.id_token)).to.deep.equal(kept(first.json().id_token));
      }
    });
  });

  describe('with rotation', () => {
    it('yield new tokens and a new refresh token for the same scope and API', async () => {
      const answer = await refresh(await spa('openid profile offline_access read:things', API));
      expect(answer.status).to.equal(200);
      expect(answer.json()).to.include({
        token_type: 'Bearer',
        scope: 'openid profile read:things offline_access',
      });
      expect(payload(answer.json().access_token)).to.deep.include({
        gty: 'refresh_token',
        aud: [API, `${server.issuer}userinfo`],
      });
      expect(payload(answer.json().id_token)).to.include({ aud: 'spa', nickname: 'ada' });
      expect(answer.json().refresh_token).to.be.a('string');
    });

    it('revoke their whole family when a used one is sent again, with the error of an unknown one', async () => {
      const first = await spa();
      const second = (await refresh(first)).json();
      const reused = await refresh(first);
      expect(reused.status).to.equal(400);
      expect(reused.json()).to.deep.equal(INVALID);
      expect((await refresh(second.refresh_token)).json()).to.deep.equal(INVALID);
      const profile = await agent().get('/userinfo', { authorization: `Bearer ${second.access_token}` });
      expect(profile.status).to.equal(401);
    });

    it('revoke the family for any used token of it, and for one that was never issued', async () => {
      for (const back of [1, 2, 5, undefined]) {
        const values = [await spa()];
        for (let i = 0; i < 5; i++) values.unshift((await refresh(values[0] ?? '')).json().refresh_token);
        const [newest = ''] = values;
        const other =
          back === undefined ? `${newest.slice(0, -1)}${newest.endsWith('A') ? 'B' : 'A'}` : values[back];
        expect((await refresh(other ?? '')).json(), String(back)).to.deep.equal(INVALID);
        expect((await refresh(newest)).json(), String(back)).to.deep.equal(INVALID);
      }
      expect(server.logged()).to.contain('"ferrt"');
    });

    it('do not revoke the family for another application, or for a truncated token', async () => {
      const first = await spa();
      const second = (await refresh(first)).json().refresh_token;
      for (const value of [first, second]) {
        const asAnother = await refresh(value, { client_id: 'leeway', client_secret: 'leeway-secret' });
        expect(asAnother.json()).to.deep.equal(INVALID);
      }
      for (const part of [second.slice(0, 22), second.slice(22), second.slice(0, -1), `${second}A`])
        expect((await refresh(part)).json()).to.deep.equal(INVALID);
      expect((await refresh(second)).status).to.equal(200);
    });

    it('take no more room in the store the more often they are refreshed', async () => {
      const stored = async () =>
        (await listAll(server.store.collection('artifacts')))
          .filter(({ model }) => model === 'RefreshToken')
          .reduce((bytes, record) => bytes + JSON.stringify(record).length, 0);
      let value = await spa('openid offline_access read:things', API);
      value = (await refresh(value)).json().refresh_token;
      const before = await stored();
      for (let i = 0; i < 30; i++) value = (await refresh(value)).json().refresh_token;
      expect(await stored()).to.be.at.most(before + 4);
    });

    it('can be refreshed from each successor of one token within the leeway', async () => {
      const leeway = (value: string) =>
        refresh(value, { client_id: 'leeway', client_secret: 'leeway-secret' });
      const first = await byPassword('leeway');
      const [a, b] = [await leeway(first), await leeway(first)].map((answer) => answer.json().refresh_token);
      server.tick(31_000);
      const [c, d] = [await leeway(a), await leeway(b)].map((answer) => answer.json().refresh_token);
      expect((await leeway(c)).status).to.equal(200);
      server.tick(31_000);
      expect((await leeway(a)).json()).to.deep.equal(INVALID);
      expect((await leeway(d)).json()).to.deep.equal(INVALID);
    });

    it('do not revoke the families of other logins', async () => {
      const stolen = await spa();
      const other = await spa();
      await refresh(stolen);
      await refresh(stolen);
      expect((await refresh(other)).status).to.equal(200);
    });

    it('accept at most one of twenty simultaneous uses, and revoke the family', async () => {
      const value = await spa();
      const answers = await Promise.all(Array.from({ length: 20 }, () => refresh(value)));
      const winners = answers.filter(({ status }) => status === 200);
      expect(winners.length).to.be.at.most(1);
      for (const winner of winners)
        expect((await refresh(winner.json().refresh_token)).json()).to.deep.equal(INVALID);
    });

    it("can be used again within the application's leeway, which counts from the first use", async () => {
      const leeway = (value: string) =>
        refresh(value, { client_id: 'leeway', client_secret: 'leeway-secret' });
      const first = await byPassword('leeway');
      expect((await leeway(first)).status).to.equal(200);
      server.tick(20_000);
      expect((await leeway(first)).status).to.equal(200);
      server.tick(20_000);
      expect((await leeway(first)).json()).to.deep.equal(INVALID);
    });

    it('expire after the idle lifetime, and after the absolute one however often they are used', async () => {
      const leeway = (value: string) =>
        refresh(value, { client_id: 'leeway', client_secret: 'leeway-secret' });
      const idle = await byPassword('leeway');
      let used = await byPassword('leeway');
      server.tick(3601_000);
      expect((await leeway(idle)).json()).to.deep.equal(INVALID);
      used = await byPassword('leeway');
      for (let hours = 0; hours < 24; hours++) {
        server.tick(3590_000);
        const answer = await leeway(used);
        if (answer.status !== 200) {
          expect(hours).to.be.at.least(23);
          break;
        }
        used = answer.json().refresh_token;
      }
      server.tick(3500_000);
      expect((await leeway(used)).json()).to.deep.equal(INVALID);
    });
  });

  describe('without rotation', () => {
    const web = (value: string, over: Record<string, string | undefined> = {}) =>
      refresh(value, { client_id: 'web', client_secret: 'web-secret', ...over });

    it('can be used repeatedly, and are not in the response', async () => {
      const value = await byPassword('web');
      for (let i = 0; i < 3; i++) {
        const answer = await web(value);
        expect(answer.status).to.equal(200);
        expect(answer.json().refresh_token ?? value).to.equal(value);
      }
    });
  });

  describe('are refused for', () => {
    it('another client, a made-up token, a missing one', async () => {
      const value = await byPassword('web');
      expect((await refresh(value)).json()).to.deep.equal(INVALID);
      expect((await refresh('made-up')).json()).to.deep.equal(INVALID);
      const missing = await token(agent(), { grant_type: 'refresh_token', client_id: 'spa' });
      expect(missing.json()).to.deep.equal({
        error: 'invalid_request',
        error_description: 'Missing required parameter: refresh_token',
      });
    });

    it('more scope than was granted, but not for less', async () => {
      const value = await spa('openid profile offline_access');
      expect((await refresh(value, { scope: 'openid email' })).json()).to.have.property(
        'error',
        'invalid_scope',
      );
      expect((await refresh(value, { scope: 'openid' })).json()).to.have.property('scope', 'openid');
    });

    it('a user who was blocked meanwhile', async () => {
      const tokens = await spaTokens(agent(), server, { scope: 'openid offline_access' });
      await server.users.update(payload(tokens.id_token).sub, { blocked: true });
      const answer = await refresh(tokens.refresh_token);
      expect(answer.status).to.equal(403);
      expect(answer.json()).to.deep.equal({ error: 'unauthorized', error_description: 'user is blocked' });
    });

    it('a user who was deleted', async () => {
      const tokens = await spaTokens(agent(), server, { scope: 'openid offline_access' });
      await server.store.collection('users').delete(payload(tokens.id_token).sub);
      const answer = await refresh(tokens.refresh_token);
      expect(answer.status).to.equal(403);
      expect(answer.json()).to.deep.equal({
        error: 'invalid_grant',
        error_description: "The refresh_token was generated for a user who doesn't exist anymore.",
      });
    });
  });

  describe('/oauth/revoke', () => {
    const revoke = (fields: Record<string, string>) => agent().request('/oauth/revoke', { json: fields });

    it('revokes a refresh token and its family, by JSON and by form', async () => {
      for (const send of ['json', 'form'] as const) {
        const value = await spa();
        const answer = await agent().request('/oauth/revoke', { [send]: { client_id: 'spa', token: value } });
        expect(answer.status).to.equal(200);
        expect(answer.text).to.equal('');
        expect((await refresh(value)).json()).to.deep.equal(INVALID);
      }
    });

    it('answers 200 for an unknown token (RFC 7009 §2.2)', async () => {
      expect((await revoke({ client_id: 'spa', token: 'made-up' })).status).to.equal(200);
    });

    it('answers 200 for a token that has ended, and ends no other of its user', async () => {
      const [ended, kept] = [await spa(), await spa()];
      await revoke({ client_id: 'spa', token: ended });
      expect((await revoke({ client_id: 'spa', token: ended })).status).to.equal(200);
      expect((await refresh(kept)).status).to.equal(200);
      const before = await byPassword('web');
      const { id = '' } = (await server.users.withEmail(USER.email))[0] ?? {};
      // The end of what an earlier password gave.
      await resetPassword(server, USER.email, USER.password);
      const after = await byPassword('web');
      const web = { client_id: 'web', client_secret: 'web-secret' };
      const answer = await revoke({ ...web, token: before });
      expect([answer.status, answer.text]).to.deep.equal([200, '']);
      expect((await refresh(before, web)).json()).to.deep.equal(INVALID);
      expect((await refresh(after, web)).status).to.equal(200);
      await server.users.update(id, { blocked: true });
      expect((await revoke({ ...web, token: after })).status).to.equal(200);
      await server.users.update(id, { blocked: false });
      expect((await refresh(after, web)).json()).to.deep.equal(INVALID);
    });

    it("does not revoke another client's token", async () => {
      const value = await byPassword('web');
      await revoke({ client_id: 'spa', token: value });
      const answer = await refresh(value, { client_id: 'web', client_secret: 'web-secret' });
      expect(answer.status).to.equal(200);
    });

    it('refuses a missing token and a wrong secret', async () => {
      expect((await revoke({ client_id: 'spa' })).json()).to.deep.equal({
        error: 'invalid_request',
        error_description: 'Missing required parameter: token',
      });
      const wrong = await revoke({ client_id: 'web', client_secret: 'wrong', token: 'x' });
      expect(wrong.status).to.equal(401);
      expect(wrong.json()).to.have.property('error', 'invalid_client');
    });
  });
});
