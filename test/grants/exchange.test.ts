// Token exchange (RFC 8693) of our own tokens.
import { expect } from 'chai';
import { SignJWT } from 'jose';
import type { Write } from '../../src/store/contract.ts';
import { createAgent } from '../support/agent.ts';
import { createProver, type Prover } from '../support/dpop.ts';
import {
  API,
  logIn,
  PASSWORD_REQUEST,
  payload,
  redeem,
  responseOf,
  tenant,
  token,
  USER,
  WEB_CALLBACK,
  webRequest,
} from '../support/flows.ts';
import { heldStore } from '../support/held-store.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { told } from './tenant.ts';

const GRANT = 'urn:ietf:params:oauth:grant-type:token-exchange';
const type = (name: string) => `urn:ietf:params:oauth:token-type:${name}`;

const HS256_SECRET = 'a-secret-of-at-least-32-characters!';

const ownTenant = {
  ...tenant,
  clients: [
    ...tenant.clients.map((client) =>
      ['web', 'hs256'].includes(client.client_id)
        ? { ...client, grant_types: [...client.grant_types, GRANT] }
        : client,
    ),
    {
      client_id: 'things',
      name: 'The API itself',
      app_type: 'resource_server',
      client_secret: 'things-secret',
      resource_server_identifier: API,
      grant_types: [GRANT],
    },
    {
      client_id: 'public',
      name: 'Public',
      app_type: 'spa',
      callbacks: [WEB_CALLBACK],
      grant_types: [GRANT, 'authorization_code'],
    },
  ],
};

