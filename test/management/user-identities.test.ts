// Linking users in the Management API, and which user later logins lead to.
import { expect } from 'chai';
import { toResource } from '../../src/engine/base/request-extensions.ts';
import { rememberConsent } from '../../src/engine/token/token-grants.ts';
import { tenant as base, OTP_GRANT } from '../connections/passwordless/tenant.ts';
import { type Agent, createAgent } from '../support/agent.ts';
import { logIn, payload, responseOf, token, WEB_CALLBACK, webRequest } from '../support/flows.ts';
import { heldStore } from '../support/held-store.ts';
import { nextMessageTo } from '../support/inbox.ts';
import { prepareReset, resetForm, resetPassword } from '../support/reset.ts';
import type { TestServer } from '../support/server.ts';
import { callsWith, type ManagementCall, managementToken, startManaged } from './support.ts';

const CLIENT = { client_id: 'web', client_secret: 'web-secret' };
const VERIFIED = { email_verified: true };
const OWN = 'read:current_user update:current_user_identities update:current_user_metadata';

describe('identities of a user', () => {
  let server: TestServer;
  let agent: Agent;
  let admin: string;
  let call: ManagementCall;
  let people = 0;
  const held = heldStore();

  before(async () => {
    server = await startManaged(base, undefined, {}, { open: held.open });
    agent = createAgent(server);
    admin = await managementToken(server);
    call = callsWith(server, admin);
  });
  after(() => server.stop());

  const pathOf = (id: string) => `/users/${encodeURIComponent(id)}`;
  const newAddress = () => `linked-${people++}@example.test`;
  const someone = async (connection = 'users', more: object = {}) => {
    const email = newAddress();
    const password = `Own-Password-${people}`;
    const isDatabase = connection === 'users';
    const made = await call('POST', '/users', {
      connection,
      email,
      ...(isDatabase ? { password } : {}),
      ...more,
    });
    expect(made.status, made.text).to.equal(201);
    return { id: made.json().user_id as string, bare: made.json().identities[0].user_id, email, password };
  };
  const login = (username: string, password: string, more: Record<string, string> = {}) =>
    token(agent, { grant_type: 'password', ...CLIENT, username, password, scope: 'openid', ...more });
  const byCode = async (email: string) => {
    await agent.request('/passwordless/start', {
      json: { ...CLIENT, connection: 'email', email, send: 'code' },
    });
    const { code } = await nextMessageTo(server, email);
    return token(agent, {
      grant_type: OTP_GRANT,
      ...CLIENT,
      username: email,
      otp: code,
      realm: 'email',
      scope: 'openid email',
    });
  };
  const ownToken = async (one: { id: string; email: string; password: string }, scope = OWN) => {
    // The consent that the user would have given on the consent page.
    await rememberConsent(server.store, one.id, 'web', {
      '': ['openid'],
      [toResource(`${server.issuer}api/v2/`)]: scope.split(' '),
    });
    const wanted = webRequest({ audience: `${server.issuer}api/v2/`, scope: `openid ${scope}` });
    const { code } = responseOf(await logIn(createAgent(server), server, wanted, one));
    const answer = await token(agent, {
      grant_type: 'authorization_code',
      ...CLIENT,
      code,
      redirect_uri: WEB_CALLBACK,
    });
    return answer.json() as { access_token: string; id_token: string };
  };
  const subOf = (answer: { json(): Record<string, any>; text: string }) => {
    const { id_token } = answer.json();
    expect(id_token, answer.text).to.be.a('string');
    return payload(id_token).sub as string;
  };
  it('are at most fifty of one user', async () => {
    const owner = await someone('email', VERIFIED);
    const link = async () => {
      const other = await someone('email', VERIFIED);
      return call('POST', `${pathOf(owner.id)}/identities`, { provider: 'email', user_id: other.bare });
    };
    for (let count = 2; count <= 50; count++) {
      const linked = await link();
      expect(linked.status, linked.text).to.equal(201);
    }
    const refused = await link();
    expect([refused.status, refused.json().message]).to.deep.equal([
      400,
      'A user has at most 50 identities.',
    ]);
  });

  it('are changed by a body that names their connection, without changing the user', async () => {
    const [first, second, third] = [await someone(), await someone('email'), await someone()];
    const linked = await call('POST', `${pathOf(second.id)}/identities`, {
      provider: 'auth0',
      user_id: first.bare,
    });
    expect(linked.status, linked.text).to.equal(201);
    const email = newAddress();
    const changed = await call('PATCH', pathOf(second.id), {
      connection: 'users',
      email,
      email_verified: true,
      user_metadata: { seen: true },
    });
    expect(changed.status, changed.text).to.equal(200);
    const { identities, ...root } = changed.json();
    expect(root).to.deep.include({ email: second.email, user_metadata: { seen: true } });
    const one = identities.find(({ connection }: { connection: string }) => connection === 'users');
    expect(one.profileData).to.include({ email, email_verified: true });
    expect((await login(first.email, first.password)).status).to.equal(403);
    expect(subOf(await login(email, first.password))).to.equal(second.id);
    // An address of another user is refused, and nothing is written.
    const taken = await call('PATCH', pathOf(second.id), {
      connection: 'users',
      email: third.email,
      user_metadata: { seen: false },
    });
    expect(taken.status).to.equal(400);
    expect((await call('GET', pathOf(second.id))).json().user_metadata).to.deep.equal({ seen: true });
    const verify = await call('PATCH', pathOf(second.id), { connection: 'users', verify_email: true });
    expect(verify.status).to.equal(400);
  });

  /** Opens the form of a password change ticket. @returns a function that submits it */
  const ticketForm = async (user_id: string) => {
    const made = await call('POST', '/tickets/password-change', { user_id });
    return resetForm(server, made.json().ticket);
  };
  const link = (primary: string, body: object, bearer?: string) =>
    call('POST', `${pathOf(primary)}/identities`, body, bearer);

  it('lead to the primary user once linked, each with its own password', async () => {
    const first = await someone();
    const second = await someone('users', { user_metadata: { a: 1 }, given_name: 'Second' });
    const linked = await link(first.id, { provider: 'auth0', user_id: second.bare });
    expect(linked.status, linked.text).to.equal(201);
    expect(linked.json()).to.have.length(2);
    expect(linked.json()[0]).to.deep.equal({
      connection: 'users',
      provider: 'auth0',
      user_id: first.bare,
      isSocial: false,
    });
    expect(linked.json()[1]).to.deep.include({ provider: 'auth0', user_id: second.bare });
    expect(linked.json()[1].profileData).to.include({ email: second.email, given_name: 'Second' });
    expect(subOf(await login(first.email, first.password))).to.equal(first.id);
    expect(subOf(await login(second.email, second.password))).to.equal(first.id);
    expect((await login(second.email, first.password)).status).to.equal(403);
    expect((await login(first.email, second.password)).status).to.equal(403);
    expect((await call('GET', pathOf(second.id))).status).to.equal(404);
    const user = (await call('GET', pathOf(first.id))).json();
    expect(user).to.include({ email: first.email }).and.not.to.have.property('given_name');
    expect(user.user_metadata).to.deep.equal({});
  });

  it('can be of different connections: a code leads to the primary user, and does not verify its address', async () => {
    const first = await someone();
    const second = await someone('email');
    expect((await link(first.id, { provider: 'email', user_id: second.id })).status).to.equal(201);
    expect(subOf(await byCode(second.email))).to.equal(first.id);
    const user = (await call('GET', pathOf(first.id))).json();
    expect(user).to.include({ email: first.email, email_verified: false });
  });

  it('keep their own addresses and passwords when those of the primary one change', async () => {
    const first = await someone();
    const second = await someone();
    await link(first.id, { provider: 'auth0', user_id: second.bare });
    await call('PATCH', pathOf(first.id), { password: 'Newer-Password-9' });
    expect((await login(first.email, first.password)).status).to.equal(403);
    expect(subOf(await login(second.email, second.password))).to.equal(first.id);
    await call('PATCH', pathOf(first.id), { email: newAddress() });
    expect(subOf(await login(second.email, second.password))).to.equal(first.id);
    await resetPassword(server, second.email, 'Reset-Password-7');
    expect(subOf(await login(second.email, 'Reset-Password-7'))).to.equal(first.id);
    expect((await login(second.email, second.password)).status).to.equal(403);
  });

  it('stay linked after a new password by a ticket that verifies no address', async () => {
    const first = await someone();
    const second = await someone();
    await link(first.id, { provider: 'auth0', user_id: second.bare });
    const password = 'Reset-Password-7';
    await (await ticketForm(first.id))(password);
    expect(subOf(await login(first.email, password))).to.equal(first.id);
    expect(subOf(await login(second.email, second.password))).to.equal(first.id);
  });

  it('accept one of several new passwords that are set concurrently by different tickets', async () => {
    const first = await someone();
    const second = await someone();
    await link(first.id, { provider: 'auth0', user_id: second.bare });
    const forms = [
      { email: first.email, submit: await ticketForm(first.id) },
      { email: first.email, submit: await ticketForm(first.id) },
      { email: second.email, submit: await prepareReset(server, second.email) },
    ];
    const passwordOf = (i: number) => `Racing-Horse-${i}`;
    const ends = await Promise.all(forms.map(({ submit }, i) => submit(passwordOf(i))));
    expect(ends.filter(({ status }) => status === 200)).to.have.length(1);
    const logins = await Promise.all(forms.map(({ email }, i) => login(email, passwordOf(i))));
    expect(logins.map(({ status }) => status)).to.deep.equal(
      ends.map(({ status }) => (status === 200 ? 200 : 403)),
    );
  });

  it('lose sessions and tokens of the linked user, and of the primary user when one is unlinked', async () => {
    const first = await someone();
    const second = await someone();
    const tokensOf = async (one: typeof first) =>
      (await login(one.email, one.password, { scope: 'openid offline_access' })).json().refresh_token;
    const refresh = async (refresh_token: string) =>
      (await token(agent, { grant_type: 'refresh_token', ...CLIENT, refresh_token })).status;
    const [ofFirst, ofSecond] = [await tokensOf(first), await tokensOf(second)];
    await link(first.id, { provider: 'auth0', user_id: second.bare });
    expect(await refresh(ofSecond)).to.equal(400);
    expect(await refresh(ofFirst)).to.equal(200);
    const bySecond = await tokensOf(second);
    const unlinked = await call('DELETE', `${pathOf(first.id)}/identities/auth0/${second.bare}`);
    expect(unlinked.status, unlinked.text).to.equal(200);
    expect(unlinked.json()).to.have.length(1);
    expect(await refresh(bySecond)).to.equal(400);
  });

  it('become users again when unlinked, with their profile and password alone', async () => {
    const first = await someone();
    const second = await someone('users', { given_name: 'Ada', app_metadata: { admin: true } });
    await link(first.id, { provider: 'auth0', user_id: second.bare });
    await call('DELETE', `${pathOf(first.id)}/identities/auth0/${second.bare}`);
    const again = (await call('GET', pathOf(second.id))).json();
    expect(again).to.deep.include({ given_name: 'Ada', email: second.email, app_metadata: {} });
    expect(again.identities).to.have.length(1);
    expect(subOf(await login(second.email, second.password))).to.equal(second.id);
    expect(subOf(await login(first.email, first.password))).to.equal(first.id);
    // Unlinking again gives the same response and has no effect.
    const twice = await call('DELETE', `${pathOf(first.id)}/identities/auth0/${second.bare}`);
    expect(twice.status).to.equal(200);
    expect((await call('GET', pathOf(second.id))).status).to.equal(200);
  });

  it('are linked to exactly one of several users who link them concurrently', async () => {
    const rivals = await Promise.all([someone(), someone(), someone()]);
    const wanted = await someone();
    const answers = await Promise.all(
      rivals.map(({ id }) => link(id, { provider: 'auth0', user_id: wanted.bare })),
    );
    expect(answers.filter(({ status }) => status === 201)).to.have.length(1);
    expect(answers.every(({ status }) => [201, 400, 409].includes(status))).to.equal(true);
    const winner = rivals[answers.findIndex(({ status }) => status === 201)];
    expect(subOf(await login(wanted.email, wanted.password))).to.equal(winner?.id);
    // If two users link each other concurrently, one of them is left with both identities.
    const [a, b] = [await someone(), await someone()];
    await Promise.all([
      link(a.id, { provider: 'auth0', user_id: b.bare }),
      link(b.id, { provider: 'auth0', user_id: a.bare }),
    ]);
    const left = subOf(await login(a.email, a.password));
    expect(subOf(await login(b.email, b.password))).to.equal(left);
    expect((await call('GET', pathOf(left))).json().identities).to.have.length(2);
  });

  it('cannot be linked twice, to themselves, or if they do not exist', async () => {
    const first = await someone();
    const second = await someone();
    const third = await someone();
    await link(first.id, { provider: 'auth0', user_id: second.bare });
    for (const [primary, body, status] of [
      [first.id, { provider: 'auth0', user_id: second.bare }, 409],
      [first.id, { provider: 'auth0', user_id: first.bare }, 409],
      [third.id, { provider: 'auth0', user_id: second.bare }, 400],
      [third.id, { provider: 'auth0', user_id: 'nobody' }, 400],
      [third.id, { provider: 'auth0', user_id: first.bare, connection_id: 'con_none' }, 400],
      [third.id, { link_with: 'no.id.token' }, 400],
      [third.id, {}, 400],
      ['auth0|nobody', { provider: 'auth0', user_id: first.bare }, 404],
    ] as const) {
      const answer = await link(primary, body);
      expect(answer.status, JSON.stringify(body)).to.equal(status);
    }
    const main = await call('DELETE', `${pathOf(first.id)}/identities/auth0/${first.bare}`);
    expect(main.status).to.equal(400);
  });

  describe("with a user's own token", () => {
    it('can only be linked with an ID token of the other account, issued to the same client', async () => {
      const first = await someone();
      const second = await someone('users', VERIFIED);
      const { access_token: mine } = await ownToken(first);
      const { id_token } = await ownToken(second);
      const named = await link(first.id, { provider: 'auth0', user_id: second.bare }, mine);
      expect(named.status).to.equal(403);
      const foreign = (
        await token(agent, {
          grant_type: 'password',
          client_id: 'leeway',
          client_secret: 'leeway-secret',
          username: second.email,
          password: second.password,
          scope: 'openid',
        })
      ).json().id_token;
      expect((await link(first.id, { link_with: foreign }, mine)).status).to.equal(400);
      const linked = await link(first.id, { link_with: id_token }, mine);
      expect(linked.status, linked.text).to.equal(201);
      expect(subOf(await login(second.email, second.password))).to.equal(first.id);
      const unlinked = await call(
        'DELETE',
        `${pathOf(first.id)}/identities/auth0/${second.bare}`,
        undefined,
        mine,
      );
      expect(unlinked.status, unlinked.text).to.equal(200);
    });

    it('are not linked if the other account has an unverified address, whose owner could then log in to this one', async () => {
      const first = await someone();
      const second = await someone();
      const { access_token: mine } = await ownToken(first);
      const { id_token } = await ownToken(second);
      const refused = await link(first.id, { link_with: id_token }, mine);
      expect([refused.status, refused.json().errorCode]).to.deep.equal([400, 'unverified_email']);
      expect(subOf(await login(second.email, second.password))).to.equal(second.id);
      expect(
        (await link(first.id, { link_with: id_token })).status,
        'an application answers for it',
      ).to.equal(201);
    });

    it('are not linked with an ID token that a client signs with its secret, because it could forge one', async () => {
      const [first, second] = [await someone(), await someone('users', VERIFIED)];
      const { id_token } = (
        await token(agent, {
          grant_type: 'password',
          client_id: 'hs256',
          client_secret: 'a-secret-of-at-least-32-characters!',
          username: second.email,
          password: second.password,
          scope: 'openid',
        })
      ).json();
      expect(payload(id_token).sub).to.equal(second.id);
      const refused = await link(first.id, { link_with: id_token });
      expect(refused.status).to.equal(400);
      expect(refused.json().message).to.match(/^Invalid id token on link_with property: .*prompt=login/);
    });

    it('are not linked with an ID token from before a password reset, which ends what a thief has', async () => {
      const first = await someone();
      const second = await someone('users', VERIFIED);
      const { access_token: mine } = await ownToken(first);
      const { id_token } = await ownToken(second);
      server.tick(2000);
      const password = 'Another-battery-2071';
      expect((await call('PATCH', pathOf(second.id), { password })).status).to.equal(200);
      for (const by of [mine, undefined])
        expect((await link(first.id, { link_with: id_token }, by)).status).to.equal(400);
      server.tick(2000);
      const { id_token: fresh } = await ownToken({ ...second, password });
      expect((await link(first.id, { link_with: fresh }, mine)).status).to.equal(201);
    });

    it('are not linked with an ID token if the account is blocked or its password reset before that is written', async () => {
      for (const change of [{ blocked: true }, { password: 'Another-battery-2071' }]) {
        const first = await someone();
        const second = await someone('users', VERIFIED);
        const { access_token: mine } = await ownToken(first);
        const { id_token } = await ownToken(second);
        server.tick(2000);
        held.beforeBatch(
          (write) => write.collection === 'users' && 'delete' in write,
          async () => expect((await call('PATCH', pathOf(second.id), change)).status).to.equal(200),
        );
        expect((await link(first.id, { link_with: id_token }, mine)).status, JSON.stringify(change)).to.equal(
          400,
        );
        expect((await call('GET', pathOf(second.id))).status).to.equal(200);
        expect((await call('GET', pathOf(first.id))).json().identities).to.have.length(1);
      }
    });

    it("are not linked with another user's id, an access token, an expired token, or a blocked account", async () => {
      const first = await someone();
      const second = await someone('users', VERIFIED);
      const { access_token: mine } = await ownToken(first);
      const theirs = await ownToken(second);
      const other = await link(second.id, { link_with: (await ownToken(first)).id_token }, mine);
      expect(other.status).to.equal(403);
      expect(other.json().message).to.equal('User to be acted on does not match subject in bearer token.');
      const unlinking = await call('DELETE', `${pathOf(second.id)}/identities/auth0/x`, undefined, mine);
      expect(unlinking.status).to.equal(403);
      const { access_token: lesser } = await ownToken(first, 'read:current_user');
      expect((await link(first.id, { link_with: theirs.id_token }, lesser)).status).to.equal(403);
      expect((await link(first.id, { link_with: theirs.access_token }, mine)).status).to.equal(400);
      await call('PATCH', pathOf(second.id), { blocked: true });
      expect((await link(first.id, { link_with: theirs.id_token }, mine)).status).to.equal(400);
      await call('PATCH', pathOf(second.id), { blocked: false });
      server.tick(37 * 3_600_000);
      admin = await managementToken(server);
      call = callsWith(server, admin);
      const late = await link(first.id, { link_with: theirs.id_token });
      expect(late.status).to.equal(400);
    });
  });
});
