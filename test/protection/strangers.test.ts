// What strangers can do from any number of addresses, and what the owner of the account can still do.
import { expect } from 'chai';
import { OTP_GRANT, tenant } from '../connections/passwordless/tenant.ts';
import { createAgent, readForm } from '../support/agent.ts';
import { SPA_CALLBACK, USER, WEB_CALLBACK, webRequest } from '../support/flows.ts';
import { messagesTo, nextMessageTo } from '../support/inbox.ts';
import type { TestServer } from '../support/server.ts';
import { type LoginFrom, type PostFrom, served, type Told } from './proxied.ts';

const OWNER = 'owner@example.test';
/** An address from which the owner has logged in before. */
const HOME = '198.51.100.1';
/** An address from which the owner has not logged in. */
const HOTEL = '198.51.100.2';
const stranger = (index: number) => `203.0.${Math.floor(index / 200)}.${(index % 200) + 1}`;
const right = { password: USER.password };
const wrong = { password: 'wrong' };

const roomy = { capacity: 10_000, perMinute: 10_000 };
/** The limits that these tests are about, with their defaults. */
const DEFAULT_LIMITS = {
  passwordlessDestination: { capacity: 10, perMinute: 1 / 6 },
  codeFailures: { capacity: 30, perMinute: 30 / 1440 },
  login: roomy,
};

/** Calls of the endpoints from any address. */
function people(server: TestServer, from: LoginFrom, post: PostFrom) {
  const start = (ip: string, fields: object = {}) =>
    post(ip, '/passwordless/start', {
      client_id: 'spa',
      connection: 'email',
      email: OWNER,
      send: 'code',
      ...fields,
    });
  const guess = (ip: string, otp: string, email = OWNER) =>
    from(ip)({
      grant_type: OTP_GRANT,
      client_id: 'spa',
      client_secret: undefined,
      username: email,
      realm: 'email',
      otp,
    });
  const received = async () => (await messagesTo(server, OWNER)).length;
  /** Requests a code, and returns it from the mail. */
  const code = async (ip: string) => {
    const before = (await messagesTo(server, OWNER)).filter((message) => message.code !== undefined).length;
    expect((await start(ip)).status).to.equal(200);
    return (await nextMessageTo(server, OWNER, before + 1, 'code')).code ?? '';
  };
  const logIn = async (ip: string) => expect((await guess(ip, await code(ip))).status).to.equal(200);
  const other = (otp: string, by = 1) => String((Number(otp) + by) % 1_000_000).padStart(6, '0');
  const each = async (count: number, run: (ip: string, index: number) => Promise<Told>) => {
    const answers: Told[] = [];
    for (let i = 0; i < count; i++) answers.push(await run(stranger(i), i));
    return answers;
  };
  return { start, guess, received, code, logIn, other, each };
}

const run = (
  limits: object,
  test: (
    server: TestServer,
    does: ReturnType<typeof people>,
    from: LoginFrom,
    post: PostFrom,
  ) => Promise<void>,
) =>
  served({ rateLimits: { ...DEFAULT_LIMITS, ...limits } }, (server, from, post) =>
    test(server, people(server, from, post), from, post),
  );

