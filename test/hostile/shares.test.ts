// Strangers with many addresses of one network, against people from elsewhere: everybody gets a fair share.
import { once } from 'node:events';
import net from 'node:net';
import { expect } from 'chai';
import { createHasher } from '../../src/users/hashing.ts';
import { tenant as passwordless } from '../connections/passwordless/tenant.ts';
import { tenant, USER, webRequest } from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { startMailServer } from '../support/smtp.ts';
import { UNLIMITED } from '../support/unlimited.ts';
import { until } from '../support/wait-until.ts';

const PROXY = { TLS: 'proxy', TRUSTED_PROXIES: '127.0.0.1', BASE_URL: 'https://login.example.test' };
const WEB = { client_id: 'web', client_secret: 'web-secret' };

/** Addresses of one /48, each in a /64 of its own. */
const attacker = (i: number) => `2001:db8:66:${i.toString(16)}::1`;
/** Addresses of different networks. */
const person = (i: number) => `198.51.${100 + i}.7`;
const times = <T>(count: number, make: (i: number) => T): T[] =>
  Array.from({ length: count }, (_, i) => make(i));

/** Sends requests as if from an address. */
const from =
  (server: TestServer) =>
  async (ip: string, path: string, json?: object, sent: readonly string[] = []) => {
    const answer = await fetch(`http://127.0.0.1:${server.settings.port}${path}`, {
      method: json === undefined ? 'GET' : 'POST',
      redirect: 'manual',
      headers: {
        'x-forwarded-proto': 'https',
        'x-forwarded-for': ip,
        'content-type': 'application/json',
        cookie: sent.join('; '),
      },
      ...(json !== undefined && { body: JSON.stringify(json) }),
    });
    const cookies = answer.headers.getSetCookie().map((one) => one.replace(/;.*/, ''));
    return {
      status: answer.status,
      location: answer.headers.get('location') ?? '',
      cookies,
      text: await answer.text(),
    };
  };

/** Runs a test with a server that knows where requests come from. */
const served = async (
  options: Omit<Parameters<typeof startServer>[0], 'env' | 'tenant'> & {
    tenant?: object;
    env?: Record<string, string>;
  },
  run: (ask: ReturnType<typeof from>, server: TestServer) => Promise<void>,
) => {
  const server = await startServer({
    tenant: { ...tenant, ...UNLIMITED },
    ...options,
    env: { ...PROXY, ...options.env },
  });
  try {
    await run(from(server), server);
  } finally {
    await server.stop();
  }
};

