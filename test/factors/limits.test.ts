// The numbers of a user's authentication methods and device keys, with many requests at once.
import { expect } from 'chai';
import { storePasskey } from '../../src/features/connections/passkeys/passkeys.ts';
import { createAuthenticators, createFactorChanges } from '../../src/features/factors/authenticators.ts';
import { systemRandom as random } from '../../src/runtime/secrets.ts';
import { callsWith, managementToken, startManaged } from '../management/support.ts';
import { USER } from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';
import { tenant } from './tenant.ts';

const AT_ONCE = 50;
const MAX = 20;

describe('the number of authentication methods of a user', () => {
  let server: TestServer;
  let call: ReturnType<typeof callsWith>;
  let people = 0;

  before(async () => {
    server = await startManaged(tenant);
    call = callsWith(server, await managementToken(server));
  });
  after(() => server.stop());

  const someone = async () => {
    const email = `limits-${people++}@example.test`;
    const created = await call('POST', '/users', { connection: 'users', email, password: USER.password });
    const id = String(created.json().user_id);
    return { id, path: `/users/${encodeURIComponent(id)}/authentication-methods` };
  };
  const times = <T>(count: number, make: (n: number) => T): T[] =>
    Array.from({ length: count }, (_, n) => make(n));
  const phone = (n: number) => ({ type: 'phone', phone_number: `+4915112345${String(n).padStart(3, '0')}` });
  const authenticators = () => {
    const deps = { store: server.store, clock: Date.now, random };
    return createAuthenticators({ ...deps, factorChanges: createFactorChanges(deps) });
  };
  const options = {
    first: false,
    isSecondFactor: () => true,
    also: [],
    saveRecoveryCode: async () => undefined,
  };

  it('is at most 20 when an administrator creates 50 at once', async () => {
    const { id, path } = await someone();
    const created = await Promise.all(times(AT_ONCE, (n) => call('POST', path, phone(n))));
    const of = (status: number) => created.filter((one) => one.status === status).length;
    expect([of(201), of(400)]).to.deep.equal([MAX, AT_ONCE - MAX]);
    expect(await authenticators().of(id)).to.have.length(MAX);
  });

  it('is one when an administrator creates the same phone number 10 times at once', async () => {
    const { id, path } = await someone();
    const created = await Promise.all(times(10, () => call('POST', path, phone(0))));
    expect(created.filter(({ status }) => status === 409)).to.have.length(9);
    expect(await authenticators().of(id)).to.have.length(1);
  });

  it('is at most 20 when an administrator replaces all, several times at once', async () => {
    const { id, path } = await someone();
    const all = times(MAX, phone);
    const replaced = await Promise.all(times(5, () => call('PUT', path, all)));
    for (const { status } of replaced) expect(status).to.equal(200);
    expect(await authenticators().of(id)).to.have.length(MAX);
  });

  it('is at most 20 when a user confirms several enrolments at once', async () => {
    const { id } = await someone();
    const all = authenticators();
    await all.addConfirmed(
      id,
      times(15, (n) => ({ kind: 'sms' as const, fields: phone(n) })),
    );
    const by = { userId: id, credentialVersion: 0 };
    const started = await Promise.all(
      times(10, () => all.startEnrollment(by, { kind: 'otp', prefix: 'totp' })),
    );
    await Promise.all(started.map((one) => all.confirm(one, options)));
    expect((await all.of(id)).filter(({ active }) => active).length).to.be.within(16, MAX);
    expect(
      await all.confirm(await all.startEnrollment(by, { kind: 'otp', prefix: 'totp' }), options),
    ).to.equal((await all.of(id)).length < MAX);
  });

  it('is at most 20 passkeys when a user creates 50 at once', async () => {
    const { id: user_id } = await someone();
    const credential = (n: number) => ({
      credential_id: `${user_id} ${n}`,
      credential_key: 'key',
      sign_count: 0,
      transports: [],
      backup_eligible: true,
      backed_up: true,
      aaguid: '00000000-0000-0000-0000-000000000000',
    });
    const registration = { user: { handle: 'handle' } } as never;
    const owner = { user_id, connection: 'users', userAgent: '', registration, party: { id: 'localhost' } };
    const deps = { store: server.store, wallClock: Date.now };
    const stored = await Promise.all(times(AT_ONCE, (n) => storePasskey(deps, credential(n), owner)));
    expect(stored.filter(Boolean)).to.have.length(MAX);
    expect(await server.store.collection('passkeys').findBy('user', user_id)).to.have.length(MAX);
  });
});
