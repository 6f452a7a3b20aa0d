// Codes for database connections, with the published SDK and by direct requests.
import { expect } from 'chai';
import { OTP_GRANT, secrets, tenant } from '../connections/passwordless/tenant.ts';
import { createAgent } from '../support/agent.ts';
import { databaseUser } from '../support/database-user.ts';
import { USER } from '../support/flows.ts';
import { messagesTo, nextMessageTo } from '../support/inbox.ts';
import { type SdkProcess, startSdkProcess } from '../support/sdk.ts';
import { startServer, type TestServer } from '../support/server.ts';

describe('codes for database connections', () => {
  let server: TestServer;
  let sdk: SdkProcess;
  let agent: ReturnType<typeof createAgent>;
  before(async () => {
    server = await startServer({
      tenant: {
        ...tenant,
        attackProtection: {
          ...tenant.attackProtection,
          bruteForceProtection: { max_attempts: 4 },
          rateLimits: {
            ...tenant.attackProtection.rateLimits,
            passwordlessDestination: { capacity: 10, perMinute: 0.001 },
          },
        },
        guardianFactors: [
          { name: 'otp', enabled: true },
          { name: 'email', enabled: true },
        ],
        databases: [
          ...tenant.databases.map((database) => ({
            ...database,
            options: {
              ...database.options,
              ...(database.name === 'users' && { authentication_methods: { email_otp: { enabled: true } } }),
            },
          })),
          ...['phones', 'phones-and-names', 'phones-off'].map((name) => ({
            name,
            enabled_clients: ['web'],
            options: {
              authentication_methods: { phone_otp: { enabled: name !== 'phones-off' } },
              attributes: {
                phone_number: { identifier: { active: true }, signup: { status: 'required' } },
                ...(name === 'phones-and-names' && {
                  username: { identifier: { active: true }, signup: { status: 'required' } },
                }),
              },
            },
          })),
        ],
        users: [
          ...tenant.users,
          ...['unproved@example.test', 'unproved-2@example.test'].map((email) => ({
            email,
            password: USER.password,
            connection: 'users',
          })),
          ...Array.from({ length: 9 }, (_, i) => ({
            email: `code-${i}@example.test`,
            password: USER.password,
            connection: 'users',
            email_verified: true,
          })),
        ],
      },
    });
    sdk = await startSdkProcess(server.caFile);
    agent = createAgent(server);
  });
  after(async () => {
    await sdk?.stop();
    await server?.stop();
  });

  const call = (method: string, ...args: unknown[]) =>
    sdk.call('auth-js', {
      options: { domain: new URL(server.url).host, clientId: 'web', clientSecret: 'web-secret' },
      method,
      args,
    });
  const ask = (fields: object, client_id = 'web') =>
    agent.request('/otp/challenge', {
      json: { client_id, client_secret: secrets[client_id], connection: 'users', ...fields },
    });
  const exchange = (fields: Record<string, string | undefined>, client_id = 'web') =>
    agent.request('/oauth/token', {
      json: {
        grant_type: OTP_GRANT,
        client_id,
        client_secret: secrets[client_id],
        scope: 'openid email',
        ...fields,
      },
    });
  /** Requests a code. @returns the session and the code that was sent. */
  const begun = async (email: string, count = 1) => {
    const auth_session = String((await ask({ email })).json().auth_session);
    const { code = '' } = await nextMessageTo(server, email, count);
    return { auth_session, otp: code };
  };

  it('log a user in: challengeWithEmail, getTokenByPasswordlessDbConnection', async () => {
    const email = 'code-0@example.test';
    const { authSession } = (await call('passwordless.challengeWithEmail', {
      email,
      connection: 'users',
    })) as {
      authSession: string;
    };
    const { code } = await nextMessageTo(server, email);
    const tokens = await call('passwordless.getTokenByPasswordlessDbConnection', {
      authSession,
      otp: code,
      scope: 'openid email',
    });
    expect(tokens.claims).to.include({ email, email_verified: true });
    const failure = await call('passwordless.getTokenByPasswordlessDbConnection', {
      authSession,
      otp: code,
    }).catch((error) => error);
    expect(failure.cause).to.include({ error: 'invalid_grant' });
  });

  it('sign up a user if the request allows it, with the address verified', async () => {
    const email = 'new-by-code@example.test';
    await call('passwordless.challengeWithEmail', { email, connection: 'users', allowSignup: true }).then(
      async ({ authSession }: Record<string, unknown>) => {
        const { code } = await nextMessageTo(server, email);
        const tokens = await call('passwordless.getTokenByPasswordlessDbConnection', {
          authSession,
          otp: code,
          scope: 'openid email',
        });
        expect(tokens.claims).to.include({ email, email_verified: true });
      },
    );
    expect(await server.users.withEmail(email)).to.have.length(1);
  });

  it('are answered alike for known and unknown addresses, and sent only to users with a verified address', async () => {
    const answers = await Promise.all(
      ['code-1@example.test', 'nobody-at-all@example.test', 'unproved@example.test'].map((email) =>
        ask({ email }),
      ),
    );
    for (const { status, text, headers } of answers) {
      expect(status, text).to.equal(200);
      expect(text).to.match(/^\{"auth_session":"[\w-]{43}"\}$/);
      expect(headers['cache-control']).to.equal('no-store');
    }
    await nextMessageTo(server, 'code-1@example.test');
    expect(await messagesTo(server, 'nobody-at-all@example.test')).to.deep.equal([]);
    expect(await messagesTo(server, 'unproved@example.test')).to.deep.equal([]);
    const wrong = await Promise.all(
      answers.map((answer) => exchange({ auth_session: answer.json().auth_session, otp: '000000' })),
    );
    expect(new Set(wrong.map(({ status, text }) => `${status} ${text}`)).size).to.equal(1);
    expect(wrong[0]?.status).to.equal(403);
  });

  it('count wrong tries alike for known and unknown addresses', async () => {
    const tries = async (email: string) => {
      const told: string[] = [];
      for (let i = 0; i < 6; i += 1) {
        const { auth_session } = (await ask({ email })).json();
        const { status, json } = await exchange({ auth_session, otp: '000000' });
        told.push(`${status} ${json().error}`);
      }
      return told;
    };
    const known = await tries('code-8@example.test');
    expect(known.at(-1)).to.match(/^429 /);
    expect(await tries('nobody-here@example.test')).to.deep.equal(known);
    expect(await tries('unproved-2@example.test')).to.deep.equal(known);
  });

  it('are accepted once, of any number at the same time', async () => {
    const proof = await begun('code-2@example.test');
    const answers = await Promise.all(Array.from({ length: 50 }, () => exchange(proof)));
    expect(answers.filter(({ status }) => status === 200)).to.have.length(1);
    expect(answers.filter(({ status }) => status >= 500)).to.deep.equal([]);
  });

  it('are rejected after three wrong tries, after their lifetime, for another application and with another session', async () => {
    const guessed = await begun('code-3@example.test');
    const other = guessed.otp === '123456' ? '654321' : '123456';
    for (let i = 0; i < 3; i += 1)
      expect((await exchange({ ...guessed, otp: other })).json().error).to.equal('invalid_grant');
    expect((await exchange(guessed)).status, 'guessed').to.equal(403);
    const elsewhere = await begun('code-4@example.test');
    expect((await exchange(elsewhere, 'leeway')).status, 'another application').to.equal(403);
    const session = (await begun('code-5@example.test')).auth_session;
    expect((await exchange({ ...elsewhere, auth_session: session })).status, 'another session').to.equal(403);
    expect((await exchange(elsewhere)).status).to.equal(200);
    const late = await begun('code-6@example.test');
    server.tick(181_000);
    expect((await exchange(late)).status, 'late').to.equal(403);
  });

  it('require an application with the grant, a connection that has them, and a valid address', async () => {
    const told = async (answer: ReturnType<typeof ask>) => {
      const { status, json } = await answer;
      return [status, json().error];
    };
    expect(await told(ask({ email: 'x' }))).to.deep.equal([400, 'invalid_request']);
    expect(await told(ask({}))).to.deep.equal([400, 'invalid_request']);
    expect(await told(ask({ phone_number: '+14155550100' }))).to.deep.equal([400, 'invalid_request']);
    expect(await told(ask({ email: USER.email, connection: 'staff' }))).to.deep.equal([
      400,
      'invalid_request',
    ]);
    expect(await told(ask({ email: USER.email, connection: 'email' }))).to.deep.equal([
      400,
      'invalid_request',
    ]);
    expect(await told(ask({ email: USER.email, client_secret: 'wrong' }))).to.deep.equal([
      401,
      'invalid_client',
    ]);
    expect(await told(ask({ email: USER.email, client_secret: 'm2m-secret' }, 'm2m'))).to.deep.equal([
      403,
      'unauthorized_client',
    ]);
  });

  it('do not log in a blocked user, and are no second factor after themselves', async () => {
    const proof = await begun('code-7@example.test');
    const [user] = await server.users.withEmail('code-7@example.test');
    await server.users.update(String(user?.id), { multifactor: ['guardian'] });
    const answer = await exchange(proof);
    expect(answer.json()).to.include({ error: 'mfa_required' });
    expect(answer.json().mfa_requirements).to.deep.equal({
      enroll: [{ type: 'otp' }, { type: 'email' }],
    });
    await server.users.update(String(user?.id), { multifactor: [], blocked: true });
    const blocked = await exchange(await begun('code-7@example.test', 2));
    expect(blocked.status).to.be.within(400, 403);
    expect(blocked.json()).not.to.have.property('access_token');
  });

  describe('by SMS', () => {
    let people = 0;
    const number = () => `+1415555${2000 + ++people}`;
    const user = async (phone_number: string, phone_verified: boolean, connection = 'phones') => {
      const profile = { phone_verified };
      const made = await server.users.create(
        databaseUser({ connection, phone_number, password: USER.password, profile }),
      );
      if (!('user' in made)) throw new Error('taken');
      return made.user;
    };
    const begunBySms = async (phone_number: string, count = 1) => {
      const auth_session = String((await ask({ phone_number, connection: 'phones' })).json().auth_session);
      const { code = '', channel } = await nextMessageTo(server, phone_number, count);
      expect(channel).to.equal('sms');
      return { auth_session, otp: code };
    };

    it('log a user in: challengeWithPhoneNumber, getTokenByPasswordlessDbConnection', async () => {
      const phoneNumber = number();
      await user(phoneNumber, true);
      const { authSession } = (await call('passwordless.challengeWithPhoneNumber', {
        phoneNumber,
        connection: 'phones',
        deliveryMethod: 'text',
      })) as { authSession: string };
      const { code } = await nextMessageTo(server, phoneNumber);
      const tokens = await call('passwordless.getTokenByPasswordlessDbConnection', {
        authSession,
        otp: code,
        scope: 'openid phone',
      });
      expect(tokens.claims).to.include({ phone_number: phoneNumber, phone_number_verified: true });
    });

    it('sign up a user with only a phone number if the request allows it, and nobody if the connection requires more', async () => {
      const phone_number = number();
      const asked = await ask({ phone_number, connection: 'phones', allow_signup: true });
      const { code: otp } = await nextMessageTo(server, phone_number);
      const { auth_session } = asked.json();
      const all = await Promise.all(Array.from({ length: 10 }, () => exchange({ auth_session, otp })));
      expect(all.filter(({ status }) => status === 200)).to.have.length(1);
      const address = { connection: 'phones', kind: 'phone_number', address: phone_number } as const;
      const made = await server.users.findByAddress(address);
      expect(made).to.include({ phone_number, phone_verified: true });
      const other = number();
      await ask({ phone_number: other, connection: 'phones-and-names', allow_signup: true });
      expect(await messagesTo(server, other)).to.deep.equal([]);
    });

    it('are answered alike for known and unknown numbers, and sent only to verified numbers', async () => {
      const [known, unknown, unproved] = [number(), number(), number()];
      await Promise.all([user(known, true), user(unproved, false)]);
      const answers = await Promise.all(
        [known, unknown, unproved].map((phone_number) => ask({ phone_number, connection: 'phones' })),
      );
      for (const { status, text } of answers) {
        expect(status, text).to.equal(200);
        expect(text).to.match(/^\{"auth_session":"[\w-]{43}"\}$/);
      }
      await nextMessageTo(server, known);
      expect(await messagesTo(server, unknown)).to.deep.equal([]);
      expect(await messagesTo(server, unproved)).to.deep.equal([]);
      const wrong = await Promise.all(
        answers.map((answer) => exchange({ auth_session: answer.json().auth_session, otp: '000000' })),
      );
      expect(new Set(wrong.map(({ status, text }) => `${status} ${text}`)).size).to.equal(1);
      expect(wrong[0]?.status).to.equal(403);
    });

    it('are sent to one number a limited number of times, whoever has it', async () => {
      const [known, unknown] = [number(), number()];
      await user(known, true);
      const statuses = async (phone_number: string) => {
        const told: number[] = [];
        for (let i = 0; i < 11; i += 1) told.push((await ask({ phone_number, connection: 'phones' })).status);
        return told;
      };
      const told = await statuses(known);
      expect(told).to.deep.equal([...Array(10).fill(200), 429]);
      expect(await statuses(unknown)).to.deep.equal(told);
      await nextMessageTo(server, known, 10);
      expect((await ask({ phone_number: number(), connection: 'phones' })).status).to.equal(200);
      expect(await messagesTo(server, known)).to.have.length(10);
    });

    it('are rejected after three wrong tries, and wrong tries lock the account for the password, too', async () => {
      const phone_number = number();
      await user(phone_number, true);
      const guessed = await begunBySms(phone_number);
      const other = guessed.otp === '123456' ? '654321' : '123456';
      for (let i = 0; i < 3; i += 1)
        expect((await exchange({ ...guessed, otp: other })).status).to.equal(403);
      expect((await exchange(guessed)).status, 'guessed').to.equal(403);
      const locked = await agent.request('/oauth/token', {
        json: {
          grant_type: 'http://auth0.com/oauth/grant-type/password-realm',
          client_id: 'web',
          client_secret: 'web-secret',
          realm: 'phones',
          username: phone_number,
          password: USER.password,
        },
      });
      expect(locked.status, locked.text).to.equal(429);
    });

    it('require a phone number with its country code, delivery by text, and a connection that has them', async () => {
      const told = async (fields: object) => {
        const { status, json } = await ask({ connection: 'phones', ...fields });
        return [status, json().error];
      };
      const bad = [400, 'invalid_request'];
      expect(await told({ phone_number: '4155550100' })).to.deep.equal(bad);
      expect(await told({ phone_number: '+1' })).to.deep.equal(bad);
      expect(await told({ phone_number: number(), delivery_method: 'voice' })).to.deep.equal(bad);
      expect(await told({ phone_number: number(), email: USER.email })).to.deep.equal(bad);
      expect(await told({ phone_number: number(), connection: 'phones-off' })).to.deep.equal(bad);
      expect(await told({ email: USER.email })).to.deep.equal(bad);
    });
  });
});