describe('strangers who request codes', () => {
  it('leave the owner a code at an address from which the owner has logged in', () =>
    run({}, async (_server, { start, received, guess, logIn, code, each }) => {
      await logIn(HOME);
      await each(12, (ip) => start(ip));
      expect(await received(), 'more than ten were sent, one of them the owner’s').to.equal(10);
      const otp = await code(HOME);
      expect((await guess(HOME, otp)).status).to.equal(200);
    }));

  it('cannot see that no more is sent, nor where the owner has logged in', () =>
    run({}, async (_server, { start, logIn, each }) => {
      await logIn(HOME);
      const answers = await each(12, (ip) => start(ip));
      expect(answers.slice(1)).to.deep.equal(answers.slice(0, -1));
      const [home, hotel] = [await start(HOME), await start(HOTEL)];
      expect(home).to.deep.equal(hotel);
      expect(home).to.deep.equal(answers[0]);
    }));

  it('are told the limit when they ask too often from one address', () =>
    run({}, async (_server, { start, received }) => {
      const answers = [];
      for (let i = 0; i < 12; i++) answers.push((await start(stranger(1))).status);
      expect(answers).to.deep.equal([...Array(10).fill(200), 429, 429]);
      expect(await received()).to.equal(10);
    }));

  it('do not replace the code that the owner requested', () =>
    run({}, async (_server, { start, code, guess, each }) => {
      const otp = await code(HOME);
      await each(3, (ip, i) => start(ip, { send: i === 1 ? 'link' : 'code' }));
      expect((await guess(HOME, otp)).status).to.equal(200);
    }));

  it('cannot use their codes once the owner has logged in', () =>
    run({}, async (server, { start, code, guess }) => {
      await start(stranger(1));
      const { code: theirs = '' } = await nextMessageTo(server, OWNER);
      expect((await guess(HOME, await code(HOME))).status).to.equal(200);
      expect((await guess(stranger(1), theirs)).status).to.equal(403);
    }));

  it('leave an unknown caller the code that was sent last', () =>
    run({}, async (server, { code, guess, start }) => {
      await code(HOME);
      expect((await guess(HOTEL, await code(HOME))).status, 'asked for elsewhere').to.equal(200);
      await start(stranger(1));
      const { code: newest = '' } = await nextMessageTo(server, OWNER, 3);
      expect((await guess(HOTEL, newest)).status, 'asked for by a stranger').to.equal(200);
    }));

  it("do not use up the limit of the owner's phone for second factors", async () => {
    // The number is confirmed as the owner's, so only messages for the owner count against it.
    const phone = '+16505551234';
    await served(
      {
        rateLimits: { ...DEFAULT_LIMITS, login: roomy },
      },
      async (server, from, post) => {
        const user = await server.users.findInConnection({ name: 'users' }, USER.email);
        await server.store.collection('authenticators').put({
          id: 'sms|dev_owner',
          user_id: user?.id ?? '',
          kind: 'sms',
          active: true,
          created_at: new Date().toISOString(),
          phone_number: phone,
        });
        for (let i = 0; i < 11; i++) {
          await post(stranger(i), '/passwordless/start', {
            client_id: 'spa',
            connection: 'sms',
            phone_number: phone,
          });
        }
        const before = (await messagesTo(server, phone)).length;
        const { mfa_token } = await from(HOME)(right);
        const challenged = await post(HOME, '/mfa/challenge', {
          client_id: 'web',
          client_secret: 'web-secret',
          challenge_type: 'oob',
          mfa_token,
        });
        expect(challenged.status, JSON.stringify(challenged)).to.equal(200);
        expect((await messagesTo(server, phone)).length).to.equal(before + 1);
      },
      undefined,
      {
        clients: tenant.clients.map((client) => ({
          ...client,
          grant_types: [...client.grant_types, 'http://auth0.com/oauth/grant-type/mfa-oob'],
        })),
        guardianFactors: [{ name: 'sms', enabled: true }],
        guardianPolicies: { policies: ['all-applications'] },
      },
    );
  });
});

