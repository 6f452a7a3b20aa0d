// Logins in progress while the password is reset: somebody who knows the old password must not obtain a session or a
// refresh token, with any grant and at any moment of the reset.
import { expect } from 'chai';
import { createHasher, type Hasher } from '../../src/users/hashing.ts';
import { codeOf, factors, MFA_GRANTS, tenant } from '../factors/tenant.ts';
import { type Agent, type Answer, createAgent, readForm } from '../support/agent.ts';
import { openPage, REALM_GRANT } from '../support/browser-logins.ts';
import {
  responseOf,
  SPA_CALLBACK,
  submitLogin,
  token,
  USER,
  WEB_CALLBACK,
  webRequest,
} from '../support/flows.ts';
import { nextMessageTo } from '../support/inbox.ts';
import { seeded, turns } from '../support/seeded.ts';
import { CHEAP, startServer, type TestServer } from '../support/server.ts';

const NEW = 'Another-Long-Word-9';
const ORIGIN = new URL(SPA_CALLBACK).origin;

/** A hasher that can hold back the answer that a password is right, so that a test can act before it arrives. */
function gatedHasher() {
  const inner = createHasher({ cost: CHEAP });
  let gate: { opened: Promise<void>; open: () => void } | undefined;
  let waiting = 0;
  const hasher: Hasher = {
    ...inner,
    verify: async (hash, password) => {
      const verified = await inner.verify(hash, password);
      if (gate === undefined || !verified.ok) return verified;
      waiting++;
      await gate.opened;
      waiting--;
      return verified;
    },
  };
  return {
    hasher,
    close: () => {
      let open = () => {};
      const opened = new Promise<void>((resolve) => {
        open = resolve;
      });
      gate = { opened, open };
    },
    open: () => {
      gate?.open();
      gate = undefined;
    },
    /** Waits until so many right answers are held back. */
    until: async (count: number) => {
      while (waiting < count) await turns(1);
    },
  };
}

