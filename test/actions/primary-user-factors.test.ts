// A second factor belongs to its user. Where an action continues a login as the user whom the identity was linked to,
// that user's factor is required, not the one that was given before.
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { callsOf, codeOf, factors, tenant } from '../factors/tenant.ts';
import { callsOf as deviceCallsOf, deviceTenant, told } from '../grants/tenant.ts';
import { startManaged } from '../management/support.ts';
import { type Agent, type Answer, createAgent, readForm } from '../support/agent.ts';
import {
  authorize,
  follow,
  logIn,
  payload,
  responseOf,
  token,
  USER,
  WEB_CALLBACK,
  webRequest,
} from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';
import { bindActions, managed } from './support.ts';

const OTHER = { email: 'mfa-1@example.test', password: USER.password };
const PRIMARY = 'mfa-2@example.test';

/** What asks for a second factor: the tenant's policy, or the action alone. */
const WAYS = [
  { by: 'the tenant', asks: '', policies: ['all-applications'] },
  { by: 'the action', asks: `api.multifactor.enable('any');`, policies: [] },
  {
    by: 'the action, which names it',
    asks: `api.authentication.challengeWith({ type: 'otp' });`,
    policies: [],
  },
];

for (const { by, asks, policies } of WAYS)
  describe(`the second factor of a primary user, where ${by} asks for one,`, () => {
    let server: TestServer;
    let helper: Server;
    const secrets: Record<string, string> = {};
    const ids: Record<string, string> = {};
    const later = (email: string) => codeOf(secrets[email] ?? '', Date.now() + 30_000);

    beforeEach(async () => {
      server = await startManaged({ ...tenant, guardianPolicies: { policies: ['all-applications'] } });
      for (const email of [OTHER.email, PRIMARY]) {
        const { body } = await managed(server, 'GET', `/users-by-email?email=${encodeURIComponent(email)}`);
        ids[email] = body[0].user_id;
        secrets[email] = (await callsOf(server).enrollOtp(email, 'leeway')).secret;
      }
      const policy = await managed(server, 'PUT', '/guardian/policies', policies as unknown as object);
      expect(policy.status).to.equal(200);
      const primary = ids[PRIMARY] ?? '';
      helper = createServer(async (_request, response) => {
        await managed(server, 'POST', `/users/${encodeURIComponent(primary)}/identities`, {
          provider: 'auth0',
          user_id: (ids[OTHER.email] ?? '').slice('auth0|'.length),
        });
        response.end('{}');
      });
      await new Promise<void>((resolve) => helper.listen(0, '127.0.0.1', resolve));
      const at = `http://127.0.0.1:${(helper.address() as AddressInfo).port}`;
      const isOther = `event.user.email === '${OTHER.email}'`;
      await bindActions(
        server,
        'post-login',
        { code: `exports.onExecutePostLogin = async (event, api) => { if (${isOther}) { ${asks} } };` },
        {
          code: `exports.onExecutePostLogin = async (event, api) => {
            const methods = event.authentication.methods.map(({ name }) => name);
            if (!(${isOther}) || !methods.includes('mfa')) return;
            await fetch('${at}/');
            api.authentication.setPrimaryUser('${primary}');
          };`,
        },
      );
    });
    afterEach(async () => {
      helper.close();
      await server.stop();
    });

    it('is asked for in the browser', async () => {
      const agent = createAgent(server);
      const page = await logIn(agent, server, webRequest({ scope: 'openid' }), OTHER);
      const give = async (at: typeof page, code: string) => {
        const form = readForm(at, 'code');
        const given = await agent.request(form.action, { form: { ...form.fields, code } });
        return follow(agent, given, server.url);
      };
      const linked = await give(page, later(OTHER.email));
      expect(linked.location ?? '').not.to.contain('code=');
      const wrong = await give(linked, later(OTHER.email));
      expect(wrong.location ?? '').not.to.contain('code=');
      const done = await give(wrong, later(PRIMARY));
      const answer = await token(agent, {
        grant_type: 'authorization_code',
        client_id: 'web',
        client_secret: 'web-secret',
        code: responseOf(done).code,
        redirect_uri: WEB_CALLBACK,
      });
      expect(payload(answer.json().id_token).sub).to.equal(ids[PRIMARY]);
    });

    it('is asked for at the token endpoint', async () => {
      const calls = callsOf(server);
      const first = (await calls.login(OTHER.email)).json();
      const give = (mfa_token: string, email: string) =>
        calls.verify('otp', { mfa_token, otp: later(email) });
      const linked = first.mfa_token === undefined ? undefined : await give(first.mfa_token, OTHER.email);
      const refused = linked?.json() ?? first;
      expect(refused).to.include({ error: 'mfa_required' }).and.not.have.property('access_token');
      const wrong = await give(refused.mfa_token, OTHER.email);
      expect(wrong.status, wrong.text).to.equal(403);
      const done = await give(refused.mfa_token, PRIMARY);
      expect(done.status, done.text).to.equal(200);
      expect(payload(done.json().id_token).sub).to.equal(ids[PRIMARY]);
    });
  });

