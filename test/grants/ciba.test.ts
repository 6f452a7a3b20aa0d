// CIBA: logins that a user approves on a device or by e-mail, and attempts to abuse them.
import { expect } from 'chai';
import { rememberConsent } from '../../src/engine/token/token-grants.ts';
import { devicesOf } from '../factors/device.ts';
import { callsOf as mfaCallsOf } from '../factors/tenant.ts';
import { callApi, startManaged } from '../management/support.ts';
import { createAgent, readForm } from '../support/agent.ts';
import { API, follow, payload, submitLogin, token, USER } from '../support/flows.ts';
import { messagesTo, nextMessageTo } from '../support/inbox.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { CIBA_GRANT, cibaTenant, told } from './tenant.ts';

/** Returns the logged events of logins and approvals. @param userId only those of this user. */
async function logged({ store }: TestServer, userId?: string): Promise<string[]> {
  const { records } = await store.collection('logs').list({ limit: 1000 });
  return records
    .filter(({ type, user_id: id }) => ['s', 'seciba'].includes(type) && (userId ?? id) === id)
    .map(({ type }) => String(type))
    .sort();
}

describe('CIBA', () => {
  let server: TestServer;
  let calls: ReturnType<typeof mfaCallsOf>;
  let users = 0;
  const devices = devicesOf(() => ({ server, calls, someone: () => `mfa-${users++}@example.test` }));
  beforeEach(async () => {
    server = await startManaged(cibaTenant);
    calls = mfaCallsOf(server);
    users = 0;
  });
  afterEach(() => server.stop());

  const idOf = async (email: string) => (await server.users.withEmail(email))[0]?.id ?? '';
  const hint = (sub: string, over: object = {}) =>
    JSON.stringify({ format: 'iss_sub', iss: server.issuer, sub, ...over });
  const ask = (login_hint: string, fields: Record<string, string> = {}, client = 'bank') =>
    createAgent(server).request('/bc-authorize', {
      form: {
        client_id: client,
        ...(client === 'public-bank' ? {} : { client_secret: `${client}-secret` }),
        scope: 'openid profile',
        binding_message: 'Payment 4711',
        login_hint,
        ...fields,
      },
    });
  const poll = (auth_req_id: string, client = 'bank') =>
    token(createAgent(server), {
      grant_type: CIBA_GRANT,
      client_id: client,
      client_secret: `${client}-secret`,
      auth_req_id,
    });
  const begun = async () => {
    const { user, device } = await devices.enrolled();
    const sub = await idOf(user);
    return { user, sub, device, asked: (await ask(hint(sub))).json() };
  };

  it('issues tokens once when the user approves on their device', async () => {
    const { user, device } = await devices.enrolled();
    const sub = await idOf(user);
    const answer = await ask(hint(sub), { audience: API, scope: 'openid profile read:things' });
    const { auth_req_id, ...rest } = answer.json();
    expect([answer.status, rest]).to.deep.equal([200, { expires_in: 300, interval: 5 }]);
    expect(told(await poll(auth_req_id))).to.deep.equal([
      400,
      'authorization_pending',
      'The end-user authorization is pending',
    ]);
    const [waiting] = await devices.waiting(device);
    expect(waiting).to.include({ application: 'The bank', binding_message: 'Payment 4711' });
    expect((await devices.answerWith(device, waiting?.id ?? '', 'allow')).status).to.equal(204);
    const tokens = (await poll(auth_req_id)).json();
    expect(payload(tokens.id_token)).to.include({ sub, aud: 'bank' }).and.not.to.have.property('amr');
    expect(payload(tokens.access_token)).to.include({ sub, azp: 'bank', gty: CIBA_GRANT });
    expect(told(await poll(auth_req_id))[1]).to.equal('invalid_grant');
    expect(await devices.waiting(device)).to.deep.equal([]);
    // The login is not logged by a page; the first event is that of the enrollment.
    expect(await logged(server, sub)).to.deep.equal(['s', 's', 'seciba']);
  });

  it('issues tokens to one of several simultaneous polls', async () => {
    const { device, asked } = await begun();
    await devices.answerWith(device, (await devices.waiting(device))[0]?.id ?? '', 'allow');
    const answers = await Promise.all(Array.from({ length: 5 }, () => poll(asked.auth_req_id)));
    expect(answers.filter(({ status }) => status === 200)).to.have.length(1);
  });

  it('answers access_denied when the user denies', async () => {
    const { device, asked } = await begun();
    await devices.answerWith(device, (await devices.waiting(device))[0]?.id ?? '', 'deny');
    expect(told(await poll(asked.auth_req_id))).to.deep.equal([
      400,
      'access_denied',
      'The end-user denied the authorization request or it has been expired',
    ]);
  });

  it('ends an approved request when the user’s grants for the application are deleted', async () => {
    for (const withdraw of [
      async (sub: string) => {
        const grants = (await (await callApi(server, 'GET', `/grants?user_id=${sub}`)).json()) as {
          id: string;
        }[];
        for (const { id } of grants) await callApi(server, 'DELETE', `/grants/${id}`);
      },
      (sub: string) => callApi(server, 'DELETE', `/grants?user_id=${sub}`),
    ]) {
      const { device, asked, sub } = await begun();
      await rememberConsent(server.store, sub, 'bank', { '': ['openid', 'profile'] });
      await devices.answerWith(device, (await devices.waiting(device))[0]?.id ?? '', 'allow');
      await withdraw(encodeURIComponent(sub));
      expect(told(await poll(asked.auth_req_id))[1]).to.equal('invalid_grant');
      // The request of another application continues.
      const other = (await ask(hint(sub))).json();
      expect(told(await poll(other.auth_req_id))[1]).to.equal('authorization_pending');
    }
  });

  it('cannot be approved by another user’s device', async () => {
    const { device, asked } = await begun();
    const other = (await devices.enrolled()).device;
    const [waiting] = await devices.waiting(device);
    expect(await devices.waiting(other)).to.deep.equal([]);
    expect((await devices.answerWith(other, waiting?.id ?? '', 'allow')).status).to.equal(404);
    expect(told(await poll(asked.auth_req_id))[1]).to.equal('authorization_pending');
  });

  it('answers slow_down to a client that polls too often', async () => {
    const { asked } = await begun();
    await poll(asked.auth_req_id);
    const answer = await poll(asked.auth_req_id);
    expect([answer.status, answer.json(), answer.headers['retry-after']]).to.deep.equal([
      429,
      {
        error: 'slow_down',
        error_description: 'You are polling faster than allowed. Try again in 10 seconds.',
        interval: 10,
      },
      '10',
    ]);
  });

  it('expires after requested_expiry', async () => {
    const { user, device } = await devices.enrolled();
    const { auth_req_id, expires_in } = (
      await ask(hint(await idOf(user)), { requested_expiry: '30' })
    ).json();
    expect(expires_in).to.equal(30);
    server.tick(31_000);
    expect(await devices.waiting(device)).to.deep.equal([]);
    expect(told(await poll(auth_req_id))[1]).to.equal('invalid_grant');
  });

  it('binds a request to its client; another client’s poll does not use it up', async () => {
    const { device, asked } = await begun();
    await devices.answerWith(device, (await devices.waiting(device))[0]?.id ?? '', 'allow');
    expect(told(await poll(asked.auth_req_id, 'other-bank'))[1]).to.equal('invalid_grant');
    expect((await poll(asked.auth_req_id)).status).to.equal(200);
  });

  it('is only for confidential clients with the grant', async () => {
    const sub = hint(await idOf(USER.email));
    for (const client of ['public-bank', 'third-bank', 'web'])
      expect(told(await ask(sub, {}, client))[1]).to.equal('unauthorized_client');
    expect(told(await ask(sub, { client_secret: 'wrong' }))[1]).to.equal('invalid_client');
  });

  it('finds only users of the application’s connections, by an iss_sub hint', async () => {
    const sub = await idOf(USER.email);
    const wrong = [
      USER.email,
      hint('auth0|nobody'),
      hint(sub, { iss: 'https://elsewhere.test/' }),
      hint(sub, { format: 'email' }),
      '{}',
    ];
    const expected = [400, 'unknown_user_id', 'User ID is malformed or unknown'];
    for (const one of wrong) expect(told(await ask(one))).to.deep.equal(expected);
    expect(told(await ask(hint(sub), {}, 'elsewhere'))).to.deep.equal(expected);
  });

  it('asks nobody whose account is blocked, and nobody by a token as a hint, valid or ended', async () => {
    const { user, device } = await devices.enrolled();
    const sub = await idOf(user);
    const { device: other } = await devices.enrolled();
    const approved = (await ask(hint(sub))).json();
    await devices.answerWith(device, (await devices.waiting(device))[0]?.id ?? '', 'allow');
    const { id_token } = (await poll(approved.auth_req_id)).json();
    for (const name of ['id_token_hint', 'login_hint_token']) {
      const both = await ask(hint(sub), { [name]: id_token });
      expect(told(both).slice(0, 2), name).to.deep.equal([400, 'invalid_request']);
      const alone = await createAgent(server).request('/bc-authorize', {
        form: {
          client_id: 'bank',
          client_secret: 'bank-secret',
          scope: 'openid',
          binding_message: 'Pay',
          [name]: id_token,
        },
      });
      expect(told(alone).slice(0, 2), name).to.deep.equal([400, 'invalid_request']);
    }
    await server.users.update(sub, { blocked: true });
    expect((await ask(hint(sub))).status).to.equal(400);
    expect([await devices.waiting(device), await devices.waiting(other)]).to.deep.equal([[], []]);
  });

  it('checks the other parameters', async () => {
    const sub = hint(await idOf(USER.email));
    const faults: [Record<string, string>, string][] = [
      [{ scope: 'profile' }, 'invalid_request'],
      [{ binding_message: 'x'.repeat(65) }, 'invalid_binding_message'],
      [{ binding_message: 'Click <b>here</b>' }, 'invalid_binding_message'],
      // Letters that nobody sees.
      [{ binding_message: '\u3164' }, 'invalid_binding_message'],
      [{ binding_message: 'Payment 47\uFFA011' }, 'invalid_binding_message'],
      [{ requested_expiry: '0' }, 'invalid_request'],
      [{ requested_expiry: '1e3' }, 'invalid_request'],
      [{ requested_expiry: '999999' }, 'invalid_request'],
      [{ request: 'a.b.c' }, 'invalid_request'],
      [{ authorization_details: '[]' }, 'invalid_request'],
      [{ audience: 'https://nowhere.test/' }, 'access_denied'],
      [{ organization: 'acme' }, 'invalid_request'],
    ];
    for (const [fields, error] of faults) expect(told(await ask(sub, fields))[1]).to.equal(error);
    // A user without a device, and an application that does not allow e-mail.
    expect(told(await ask(sub))[1]).to.equal('invalid_request');
  });

  it('limits how often a user is asked', async () => {
    const { user } = await devices.enrolled();
    const sub = hint(await idOf(user));
    const statuses = [];
    for (let n = 0; n < 11; n++) statuses.push((await ask(sub)).status);
    expect(statuses.at(-1)).to.equal(429);
    expect(statuses.slice(0, 10)).to.deep.equal(Array(10).fill(200));
  });

  it('issues nothing for a user who was blocked meanwhile', async () => {
    const { sub, device, asked } = await begun();
    await devices.answerWith(device, (await devices.waiting(device))[0]?.id ?? '', 'allow');
    await server.users.update(sub, { blocked: true });
    expect(told(await poll(asked.auth_req_id))[1]).to.equal('unauthorized');
  });

  it('issues nothing after the user’s sessions were ended, although a device approved it', async () => {
    const { sub, device, asked } = await begun();
    await devices.answerWith(device, (await devices.waiting(device))[0]?.id ?? '', 'allow');
    const ended = await callApi(server, 'DELETE', `/users/${encodeURIComponent(sub)}/sessions`);
    expect(ended.status).to.equal(202);
    expect(told(await poll(asked.auth_req_id))[1]).to.equal('invalid_grant');
  });

  describe('by e-mail', () => {
    let plain: TestServer;
    before(async () => {
      plain = await startServer({ tenant: { ...cibaTenant, guardianPolicies: { policies: [] } } });
    });
    after(() => plain.stop());

    const begin = async () => {
      const sub = (await plain.users.withEmail(USER.email))[0]?.id ?? '';
      const answer = await createAgent(plain).request('/bc-authorize', {
        form: {
          client_id: 'mail-bank',
          client_secret: 'mail-bank-secret',
          scope: 'openid',
          binding_message: 'Payment 4711',
          requested_expiry: '3600',
          login_hint: JSON.stringify({ format: 'iss_sub', iss: plain.issuer, sub }),
        },
      });
      expect([answer.status, answer.json().expires_in]).to.deep.equal([200, 3600]);
      return answer.json().auth_req_id as string;
    };
    const ask = (auth_req_id: string) =>
      token(createAgent(plain), {
        grant_type: CIBA_GRANT,
        client_id: 'mail-bank',
        client_secret: 'mail-bank-secret',
        auth_req_id,
      });
    /** Opens the link of the newest e-mail and logs in. */
    const open = async (count: number, user: { email: string; password: string } = USER) => {
      const agent = createAgent(plain);
      const { link = '' } = await nextMessageTo(plain, USER.email, count, 'link');
      const login = await follow(agent, await agent.get(link), plain.url);
      return { agent, page: await submitLogin(agent, plain, login, user) };
    };

    it('can be approved at the page after a login', async () => {
      const request = await begin();
      const { agent, page } = await open(1);
      expect(page.text).to.contain('Payment 4711').and.to.contain('The mail-bank');
      const { action, fields } = readForm(page, 'ticket');
      const posted = { form: { ...fields, decision: 'accept' } };
      expect((await agent.request(action, posted)).text).to.contain('You approved the request');
      expect((await agent.request(action, posted)).status, 'once').to.equal(400);
      expect((await ask(request)).json()).to.include.keys('access_token', 'id_token');
      // A login at the page counts as one login.
      expect(await logged(plain)).to.deep.equal(['s', 'seciba']);
      expect((await plain.users.withEmail(USER.email))[0]?.logins_count).to.equal(1);
    });

    it('can be denied there', async () => {
      const request = await begin();
      const { agent, page } = await open(2);
      const { action, fields } = readForm(page, 'ticket');
      await agent.request(action, { form: { ...fields, decision: 'deny' } });
      expect(told(await ask(request))[1]).to.equal('access_denied');
    });

    it('is not shown to another user, and requires the CSRF token of the page', async () => {
      const request = await begin();
      const other = await open(3, { email: 'mfa-1@example.test', password: USER.password });
      expect(other.page.text).to.contain('Nothing is waiting for you');
      const { page } = await open(3);
      const { fields } = readForm(page, 'ticket');
      const forged = await createAgent(plain).request('/approval', {
        form: { ...fields, decision: 'accept' },
      });
      expect(forged.status).to.equal(403);
      expect(told(await ask(request))[1]).to.equal('authorization_pending');
    });

    it('is not approved by a page of a session that has ended meanwhile', async () => {
      const mailed = (await messagesTo(plain, USER.email)).filter(({ link }) => link !== undefined).length;
      const request = await begin();
      const { agent, page } = await open(mailed + 1);
      const { action, fields } = readForm(page, 'ticket');
      await agent.get('/v2/logout');
      const posted = await agent.request(action, { form: { ...fields, decision: 'accept' } });
      expect(posted.status, posted.text).to.equal(400);
      expect(told(await ask(request))[1]).to.equal('authorization_pending');
    });
  });

  it('is announced in the metadata', async () => {
    const found = (await createAgent(server).get('/.well-known/openid-configuration')).json();
    expect(found).to.include({ backchannel_authentication_endpoint: `${server.url}/bc-authorize` });
    expect(found.backchannel_token_delivery_modes_supported).to.deep.equal(['poll']);
  });
});