describe('a network that asks for everything', () => {
  it('leaves others their turn in the queue of password hashes', async () => {
    const hasher = createHasher({ concurrency: 1, maxQueued: 8, cost: { memoryCost: 8_192, timeCost: 1 } });
    await served({ hasher }, async (ask) => {
      const login = (ip: string, username: string, password: string) =>
        ask(ip, '/oauth/token', { ...WEB, grant_type: 'password', username, password });
      let isOver = false;
      const attack = times(24, async (i) => {
        const statuses: number[] = [];
        while (!isOver) statuses.push((await login(attacker(i), `nobody-${i}@example.test`, 'wrong')).status);
        return statuses;
      });
      await until(() => (hasher.waiting?.() ?? 0) >= 8);
      const people = await Promise.all(times(8, (i) => login(person(i), USER.email, USER.password)));
      isOver = true;
      expect(people.map(({ status }) => status)).to.deep.equal(times(8, () => 200));
      expect((await Promise.all(attack)).flat(), 'the attack is refused').to.include(503);
    });
  });

  it('does not keep out who has logged in before, even with addresses of many networks', async () => {
    const hasher = createHasher({ concurrency: 1, maxQueued: 8, cost: { memoryCost: 8_192, timeCost: 1 } });
    await served({ hasher }, async (ask) => {
      const login = (ip: string, username: string, password: string) =>
        ask(ip, '/oauth/token', { ...WEB, grant_type: 'password', username, password });
      expect((await login(person(0), USER.email, USER.password)).status).to.equal(200);
      let isOver = false;
      const attack = times(40, async (i) => {
        while (!isOver) await login(`203.0.${i}.1`, `nobody-${i}@example.test`, 'wrong');
      });
      await until(() => (hasher.waiting?.() ?? 0) >= 8);
      const statuses: number[] = [];
      for (let i = 0; i < 5; i++) statuses.push((await login(person(0), USER.email, USER.password)).status);
      isOver = true;
      await Promise.all(attack);
      expect(statuses).to.deep.equal([200, 200, 200, 200, 200]);
    });
  });

  it('leaves others their turn in the queue of mails', async () => {
    const mail = await startMailServer();
    try {
      mail.behave('hold');
      const env = { SMTP_URL: mail.url, MAIL_FROM: 'login@example.test' };
      await served({ tenant: passwordless, env, maxWait: 50 }, async (ask) => {
        const start = (ip: string, email: string) =>
          ask(ip, '/passwordless/start', { ...WEB, connection: 'email', email, send: 'code' });
        await Promise.all(times(100, (i) => start(attacker(i), `nobody-${i}@example.test`)));
        await Promise.all(times(8, (i) => start(person(i), `person-${i}@example.test`)));
        const isOfPerson = (to: string) => to.startsWith('person');
        while (mail.recipients.filter(isOfPerson).length < 8) {
          const before = mail.recipients.length;
          mail.release();
          await until(() => mail.recipients.length > before || mail.offered() > before);
        }
        expect(mail.recipients.filter((to) => !isOfPerson(to)).length).to.be.below(40);
        mail.behave('accept');
        mail.release();
      });
    } finally {
      await mail.stop();
    }
  });

  it('evicts no waiting login of others', async () => {
    await served({ boundsScale: 0.01 }, async (ask, server) => {
      const authorize = `/authorize?${new URLSearchParams(webRequest())}`;
      const begun = await Promise.all(times(8, (i) => ask(person(i), authorize)));
      for (let i = 0; i < 300; i += 20) await Promise.all(times(20, (j) => ask(attacker(i + j), authorize)));
      const kept = await server.store.collection('artifacts').list({ limit: 1_000 });
      expect(kept.records.length).to.be.at.most(101);
      for (const [i, { location, cookies }] of begun.entries())
        expect((await ask(person(i), location, undefined, cookies)).status).to.equal(200);
    });
  });

  it('has only a share of the device codes, and evicts none of others', async () => {
    const device = {
      client_id: 'tv',
      name: 'TV',
      app_type: 'native',
      token_endpoint_auth_method: 'none',
      grant_types: ['urn:ietf:params:oauth:grant-type:device_code'],
    };
    const withDevice = { ...tenant, ...UNLIMITED, clients: [...tenant.clients, device] };
    await served({ tenant: withDevice, boundsScale: 0.001 }, async (ask, server) => {
      const code = async (ip: string) =>
        JSON.parse((await ask(ip, '/oauth/device/code', { client_id: 'tv' })).text) as {
          device_code: string;
        };
      const poll = async (ip: string, { device_code }: { device_code: string }) => {
        const grant = { grant_type: device.grant_types[0], client_id: 'tv', device_code };
        return JSON.parse((await ask(ip, '/oauth/token', grant)).text).error as string;
      };
      const mine = await code(person(0));
      const first = await code(attacker(0));
      for (let i = 1; i < 100; i++) await code(attacker(i));
      const kept = (await server.store.collection('challenges').list({ limit: 1_000 })).records;
      expect(kept.filter(({ purpose }) => purpose === 'device_code').length).to.be.at.most(50);
      expect(await poll(person(0), mine)).to.equal('authorization_pending');
      expect(await poll(attacker(0), first)).to.equal('invalid_grant');
    });
  });

  it('cannot sign up so fast that others cannot', async () => {
    await served({ tenant }, async (ask) => {
      const signUp = (ip: string, email: string) =>
        ask(ip, '/dbconnections/signup', {
          client_id: 'spa',
          connection: 'users',
          email,
          password: 'Correct-Horse-1',
        });
      const statuses: number[] = [];
      for (let i = 0; i < 500; i += 20)
        statuses.push(
          ...(await Promise.all(times(20, (j) => signUp(attacker(i + j), `n-${i + j}@example.test`)))).map(
            ({ status }) => status,
          ),
        );
      expect(statuses.filter((status) => status === 200).length).to.be.at.most(420);
      expect(new Set(statuses)).to.deep.equal(new Set([200, 429]));
      expect((await signUp(person(0), 'person@example.test')).status).to.equal(200);
    });
  });

  it('has only a share of the connections: those that say nothing are cut first', async () => {
    const server = await startServer({ tenant, env: { MAX_CONNECTIONS: '40' } });
    const { port } = new URL(server.url);
    const connect = (localAddress: string) => {
      const socket = net.connect({ port: Number(port), host: '127.0.0.1', localAddress });
      socket.on('error', () => undefined);
      return socket;
    };
    const silent: net.Socket[] = [];
    try {
      for (let i = 0; i < 60; i++) {
        const socket = connect(`127.0.66.${1 + (i % 20)}`);
        silent.push(socket);
        await once(socket, 'connect');
      }
      const isOpen = (socket: net.Socket) =>
        !socket.destroyed && !socket.readableEnded && socket.readyState === 'open';
      for (const socket of silent) socket.resume();
      await until(() => silent.filter(isOpen).length <= 40);
      const people = times(10, (i) => connect(`127.1.${i}.1`));
      silent.push(...people);
      // A TLS handshake (RFC 8446 §4.1.2) would follow; that the connection stays is enough.
      await Promise.all(people.map((socket) => once(socket, 'connect')));
      await until(() => silent.filter(isOpen).length <= 40);
      for (const socket of people) socket.resume();
      for (let i = 0; i < 60; i++) {
        const socket = connect(`127.0.66.${1 + (i % 20)}`);
        silent.push(socket);
        await once(socket, 'connect');
        socket.resume();
      }
      await until(() => silent.filter(isOpen).length <= 40);
      expect(people.filter(isOpen)).to.have.length(10);
      expect(server.logged()).to.contain('there are too many connections').and.to.contain('127.0.66.0/24');
    } finally {
      for (const socket of silent) socket.destroy();
      await server.stop();
    }
  });
});
