// Consents of users, credentials on their devices, and statistics of the tenant.

import type { ManagementClient } from 'auth0';
import { expect } from 'chai';
import { createAgent } from '../support/agent.ts';
import { API, payload, spaTokens, tenant, token, USER } from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';
import { authorizeAs, callApi, managementClient, startManaged } from './support.ts';

describe('grants, device credentials and statistics', () => {
  let server: TestServer;
  let management: ManagementClient;

  beforeEach(async () => {
    server = await startManaged(tenant);
    management = managementClient(server);
  });
  afterEach(() => server.stop());

  const failure = (asked: PromiseLike<unknown>): Promise<unknown> =>
    Promise.resolve(asked).catch((thrown: unknown) => thrown);
  const offline = async () => {
    const tokens = await spaTokens(createAgent(server), server, { scope: 'openid offline_access' });
    return { tokens, userId: String(payload(tokens.id_token).sub) };
  };
  const refresh = (refresh_token: string, client_id = 'spa', client_secret?: string) =>
    token(createAgent(server), { grant_type: 'refresh_token', client_id, client_secret, refresh_token });
  /** Returns a token that is issued to a user for the Management API. */
  const ownToken = async (user: { email: string; password: string } = USER): Promise<string> => {
    const [{ user_id = '' } = {}] = (await management.users.listUsersByEmail({ email: user.email })) as {
      user_id?: string;
    }[];
    const scopes = ['create:current_user_device_credentials', 'delete:current_user_device_credentials'];
    // First-party clients need consent for these scopes too.
    await server.store.collection('consents').put({
      id: `${user_id}\nweb`,
      user_id,
      client_id: 'web',
      scopes: { [`urn:gatehouse:api:${encodeURIComponent(`${server.issuer}api/v2/`)}`]: scopes },
    });
    const answer = await token(createAgent(server), {
      grant_type: 'password',
      client_id: 'web',
      client_secret: 'web-secret',
      username: user.email,
      password: user.password,
      audience: `${server.issuer}api/v2/`,
      scope: scopes.join(' '),
    });
    return answer.json().access_token;
  };
  const device = (over: object = {}) => ({
    device_name: 'Ada’s phone',
    device_id: 'phone-1',
    type: 'public_key',
    value: 'AAAA',
    ...over,
  });

  describe('/device-credentials', () => {
    it('lists refresh tokens, and deleting one revokes it', async () => {
      const { tokens, userId } = await offline();
      const { data } = await management.deviceCredentials.list({ user_id: userId });
      expect(data).to.have.length(1);
      expect(data[0]).to.include({ type: 'rotating_refresh_token', user_id: userId, client_id: 'spa' });
      const all = await management.deviceCredentials.list({ type: 'rotating_refresh_token' });
      expect(all.data).to.deep.equal(data);
      for (const query of [{ client_id: 'web' }, { type: 'refresh_token' as const }, { user_id: 'nobody' }])
        expect((await management.deviceCredentials.list(query)).data).to.deep.equal([]);
      await management.deviceCredentials.delete(data[0]?.id ?? '');
      expect((await refresh(tokens.refresh_token)).status).to.equal(400);
    });

    it('lets only the user register and delete a public key', async () => {
      const ada = await ownToken();
      const post = (as: string, over: object = {}) =>
        authorizeAs(server, as, 'POST', '/device-credentials', device(over));
      const made = await post(ada);
      expect(made.status).to.equal(201);
      const { id } = (await made.json()) as { id: string };
      expect(id).to.match(/^dcr_[A-Za-z0-9]{16}$/);
      const { data } = await management.deviceCredentials.list({ type: 'public_key' });
      expect(data).to.have.length(1);
      expect(data[0])
        .to.include({ id, device_id: 'phone-1', client_id: 'web' })
        .and.not.to.have.property('value');
      expect((await post(ada)).status).to.equal(409);
      const both = await Promise.all([post(ada, { device_id: 'x' }), post(ada, { device_id: 'x' })]);
      expect(both.map(({ status }) => status).sort()).to.deep.equal([201, 409]);
      // A client's own token belongs to no user.
      expect((await callApi(server, 'POST', '/device-credentials', device())).status).to.equal(403);
      for (const over of [{ user_id: 'auth0|x' }, { type: 'refresh_token' }, { value: 'x'.repeat(5000) }])
        expect((await post(ada, over)).status).to.equal(400);

      const grace = { email: 'grace@example.test', password: 'Correct-Horse-2' };
      await management.users.create({ connection: 'users', ...grace });
      const remove = (as: string) => authorizeAs(server, as, 'DELETE', `/device-credentials/${id}`);
      expect((await remove(await ownToken(grace))).status).to.equal(403);
      expect((await remove(ada)).status).to.equal(204);
      expect((await remove(ada)).status).to.equal(204);
      expect((await management.deviceCredentials.list({ type: 'public_key' })).data).to.have.length(1);
    });

    it('lets a user register at most 20 keys, even with 50 requests at once', async () => {
      const ada = await ownToken();
      const made = await Promise.all(
        Array.from({ length: 50 }, (_, n) =>
          authorizeAs(server, ada, 'POST', '/device-credentials', device({ device_id: `phone-${n}` })),
        ),
      );
      expect(made.filter(({ status }) => status === 201)).to.have.length(20);
      expect(made.filter(({ status }) => status === 403)).to.have.length(30);
      const { data } = await management.deviceCredentials.list({ type: 'public_key' });
      expect(data).to.have.length(20);
    });

    it('does not let another user delete a refresh token', async () => {
      const { tokens, userId } = await offline();
      const { data } = await management.deviceCredentials.list({ user_id: userId });
      const grace = { email: 'grace@example.test', password: 'Correct-Horse-2' };
      await management.users.create({ connection: 'users', ...grace });
      const path = `/device-credentials/${data[0]?.id}`;
      const refused = await authorizeAs(server, await ownToken(grace), 'DELETE', path);
      expect(refused.status).to.equal(403);
      expect(await refused.text()).to.contain('User to be acted on does not match');
      expect((await refresh(tokens.refresh_token)).status).to.equal(200);
    });

    it('deletes the credentials with the user', async () => {
      const ada = await ownToken();
      await authorizeAs(server, ada, 'POST', '/device-credentials', device());
      await management.users.delete(String(payload(ada).sub));
      expect((await management.deviceCredentials.list()).data).to.deep.equal([]);
    });

    it("limits the number of a user's keys", async () => {
      const ada = await ownToken();
      const statuses = [];
      for (let i = 0; i < 21; i++) {
        const made = await authorizeAs(
          server,
          ada,
          'POST',
          '/device-credentials',
          device({ device_id: `d${i}` }),
        );
        statuses.push(made.status);
      }
      expect(statuses.slice(-2)).to.deep.equal([201, 403]);
    });
  });

  describe('/grants', () => {
    const consented = async () => {
      const [ada] = (await management.users.listUsersByEmail({ email: USER.email })) as {
        user_id?: string;
      }[];
      const user_id = ada?.user_id ?? '';
      await server.store.collection('consents').put({
        id: `${user_id}\nthird`,
        user_id,
        client_id: 'third',
        scopes: {
          '': ['openid', 'offline_access'],
          [`urn:gatehouse:api:${encodeURIComponent(API)}`]: ['read:things'],
        },
      });
      const { refresh_token } = (
        await token(createAgent(server), {
          grant_type: 'password',
          client_id: 'third',
          client_secret: 'third-secret',
          username: USER.email,
          password: USER.password,
          scope: 'openid offline_access read:things',
          audience: API,
        })
      ).json();
      return { user_id, refresh_token };
    };
    const third = (value: string) => refresh(value, 'third', 'third-secret');

    it('lists grants for each API, filtered by user, client and API', async () => {
      const { user_id } = await consented();
      const { data } = await management.userGrants.list({ user_id });
      expect(data.map(({ id: _, ...grant }) => grant)).to.have.deep.members([
        {
          clientID: 'third',
          user_id,
          audience: `${server.issuer}userinfo`,
          scope: ['openid', 'offline_access'],
        },
        { clientID: 'third', user_id, audience: API, scope: ['read:things'] },
      ]);
      expect((await management.userGrants.list({ audience: API })).data).to.have.length(1);
      expect((await management.userGrants.list({ client_id: 'spa' })).data).to.deep.equal([]);
      expect((await management.userGrants.list({ user_id: 'nobody' })).data).to.deep.equal([]);
    });

    it('deletes a single grant with the refresh tokens that depend on it', async () => {
      const { user_id, refresh_token } = await consented();
      const again = (await third(refresh_token)).json().refresh_token ?? refresh_token;
      const { data } = await management.userGrants.list({ audience: API });
      await management.userGrants.delete(data[0]?.id ?? '');
      await management.userGrants.delete(data[0]?.id ?? '');
      await management.userGrants.delete('no-id');
      expect((await management.userGrants.list({ user_id })).data).to.have.length(1);
      expect((await third(again)).status).to.equal(400);
    });

    it('ends authorization codes that are not redeemed yet', async () => {
      const { user_id } = await consented();
      const code = async (grantId: string, resource?: string) => {
        const id = `AuthorizationCode.${grantId}`;
        const payload = { accountId: user_id, clientId: 'third', grantId, ...(resource && { resource }) };
        await server.store.collection('artifacts').put({ id, model: 'AuthorizationCode', payload });
        return async () => (await server.store.collection('artifacts').get(id)) !== undefined;
      };
      const ofApi = await code('one', `urn:gatehouse:api:${encodeURIComponent(API)}`);
      const ofNone = await code('two');
      const { data } = await management.userGrants.list({ user_id });
      const grantFor = (audience: string) => data.find((one) => one.audience === audience)?.id ?? '';
      await management.userGrants.delete(grantFor(API));
      expect([await ofApi(), await ofNone()]).to.deep.equal([false, true]);
      await management.userGrants.delete(grantFor(`${server.issuer}userinfo`));
      expect(await ofNone()).to.equal(false);
    });

    it('deletes all grants of a user, who must be named', async () => {
      const { user_id, refresh_token } = await consented();
      await management.userGrants.deleteByUserId({ user_id: 'nobody' });
      expect((await management.userGrants.list({ user_id })).data).to.have.length(2);
      await management.userGrants.deleteByUserId({ user_id });
      expect((await management.userGrants.list({ user_id })).data).to.deep.equal([]);
      expect((await third(refresh_token)).status).to.equal(400);
      expect((await callApi(server, 'DELETE', '/grants')).status).to.equal(400);
    });
  });

  describe('/stats', () => {
    it('counts active users, and the logins of each day', async () => {
      expect(await management.stats.getActiveUsersCount()).to.equal(0);
      expect(await management.stats.getDaily()).to.deep.equal([]);
      await offline();
      await offline();
      const first = new Date().toISOString().slice(0, 10);
      server.tick(86_400_000);
      await offline();
      await new Promise((resolve) => setImmediate(resolve));
      expect(await management.stats.getActiveUsersCount()).to.equal(1);
      const days = await management.stats.getDaily();
      expect(
        days.map(({ logins, signups, leaked_passwords }) => [logins, signups, leaked_passwords]),
      ).to.deep.equal([
        [2, 0, 0],
        [1, 0, 0],
      ]);
      const day = first.replaceAll('-', '');
      const one = await management.stats.getDaily({ from: day, to: day });
      expect(one.map(({ date }) => date)).to.deep.equal([`${first}T00:00:00.000Z`]);
      server.tick(31 * 86_400_000);
      expect(await management.stats.getActiveUsersCount()).to.equal(0);
    });

    it('rejects dates that do not exist, and accepts any year', async () => {
      for (const from of ['yesterday', '20260230', '2026-01-01', '', '99999999'])
        expect(await failure(management.stats.getDaily({ from })), from).to.include({ statusCode: 400 });
      expect(await management.stats.getDaily({ from: '00010101', to: '99991231' })).to.deep.equal([]);
      expect(await management.stats.getDaily({ from: '20990101', to: '20000101' })).to.deep.equal([]);
    });
  });
});
