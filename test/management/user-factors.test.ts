// Second factors of users in the Management API, and their effect on logins.
import { expect } from 'chai';
import { callsOf, codeOf, tenant } from '../factors/tenant.ts';
import { USER } from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';
import { callsWith, type ManagementCall, managementToken, startManaged } from './support.ts';

const SECRET = 'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP';

describe('second factors of a user', () => {
  let server: TestServer;
  let calls: ReturnType<typeof callsOf>;
  let admin: string;
  let call: ManagementCall;
  let people = 0;

  before(async () => {
    server = await startManaged(tenant);
    calls = callsOf(server);
    admin = await managementToken(server);
    call = callsWith(server, admin);
  });
  after(() => server.stop());

  const someone = async () => {
    const email = `factor-${people++}@example.test`;
    const made = await call('POST', '/users', { connection: 'users', email, password: USER.password });
    const id = made.json().user_id as string;
    return { id, email, path: `/users/${encodeURIComponent(id)}` };
  };
  const wants = async (email: string) => (await calls.login(email)).json().mfa_requirements;

  it('are created, listed without their secrets, and required at the next login', async () => {
    const { email, path } = await someone();
    const made = await call('POST', `${path}/authentication-methods`, {
      type: 'totp',
      totp_secret: SECRET,
      name: 'Phone',
    });
    expect(made.status, made.text).to.equal(201);
    expect(made.json()).to.include({ type: 'totp', confirmed: true, name: 'Phone' });
    const phone = { type: 'phone', phone_number: '+4915112345678' };
    expect((await call('POST', `${path}/authentication-methods`, phone)).status).to.equal(201);
    expect((await call('POST', `${path}/authentication-methods`, phone)).status).to.equal(409);
    const listed = await call('GET', `${path}/authentication-methods?include_totals=true`);
    expect(listed.json()).to.include({ start: 0, total: 2 });
    expect(listed.json().authenticators.map((one: { type: string }) => one.type)).to.have.members([
      'totp',
      'phone',
    ]);
    expect(listed.text).not.to.contain(SECRET);
    const enrolled = await call('GET', `${path}/enrollments`);
    expect(enrolled.json().map((one: { auth_method: string }) => one.auth_method)).to.have.members([
      'authenticator',
      'sms',
    ]);
    expect(enrolled.text).not.to.contain(SECRET);
    expect((await wants(email)).challenge).to.deep.include({ type: 'otp' });
    const mfa_token = await calls.mfaToken(email);
    const done = await calls.verify('otp', { mfa_token, otp: codeOf(SECRET) });
    expect(done.status, done.text).to.equal(200);
    // The log of the change contains neither the secret nor a code.
    const logged = JSON.stringify(await server.store.collection('logs').list({ limit: 200 }));
    expect(logged).to.contain('authentication-methods').and.not.to.contain(SECRET);
  });

  it('are listed with passkeys, which can be renamed and deleted, but not replaced', async () => {
    const { id: user_id, path } = await someone();
    const other = await someone();
    const passkey = (name: string) => ({
      id: name,
      user_id,
      connection: 'users',
      credential_id: name,
      credential_key: 'key',
      sign_count: 1,
      transports: ['internal'],
      backup_eligible: true,
      backed_up: true,
      aaguid: '00000000-0000-0000-0000-000000000000',
      user_handle: 'handle',
      relying_party_id: 'localhost',
      user_agent: 'Browser/1',
      created_at: new Date().toISOString(),
    });
    for (const name of [`one-${user_id}`, `two-${user_id}`])
      await server.store.collection('passkeys').insert(passkey(name));
    const listed = (await call('GET', `${path}/authentication-methods`)).json();
    expect(listed.map((one: { type: string }) => one.type)).to.deep.equal(['passkey', 'passkey']);
    const { id } = listed[0];
    expect(listed[0]).to.include({ credential_device_type: 'multi_device', user_agent: 'Browser/1' });
    const own = `${path}/authentication-methods/${encodeURIComponent(id)}`;
    const others = `${other.path}/authentication-methods/${encodeURIComponent(id)}`;
    for (const method of ['GET', 'DELETE']) expect((await call(method, others)).status).to.equal(404);
    expect((await call('PATCH', own, { name: 'Laptop' })).json()).to.include({ id, name: 'Laptop' });
    expect((await call('GET', own)).json()).to.include({ name: 'Laptop' });
    expect((await call('PUT', `${path}/authentication-methods`, [])).status).to.equal(403);
    expect((await call('DELETE', own)).status).to.equal(204);
    expect((await call('GET', own)).status).to.equal(404);
    expect((await call('DELETE', `${path}/authentication-methods`)).status).to.equal(204);
    expect((await call('GET', `${path}/authentication-methods`)).json()).to.deep.equal([]);
  });

  it("are read, renamed and deleted one by one, under their own user's path alone", async () => {
    const { path } = await someone();
    const other = await someone();
    const { id } = (
      await call('POST', `${path}/authentication-methods`, { type: 'email', email: 'Two@Example.test' })
    ).json();
    const at = `${path}/authentication-methods/${encodeURIComponent(id)}`;
    expect((await call('GET', at)).json()).to.include({ id, type: 'email', email: 'two@example.test' });
    expect((await call('PATCH', at, { name: 'Second' })).json()).to.include({ name: 'Second' });
    expect((await call('PATCH', at, { email: 'x@example.test' })).status).to.equal(400);
    const foreign = `${other.path}/authentication-methods/${encodeURIComponent(id)}`;
    for (const method of ['GET', 'DELETE']) expect((await call(method, foreign)).status).to.equal(404);
    expect((await call('PATCH', foreign, { name: 'Mine' })).status).to.equal(404);
    expect((await call('GET', `/guardian/enrollments/${encodeURIComponent(id)}`)).json()).to.include({
      id,
      status: 'confirmed',
    });
    expect((await call('DELETE', at)).status).to.equal(204);
    expect((await call('GET', at)).status).to.equal(404);
    expect((await call('DELETE', at)).status).to.equal(404);
  });

  it('are replaced all at once, and all deleted', async () => {
    const { email, path } = await someone();
    await call('POST', `${path}/authentication-methods`, { type: 'email', email: 'a@example.test' });
    const put = await call('PUT', `${path}/authentication-methods`, [
      { type: 'totp', totp_secret: SECRET },
      { type: 'phone', phone_number: '+4915112345679' },
    ]);
    expect(put.status, put.text).to.equal(200);
    expect(put.json()).to.have.length(2);
    expect((await wants(email)).challenge.map((one: { type: string }) => one.type)).to.have.members([
      'otp',
      'phone',
    ]);
    expect((await call('DELETE', `${path}/multifactor/google-authenticator`)).status).to.equal(204);
    expect((await wants(email)).challenge).to.deep.equal([{ type: 'phone' }]);
    expect((await call('DELETE', `${path}/authenticators`)).status).to.equal(204);
    expect(await wants(email)).to.have.property('enroll');
    expect((await call('GET', `${path}/authentication-methods`)).json()).to.deep.equal([]);
    expect((await call('DELETE', `${path}/authentication-methods`)).status).to.equal(204);
  });

  it('get a new recovery code, which replaces the old one, only if the user has a second factor', async () => {
    const { email, path } = await someone();
    expect((await call('POST', `${path}/recovery-code-regeneration`)).status).to.equal(404);
    const { recoveryCode } = await calls.enrollOtp(email);
    const renewed = await call('POST', `${path}/recovery-code-regeneration`);
    expect(renewed.status, renewed.text).to.equal(200);
    const { recovery_code } = renewed.json();
    expect(recovery_code).to.match(/^[A-Z2-9]{24}$/);
    const use = async (code: string) =>
      (
        await calls.verify('recovery-code', {
          mfa_token: await calls.mfaToken(email),
          recovery_code: code,
        })
      ).status;
    expect(await use(recoveryCode)).to.equal(403);
    expect(await use(recovery_code)).to.equal(200);
  });

  it('include security keys as enrollments, for which a recovery code can be created', async () => {
    const { id: user_id, path } = await someone();
    const webauthn = {
      credential_id: `key-${user_id}`,
      credential_key: 'key',
      sign_count: 1,
      transports: ['usb'],
      backup_eligible: false,
      backed_up: false,
      aaguid: '00000000-0000-0000-0000-000000000000',
    };
    const kind = 'webauthn-roaming';
    const id = `${kind}|dev_${user_id}`;
    const created_at = new Date().toISOString();
    await server.store
      .collection('authenticators')
      .insert({ id, user_id, kind, active: true, created_at, webauthn });
    const enrolled = (await call('GET', `${path}/enrollments`)).json();
    expect(enrolled).to.have.length(1);
    expect(enrolled[0]).to.include({ id, status: 'confirmed', auth_method: kind });
    expect((await call('POST', `${path}/recovery-code-regeneration`)).status).to.equal(200);
    // A recovery code is not an enrollment.
    expect((await call('GET', `${path}/enrollments`)).json()).to.have.length(1);
  });

  it('are asked for again in remembered browsers after these are forgotten', async () => {
    const { id, path } = await someone();
    await server.store
      .collection('browsers')
      .insert({ id: 'a-browser', user_id: id, credential_version: 0, ip: '192.0.2.1', rememberedUntil: 9e9 });
    expect((await call('POST', `${path}/multifactor/actions/invalidate-remember-browser`)).status).to.equal(
      204,
    );
    expect(await server.store.collection('browsers').findBy('user', id)).to.deep.equal([]);
  });

  it('reject invalid methods, unknown users, and callers without the scope', async () => {
    const { path } = await someone();
    for (const body of [
      { type: 'passkey' },
      { type: 'totp', totp_secret: 'not base32!' },
      { type: 'totp', totp_secret: SECRET, confirmed: true },
      { type: 'phone', phone_number: '0151' },
      { type: 'email' },
      {},
    ])
      expect((await call('POST', `${path}/authentication-methods`, body)).status).to.equal(400);
    expect((await call('DELETE', `${path}/multifactor/other`)).status).to.equal(400);
    const nobody = '/users/auth0%7Cnobody';
    for (const [method, where] of [
      ['GET', '/authentication-methods'],
      ['GET', '/enrollments'],
      ['POST', '/recovery-code-regeneration'],
      ['DELETE', '/multifactor/duo'],
      ['POST', '/multifactor/actions/invalidate-remember-browser'],
    ] as const)
      expect((await call(method, `${nobody}${where}`)).status, where).to.equal(404);
    const reader = await managementToken(server, 'read:users');
    for (const [method, where] of [
      ['GET', '/authentication-methods'],
      ['DELETE', '/authenticators'],
      ['POST', '/recovery-code-regeneration'],
    ] as const)
      expect((await call(method, `${path}${where}`, undefined, reader)).status, where).to.equal(403);
    expect((await call('GET', `${path}/enrollments`, undefined, reader)).status).to.equal(200);
  });
});
