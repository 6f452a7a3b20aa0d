// The state that somebody with a password, or with a device of their own, can make the server store: limited in every
// way.
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import https from 'node:https';
import { expect } from 'chai';
import { type Device, devicesOf } from '../factors/device.ts';
import { callsOf, codeOf, tenant } from '../factors/tenant.ts';
import { createAgent } from '../support/agent.ts';
import { logIn, USER, webRequest } from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { until } from '../support/wait-until.ts';

const generous = { capacity: 10_000, perMinute: 10_000 };

describe("the state of a user's second factor", () => {
  let server: TestServer;
  let calls: ReturnType<typeof callsOf>;
  let people = 0;
  before(async () => {
    const { attackProtection } = tenant;
    const rateLimits = { ...attackProtection.rateLimits, mfaChallenge: generous, mfaAssociate: generous };
    server = await startServer({
      tenant: { ...tenant, attackProtection: { ...attackProtection, rateLimits } },
    });
    calls = callsOf(server);
  });
  after(() => server.stop());
  const someone = () => `mfa-${people++}@example.test`;
  const devices = devicesOf(() => ({ server, calls, someone }));
  const recordsOf = async <N extends 'authenticators' | 'challenges'>(name: N, email: string) => {
    const user = await server.users.findInConnection({ name: 'users' }, email);
    return server.store.collection(name).findBy('user', user?.id ?? '');
  };

  describe('in requests to a device', () => {
    it('is limited to ten at once and ten an hour after that, from any address and with any token', async () => {
      const { user } = await devices.enrolled();
      const statuses: number[] = [];
      for (let i = 0; i < 13; i++) {
        const mfa_token = await calls.mfaToken(user);
        statuses.push((await calls.challenge({ mfa_token, challenge_type: 'oob' })).status);
      }
      expect(statuses).to.deep.equal([...Array(10).fill(200), ...Array(3).fill(429)]);
      server.tick(360_000);
      const mfa_token = await calls.mfaToken(user);
      expect((await calls.challenge({ mfa_token, challenge_type: 'oob' })).status).to.equal(200);
      expect((await calls.challenge({ mfa_token, challenge_type: 'oob' })).status).to.equal(429);
    });

    it('is limited at the pages, too, which offer another factor', async () => {
      const { user } = await devices.enrolled();
      const record = await server.users.findInConnection({ name: 'users' }, user);
      await server.users.update(record?.id ?? '', { email_verified: true });
      for (let i = 0; i < 10; i++) await devices.challenged(user);
      const page = await logIn(createAgent(server), server, webRequest(), {
        email: user,
        password: USER.password,
      });
      expect(page.status).to.equal(429);
      expect(page.text).to.contain('Too many requests. Try another way').and.contain('/mfa/email');
    });

    it('is no longer counted when the user approves, but is when they deny', async () => {
      const { user, device } = await devices.enrolled();
      for (let i = 0; i < 12; i++) {
        const challenge = await devices.challenged(user);
        const [request] = await devices.waiting(device);
        expect((await devices.answerWith(device, request?.id ?? '', 'allow')).status).to.equal(204);
        expect((await calls.verify('oob', challenge)).json().access_token, String(i)).to.be.a('string');
      }
      for (let i = 0; i < 10; i++) {
        await devices.challenged(user);
        const [request] = await devices.waiting(device);
        await devices.answerWith(device, request?.id ?? '', 'deny');
      }
      const mfa_token = await calls.mfaToken(user);
      expect((await calls.challenge({ mfa_token, challenge_type: 'oob' })).status).to.equal(429);
    });

    it('is shown as five at a time on the device, even of ten concurrent ones; the oldest end', async () => {
      const { user, device } = await devices.enrolled();
      const first = await devices.challenged(user);
      server.tick(1_000);
      const tokens = await Promise.all(Array.from({ length: 9 }, () => calls.mfaToken(user)));
      await Promise.all(tokens.map((mfa_token) => calls.challenge({ mfa_token, challenge_type: 'oob' })));
      expect(await devices.waiting(device)).to.have.length(5);
      const pending = (await recordsOf('challenges', user)).filter(
        ({ approval }) => approval?.state === 'pending',
      );
      expect(pending).to.have.length(5);
      expect((await calls.verify('oob', first)).json()).to.include({ error: 'invalid_grant' });
    });
  });

  describe('in event streams', () => {
    const open = async (device: Device) => {
      const assertion = await devices.sign(device.key, { sub: device.id });
      const sent = https.get(`${server.url}/authenticator/events?assertion=${assertion}`, {
        ca: server.ca,
        agent: false,
      });
      const [response] = (await once(sent, 'response')) as [IncomingMessage];
      const stream = { status: response.statusCode, text: '', ended: false, response };
      response.setEncoding('utf8').on('data', (chunk) => {
        stream.text += chunk;
      });
      response.on('end', () => {
        stream.ended = true;
      });
      return stream;
    };
    const ends = async (stream: { ended: boolean; response: IncomingMessage }) => {
      if (!stream.ended) await once(stream.response, 'end');
    };

    it('is limited to ten of a user, over all devices; the oldest ends, and is told not to reconnect', async () => {
      const { device } = await devices.enrolled();
      const streams = [];
      for (let i = 0; i < 13; i++) streams.push(await open(device));
      expect(streams.map(({ status }) => status)).to.deep.equal(Array(13).fill(200));
      for (const stream of streams.slice(0, 3)) {
        await ends(stream);
        expect(stream.text).to.contain('event: replaced');
      }
      expect(streams.slice(3).filter(({ ended }) => ended)).to.deep.equal([]);
      const another = await open((await devices.enrolled()).device);
      expect(streams[3]?.ended, 'another user’s streams are their own').to.equal(false);
      for (const { response } of [...streams, another]) response.destroy();
    });

    it('does not include closed streams', async () => {
      const { device } = await devices.enrolled();
      const kept = await open(device);
      for (let i = 0; i < 20; i++) {
        const { response } = await open(device);
        const closed = once(response, 'close');
        response.destroy();
        await closed;
      }
      // The server learns of it a moment later.
      await until(() => kept.text !== '');
      expect(kept.text).to.contain('event: requests').and.not.contain('replaced');
      kept.response.destroy();
    });

    it('ends with the device', async () => {
      const { user, device } = await devices.enrolled();
      const stream = await open(device);
      expect((await recordsOf('authenticators', user)).map(({ id }) => id)).to.include(device.id);
      await server.store.collection('authenticators').delete(device.id);
      await ends(stream);
      expect((await open(device)).status).to.equal(401);
    });
  });

  describe('in unfinished enrolments', () => {
    it('is limited to the newest ten, of which the last can be confirmed', async () => {
      const user = someone();
      const mfa_token = await calls.mfaToken(user);
      let secret = '';
      for (let i = 0; i < 25; i++) {
        secret = (await calls.associate(mfa_token, { authenticator_types: ['otp'] })).json().secret;
      }
      expect(await recordsOf('authenticators', user)).to.have.length(10);
      const done = await calls.verify('otp', { mfa_token, otp: codeOf(secret) });
      expect(done.status, done.text).to.equal(200);
    });

    it('is limited to ten, even when thirty are begun at once', async () => {
      const user = someone();
      const mfa_token = await calls.mfaToken(user);
      await Promise.all(
        Array.from({ length: 30 }, () => calls.associate(mfa_token, { authenticator_types: ['otp'] })),
      );
      expect((await recordsOf('authenticators', user)).length).to.be.at.most(10);
    });

    it('expires after an hour, except for confirmed enrolments', async () => {
      const [user, other] = [someone(), someone()];
      await calls.associate(await calls.mfaToken(user), { authenticator_types: ['otp'] });
      await calls.enrollOtp(other);
      server.tick(3_601_000);
      expect(await recordsOf('authenticators', user)).to.have.length(0);
      expect((await recordsOf('authenticators', other)).map(({ kind }) => kind)).to.have.members([
        'otp',
        'recovery-code',
      ]);
    });
  });

  it('is limited to twenty authenticators', async () => {
    const user = someone();
    const { secret } = await calls.enrollOtp(user);
    const { id: user_id } = (await server.users.findInConnection({ name: 'users' }, user)) ?? { id: '' };
    const others = Array.from({ length: 19 }, (_, i) => ({
      id: `sms|dev_many${i}`,
      user_id,
      kind: 'sms' as const,
      active: true,
      phone_number: `+165055501${i + 10}`,
      created_at: new Date().toISOString(),
    }));
    for (const other of others) await server.store.collection('authenticators').insert(other);
    server.tick(31_000);
    const scope = 'enroll remove:authenticators';
    const mfa_token = await calls.mfaToken(user, { audience: `${server.issuer}mfa/`, scope });
    const { access_token } = (await calls.verify('otp', { mfa_token, otp: codeOf(secret) })).json();
    const refused = await calls.associate(access_token, { authenticator_types: ['otp'] });
    expect(refused.status, refused.text).to.equal(400);
    await calls.agent.request(`/mfa/authenticators/${encodeURIComponent('sms|dev_many0')}`, {
      method: 'DELETE',
      headers: { authorization: `Bearer ${access_token}` },
    });
    const taken = await calls.associate(access_token, { authenticator_types: ['otp'] });
    expect(taken.status, taken.text).to.equal(200);
  });
});