describe('token exchange of our own tokens', () => {
  const held = heldStore();
  let server: TestServer;
  before(async () => {
    server = await startServer({ tenant: ownTenant, open: held.open });
  });
  after(() => server.stop());

  const secretOf = (id: string) => (id === 'public' ? {} : { client_secret: `${id}-secret` });
  const tokens = async (over: Record<string, string | undefined> = {}) =>
    (
      await token(createAgent(server), {
        ...PASSWORD_REQUEST,
        scope: 'openid offline_access read:things write:things',
        audience: API,
        ...over,
      })
    ).json();
  const exchange = (
    subject_token: string,
    over: Record<string, string | undefined> = {},
    client_id = 'web',
  ) =>
    token(createAgent(server), {
      grant_type: GRANT,
      client_id,
      ...secretOf(client_id),
      subject_token,
      subject_token_type: type('access_token'),
      ...over,
    });

  it('issues to an application a token with fewer scopes, which does not outlive the first', async () => {
    const { access_token } = await tokens();
    server.tick(600_000);
    const answer = (await exchange(access_token, { scope: 'read:things' })).json();
    expect(answer).to.include({ issued_token_type: type('access_token'), token_type: 'Bearer' });
    expect(answer).not.to.have.any.keys('refresh_token', 'id_token');
    const [before, after] = [payload(access_token), payload(answer.access_token)];
    expect(after).to.include({ sub: before.sub, azp: 'web', scope: 'read:things', aud: API });
    expect(after.exp).to.be.at.most(before.exp);
    const whole = payload((await exchange(access_token)).json().access_token);
    expect(whole.scope).to.equal('openid read:things write:things');
  });

  it('issues to an API a token for the one that it received, and nests actors in act', async () => {
    const { access_token } = await tokens();
    const own = await exchange(access_token, { scope: 'read:things' }, 'things');
    expect(payload(own.json().access_token)).to.include({ azp: 'things', scope: 'read:things' });
    const staff = await tokens({
      grant_type: 'http://auth0.com/oauth/grant-type/password-realm',
      username: 'staff1',
      realm: 'staff',
    });
    const acted = await exchange(access_token, {
      actor_token: staff.access_token,
      actor_token_type: type('access_token'),
    });
    const first = payload(acted.json().access_token);
    expect(first).to.deep.include({ act: { sub: payload(staff.access_token).sub } });
    const again = await exchange(acted.json().access_token, {
      actor_token: access_token,
      actor_token_type: type('access_token'),
    });
    expect(payload(again.json().access_token).act).to.deep.equal({ sub: first.sub, act: first.act });
    expect(payload((await exchange(acted.json().access_token)).json().access_token).act).to.deep.equal(
      first.act,
    );
  });

  it('accepts an ID token of the application while its session is open', async () => {
    const agent = createAgent(server);
    const { code } = responseOf(await logIn(agent, server, webRequest()));
    const { id_token } = (await redeem(agent, code)).json();
    const ask = (over = {}, client = 'web') =>
      exchange(id_token, { subject_token_type: type('id_token'), ...over }, client);
    const answer = (await ask({ scope: 'openid email' })).json();
    expect(answer.scope).to.equal('openid email');
    expect(answer.access_token).not.to.contain('.');
    expect(told(await ask({}, 'things'))[1]).to.equal('invalid_request');
    expect(told(await ask({ audience: API }))[1]).to.equal('invalid_target');
    await agent.get('/v2/logout');
    expect(told(await ask())[1]).to.equal('invalid_request');
  });

  it('refuses an ID token signed with the application’s secret, and an actor token that has an actor', async () => {
    const { access_token } = await tokens();
    const { sub, iss, iat, exp } = payload(access_token);
    const written = await new SignJWT({ iss, sub, aud: 'hs256', iat, exp })
      .setProtectedHeader({ alg: 'HS256', typ: 'JWT' })
      .sign(new TextEncoder().encode(HS256_SECRET));
    const asked = { client_secret: HS256_SECRET, subject_token_type: type('id_token') };
    expect(told(await exchange(written, asked, 'hs256'))[1]).to.equal('invalid_request');

    const actor = { actor_token: access_token, actor_token_type: type('access_token') };
    const acted = (await exchange(access_token, actor)).json().access_token;
    const beneath = { ...actor, actor_token: acted };
    expect(told(await exchange(access_token, beneath))[1]).to.equal('invalid_request');
  });

  it('refuses scopes and APIs that the token does not have', async () => {
    const { access_token } = await tokens({ scope: 'openid read:things' });
    for (const scope of ['write:things', 'email', 'read:things offline_access'])
      expect(told(await exchange(access_token, { scope }))[1], scope).to.equal('invalid_scope');
    expect(told(await exchange(access_token, { audience: 'urn:rfc9068' }))[1]).to.equal('invalid_target');
  });

  it('refuses a token of another client, API or type', async () => {
    const { access_token, refresh_token, id_token } = await tokens();
    const other = await tokens({ audience: 'urn:rfc9068', scope: 'read' });
    const machine = await token(createAgent(server), {
      grant_type: 'client_credentials',
      client_id: 'web',
      client_secret: 'web-secret',
      audience: API,
    });
    const opaque = await tokens({ audience: undefined, scope: 'openid' });
    const [head, body] = access_token.split('.');
    const wrong = [
      refresh_token,
      id_token,
      machine.json().access_token,
      opaque.access_token,
      `${head}.${body}.AAAA`,
      'nonsense',
    ];
    for (const one of wrong) expect(told(await exchange(one))[1]).to.equal('invalid_request');
    expect(told(await exchange(other.access_token, {}, 'things'))[1]).to.equal('invalid_request');
    expect(told(await exchange(access_token, { subject_token_type: type('id_token') }))[1]).to.equal(
      'invalid_request',
    );
    for (const actor of [other.refresh_token ?? 'x', 'nonsense'])
      expect(
        told(await exchange(access_token, { actor_token: actor, actor_token_type: type('access_token') }))[1],
      ).to.equal('invalid_request');
  });

  it('refuses public clients, clients without the grant, and unknown token types', async () => {
    const { access_token } = await tokens();
    expect(told(await exchange(access_token, {}, 'public'))[1]).to.equal('unauthorized_client');
    expect(told(await exchange(access_token, {}, 'm2m'))[1]).to.equal('unauthorized_client');
    expect(told(await exchange(access_token, { subject_token_type: 'urn:acme:legacy' }))[1]).to.equal(
      'invalid_request',
    );
    expect(told(await exchange(access_token, { requested_token_type: type('refresh_token') }))[1]).to.equal(
      'invalid_request',
    );
  });

  it('exchanges a token that is bound to a key only with a proof of that key, for one that is bound to it', async () => {
    const [own, stolen] = await Promise.all([createProver(), createProver()]);
    const proofOf = async (prover: Prover) => ({
      DPoP: await prover.proof('POST', `${server.url}/oauth/token`),
    });
    const post = (json: object, headers: Record<string, string>) =>
      createAgent(server).request('/oauth/token', { json, headers });
    const asked = { ...PASSWORD_REQUEST, scope: 'openid read:things', audience: API };
    const { access_token } = (await post(asked, await proofOf(own))).json();
    const body = {
      grant_type: GRANT,
      client_id: 'web',
      client_secret: 'web-secret',
      subject_token: access_token,
      subject_token_type: type('access_token'),
    };
    expect((await post(body, await proofOf(stolen))).status).to.equal(401);
    expect((await post(body, {})).status).to.equal(401);
    const bound = (await post(body, await proofOf(own))).json();
    expect(payload(bound.access_token).cnf).to.deep.equal({ jkt: own.thumbprint });
    const actor = { ...body, subject_token: (await tokens()).access_token, actor_token: access_token };
    const asActor = await post({ ...actor, actor_token_type: type('access_token') }, await proofOf(own));
    expect(told(asActor)[1]).to.equal('invalid_request');
  });

  it('gives no token for one that ends while it is exchanged', async () => {
    const isGrant = (write: Write) =>
      write.collection === 'artifacts' && 'put' in write && write.put?.model === 'Grant';
    const users = server.store.collection('users');
    const { access_token } = await tokens();
    const { sub } = payload(access_token);
    const end = (at?: string) =>
      users.update(sub, ({ access_ended_at: _, ...user }) =>
        at === undefined ? user : { ...user, access_ended_at: at },
      );
    held.beforeBatch(isGrant, () => end(new Date(Date.now() + 86_400_000).toISOString()));
    expect(told(await exchange(access_token))[1], 'all access of the user').to.equal('invalid_request');
    await end();
    expect((await exchange(access_token)).status).to.equal(200);
    held.beforeBatch(isGrant, () => server.users.setPassword(sub, USER.password));
    expect((await exchange(access_token)).status, 'a new password').to.be.within(400, 403);
  });

  it('refuses a token whose user was blocked or has got a new password meanwhile', async () => {
    const { access_token } = await tokens();
    const { sub } = payload(access_token);
    await server.users.update(sub, { blocked: true });
    expect(told(await exchange(access_token))[1]).to.equal('unauthorized');
    await server.users.update(sub, { blocked: false });
    server.tick(2_000);
    await server.users.setPassword(sub, USER.password);
    expect(told(await exchange(access_token))[1]).to.equal('invalid_request');
  });
});
