// A provider that hangs: callers wait about two seconds, and the message is sent without them.
import { expect } from 'chai';
import { tenant } from '../connections/passwordless/tenant.ts';
import { createAgent } from '../support/agent.ts';
import { USER } from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { startMailServer, type TestMailServer } from '../support/smtp.ts';
import { stopwatch } from '../support/timing.ts';
import { startTwilio, type TestTwilio, TWILIO } from '../support/twilio.ts';
import { until } from '../support/wait-until.ts';

/**
 * The two seconds that are promised, with room for a busy machine. It used to be 47 seconds, and over 70 for twenty
 * callers.
 */
const PROMISED = 10_000;

describe('a provider that hangs', () => {
  let mail: TestMailServer;
  let twilio: TestTwilio;
  let server: TestServer;
  beforeEach(async () => {
    mail = await startMailServer();
    twilio = await startTwilio();
    server = await startServer({
      maxWait: 2_000,
      tenant: {
        ...tenant,
        guardianFactors: [{ name: 'sms', enabled: true }],
        guardianPolicies: { policies: ['all-applications'] },
        tenant: { ...tenant.tenant, flags: { mfa_for_passwordless: false } },
      },
      env: {
        SMTP_URL: mail.url,
        MAIL_FROM: 'login@example.test',
        TWILIO_ACCOUNT_SID: TWILIO.accountSid,
        TWILIO_AUTH_TOKEN: TWILIO.authToken,
        TWILIO_FROM: '+15005550006',
        TWILIO_API_URL: twilio.url,
      },
    });
  });
  afterEach(async () => {
    mail?.release();
    mail?.behave('accept');
    await twilio?.stop();
    await server?.stop();
    await mail?.stop();
  });

  const web = { client_id: 'web', client_secret: 'web-secret' };
  const start = (fields: object) =>
    createAgent(server).request('/passwordless/start', { json: { ...web, ...fields } });
  const timed = async <T>(run: () => Promise<T>) => {
    const time = stopwatch();
    return { result: await run(), ms: time() };
  };
  const eventsOf = async (type: string) =>
    (await server.store.collection('logs').list({ limit: 1000 })).records.filter((one) => one.type === type);

  it('delays no caller for long, nor twenty at once, and the mails arrive when it answers', async () => {
    mail.behave('hold');
    const { result, ms } = await timed(() =>
      Promise.all(
        Array.from({ length: 20 }, (_, i) =>
          start({
            connection: 'email',
            email: `waits-${i}@example.test`,
            send: i % 2 === 0 ? 'code' : 'link',
          }),
        ),
      ),
    );
    expect(result.map(({ status }) => status)).to.deep.equal(Array(20).fill(200));
    expect(ms).to.be.below(PROMISED);
    expect(mail.messages).to.have.length(0);
    mail.behave('accept');
    mail.release();
    await until(() => mail.messages.length === 20);
    await until(async () => (await eventsOf('cls')).length === 20);
  });

  it('leaves no code valid when it finally refuses, and an event says so', async () => {
    mail.behave('hold');
    const email = 'refused@example.test';
    expect((await start({ connection: 'email', email, send: 'code' })).status).to.equal(200);
    const open = async () => {
      const { records } = await server.store.collection('challenges').list({ limit: 10 });
      return records.filter(({ spent }) => !spent).length;
    };
    expect(await open()).to.equal(1);
    mail.release(550);
    await until(async () => (await eventsOf('fn')).some(({ user_name }) => user_name === email));
    await until(async () => (await open()) === 0);
  });

  it('is not sent a code that has expired meanwhile', async () => {
    mail.behave('hold');
    const email = 'late@example.test';
    expect((await start({ connection: 'email', email, send: 'code' })).status).to.equal(200);
    server.tick(181_000);
    mail.behave('accept');
    mail.release(451);
    await until(async () => (await eventsOf('fn')).some(({ user_name }) => user_name === email));
    expect(mail.messages).to.have.length(0);
  });

  it('for mail does not delay SMS, nor the reverse', async () => {
    mail.behave('silence');
    await Promise.all(
      Array.from({ length: 10 }, (_, i) => start({ connection: 'email', email: `stuck-${i}@example.test` })),
    );
    expect((await start({ connection: 'sms', phone_number: '+16505551234' })).status).to.equal(200);
    await until(() => twilio.messages.length === 1);
    twilio.behave('silence');
    const { result, ms } = await timed(() => start({ connection: 'sms', phone_number: '+16505551235' }));
    expect(result.status).to.equal(200);
    expect(ms).to.be.below(PROMISED);
  });

  it('does not delay the page of a second factor, a reset or a verification', async () => {
    mail.behave('hold');
    twilio.behave('silence');
    const post = (path: string, json: object) => timed(() => createAgent(server).request(path, { json }));
    const refused = await createAgent(server).request('/oauth/token', {
      json: {
        grant_type: 'http://auth0.com/oauth/grant-type/password-realm',
        ...web,
        realm: 'users',
        username: USER.email,
        password: USER.password,
      },
    });
    const { mfa_token } = refused.json();
    expect(mfa_token).to.be.a('string');
    const answers = await Promise.all([
      timed(() =>
        createAgent(server).request('/mfa/associate', {
          json: {
            authenticator_types: ['oob'],
            oob_channels: ['sms'],
            phone_number: '+16505551236',
          },
          headers: { authorization: `Bearer ${mfa_token}` },
        }),
      ),
      post('/dbconnections/change_password', { connection: 'users', email: USER.email }),
      post('/dbconnections/signup', {
        connection: 'users',
        email: 'new@example.test',
        password: USER.password,
      }),
    ]);
    for (const { result, ms } of answers) {
      expect(result.status, result.text).to.equal(200);
      expect(ms).to.be.below(PROMISED);
    }
    mail.release();
    await until(() => mail.messages.length === 2);
    await until(async () => (await eventsOf('scpr')).length === 1 && (await eventsOf('svr')).length === 1);
  });
});
