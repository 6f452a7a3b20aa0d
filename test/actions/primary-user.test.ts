// An action that links accounts sets the user of the login: the one whom the identity was linked to, and no other.
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { startManaged } from '../management/support.ts';
import { createAgent } from '../support/agent.ts';
import { authorize, logIn, payload, redeem, responseOf, token, USER, webRequest } from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';
import { tenantWith } from '../support/tenant.ts';
import { bindActions, managed } from './support.ts';

const NS = 'https://example.test/';
const OTHER = { email: 'staff@example.test', password: USER.password };
const REALM = 'http://auth0.com/oauth/grant-type/password-realm';
const users = [
  { ...USER, connection: 'users', email_verified: true },
  { ...OTHER, username: 'staff1', connection: 'staff', email_verified: true },
  { email: 'third@example.test', password: USER.password, connection: 'users', email_verified: true },
];

describe('an action that sets the primary user', () => {
  let server: TestServer;
  let helper: Server;
  /** What the action's own service does when it is asked to link. */
  let link: (primary: string, secondary: string) => Promise<unknown>;
  const ids: Record<string, string> = {};

  beforeEach(async () => {
    server = await startManaged(
      tenantWith({ change: { web: (client) => ({ grant_types: [...client.grant_types, REALM] }) }, users }),
    );
    for (const { email } of users) {
      const { body } = await managed(server, 'GET', `/users-by-email?email=${encodeURIComponent(email)}`);
      ids[email] = body[0].user_id;
    }
    link = (primary, secondary) =>
      managed(server, 'POST', `/users/${encodeURIComponent(primary)}/identities`, {
        provider: 'auth0',
        user_id: secondary.slice('auth0|'.length),
      });
    helper = createServer(async (request, response) => {
      const { searchParams } = new URL(request.url ?? '', 'http://localhost');
      await link(searchParams.get('primary') ?? '', searchParams.get('secondary') ?? '');
      response.end('{}');
    });
    await new Promise<void>((resolve) => helper.listen(0, '127.0.0.1', resolve));
    const { port } = helper.address() as AddressInfo;
    const at = `http://127.0.0.1:${port}`;
    await bindActions(
      server,
      'post-login',
      {
        code: `exports.onExecutePostLogin = async (event, api) => {
          const primary = '${ids[USER.email]}';
          if (event.connection.name !== 'staff' || event.user.user_id === primary) return;
          await fetch('${at}/?' + new URLSearchParams({ primary, secondary: event.user.user_id }));
          api.authentication.setPrimaryUser(primary);
          api.user.setAppMetadata('linked', true);
        };`,
      },
      {
        code: `exports.onExecutePostLogin = async (event, api) => {
          api.idToken.setCustomClaim('${NS}seen', event.user.user_id);
        };`,
      },
    );
  });
  afterEach(async () => {
    helper.close();
    await server.stop();
  });

  const idToken = async (agent: ReturnType<typeof createAgent>, code: string | undefined) => {
    const answer = await redeem(agent, code);
    expect(answer.status, answer.text).to.equal(200);
    return payload(answer.json().id_token);
  };
  const staff = { connection: 'staff' };
  const password = async () =>
    token(createAgent(server), {
      grant_type: REALM,
      realm: 'staff',
      client_id: 'web',
      client_secret: 'web-secret',
      username: OTHER.email,
      password: OTHER.password,
      scope: 'openid',
    });

  it("is followed in the browser: session and metadata are that user's", async () => {
    const agent = createAgent(server);
    const done = await logIn(agent, server, webRequest(staff), OTHER);
    const { code } = responseOf(done);
    expect(code, done.location + done.text).to.be.a('string');
    const claims = await idToken(agent, code);
    expect(claims.sub).to.equal(ids[USER.email]);
    expect(claims[`${NS}seen`]).to.equal(ids[OTHER.email]);
    const { body } = await managed(server, 'GET', `/users/${encodeURIComponent(ids[USER.email] ?? '')}`);
    expect(body.app_metadata).to.deep.equal({ linked: true });
    const silent = responseOf(await authorize(agent, webRequest({ prompt: 'none' })));
    expect((await idToken(agent, silent.code)).sub).to.equal(ids[USER.email]);
  });

  it('is followed at the token endpoint', async () => {
    const answer = await password();
    expect(answer.status, answer.text).to.equal(200);
    expect(payload(answer.json().id_token).sub).to.equal(ids[USER.email]);
  });

  it('is refused where the identity was not linked, or to another user', async () => {
    const lies: (typeof link)[] = [
      async () => undefined,
      // The other way round.
      (primary, secondary) =>
        managed(server, 'POST', `/users/${encodeURIComponent(secondary)}/identities`, {
          provider: 'auth0',
          user_id: (ids['third@example.test'] ?? primary).slice('auth0|'.length),
        }),
    ];
    for (const lie of lies) {
      link = lie;
      const done = await logIn(createAgent(server), server, webRequest(staff), OTHER);
      expect(responseOf(done)).to.include({ error: 'access_denied' }).and.not.have.property('code');
      const answer = await password();
      expect(answer.status).to.equal(403);
      expect(answer.json().error).to.equal('access_denied');
    }
    // To a third user, while the action names the first.
    link = (_primary, secondary) =>
      managed(server, 'POST', `/users/${encodeURIComponent(ids['third@example.test'] ?? '')}/identities`, {
        provider: 'auth0',
        user_id: secondary.slice('auth0|'.length),
      });
    const done = await logIn(createAgent(server), server, webRequest(staff), OTHER);
    expect(done.location).not.to.contain('code=');
  });

  it('lets nobody in as a primary user who is blocked or lacks a second factor', async () => {
    await managed(server, 'PATCH', `/users/${encodeURIComponent(ids[USER.email] ?? '')}`, { blocked: true });
    const done = await logIn(createAgent(server), server, webRequest(staff), OTHER);
    expect(responseOf(done)).to.include({ error: 'unauthorized' });
    expect((await password()).json().error).to.equal('unauthorized');
    // Nothing is written to the user as whom they were not let in.
    const { body } = await managed(server, 'GET', `/users/${encodeURIComponent(ids[USER.email] ?? '')}`);
    expect(body.app_metadata ?? {}).to.deep.equal({});
  });
});
