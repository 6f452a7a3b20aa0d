// Accounts are linked while a login waits for its user, who was redirected. The owner of the identity is determined
// again when the login continues, and earlier results do not count.
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { startManaged } from '../management/support.ts';
import { type Agent, type Answer, createAgent } from '../support/agent.ts';
import {
  authorize,
  tenant as base,
  follow,
  logIn,
  payload,
  redeem,
  responseOf,
  submitLogin,
  USER,
  webRequest,
} from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';
import { bindActions, managed } from './support.ts';

const NS = 'https://example.test/';
const OTHER = { email: 'staff@example.test', password: USER.password };
const THIRD = 'third@example.test';
const users = [
  { ...USER, connection: 'users', email_verified: true },
  { ...OTHER, username: 'staff1', connection: 'staff', email_verified: true },
  { email: THIRD, password: USER.password, connection: 'users', email_verified: true },
];
const STAFF = { connection: 'staff' };

describe('accounts that are linked while a login waits', () => {
  let server: TestServer;
  let helper: Server;
  let at: string;
  const ids: Record<string, string> = {};

  const path = (email: string) => `/users/${encodeURIComponent(ids[email] ?? '')}`;
  const link = async (primary: string, secondary: string) => {
    const user_id = (ids[secondary] ?? '').slice('auth0|'.length);
    return managed(server, 'POST', `${path(primary)}/identities`, { provider: 'auth0', user_id });
  };
  const unlink = (primary: string, secondary: string) =>
    managed(server, 'DELETE', `${path(primary)}/identities/auth0/${ids[secondary]?.slice('auth0|'.length)}`);

  beforeEach(async () => {
    server = await startManaged({ ...base, users });
    for (const { email } of users) ids[email] = (await server.users.withEmail(email))[0]?.id ?? '';
    helper = createServer(async (_request, response) => {
      await link(USER.email, OTHER.email);
      response.end('{}');
    });
    await new Promise<void>((resolve) => helper.listen(0, '127.0.0.1', resolve));
    at = `http://127.0.0.1:${(helper.address() as AddressInfo).port}/`;
  });
  afterEach(async () => {
    helper.close();
    await server.stop();
  });

  const away = async (agent: Agent): Promise<string> => {
    const sent = await logIn(agent, server, webRequest(STAFF), OTHER);
    expect(sent.location, sent.text).to.match(/^https:\/\/link\.example\.test\//);
    return responseOf(sent).state ?? '';
  };
  const comeBack = async (agent: Agent, state: string): Promise<Answer> =>
    follow(agent, await agent.get(`/continue?${new URLSearchParams({ state })}`), server.url);
  const idToken = async (agent: Agent, done: Answer) => {
    const { code } = responseOf(done);
    expect(code, done.location + done.text).to.be.a('string');
    const answer = await redeem(agent, code);
    expect(answer.status, answer.text).to.equal(200);
    return payload(answer.json().id_token);
  };
  /** Returns the user whom a silent request finds in a browser. */
  const silent = async (agent: Agent) => responseOf(await authorize(agent, webRequest({ prompt: 'none' })));

  const bindSender = () =>
    bindActions(server, 'post-login', {
      code: `exports.onExecutePostLogin = async (event, api) => {
        if (event.user.user_id === '${ids[OTHER.email]}') api.redirect.sendUserTo('https://link.example.test/');
      };
      exports.onContinuePostLogin = async (event, api) => {
        api.authentication.setPrimaryUser('${ids[USER.email]}');
        api.idToken.setCustomClaim('${NS}seen', event.user.user_id);
      };`,
    });

  it('by somebody else make the user log in again, as the one that they are now', async () => {
    await bindSender();
    const agent = createAgent(server);
    const state = await away(agent);
    expect((await link(USER.email, OTHER.email)).status).to.equal(201);
    const asked = await comeBack(agent, state);
    expect(asked.status, asked.location).to.equal(200);
    expect(await silent(agent)).to.include({ error: 'login_required' });
    const claims = await idToken(agent, await submitLogin(agent, server, asked, OTHER));
    expect(claims.sub).to.equal(ids[USER.email]);
  });

  it('and unlinked again end the waiting login', async () => {
    await bindSender();
    const agent = createAgent(server);
    const state = await away(agent);
    await link(USER.email, OTHER.email);
    expect((await unlink(USER.email, OTHER.email)).status).to.equal(200);
    const asked = await comeBack(agent, state);
    expect(asked.location ?? '').not.to.contain('code=');
    expect(await silent(agent)).to.include({ error: 'login_required' });
  });

  it('to another user than the action names let nobody in', async () => {
    await bindSender();
    const agent = createAgent(server);
    const state = await away(agent);
    await link(THIRD, OTHER.email);
    const asked = await comeBack(agent, state);
    const claims = await idToken(agent, await submitLogin(agent, server, asked, OTHER));
    expect(claims.sub).to.equal(ids[THIRD]);
  });

  it('by an action after the redirect let the login continue as the named user', async () => {
    await bindActions(server, 'post-login', {
      code: `exports.onExecutePostLogin = async (event, api) => {
        if (event.user.user_id === '${ids[OTHER.email]}') api.redirect.sendUserTo('https://link.example.test/');
      };
      exports.onContinuePostLogin = async (event, api) => {
        await fetch('${at}');
        api.authentication.setPrimaryUser('${ids[USER.email]}');
      };`,
    });
    const agent = createAgent(server);
    const done = await comeBack(agent, await away(agent));
    expect((await idToken(agent, done)).sub).to.equal(ids[USER.email]);
  });

  it('by an action before another one redirects let the named user be redirected', async () => {
    await bindActions(
      server,
      'post-login',
      {
        code: `exports.onExecutePostLogin = async (event, api) => {
          if (event.user.user_id !== '${ids[OTHER.email]}') return;
          await fetch('${at}');
          api.authentication.setPrimaryUser('${ids[USER.email]}');
          api.user.setAppMetadata('linked', true);
        };`,
      },
      {
        code: `exports.onExecutePostLogin = async (event, api) => {
          const session_token = api.redirect.encodeToken({ secret: 'a-secret-of-at-least-32-characters', payload: {} });
          api.redirect.sendUserTo('https://link.example.test/', { query: { session_token } });
        };
        exports.onContinuePostLogin = async (event, api) => {
          api.idToken.setCustomClaim('${NS}seen', event.user.user_id);
        };`,
      },
    );
    const agent = createAgent(server);
    const sent = await logIn(agent, server, webRequest(STAFF), OTHER);
    expect(sent.location, sent.text).to.match(/^https:\/\/link\.example\.test\//);
    const { state = '', session_token = '' } = responseOf(sent);
    expect(payload(session_token).sub).to.equal(ids[USER.email]);
    const claims = await idToken(agent, await comeBack(agent, state));
    expect(claims.sub).to.equal(ids[USER.email]);
    expect(claims[`${NS}seen`]).to.equal(ids[USER.email]);
    const { body } = await managed(server, 'GET', path(USER.email));
    expect(body.app_metadata).to.deep.equal({ linked: true });
  });
});