describe('strangers who guess codes', () => {
  it('use none of the tries of the caller that requested the code', () =>
    run({}, async (_server, { code, guess, other, each }) => {
      const otp = await code(HOME);
      await each(20, (ip, i) => guess(ip, other(otp, i + 1)));
      await guess(HOME, other(otp));
      await guess(HOME, other(otp));
      expect((await guess(HOME, otp)).status).to.equal(200);
    }));

  it('use none of the tries of a caller that has logged in before', () =>
    run({}, async (_server, { code, guess, logIn, other, each }) => {
      await logIn(HOTEL);
      const otp = await code(HOME);
      await each(10, (ip, i) => guess(ip, other(otp, i + 1)));
      expect((await guess(HOTEL, otp)).status).to.equal(200);
    }));

  it('have three tries together from all addresses, and then the right code is rejected, too', () =>
    run({}, async (_server, { code, guess, other, each }) => {
      const otp = await code(HOME);
      const answers = await each(3, (ip, i) => guess(ip, other(otp, i + 1)));
      const late = await guess(stranger(99), otp);
      for (const answer of answers) expect(late).to.deep.equal(answer);
      expect((await guess(HOME, otp)).status).to.equal(200);
    }));

  it('have no more tries by requesting the code: three for the asker, and three for all others', () =>
    run({}, async (_server, { code, guess, other, each }) => {
      const otp = await code(stranger(1));
      for (let i = 1; i <= 3; i++) await guess(stranger(1), other(otp, i));
      expect((await guess(stranger(1), otp)).status).to.equal(403);
      await each(5, (ip, i) => guess(ip === stranger(1) ? stranger(50) : ip, other(otp, i + 1)));
      expect((await guess(stranger(77), otp)).status).to.equal(403);
    }));

  it('have no more tries concurrently', () =>
    run({}, async (_server, { code, guess, other }) => {
      const otp = await code(HOME);
      const all = Array.from({ length: 25 }, (_, i) => guess(stranger(i), other(otp, i + 1)));
      expect((await Promise.all(all)).every(({ status }) => status === 403)).to.equal(true);
      expect((await guess(stranger(30), otp)).status).to.equal(403);
      expect((await guess(HOME, otp)).status).to.equal(200);
    }));

  it('have thirty tries a day over all codes; a mail to the owner has a link that lets the owner in from any address', () =>
    run({ passwordlessDestination: roomy }, async (server, { code, guess, logIn, other, each }) => {
      await logIn(HOME);
      for (let round = 0; round < 10; round++) {
        const otp = await code(stranger(round));
        await each(3, (_ip, i) => guess(stranger(round), other(otp, i + 1)));
      }
      const refused = await guess(stranger(60), await code(stranger(60)));
      expect(refused).to.include({ status: 429, error: 'too_many_attempts' });
      expect((await guess(HOTEL, await code(HOTEL))).status, 'the owner at a new place').to.equal(429);
      expect((await guess(HOME, await code(HOME))).status, 'the owner at home').to.equal(200);
      await unlockFrom(server, HOTEL);
      expect((await guess(HOTEL, await code(HOTEL))).status, 'after the link').to.equal(200);
      expect((await guess(stranger(61), await code(stranger(61)))).status).to.equal(429);
      server.tick(49 * 60_000);
      const otp = await code(stranger(62));
      expect((await guess(stranger(62), other(otp))).status, 'one more after 48 minutes').to.equal(403);
      expect((await guess(stranger(63), otp)).status).to.equal(429);
    }));

  it('have thirty tries a day when brute-force protection is off', () =>
    served(
      {
        bruteForceProtection: { enabled: false },
        rateLimits: { ...DEFAULT_LIMITS, codeFailures: { capacity: 3, perMinute: 1 / 1440 } },
      },
      async (server, from, post) => {
        const { guess, code, each } = people(server, from, post);
        await each(3, (ip) => guess(ip, '000000'));
        expect((await guess(HOTEL, await code(HOTEL))).status).to.equal(429);
      },
    ));

  it('cannot use up the tries of a link', () =>
    run({}, async (server, { start, guess, each }) => {
      await start(HOME, { send: 'link' });
      const { link = '' } = await nextMessageTo(server, OWNER);
      const secret = new URL(link).searchParams.get('verification_code') ?? '';
      await each(40, (ip, i) => guess(ip, i % 2 === 0 ? 'A'.repeat(43) : '123456'));
      expect((await guess(HOTEL, secret)).status).to.equal(200);
    }));
});

describe('strangers who send a victim a link with a code of their own', () => {
  it("are detected by their address, even when the application's page links there", () =>
    run({}, async (server) => {
      const origin = new URL(SPA_CALLBACK).origin;
      const email = 'planter@example.test';
      const ask = createAgent({ url: `http://127.0.0.1:${server.settings.port}`, ca: '' });
      const sent = await ask.request('/passwordless/start', {
        json: { client_id: 'spa', connection: 'email', email, send: 'code' },
        headers: { 'x-forwarded-proto': 'https', 'x-forwarded-for': stranger(1), origin },
      });
      expect(sent.status).to.equal(200);
      const { code = '' } = await nextMessageTo(server, email);
      const query = new URLSearchParams({
        client_id: 'spa',
        connection: 'email',
        email,
        verification_code: code,
        redirect_uri: SPA_CALLBACK,
        response_type: 'token',
      });
      const victim = browserAt(server, HOME);
      const page = await victim.get(`/passwordless/verify_redirect?${query}`, { referer: `${origin}/` });
      expect(page.status).to.equal(200);
      expect(page.text).to.contain(email);
    }));
});

