// The My Account API: authentication methods, listed, added, renamed and removed by their user.
import { expect } from 'chai';
import { codeOf } from '../factors/tenant.ts';
import { payload } from '../support/flows.ts';
import { messagesTo, nextMessageTo } from '../support/inbox.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { sendSlowly } from '../support/slow-body.ts';
import { softwareKey } from '../support/software-key.ts';
import { callsOf, SCOPES, tenant } from './tenant.ts';

describe('the My Account API', () => {
  let server: TestServer;
  let calls: ReturnType<typeof callsOf>;
  let people = 0;
  before(async () => {
    server = await startServer({ tenant });
    calls = callsOf(server);
  });
  after(() => server.stop());
  const someone = () => `mfa-${people++}@example.test`;
  const typesOf = async (bearer: string) => (await calls.methods(bearer)).map(({ type }) => type);

  it('lists a password, and the factors that are on', async () => {
    const bearer = await calls.accountToken(someone());
    expect(await typesOf(bearer)).to.deep.equal(['password']);
    const { factors } = (await calls.me(bearer, 'factors')).json();
    expect(factors.map(({ type }: { type: string }) => type)).to.include.members([
      'password',
      'passkey',
      'totp',
      'phone',
      'email',
      'push-notification',
      'recovery-code',
    ]);
    expect((await calls.me(bearer, 'authentication-methods?type=passkey')).json()).to.deep.equal({
      authentication_methods: [],
    });
    expect((await calls.me(bearer, 'authentication-methods?type=nothing')).status).to.equal(400);
  });

  it('enrols, renames and removes a passkey, and tells the user by mail', async () => {
    const user = someone();
    const bearer = await calls.accountToken(user);
    const { path, begun, verify, authn_response } = await calls.beginPasskey(bearer);
    expect(path).to.equal('authentication-methods/passkey%7Cnew');
    expect(begun.authn_params_public_key.authenticatorSelection).to.include({ userVerification: 'required' });
    const created = await verify({ authn_response });
    expect(created.status, created.text).to.equal(201);
    const { id } = created.json();
    expect(created.json()).to.include({ type: 'passkey', credential_backed_up: false });
    expect((await nextMessageTo(server, user)).subject).to.equal('New way to log in: passkey');
    expect(await typesOf(bearer)).to.deep.equal(['password', 'passkey']);
    const at = `authentication-methods/${encodeURIComponent(id)}`;
    const named = await calls.me(bearer, at, { name: 'Blue key' }, 'PATCH');
    expect(named.json(), named.text).to.include({ id, name: 'Blue key' });
    expect((await calls.me(bearer, at)).json()).to.include({ name: 'Blue key' });
    expect((await calls.me(bearer, at, undefined, 'DELETE')).status).to.equal(204);
    expect((await calls.me(bearer, at, undefined, 'DELETE')).status).to.equal(404);
    expect((await nextMessageTo(server, user, 2)).subject).to.equal('Way to log in removed: passkey');
    expect(await typesOf(bearer)).to.deep.equal(['password']);
  });

  it('changes nothing for a token of a user who was blocked while the body still arrived', async () => {
    const user = someone();
    const bearer = await calls.accountToken(user);
    const { authn_response, verify } = await calls.beginPasskey(bearer);
    const { id } = (await verify({ authn_response })).json();
    const request = {
      method: 'PATCH',
      path: `/me/v1/authentication-methods/${encodeURIComponent(id)}`,
      headers: { 'content-type': 'application/json', authorization: `Bearer ${bearer}` },
      body: JSON.stringify({ name: 'Late key' }),
    };
    const answer = await sendSlowly(server, request, async () => {
      expect((await calls.me(bearer, 'factors')).status).to.equal(200);
      const [{ id: userId = '' } = {}] = await server.users.withEmail(user);
      await server.users.update(userId, { blocked: true });
    });
    expect(answer.status, answer.text).to.equal(401);
  });

  it('shows which authenticator made each passkey, where it is stored, and when it was last used', async () => {
    const bearer = await calls.accountToken(someone());
    const keys = [
      { aaguid: 'bada5566-a7aa-401f-bd96-45619a55120d', flags: 5 | 8 | 16 },
      { aaguid: '08987058-cadc-4b81-b6e1-30de50dcbe96', flags: 5 },
      { aaguid: '11111111-1111-1111-1111-111111111111', flags: 5 | 8 },
    ];
    for (const { aaguid, flags } of keys) {
      const { begun, verify } = await calls.begin(bearer, { type: 'passkey' });
      const answered = softwareKey('ES256', aaguid).create(begun.authn_params_public_key, server.url, {
        flags,
      });
      const created = await verify({ authn_response: answered });
      expect(created.status, created.text).to.equal(201);
    }
    const path = 'authentication-methods?type=passkey';
    const { authentication_methods: listed } = (await calls.me(bearer, path)).json();
    const shown = listed.map((one: Record<string, unknown>) =>
      [one.name, one.credential_device_type, one.credential_backed_up, one.last_auth_at].join(),
    );
    expect(shown).to.have.members([
      '1Password,multi_device,true,',
      'Windows Hello,single_device,false,',
      ',multi_device,false,',
    ]);
  });

  it("limits the mails about changes, because the address may be somebody else's", async () => {
    const user = someone();
    const bearer = await calls.accountToken(user);
    for (let i = 0; i < 6; i++) {
      const { verify, authn_response } = await calls.beginPasskey(bearer);
      expect((await verify({ authn_response })).status).to.equal(201);
      const created = (await calls.methods(bearer)).find(({ type }) => type === 'passkey');
      const gone = await calls.me(bearer, `authentication-methods/${created?.id}`, undefined, 'DELETE');
      expect(gone.status, gone.text).to.equal(204);
    }
    await nextMessageTo(server, user, 10);
    // A mail that was sent later has arrived, so none of the first user is missing.
    const other = someone();
    const { verify, authn_response } = await calls.beginPasskey(await calls.accountToken(other));
    expect((await verify({ authn_response })).status).to.equal(201);
    await nextMessageTo(server, other);
    expect(await messagesTo(server, user)).to.have.length(10);
  });

  it('creates no second passkey on the same authenticator', async () => {
    const bearer = await calls.accountToken(someone());
    const { verify, authn_response } = await calls.beginPasskey(bearer);
    expect((await verify({ authn_response })).status).to.equal(201);
    const { begun } = await calls.begin(bearer, { type: 'passkey' });
    const { excludeCredentials } = begun.authn_params_public_key;
    expect(excludeCredentials).to.have.length(1);
  });

  it('enrols an authenticator app once for concurrent verifications', async () => {
    const user = someone();
    const bearer = await calls.accountToken(user);
    const { begun, verify } = await calls.begin(bearer, { type: 'totp' });
    expect(begun).to.include.keys('id', 'auth_session', 'barcode_uri', 'manual_input_code', 'recovery_code');
    expect((await verify({ otp_code: '000000' })).json()).to.include({ status: 400 });
    const proof = { otp_code: codeOf(begun.manual_input_code) };
    const answers = await Promise.all(Array.from({ length: 50 }, () => verify(proof)));
    expect(answers.filter(({ status }) => status === 201)).to.have.length(1);
    expect(answers.filter(({ status }) => status >= 500)).to.deep.equal([]);
    expect((await nextMessageTo(server, user)).subject).to.equal('New way to log in: authenticator app');
    expect(await messagesTo(server, user)).to.have.length(1);
    // The password alone is no longer enough.
    const after = await calls.me(bearer, 'authentication-methods');
    expect(after.status).to.equal(401);
    expect(after.json()).to.include({
      type: 'urn:gatehouse:error:insufficient_user_authentication',
      acr_values: 'http://schemas.openid.net/pape/policies/2007/06/multi-factor',
    });
    const refused = await calls.login(user, { audience: calls.audience, scope: SCOPES.join(' ') });
    expect(refused.json().error).to.equal('mfa_required');
    server.tick(31_000);
    const mfa_token = refused.json().mfa_token;
    const verified = await calls.verify('otp', {
      mfa_token,
      otp: codeOf(begun.manual_input_code, Date.now()),
    });
    expect(verified.status, verified.text).to.equal(200);
    const strong = verified.json().access_token;
    expect(payload(strong)).to.include.keys('auth_time', 'amr', 'credential_version');
    expect(await typesOf(strong)).to.include.members(['password', 'totp', 'recovery-code']);
  });

  it('enrols a phone number and an e-mail address by codes sent to them', async () => {
    const bearer = await calls.accountToken(someone());
    const number = '+14155550123';
    const phone = await calls.begin(bearer, { type: 'phone', phone_number: number });
    const { code } = await nextMessageTo(server, number);
    const created = await phone.verify({ otp_code: code });
    expect(created.status, created.text).to.equal(201);
    expect(created.json()).to.include({ type: 'phone', phone_number: number, confirmed: true });
    const other = await calls.accountToken(someone());
    const email = await calls.begin(other, { type: 'email', email: 'second@example.test' });
    const mailed = await nextMessageTo(server, 'second@example.test');
    expect((await email.verify({ otp_code: mailed.code })).status).to.equal(201);
  });

  it('reports an invalid body in the published format', async () => {
    const bearer = await calls.accountToken(someone());
    for (const body of [
      {},
      { type: 'nothing' },
      { type: 'phone', phone_number: 'x' },
      { type: 'phone', phone_number: '+14155550123', preferred_authentication_method: 'voice' },
      { type: 'password', connection: 'nowhere' },
      { type: 'passkey', connection: 'staff' },
      { type: 'passkey', identity_user_id: 'auth0|somebody' },
      { type: 'recovery-code' },
    ]) {
      const answer = await calls.me(bearer, 'authentication-methods', body);
      expect(answer.status, JSON.stringify(body)).to.equal(400);
      expect(answer.json()).to.include.keys('type', 'status', 'title', 'detail');
    }
    const unknown = await calls.me(bearer, 'nothing');
    expect([unknown.status, unknown.json().status]).to.deep.equal([404, 404]);
  });

  it('sets a new password once for concurrent requests, ends all sessions, and tells the user by mail', async () => {
    const email = someone();
    const bearer = await calls.accountToken(email);
    const { begun, path, verify } = await calls.begin(bearer, { type: 'password', connection: 'users' });
    expect(path).to.match(/^authentication-methods\/password/);
    expect(begun.policy.complexity).to.include({ min_length: 8, character_type_rule: 'three_of_four' });
    const weak = await verify({ new_password: 'short' });
    expect([weak.status, weak.json().validation_errors[0].field]).to.deep.equal([400, 'new_password']);
    expect((await verify({})).status).to.equal(400);
    const all = await Promise.all([1, 2, 3].map((n) => verify({ new_password: `Third-Horse-${n}` })));
    expect(all.filter(({ status }) => status === 201)).to.have.length(1);
    for (const { status } of all) expect(status).to.be.oneOf([201, 400, 401]);
    expect((await calls.me(bearer, 'authentication-methods')).status, 'the token').to.equal(401);
    expect((await nextMessageTo(server, email)).subject).to.match(/password/i);
    expect((await calls.login(email, {})).status, 'the old password').to.equal(403);
  });

  it('keeps what the user has enrolled when a user with an unverified address sets a new password', async () => {
    const email = someone();
    const bearer = await calls.accountToken(email);
    const { verify: keep, authn_response } = await calls.beginPasskey(bearer);
    expect((await keep({ authn_response })).status).to.equal(201);
    const [user] = await server.users.withEmail(email);
    await server.users.update(String(user?.id), { email_verified: false });
    const { verify } = await calls.begin(bearer, { type: 'password', connection: 'users' });
    expect((await verify({ new_password: 'Third-Horse-3' })).status).to.equal(201);
    const passkeys = await server.store.collection('passkeys').findBy('user', String(user?.id));
    expect(passkeys).to.have.length(1);
    expect((await server.users.get(String(user?.id)))?.email_verified).to.equal(false);
  });

  it('rejects a new password by another login, for an unknown connection, and by an old login', async () => {
    const [mine, others] = [await calls.accountToken(someone()), await calls.accountToken(someone())];
    const { verify } = await calls.begin(mine, { type: 'password' });
    const answer = await verify({ new_password: 'Third-Horse-3' }, others);
    expect([answer.status, answer.json().type]).to.deep.equal([400, 'urn:gatehouse:error:invalid_grant']);
    const nowhere = { type: 'password', connection: 'nowhere' };
    expect((await calls.me(mine, 'authentication-methods', nowhere)).status).to.equal(400);
    server.tick(11 * 60_000);
    expect((await calls.me(mine, 'authentication-methods', { type: 'password' })).status).to.equal(401);
  });
});
