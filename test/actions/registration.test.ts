// Actions for registrations and password changes. A sign-up is refused before anything is written, with every way to
// sign up; actions that run afterwards delay nobody.
import type { ServerResponse } from 'node:http';
import { expect } from 'chai';
import { OTP_GRANT, tenant as passwordless } from '../connections/passwordless/tenant.ts';
import { startManaged } from '../management/support.ts';
import { startProvider } from '../scripts/support.ts';
import { createAgent, readForm } from '../support/agent.ts';
import { authorize, follow, payload, responseOf, token, USER, webRequest } from '../support/flows.ts';
import { nextMessageTo } from '../support/inbox.ts';
import { resetPassword } from '../support/reset.ts';
import { SHORT_SCRIPTS, type TestServer } from '../support/server.ts';
import { until } from '../support/wait-until.ts';
import { actionFailures, bindActions, eventsOf, managed, printed } from './support.ts';

const PASSWORD = 'Good-Enough-1';
const tenant = {
  ...passwordless,
  attackProtection: {
    ...passwordless.attackProtection,
    rateLimits: {
      ...passwordless.attackProtection.rateLimits,
      signup: { capacity: 10_000, perMinute: 10_000 },
    },
  },
};

describe('actions around registrations', () => {
  let server: TestServer;
  let count = 0;
  beforeEach(async () => {
    server = await startManaged(tenant, undefined, {}, { waits: SHORT_SCRIPTS });
  });
  afterEach(() => server.stop());

  const fresh = () => `new${++count}@example.test`;
  const BEFORE = ['pre-user-registration', 'onExecutePreUserRegistration'] as const;
  const AFTER = ['post-user-registration', 'onExecutePostUserRegistration'] as const;
  const CHANGED = ['post-change-password', 'onExecutePostChangePassword'] as const;
  const bind = ([trigger, entry]: readonly [string, string], ...bodies: string[]) =>
    bindActions(
      server,
      trigger,
      ...bodies.map((body) => ({ code: `exports.${entry} = async (event, api) => {\n${body}\n};` })),
    );
  const signUp = async (email: string, over: object = {}) => {
    const answer = await createAgent(server).request('/dbconnections/signup', {
      json: { client_id: 'web', connection: 'users', email, password: PASSWORD, ...over },
    });
    return { status: answer.status, body: answer.json() };
  };
  const make = (email: string, over: object = {}) =>
    managed(server, 'POST', '/users', { connection: 'users', email, password: PASSWORD, ...over });
  const usersWith = async (email: string) =>
    (await managed(server, 'GET', `/users-by-email?email=${encodeURIComponent(email)}`)).body;
  const signUpByPage = async (email: string) => {
    const agent = createAgent(server);
    const page = await follow(
      agent,
      await authorize(agent, webRequest({ screen_hint: 'signup' })),
      server.url,
    );
    const { action, fields } = readForm(page, 'email');
    const posted = await agent.request(action, { form: { ...fields, email, password: PASSWORD } });
    return follow(agent, posted, server.url);
  };
  const codeFor = async (email: string) => {
    const json = { client_id: 'web', client_secret: 'web-secret', connection: 'email', email, send: 'code' };
    expect((await createAgent(server).request('/passwordless/start', { json })).status).to.equal(200);
    return (await nextMessageTo(server, email, 1, 'code')).code;
  };
  const logInByCode = async (email: string) => {
    const answer = await token(createAgent(server), {
      grant_type: OTP_GRANT,
      client_id: 'web',
      client_secret: 'web-secret',
      realm: 'email',
      username: email,
      otp: await codeFor(email),
      scope: 'openid email',
    });
    return { status: answer.status, body: answer.json() };
  };

  const DENY = `api.access.deny('no_signups', 'Only for <b>members</b>.');`;

  it('refuse a sign-up at the API with their message, and nothing is written', async () => {
    await bind(BEFORE, DENY, `throw new Error('was run');`);
    const email = fresh();
    const { status, body } = await signUp(email);
    expect(status).to.equal(400);
    expect(body).to.include({
      code: 'extensibility_error',
      description: 'Only for <b>members</b>.',
      friendly_message: 'Only for <b>members</b>.',
      statusCode: 400,
    });
    expect(await usersWith(email)).to.deep.equal([]);
    // The reason is for the log only.
    expect(JSON.stringify(body)).not.to.contain('no_signups');
    const [event] = await eventsOf(server, 'fs');
    expect(event).to.include({ description: 'no_signups', user_name: email, connection: 'users' });
    expect(await actionFailures(server)).to.deep.equal([]);
  });

  it('refuse a sign-up at the page, which shows their message as text', async () => {
    await bind(BEFORE, DENY);
    const email = fresh();
    const page = await signUpByPage(email);
    expect(page.status).to.equal(400);
    expect(page.text).to.contain('Only for &lt;b&gt;members&lt;/b&gt;.').and.not.contain('<b>members</b>');
    expect(await usersWith(email)).to.deep.equal([]);
    // A reason without a message is shown to nobody.
    await bind(BEFORE, `api.access.deny('their address is on the list');`);
    expect((await signUpByPage(email)).text).not.to.contain('on the list');
    expect(JSON.stringify((await signUp(email)).body)).not.to.contain('on the list');
  });

  it('refuse a user who has verified an address for the first time, and let existing users in', async () => {
    const email = fresh();
    const first = await logInByCode(email);
    expect(first.status).to.equal(200);
    await bind(BEFORE, DENY);
    expect((await logInByCode(email)).status).to.equal(200);
    const other = fresh();
    expect(await logInByCode(other)).to.deep.equal({
      status: 403,
      body: { error: 'access_denied', error_description: 'Only for <b>members</b>.' },
    });
    expect(await usersWith(other)).to.deep.equal([]);
    // At the page, too.
    const agent = createAgent(server);
    const started = await follow(
      agent,
      await authorize(agent, webRequest({ connection: 'email' })),
      server.url,
    );
    const address = readForm(started, 'address');
    const third = fresh();
    const asked = await agent.request(address.action, { form: { ...address.fields, address: third } });
    const form = readForm(asked, 'code');
    const { code = '' } = await nextMessageTo(server, third, 1, 'code');
    const page = await agent.request(form.action, { form: { ...form.fields, code } });
    expect(page.status).to.equal(400);
    expect(page.text).to.contain('Only for &lt;b&gt;members&lt;/b&gt;.');
    expect(await usersWith(third)).to.deep.equal([]);
  });

  it('refuse a user whom the Management API would create', async () => {
    await bind(BEFORE, `api.validation.error('no_such_team', 'There is no such team.');`);
    const email = fresh();
    const { status, body } = await make(email);
    expect(status).to.equal(400);
    expect(body).to.include({ message: 'There is no such team.', errorCode: 'extensibility_error' });
    expect(await usersWith(email)).to.deep.equal([]);
    const [event] = await eventsOf(server, 'fs');
    expect(event).to.include({ description: 'no_such_team' });
  });

  it('answer the same for an address that is taken as for one that is free', async () => {
    await bind(BEFORE, DENY);
    expect(await signUp(USER.email)).to.deep.equal(await signUp(fresh()));
    await bind(BEFORE, `console.log('asked of ' + event.user.email);`);
    expect((await signUp(USER.email)).body).to.include({ code: 'invalid_signup' });
    expect(await printed(server)).to.contain(`asked of ${USER.email}`);
  });

  it('set metadata that the user has from the beginning, each with that of the one before', async () => {
    await bind(
      BEFORE,
      `api.user.setAppMetadata('plan', event.user.user_metadata.plan); api.user.setUserMetadata('plan', null);`,
      `api.user.setUserMetadata('seen', event.user.app_metadata.plan);`,
    );
    const email = fresh();
    expect((await signUp(email, { user_metadata: { plan: 'gold', theme: 'dark' } })).status).to.equal(200);
    const [user] = await usersWith(email);
    expect(user.app_metadata).to.deep.equal({ plan: 'gold' });
    expect(user.user_metadata).to.deep.equal({ theme: 'dark', seen: 'gold' });
    const reader = fresh();
    await bind(BEFORE, `api.user.setAppMetadata('by', event.connection.strategy);`);
    expect((await logInByCode(reader)).status).to.equal(200);
    expect((await usersWith(reader))[0]).to.deep.include({ app_metadata: { by: 'email' } });
    expect((await make(fresh())).body.app_metadata).to.deep.equal({ by: 'auth0' });
  });

  it('get the user, the application and the request, and no password', async () => {
    await bind(BEFORE, `console.log(JSON.stringify(event));`);
    const email = fresh();
    await signUp(email, { given_name: 'Ada', password: 'Never-To-Be-Seen-1' });
    const text = await printed(server);
    expect(text).not.to.contain('Never-To-Be-Seen-1');
    const event = JSON.parse(text.slice(text.indexOf('{'), text.lastIndexOf('}') + 1));
    expect(event.user).to.include({ email, given_name: 'Ada' });
    expect(event.client).to.include({ client_id: 'web', name: 'Web app' });
    expect(event.connection).to.include({ name: 'users', strategy: 'auth0' });
    expect(event.request).to.include({ method: 'POST' }).and.have.property('ip');
  });

  it('refuse the user when they fail, and only the log says why', async () => {
    for (const body of [`throw new Error('The CRM is down.');`, 'for (;;);', `api.user.nothing();`]) {
      await bind(BEFORE, body);
      const email = fresh();
      const { status, body: said } = await signUp(email);
      expect(status).to.equal(400);
      expect(said).to.include({ code: 'extensibility_error', description: 'The sign-up was refused.' });
      expect(await usersWith(email)).to.deep.equal([]);
    }
    expect((await actionFailures(server)).join('\n')).to.contain('The CRM is down.');
  });

  it('run after the response for a new user of any origin, and their failures change nothing', async () => {
    await bind(AFTER, `console.log('welcome ' + event.user.user_id + ' of ' + event.connection.name);`);
    const [a, b, c] = [fresh(), fresh(), fresh()];
    const { body } = await signUp(a);
    await printed(server, `welcome auth0|${body._id} of users`);
    const { body: made } = await make(b);
    await printed(server, `welcome ${made.user_id} of users`);
    const { sub } = payload((await logInByCode(c)).body.id_token);
    await printed(server, `welcome ${sub} of email`);
    // A second login creates no user.
    await logInByCode(c);
    await bind(AFTER, `console.log('told'); throw new Error('The CRM is down.');`);
    const last = fresh();
    expect(responseOf(await signUpByPage(last))).to.have.property('code');
    await printed(server, 'told');
    expect(await usersWith(last)).to.have.length(1);
    expect((await printed(server)).split(`welcome ${sub}`)).to.have.length(2);
  });

  it('delay nobody when they are slow after a sign-up', async () => {
    const waiting: ServerResponse[] = [];
    const crm = await startProvider({ '/crm': (_request, response) => void waiting.push(response) });
    try {
      await bind(AFTER, `await fetch('${crm.url}/crm'); console.log('told');`);
      expect((await signUp(fresh())).status).to.equal(200);
      expect((await signUp(fresh())).status).to.equal(200);
      await until(() => waiting.length === 2);
      expect(await printed(server), 'they run still').not.to.contain('told');
      for (const response of waiting) response.end();
      await printed(server, 'told');
    } finally {
      await crm.stop();
    }
  });

  it('do not run for a user who was not created', async () => {
    await bind(AFTER, `console.log('welcome ' + event.user.email);`);
    await signUp(USER.email);
    await signUp(fresh(), { password: 'weak' });
    const email = fresh();
    await signUp(email);
    expect(await printed(server, `welcome ${email}`)).not.to.contain(`welcome ${USER.email}`);
  });

  it('run after a password change by the mailed link and by the Management API', async () => {
    await bind(
      CHANGED,
      `console.log('changed ' + event.user.email + ' of ' + event.connection.name + JSON.stringify(event));`,
    );
    await resetPassword(server, USER.email, 'Another-Horse-2');
    const text = await printed(server, `changed ${USER.email} of users`);
    expect(text).not.to.contain('Another-Horse-2');
    const [{ user_id: id }] = await usersWith(USER.email);
    await bind(CHANGED, `console.log('by ' + event.request.method); throw new Error('no');`);
    const patched = await managed(server, 'PATCH', `/users/${encodeURIComponent(id)}`, {
      password: 'Third-Horse-33',
    });
    expect(patched.status).to.equal(200);
    await printed(server, 'by PATCH');
    // Other changes are no change of the password, and a refused one is none either.
    await bind(CHANGED, `console.log('again');`);
    await managed(server, 'PATCH', `/users/${encodeURIComponent(id)}`, { name: 'Ada' });
    await managed(server, 'PATCH', `/users/${encodeURIComponent(id)}`, { password: 'weak' });
    expect(await printed(server)).not.to.contain('again');
  });
});