describe('strangers who guess passwords', () => {
  const few = { passwordFailures: { capacity: 5, perMinute: 5 / 1440 } };

  it('share one limit, and do not block a caller that has logged in before', () =>
    run(few, async (_server, { each }, from) => {
      expect((await from(HOME)(right)).status).to.equal(200);
      const answers = await each(6, (ip) => from(ip)(wrong));
      expect(answers.map(({ status }) => status)).to.deep.equal([403, 403, 403, 403, 403, 429]);
      expect((await from(HOTEL)(right)).status, 'the owner at a new place').to.equal(429);
      expect((await from(HOME)(right)).status, 'the owner at home').to.equal(200);
      // The owner's logins do not allow others more guesses.
      expect((await from(stranger(9))(wrong)).status).to.equal(429);
    }));

  it('have a hundred tries a day by default', () =>
    run({}, async (server, { each }, from) => {
      const answers = await each(101, (ip) => from(ip)(wrong));
      expect(answers.slice(0, 100).every(({ status }) => status === 403)).to.equal(true);
      expect(answers[100]?.status).to.equal(429);
      server.tick(15 * 60_000);
      expect((await from(stranger(150))(wrong)).status).to.equal(403);
      expect((await from(stranger(151))(wrong)).status).to.equal(429);
    }));

  it('get the same answers for an account that does not exist', () =>
    run(few, async (_server, { each }, from) => {
      const mine = await each(6, (ip) => from(ip)(wrong));
      const nobodys = await each(6, (ip) => from(ip)({ ...wrong, username: 'nobody@example.test' }));
      expect(nobodys).to.deep.equal(mine);
    }));

  it('have no more tries concurrently', () =>
    run(few, async (_server, _does, from) => {
      const answers = await Promise.all(Array.from({ length: 40 }, (_, i) => from(stranger(i))(wrong)));
      expect(answers.filter(({ status }) => status === 403)).to.have.length(5);
    }));

  it('cause a mail whose link lets the owner in at a new address, and no stranger', () =>
    run(few, async (server, { each }, from) => {
      await each(6, (ip) => from(ip)(wrong));
      expect((await from(HOTEL)(right)).status).to.equal(429);
      await unlockFrom(server, HOTEL, USER.email);
      expect((await from(HOTEL)(right)).status).to.equal(200);
      expect((await from(stranger(20))(right)).status).to.equal(429);
      const mails = (await messagesTo(server, USER.email)).length;
      await each(6, (ip) => from(ip)(wrong));
      expect((await messagesTo(server, USER.email)).length, 'one mail in twelve hours').to.equal(mails);
    }));

  it('are not limited when brute-force protection is off', () =>
    served(
      { bruteForceProtection: { enabled: false }, rateLimits: { ...DEFAULT_LIMITS, ...few } },
      async (server, from, post) => {
        await people(server, from, post).each(8, (ip) => from(ip)(wrong));
        expect((await from(HOTEL)(right)).status).to.equal(200);
      },
    ));

  it('do not block a caller that has logged in before in the mode count_per_identifier', () =>
    served(
      {
        bruteForceProtection: { mode: 'count_per_identifier', max_attempts: 3 },
        rateLimits: DEFAULT_LIMITS,
      },
      async (server, from, post) => {
        expect((await from(HOME)(right)).status).to.equal(200);
        await people(server, from, post).each(4, (ip) => from(ip)(wrong));
        expect((await from(HOTEL)(right)).status).to.equal(429);
        expect((await from(HOME)(right)).status).to.equal(200);
      },
    ));

  it('are no longer known at an address after a password reset, and the owner is', () =>
    run(few, async (server, { each }, from, post) => {
      // An attacker who has the password.
      expect((await from(stranger(40))(right)).status).to.equal(200);
      await post(HOTEL, '/dbconnections/change_password', { connection: 'users', email: USER.email });
      const { link = '' } = await nextMessageTo(server, USER.email);
      const password = 'Quite-Another-Word-1';
      await submit(server, HOTEL, link, { password, repeat: password });
      await each(6, (ip) => from(ip)(wrong));
      expect((await from(stranger(40))({ password })).status).to.equal(429);
      expect((await from(HOTEL)({ password })).status).to.equal(200);
    }));
});

