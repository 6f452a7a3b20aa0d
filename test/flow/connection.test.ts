// The connection of a login: it is recorded with every kind of login, and a request that names a connection is
// completed by no other.
import { expect } from 'chai';
import { identityId } from '../../src/records/connections/identities.ts';
import { tenant } from '../connections/passwordless/tenant.ts';
import { type Agent, type Answer, createAgent, readForm } from '../support/agent.ts';
import { byCode, bySignUp, openPage, REALM_GRANT, ticketFor, uidOf } from '../support/browser-logins.ts';
import {
  authorize,
  follow,
  logIn,
  payload,
  responseOf,
  SPA_CALLBACK,
  spaRequest,
  USER,
  WEB_CALLBACK,
  webRequest,
} from '../support/flows.ts';
import { nextMessageTo } from '../support/inbox.ts';
import { startServer, type TestServer } from '../support/server.ts';

const ORIGIN = new URL(SPA_CALLBACK).origin;

describe('the connection of a login', () => {
  let server: TestServer;
  let agent: Agent;
  let people = 0;
  before(async () => {
    const [users, staff] = tenant.databases;
    server = await startServer({
      tenant: {
        ...tenant,
        databases: [users, { ...staff, enabled_clients: ['web', 'spa'] }],
        connections: [
          ...tenant.connections,
          {
            name: 'corporate',
            strategy: 'oidc',
            enabled_clients: ['web'],
            options: {
              client_id: 'c',
              issuer: 'https://idp.example.test',
              end_session_endpoint: 'https://idp.example.test/logout',
            },
          },
        ],
      },
    });
  });
  after(() => server.stop());
  beforeEach(() => {
    agent = createAgent(server);
  });

  const someone = () => `connected-${++people}@example.test`;
  const password = {
    credential_type: REALM_GRANT,
    realm: 'users',
    username: USER.email,
    password: USER.password,
  };
  const withTicket = (login_ticket: string, over: Record<string, string> = {}) => ({
    ...spaRequest('', {
      response_type: 'id_token',
      code_challenge: undefined,
      code_challenge_method: undefined,
    }),
    login_ticket,
    ...over,
  });
  const isLoggedIn = async () =>
    'code' in responseOf(await authorize(agent, webRequest({ prompt: 'none', scope: 'openid' })));

  /** Gives a user another identity. @returns a function that removes it. */
  const link = async (user_id: string, provider: string, connection: string) => {
    const identities = server.store.collection('identities');
    const identity = { user_id, provider, connection, upstream_id: 'ada', isSocial: false, unique: [] };
    await identities.insert({ ...identity, id: identityId(connection, 'ada') });
    return () => identities.delete(identityId(connection, 'ada'));
  };

  it('is kept by a login ticket, so that a federated logout goes to no other provider', async () => {
    const user = await server.users.findInConnection({ name: 'users' }, USER.email);
    const unlink = await link(user!.id, 'oidc', 'corporate');
    try {
      await openPage(agent, server, withTicket(await ticketFor(agent, ORIGIN, password)));
      expect(await isLoggedIn()).to.equal(true);
      const out = await agent.get('/v2/logout?federated');
      expect(out.location).to.not.include('idp.example.test');
    } finally {
      await unlink();
    }
  });

  describe('that a request names', () => {
    const named = (connection: string, over: Record<string, string> = {}) =>
      webRequest({ connection, ...over });
    const email = async () => {
      const address = someone();
      await byCode(createAgent(server), server, webRequest(), { connection: 'email', address });
      return address;
    };
    const completed = (answer: Answer) => 'code' in (answer.location === '' ? {} : responseOf(answer));

    it('is the only one that the page offers', async () => {
      const page = await openPage(agent, server, named('users'));
      expect(page.text).to.contain('name="password"').and.not.contain('/passwordless/');
      const codes = await openPage(agent, server, named('email'));
      expect(codes.text).to.contain('name="address"').and.not.contain('Use a password');
      expect(codes.text).to.not.contain('/passwordless/sms');
    });

    it('is not replaced by a passwordless code', async () => {
      const uid = uidOf(await openPage(agent, server, named('users')));
      const page = await follow(agent, await agent.get(`/u/${uid}/passwordless/email`), server.url);
      expect(page.text).to.contain('name="password"');
      const { fields } = readForm(page, '_csrf');
      const address = await email();
      for (const step of ['', '/code']) {
        const form = { ...fields, address, code: '000000' };
        const posted = await agent.request(`/u/${uid}/passwordless/email${step}`, { form });
        expect((await follow(agent, posted, server.url)).text, step).to.contain('name="password"');
      }
    });

    it('is not replaced by a password or by signing up when it is passwordless', async () => {
      const page = await openPage(agent, server, named('email'));
      const uid = uidOf(page);
      const { fields } = readForm(page, '_csrf');
      for (const step of ['login', 'signup']) {
        const shown = await follow(agent, await agent.get(`/u/${uid}/${step}`), server.url);
        expect(shown.text, step).to.contain('name="address"');
        const form = { ...fields, username: USER.email, email: someone(), password: USER.password };
        const posted = await follow(agent, await agent.request(`/u/${uid}/${step}`, { form }), server.url);
        expect(posted.text, step).to.contain('name="address"');
      }
      expect(await isLoggedIn()).to.equal(false);
    });

    it('is not replaced by another database with a user of the same password', async () => {
      const answer = await logIn(agent, server, named('staff'), USER);
      expect(completed(answer)).to.equal(false);
      expect(completed(await logIn(agent, server, named('users'), USER))).to.equal(true);
    });

    it('accepts signing up to it', async () => {
      const address = someone();
      const answer = await bySignUp(agent, server, named('users'), address);
      expect(completed(answer)).to.equal(true);
      const user = await server.users.findInConnection({ name: 'users' }, address);
      const identities = await server.users.identitiesOf(user?.id ?? '');
      expect(identities.map(({ connection }) => connection)).to.deep.equal(['users']);
    });

    it('is not replaced by a login ticket of another, with and without prompt=none', async () => {
      for (const over of [{}, { prompt: 'none' }]) {
        const request = withTicket(await ticketFor(agent, ORIGIN, password), {
          connection: 'staff',
          ...over,
        });
        const answer = await openPage(agent, server, request);
        if ('prompt' in over) expect(responseOf(answer)).to.include({ error: 'login_required' });
        else expect(answer.text).to.contain('name="password"');
        expect(await isLoggedIn()).to.equal(false);
      }
      const right = withTicket(await ticketFor(agent, ORIGIN, password), { connection: 'users' });
      const answer = await openPage(agent, server, right);
      expect(payload(responseOf(answer).id_token ?? '').email).to.equal(USER.email);
    });

    it('is not replaced by a session of another, although the user has a linked identity', async () => {
      const user = await server.users.findInConnection({ name: 'users' }, USER.email);
      const unlink = await link(user!.id, 'auth0', 'staff');
      try {
        await logIn(agent, server, webRequest(), USER);
        const silent = (connection: string) => authorize(agent, named(connection, { prompt: 'none' }));
        expect(responseOf(await silent('users'))).to.have.property('code');
        expect(responseOf(await silent('staff'))).to.include({ error: 'login_required' });
        // Choosing the logged-in account does not replace it either.
        const choice = await openPage(agent, server, named('staff', { prompt: 'select_account' }));
        const { action, fields } = readForm(choice, '_csrf');
        const chosen = await follow(agent, await agent.request(action, { form: fields }), server.url);
        expect(chosen.text).to.contain('name="password"');
      } finally {
        await unlink();
      }
    });

    it('accepts its own code and its own link', async () => {
      const address = someone();
      expect(
        completed(await byCode(agent, server, named('email'), { connection: 'email', address })),
      ).to.equal(true);
      const other = createAgent(server);
      await other.request('/passwordless/start', {
        json: {
          client_id: 'web',
          client_secret: 'web-secret',
          connection: 'email',
          email: address,
          send: 'link',
        },
        headers: { origin: new URL(WEB_CALLBACK).origin },
      });
      const { pathname, search } = new URL((await nextMessageTo(server, address, 1, 'link')).link ?? '');
      const back = await follow(other, await other.get(pathname + search), server.url);
      expect(back.location.startsWith(WEB_CALLBACK)).to.equal(true);
      expect(completed(back)).to.equal(true);
    });
  });
});