describe('a password reset', () => {
  const gate = gatedHasher();
  let server: TestServer;
  let people = 0;

  before(async () => {
    server = await startServer({
      hasher: gate.hasher,
      tenant: {
        ...tenant,
        attackProtection: {
          ...tenant.attackProtection,
          rateLimits: {
            ...tenant.attackProtection.rateLimits,
            changePassword: { capacity: 1e6, perMinute: 1e6 },
            token: { capacity: 1e6, perMinute: 1e6 },
            authorize: { capacity: 1e6, perMinute: 1e6 },
          },
        },
        guardianFactors: factors('otp'),
        guardianPolicies: { policies: [] },
      },
    });
  });
  after(() => server.stop());

  /** Makes a user for each test, so that tests do not affect each other. */
  const someone = () => `mfa-${people++}@example.test`;
  const web = { client_id: 'web', client_secret: 'web-secret' };

  /** Goes as far as the form of the new password. @returns a function that sends it. */
  const prepareReset = async (email: string) => {
    const agent = createAgent(server);
    await agent.request('/dbconnections/change_password', {
      json: { client_id: 'web', email, connection: 'users' },
    });
    const page = await agent.get((await nextMessageTo(server, email, 1, 'link')).link ?? '');
    const { action, fields } = readForm(page, 'password');
    return () => agent.request(action, { form: { ...fields, password: NEW, repeat: NEW } });
  };

  /** Returns whether a browser is logged in. */
  const hasSession = async (agent: Agent) => {
    const answer = await agent.get(`/authorize?${new URLSearchParams(webRequest({ prompt: 'none' }))}`);
    return 'code' in responseOf(answer);
  };
  const refreshes = async (refresh_token: string) =>
    (await token(createAgent(server), { ...web, grant_type: 'refresh_token', refresh_token })).status === 200;

  const byGrant = (email: string, over: object = {}) =>
    token(createAgent(server), {
      ...web,
      grant_type: 'password',
      username: email,
      password: USER.password,
      scope: 'openid offline_access',
      ...over,
    });
  /** Fills in the login page. @returns a function that posts it and follows to the end. */
  const preparePage = async (agent: Agent, email: string, over: Record<string, string> = {}) => {
    const page = await openPage(agent, server, webRequest({ scope: 'openid offline_access', ...over }));
    return () => submitLogin(agent, server, page, { email, password: USER.password });
  };
  const exchange = async (agent: Agent, back: Answer) => {
    const { code } = back.location === '' ? {} : responseOf(back);
    if (code === undefined) return undefined;
    const fields = { ...web, grant_type: 'authorization_code', code, redirect_uri: WEB_CALLBACK };
    return token(agent, fields);
  };
  const ticket = (agent: Agent, email: string) =>
    agent.request('/co/authenticate', {
      json: {
        client_id: 'spa',
        credential_type: REALM_GRANT,
        realm: 'users',
        username: email,
        password: USER.password,
      },
      headers: { origin: ORIGIN },
    });
  const useTicket = (agent: Agent, login_ticket: string, over: Record<string, string> = {}) =>
    openPage(agent, server, {
      client_id: 'spa',
      response_type: 'token id_token',
      redirect_uri: SPA_CALLBACK,
      scope: 'openid',
      nonce: 'n',
      login_ticket,
      ...over,
    });

  describe('while a right answer is on its way', () => {
    /** Begins a login, holds back the answer that its password is right, resets, and lets it continue. */
    const overtake = async <T>(email: string, login: () => Promise<T>): Promise<T> => {
      const reset = await prepareReset(email);
      gate.close();
      try {
        const under = login();
        await gate.until(1);
        expect((await reset()).status).to.equal(200);
        gate.open();
        return await under;
      } finally {
        gate.open();
      }
    };

    for (const [grant, over] of [
      ['password', {}],
      ['password-realm', { grant_type: REALM_GRANT, realm: 'users' }],
    ] as const) {
      it(`lets the ${grant} grant fail with the error of a wrong password`, async () => {
        const email = someone();
        const answer = await overtake(email, () => byGrant(email, over));
        expect([answer.status, answer.json()]).to.deep.equal([
          403,
          { error: 'invalid_grant', error_description: 'Wrong email or password.' },
        ]);
      });
    }

    it('makes the login page ask again, which accepts the new password', async () => {
      const email = someone();
      const agent = createAgent(server);
      const page = await overtake(email, await preparePage(agent, email));
      expect(page.status).to.equal(400);
      expect(await hasSession(agent)).to.equal(false);
      const back = await submitLogin(agent, server, page, { email, password: NEW });
      expect(responseOf(back)).to.have.property('code');
    });

    it('invalidates a login ticket', async () => {
      const email = someone();
      const agent = createAgent(server);
      const answer = await overtake(email, () => ticket(agent, email));
      if (answer.status === 200) {
        const page = await useTicket(agent, answer.json().login_ticket);
        expect(page.text).to.include('name="password"');
      }
      expect(await hasSession(agent)).to.equal(false);
    });

    it('invalidates a login ticket of a silent request', async () => {
      const email = someone();
      const agent = createAgent(server);
      const answer = await overtake(email, () => ticket(agent, email));
      if (answer.status === 200) {
        const back = await useTicket(agent, answer.json().login_ticket, { prompt: 'none' });
        expect(responseOf(back)).to.include({ error: 'login_required' });
      }
      expect(await hasSession(agent)).to.equal(false);
    });

    it('invalidates an MFA token', async () => {
      const email = someone();
      await server.users.update((await userOf(email)).id, { multifactor: ['any'] });
      const answer = await overtake(email, () => byGrant(email));
      if (answer.status === 403 && answer.json().error === 'mfa_required') {
        const { mfa_token } = answer.json();
        const agent = createAgent(server);
        const { secret } = (
          await agent.request('/mfa/associate', {
            json: { authenticator_types: ['otp'] },
            headers: { authorization: `Bearer ${mfa_token}` },
          })
        ).json();
        const otp = secret === undefined ? '123456' : codeOf(secret);
        const done = await token(agent, { ...web, grant_type: MFA_GRANTS[0], mfa_token, otp });
        expect(done.status).to.be.within(400, 499);
      }
    });

    it('asks for no second factor after the old password', async () => {
      const email = someone();
      await server.users.update((await userOf(email)).id, { multifactor: ['any'] });
      const agent = createAgent(server);
      const page = await overtake(email, await preparePage(agent, email));
      expect(page.text).not.to.include('One more step');
      expect(page.text).to.include('name="password"');
    });

    it('grants nothing to a user who was removed or blocked meanwhile', async () => {
      for (const change of ['removed', 'blocked'] as const) {
        const email = someone();
        const { id } = await userOf(email);
        const agent = createAgent(server);
        const logIn = await preparePage(agent, email);
        gate.close();
        const [granting, logging] = [byGrant(email), logIn()];
        await gate.until(2);
        if (change === 'blocked') await server.users.update(id, { blocked: true });
        else await server.store.collection('users').delete(id);
        gate.open();
        expect((await granting).status, change).to.equal(403);
        expect(responseOf(await logging.then(asRedirect)), change).not.to.have.property('code');
        expect(await hasSession(agent), change).to.equal(false);
      }
    });
  });

  for (const seed of [1, 2, 3, 4, 5, 6]) {
    it(`leaves nothing to 26 concurrent logins with the old password (seed ${seed})`, async () => {
      const random = seeded(seed);
      const email = someone();
      const reset = await prepareReset(email);
      const agents = Array.from({ length: 13 }, () => createAgent(server));
      const pages = await Promise.all(agents.map((agent) => preparePage(agent, email)));
      const later = async <T>(what: () => Promise<T>): Promise<T> => {
        await turns(Math.floor(random() * 20));
        return what();
      };
      const logins = pages.map((logIn, at) =>
        later(async () => exchange(agents[at] as Agent, await logIn())),
      );
      const grants = Array.from({ length: 13 }, () => later(() => byGrant(email)));
      await turns(Math.floor(random() * 20));
      expect((await reset()).status).to.equal(200);
      const answers = [...(await Promise.all(logins)), ...(await Promise.all(grants))];
      const tokens = answers.flatMap((answer) =>
        answer?.status === 200 ? [answer.json().refresh_token] : [],
      );
      const live = (await Promise.all(tokens.map(refreshes))).filter(Boolean).length;
      const sessions = (await Promise.all(agents.map(hasSession))).filter(Boolean).length;
      expect({ live, sessions }).to.deep.equal({ live: 0, sessions: 0 });
    });
  }

  for (const seed of [1, 2, 3]) {
    it(`leaves nothing to requests in progress with earlier sessions (seed ${seed})`, async () => {
      const random = seeded(seed);
      const email = someone();
      const agents = await Promise.all(
        Array.from({ length: 4 }, async () => {
          const agent = createAgent(server);
          await (await preparePage(agent, email))();
          return agent;
        }),
      );
      const granted = (await Promise.all(Array.from({ length: 6 }, () => byGrant(email)))).map((one) =>
        one.json(),
      );
      const reset = await prepareReset(email);
      const later = async <T>(what: () => Promise<T>): Promise<T> => {
        await turns(Math.floor(random() * 40));
        return what();
      };
      const silently = agents.flatMap((agent) =>
        [0, 1, 2].map(() =>
          later(async () => {
            const request = webRequest({ prompt: 'none', scope: 'openid offline_access' });
            const answer = await agent.get(`/authorize?${new URLSearchParams(request)}`);
            return exchange(createAgent(server), answer);
          }),
        ),
      );
      const refreshed = granted.map(({ refresh_token }) =>
        later(() => token(createAgent(server), { ...web, grant_type: 'refresh_token', refresh_token })),
      );
      await turns(Math.floor(random() * 20));
      expect((await reset()).status).to.equal(200);
      const answers = [...(await Promise.all(silently)), ...(await Promise.all(refreshed))];
      const issued = answers.flatMap((answer) => (answer?.status === 200 ? [answer.json()] : []));
      const tokens = [...granted, ...issued].flatMap(({ refresh_token }) => refresh_token ?? []);
      const opaque = [...granted, ...issued].map(({ access_token }) => access_token);
      const profiles = opaque.map(
        async (access_token) =>
          (await createAgent(server).get('/userinfo', { authorization: `Bearer ${access_token}` })).status ===
          200,
      );
      const count = async (found: Promise<boolean>[]) => (await Promise.all(found)).filter(Boolean).length;
      expect({
        live: await count(tokens.map(refreshes)),
        sessions: await count(agents.map(hasSession)),
        profiles: await count(profiles),
      }).to.deep.equal({ live: 0, sessions: 0, profiles: 0 });
    });
  }

  const userOf = async (email: string) => {
    const found = await server.users.findInConnection({ name: 'users' }, email);
    if (found === undefined) throw new Error(`no user ${email}`);
    return found;
  };
  const asRedirect = (answer: Answer) =>
    answer.location === '' ? { ...answer, location: `${server.url}/` } : answer;
});