describe("strangers at the owner's address", () => {
  it('block others there, but not a browser in which the owner has logged in', () =>
    run({}, async (server, _does, from) => {
      const browser = browserAt(server, HOME);
      expect(await logInAtPage(browser)).to.equal('callback');
      for (let i = 0; i < 10; i++) await from(HOME)(wrong);
      expect((await from(HOME)(right)).status).to.equal(429);
      expect(await logInAtPage(browserAt(server, HOME))).to.equal(429);
      expect(await logInAtPage(browser)).to.equal('callback');
    }));

  it('block a browser there in which the owner has not logged in', () =>
    run({}, async (server, _does, from) => {
      const browser = browserAt(server, HOME);
      expect(await logInAtPage(browser, wrong.password)).to.equal(400);
      for (let i = 0; i < 9; i++) await from(HOME)(wrong);
      expect(await logInAtPage(browser)).to.equal(429);
    }));
});

describe('strangers who request password resets', () => {
  const ask = (post: PostFrom, ip: string) =>
    post(ip, '/dbconnections/change_password', { connection: 'users', email: USER.email });

  it('leave the owner a mail at an address from which the owner has logged in', () =>
    run({}, async (server, { each }, from, post) => {
      expect((await from(HOME)(right)).status).to.equal(200);
      await each(12, (ip) => ask(post, ip));
      await server.tenant.close();
      expect(await messagesTo(server, USER.email)).to.have.length(10);
      await ask(post, HOME);
      await nextMessageTo(server, USER.email, 11);
    }));

  it("do not replace the owner's link, and the first link that is used ends all", () =>
    run({}, async (server, { each }, _from, post) => {
      await ask(post, HOTEL);
      const { link: own = '' } = await nextMessageTo(server, USER.email);
      await each(3, (ip) => ask(post, ip));
      const { link: last = '' } = await nextMessageTo(server, USER.email, 4);
      const password = 'Quite-Another-Word-1';
      const done = await submit(server, HOTEL, own, { password, repeat: password });
      expect(done.status).to.equal(200);
      const gone = new URL(last);
      const { get } = browserAt(server, HOTEL);
      expect((await get(gone.pathname + gone.search)).status).to.equal(400);
    }));
});

/** A browser behind the proxy. */
function browserAt(server: TestServer, ip: string) {
  const agent = createAgent({ url: `http://127.0.0.1:${server.settings.port}`, ca: '' });
  const headers = { 'x-forwarded-proto': 'https', 'x-forwarded-for': ip };
  return {
    get: (path: string, more: Record<string, string> = {}) => agent.get(path, { ...headers, ...more }),
    post: (path: string, form: Record<string, string>) => agent.request(path, { form, headers }),
  };
}

/** Logs in at the hosted page. @returns `callback` when that succeeds, or the status of the page. */
async function logInAtPage(
  { get, post }: ReturnType<typeof browserAt>,
  password = USER.password,
): Promise<number | 'callback'> {
  const pathOf = (location: string) => new URL(location).pathname + new URL(location).search;
  let page = await get(`/authorize?${new URLSearchParams(webRequest({ prompt: 'login' }))}`);
  while (page.location !== '') page = await get(pathOf(page.location));
  const { action, fields } = readForm(page, 'password');
  let answer = await post(action, { ...fields, username: USER.email, password });
  while (answer.location !== '') {
    if (answer.location.startsWith(WEB_CALLBACK)) return 'callback';
    answer = await get(pathOf(answer.location));
  }
  return answer.status;
}

/** Opens the link of a mail and posts its form. */
async function submit(server: TestServer, ip: string, link: string, fields: Record<string, string>) {
  const { get, post } = browserAt(server, ip);
  const url = new URL(link);
  const form = readForm(await get(url.pathname + url.search), 'ticket');
  return post(form.action, { ...form.fields, ...fields });
}

/** Follows the link of the newest mail that unblocks an account. */
async function unlockFrom(server: TestServer, ip: string, to = OWNER) {
  await server.tenant.close();
  const { link = '' } = await nextMessageTo(server, to, 1, 'link');
  const done = await submit(server, ip, link, {});
  expect(done.status).to.equal(200);
}