describe('the second factor of a primary user, when an action asks for one after another action has linked,', () => {
  let server: TestServer;
  let helper: Server;
  const secrets: Record<string, string> = {};
  const ids: Record<string, string> = {};
  const identity = (email: string) => (ids[email] ?? '').slice('auth0|'.length);

  beforeEach(async () => {
    server = await startManaged({ ...tenant, guardianPolicies: { policies: ['all-applications'] } });
    for (const email of [OTHER.email, PRIMARY]) {
      ids[email] = (await server.users.withEmail(email))[0]?.id ?? '';
      secrets[email] = (await callsOf(server).enrollOtp(email, 'leeway')).secret;
    }
    await managed(server, 'PUT', '/guardian/policies', [] as unknown as object);
    helper = createServer(async (_request, response) => {
      const body = { provider: 'auth0', user_id: identity(OTHER.email) };
      await managed(server, 'POST', `/users/${encodeURIComponent(ids[PRIMARY] ?? '')}/identities`, body);
      response.end('{}');
    });
    await new Promise<void>((resolve) => helper.listen(0, '127.0.0.1', resolve));
    const at = `http://127.0.0.1:${(helper.address() as AddressInfo).port}`;
    await bindActions(
      server,
      'post-login',
      {
        code: `exports.onExecutePostLogin = async (event, api) => {
          if (event.user.user_id !== '${ids[OTHER.email]}') return;
          await fetch('${at}/');
          api.authentication.setPrimaryUser('${ids[PRIMARY]}');
        };`,
      },
      {
        code: `exports.onExecutePostLogin = async (event, api) => {
          api.authentication.challengeWith({ type: 'otp' }); };`,
      },
    );
  });
  afterEach(async () => {
    helper.close();
    await server.stop();
  });

  const give = async (agent: Agent, at: Answer, email: string) => {
    const form = readForm(at, 'code');
    const code = codeOf(secrets[email] ?? '', Date.now() + 30_000);
    return follow(agent, await agent.request(form.action, { form: { ...form.fields, code } }), server.url);
  };
  const silent = async (agent: Agent) => responseOf(await authorize(agent, webRequest({ prompt: 'none' })));

  it('must be theirs: that of the linked user does not count', async () => {
    const agent = createAgent(server);
    const page = await logIn(agent, server, webRequest({ scope: 'openid' }), OTHER);
    const wrong = await give(agent, page, OTHER.email);
    expect(wrong.location ?? '').not.to.contain('code=');
    const done = await give(agent, wrong, PRIMARY);
    const answer = await token(agent, {
      grant_type: 'authorization_code',
      client_id: 'web',
      client_secret: 'web-secret',
      code: responseOf(done).code,
      redirect_uri: WEB_CALLBACK,
    });
    expect(payload(answer.json().id_token).sub).to.equal(ids[PRIMARY]);
  });

  for (const bound of [true, false])
    it(`lets nobody in whose identity was unlinked meanwhile, with actions ${bound ? 'bound' : 'bound no more'}`, async () => {
      const agent = createAgent(server);
      const page = await logIn(agent, server, webRequest({ scope: 'openid' }), OTHER);
      const at = `/users/${encodeURIComponent(ids[PRIMARY] ?? '')}/identities/auth0/${identity(OTHER.email)}`;
      expect((await managed(server, 'DELETE', at)).status).to.equal(200);
      if (!bound) await bindActions(server, 'post-login');
      const form = readForm(page, 'code');
      const code = codeOf(secrets[PRIMARY] ?? '', Date.now() + 30_000);
      const answer = await agent.request(form.action, { form: { ...form.fields, code } });
      expect((await follow(agent, answer, server.url)).location ?? '').not.to.contain('code=');
      expect(await silent(agent)).to.include({ error: 'login_required' });
    });
});

describe('the second factor of a primary user, whom an action names between the pages and the tokens,', () => {
  it('is due although the pages asked for that of the other user, and is not enrolled where the codes are polled', async () => {
    const users = [
      { ...USER, connection: 'users', email_verified: true },
      { email: PRIMARY, password: USER.password, connection: 'users', email_verified: true },
    ];
    const server = await startManaged({ ...deviceTenant, users, guardianFactors: factors('otp') });
    const [primary, other] = await Promise.all(
      [PRIMARY, USER.email].map(async (email) => (await server.users.withEmail(email))[0]?.id ?? ''),
    );
    await server.users.update(primary ?? '', { multifactor: ['guardian'] });
    const helper = createServer(async (_request, response) => {
      await managed(server, 'POST', `/users/${encodeURIComponent(primary ?? '')}/identities`, {
        provider: 'auth0',
        user_id: other?.slice('auth0|'.length),
      });
      response.end('{}');
    });
    try {
      await new Promise<void>((resolve) => helper.listen(0, '127.0.0.1', resolve));
      const { begin, poll, connect } = deviceCallsOf(() => server);
      const codes = (await begin()).json();
      await connect(codes);
      await bindActions(server, 'post-login', {
        code: `exports.onExecutePostLogin = async (event, api) => {
          await fetch('http://127.0.0.1:${(helper.address() as AddressInfo).port}/');
          api.authentication.setPrimaryUser('${primary}');
        };`,
      });
      server.tick(5_000);
      // The one who polls need not be the user, and enrols no factor for them.
      expect(told(await poll(codes.device_code))).to.deep.equal([
        403,
        'invalid_grant',
        'The user has to log in.',
      ]);
    } finally {
      helper.close();
      await server.stop();
    }
  });
});
