// Password resets, by the endpoint and from the login page, and what a reset ends.
import { expect } from 'chai';
import { type Agent, type Answer, createAgent, readForm } from '../../support/agent.ts';
import { databaseUser } from '../../support/database-user.ts';
import {
  authorize,
  tenant as base,
  follow,
  logIn,
  payload,
  pkce,
  responseOf,
  spaRequest,
  spaTokens,
  token,
  USER,
  webRequest,
} from '../../support/flows.ts';
import { messagesTo, nextMessageTo } from '../../support/inbox.ts';
import { startServer, type TestServer } from '../../support/server.ts';
import { timesAsLong } from '../../support/timing.ts';

const CONFIRMATION = "We've just sent you an email to reset your password.";
const generous = { capacity: 10_000, perMinute: 10_000 };

const tenant = {
  ...base,
  attackProtection: {
    rateLimits: {
      ...base.attackProtection.rateLimits,
      changePassword: generous,
      signup: generous,
      hosted: generous,
    },
  },
  databases: [
    ...base.databases.map((database) =>
      database.name === 'users'
        ? { ...database, options: { ...database.options, password_history: { enable: true, size: 2 } } }
        : database,
    ),
    {
      name: 'without-reset',
      enabled_clients: ['web'],
      options: { disable_self_service_change_password: true },
    },
  ],
};

const resultTenant = {
  ...tenant,
  emailTemplates: [
    {
      template: 'reset_email',
      enabled: true,
      resultUrl: 'https://app.example.test/done?kept=yes',
      urlLifetimeInSeconds: 600,
      includeEmailInRedirect: true,
    },
  ],
};

describe('a password reset', () => {
  let server: TestServer;
  let people = 0;
  before(async () => {
    server = await startServer({ tenant });
  });
  after(() => server.stop());

  const NEW = 'Entirely-New-Words-7';
  const someone = async (on: TestServer = server) => {
    const email = `forgetful-${++people}@example.test`;
    const created = await on.users.create(
      databaseUser({ connection: 'users', email, password: USER.password }),
    );
    if (!('user' in created)) throw new Error('taken');
    return { id: created.user.id, email, password: USER.password };
  };
  const ask = (fields: Record<string, unknown>, on: TestServer = server) =>
    createAgent(on).request('/dbconnections/change_password', {
      json: { client_id: 'spa', connection: 'users', ...fields },
    });
  const linkFor = async (email: string, fields: object = {}, on: TestServer = server) => {
    const before = (await messagesTo(on, email)).filter(({ link }) => link !== undefined).length;
    expect((await ask({ email, ...fields }, on)).status).to.equal(200);
    const url = new URL((await nextMessageTo(on, email, before + 1, 'link')).link ?? '');
    return url.pathname + url.search;
  };
  const submit = async (browser: Agent, page: Answer, password: string, repeat = password) => {
    const { action, fields } = readForm(page, 'password');
    return browser.request(action, { form: { ...fields, password, repeat } });
  };
  const reset = async (link: string, password: string, on: TestServer = server) => {
    const browser = createAgent(on);
    return submit(browser, await browser.get(link), password);
  };
  const passwordIs = async (email: string, password: string) => {
    const { challenge } = pkce();
    const end = await logIn(createAgent(server), server, spaRequest(challenge), { email, password });
    return end.location !== '' && responseOf(end).code !== undefined;
  };

  describe('POST /dbconnections/change_password', () => {
    it('returns the sentence that SDKs show, with the headers of the limit', async () => {
      const { email } = await someone();
      const answer = await ask({ email });
      expect(answer.status).to.equal(200);
      expect(answer.text).to.equal(CONFIRMATION);
      expect(answer.headers['content-type']).to.equal('text/html; charset=utf-8');
      expect(answer.headers).to.include.keys(
        'x-ratelimit-limit',
        'x-ratelimit-remaining',
        'x-ratelimit-reset',
      );
    });

    it('accepts a form, and a request without client_id', async () => {
      const { email } = await someone();
      const answer = await createAgent(server).request('/dbconnections/change_password', {
        form: { connection: 'users', email, password: '' },
      });
      expect(answer.text).to.equal(CONFIRMATION);
      expect((await nextMessageTo(server, email)).link).to.contain('/u/reset-password?ticket=');
    });

    it('returns the same for an unknown address, and sends no mail', async () => {
      const { email } = await someone();
      const [known, unknown] = [await ask({ email }), await ask({ email: 'nobody@example.test' })];
      expect(unknown.status).to.equal(known.status);
      expect(unknown.text).to.equal(known.text);
      expect(Object.keys(unknown.headers)).to.deep.equal(Object.keys(known.headers));
      await nextMessageTo(server, email);
      expect(await messagesTo(server, 'nobody@example.test')).to.deep.equal([]);
    });

    it('takes as long for an unknown address', async () => {
      const { email } = await someone();
      const ratio = await timesAsLong(
        async () => () => ask({ email }),
        async () => () => ask({ email: `nobody-${++people}@example.test` }),
      );
      expect(ratio).to.be.within(1 / 3, 3);
    });

    it("makes the link from the configured base URL, whatever the request's host", async () => {
      const { email } = await someone();
      await createAgent(server).request('/dbconnections/change_password', {
        json: { connection: 'users', email },
        headers: { host: 'evil.example', 'x-forwarded-host': 'evil.example' },
      });
      const message = await nextMessageTo(server, email);
      expect(new URL(message.link ?? '').origin).to.equal(server.url);
      expect(JSON.stringify(message)).not.to.contain('evil.example');
    });

    for (const [what, fields, error] of [
      ['no address', {}, 'email is required'],
      ['no connection', { connection: null, email: 'a@b.test' }, 'connection is required'],
      ['an invalid address', { email: 'a b' }, 'email format validation failed'],
      ['an address that is not a string', { email: { $gt: '' } }, 'invalid email type (expected string)'],
      ['an unknown connection', { connection: 'nope', email: 'a@b.test' }, 'connection not found'],
      [
        'a connection that is not the application’s',
        { connection: 'staff', email: 'a@b.test' },
        'connection not found',
      ],
      ['an unknown organization', { organization: 'org_nope', email: 'a@b.test' }, 'organization not found'],
    ] as const) {
      it(`returns 400 for ${what}`, async () => {
        const answer = await ask(fields);
        expect(answer.status).to.equal(400);
        expect(answer.json().error).to.equal(error);
      });
    }

    it('allows ten requests at once and then one a minute, for each IP and e-mail address', async () => {
      const limited = await startServer({ tenant: base });
      try {
        const statuses = [];
        for (let i = 0; i < 11; i++) statuses.push((await ask({ email: 'a@example.test' }, limited)).status);
        expect(statuses).to.deep.equal([...Array(10).fill(200), 429]);
        expect((await ask({ email: 'b@example.test' }, limited)).status).to.equal(200);
        limited.tick(60_000);
        expect((await ask({ email: 'a@example.test' }, limited)).status).to.equal(200);
        expect((await ask({ email: ' A@example.test' }, limited)).status).to.equal(429);
      } finally {
        await limited.stop();
      }
    });
  });

  describe('by its link', () => {
    it('sets a new password, and rejects the old one', async () => {
      const { email, password } = await someone();
      const done = await reset(await linkFor(email), NEW);
      expect(done.status).to.equal(200);
      expect(done.text).to.contain('Your password is saved');
      expect(await passwordIs(email, NEW)).to.equal(true);
      expect(await passwordIs(email, password)).to.equal(false);
    });

    it('verifies the address that the link came to, and mails its owner that the password changed', async () => {
      const { id, email } = await someone();
      expect((await server.users.get(id))?.email_verified).to.equal(false);
      await reset(await linkFor(email), NEW);
      expect((await server.users.get(id))?.email_verified).to.equal(true);
      const notice = await nextMessageTo(server, email, 2);
      expect(notice.link).to.equal(undefined);
    });

    it('accepts the link once', async () => {
      const { email } = await someone();
      const link = await linkFor(email);
      await reset(link, NEW);
      const again = await createAgent(server).get(link);
      expect(again.status).to.equal(400);
      expect(again.text).to.contain('This link does not work any more');
    });

    it('accepts the link once if twenty use it at the same time', async () => {
      const { email } = await someone();
      const link = await linkFor(email);
      const pages = await Promise.all(
        Array.from({ length: 20 }, async (_, i) => {
          const browser = createAgent(server);
          return { browser, page: await browser.get(link), password: `Different-Words-${i}` };
        }),
      );
      const ends = await Promise.all(
        pages.map(({ browser, page, password }) => submit(browser, page, password)),
      );
      const winners = pages.filter((_, i) => ends[i]?.status === 200);
      expect(winners).to.have.length(1);
      expect(await passwordIs(email, winners[0]?.password ?? '')).to.equal(true);
    });

    it('does not use the link up when a mail scanner fetches it', async () => {
      const { email } = await someone();
      const link = await linkFor(email);
      for (let i = 0; i < 3; i++) await createAgent(server).get(link);
      expect((await reset(link, NEW)).status).to.equal(200);
    });

    it('rejects the link after a newer one was sent', async () => {
      const { email } = await someone();
      const [first, second] = [await linkFor(email), await linkFor(email)];
      expect((await createAgent(server).get(first)).status).to.equal(400);
      expect((await reset(second, NEW)).status).to.equal(200);
    });

    it("rejects the link after the user's address changed", async () => {
      const { id, email } = await someone();
      const link = await linkFor(email);
      await server.users.update(id, { email: `moved-${email}` });
      expect((await createAgent(server).get(link)).status).to.equal(400);
    });

    it('does not unblock a blocked user', async () => {
      const { id, email } = await someone();
      await server.users.update(id, { blocked: true });
      await reset(await linkFor(email), NEW);
      expect(await passwordIs(email, NEW)).to.equal(false);
    });

    for (const [what, password, repeat, text] of [
      ['a weak password', 'short', 'short', 'does not meet all rules'],
      ['two different passwords', NEW, `${NEW}!`, 'not the same'],
      ['the present password', USER.password, USER.password, 'used this password before'],
      ['an empty password', '', '', 'does not meet all rules'],
    ] as const) {
      it(`rejects ${what}, and keeps the link valid`, async () => {
        const { email } = await someone();
        const link = await linkFor(email);
        const browser = createAgent(server);
        const refused = await submit(browser, await browser.get(link), password, repeat);
        expect(refused.status).to.equal(400);
        expect(refused.text).to.contain(text);
        expect(refused.text).not.to.contain(`value="${NEW}"`);
        expect((await submit(browser, refused, NEW)).status).to.equal(200);
      });
    }

    it('accepts a password again that is older than the history', async () => {
      const { email, password } = await someone();
      for (const next of ['First-New-Words-1', 'Second-New-Words-2', 'Third-New-Words-3']) {
        expect((await reset(await linkFor(email), next)).status).to.equal(200);
      }
      expect((await reset(await linkFor(email), 'Second-New-Words-2')).status).to.equal(400);
      expect((await reset(await linkFor(email), password)).status).to.equal(200);
    });

    it('accepts a password only from our form', async () => {
      const { email } = await someone();
      const ticket = new URL(await linkFor(email), server.url).searchParams.get('ticket') ?? '';
      const forged = await createAgent(server).request('/u/reset-password', {
        form: { ticket, password: NEW, repeat: NEW, _csrf: 'A'.repeat(43) },
      });
      expect(forged.status).to.equal(403);
      expect(await passwordIs(email, NEW)).to.equal(false);
    });

    for (const ticket of ['', 'x', 'A'.repeat(43), '%00', '../../etc', '__proto__']) {
      it(`rejects the invalid ticket ${JSON.stringify(ticket)}`, async () => {
        const answer = await createAgent(server).get(
          `/u/reset-password?ticket=${encodeURIComponent(ticket)}`,
        );
        expect(answer.status).to.equal(400);
      });
    }

    it('rejects the ticket of a verification mail, and verification rejects the ticket of a reset', async () => {
      const email = `signer-${++people}@example.test`;
      await createAgent(server).request('/dbconnections/signup', {
        json: { client_id: 'spa', connection: 'users', email, password: USER.password },
      });
      const verification = new URL((await nextMessageTo(server, email)).link ?? '');
      const wrong = `/u/reset-password${verification.search}`;
      expect((await createAgent(server).get(wrong)).status).to.equal(400);
      const resetLink = await linkFor(email);
      expect(
        (await createAgent(server).get(resetLink.replace('reset-password', 'email-verification'))).status,
      ).to.equal(400);
    });

    it('stores the link neither in the store nor in the log', async () => {
      const { email } = await someone();
      const ticket = new URL(await linkFor(email), server.url).searchParams.get('ticket') ?? 'none';
      await reset(`/u/reset-password?ticket=${ticket}`, NEW);
      const storedTexts = JSON.stringify(
        (await server.store.collection('challenges').list({ limit: 1000 })).records,
      );
      expect(storedTexts).not.to.contain(ticket);
      expect(server.logged()).not.to.contain(ticket);
      expect(server.logged()).not.to.contain(NEW);
    });
  });

  describe('ends', () => {
    it('the sessions and refresh tokens of the user, and of no other user', async () => {
      const user = await someone();
      const [browser, bystander] = [createAgent(server), createAgent(server)];
      const offline = { scope: 'openid offline_access' };
      const { challenge, verifier } = pkce();
      const back = await logIn(browser, server, spaRequest(challenge, offline), user);
      const tokens = (
        await token(createAgent(server), {
          grant_type: 'authorization_code',
          client_id: 'spa',
          code: responseOf(back).code,
          code_verifier: verifier,
          redirect_uri: spaRequest(challenge).redirect_uri,
        })
      ).json();
      const others = await spaTokens(bystander, server, offline);
      await reset(await linkFor(user.email), NEW);
      const refresh = (refresh_token: string) =>
        token(createAgent(server), { grant_type: 'refresh_token', client_id: 'spa', refresh_token });
      expect((await refresh(tokens.refresh_token)).json()).to.deep.equal({
        error: 'invalid_grant',
        error_description: 'Unknown or invalid refresh token.',
      });
      const silent = webRequest({ prompt: 'none' });
      expect(responseOf(await authorize(browser, silent))).to.include({ error: 'login_required' });
      expect((await refresh(others.refresh_token)).status).to.equal(200);
      expect(responseOf(await authorize(bystander, silent)).code).to.be.a('string');
    });

    it('no session if the tenant keeps them and the address was verified before', async () => {
      const keeping = await startServer({
        tenant: { ...tenant, tenant: { ...base.tenant, flags: { keep_sessions_on_password_reset: true } } },
      });
      try {
        const user = await someone(keeping);
        await keeping.users.update(user.id, { email_verified: true });
        const browser = createAgent(keeping);
        await logIn(browser, keeping, webRequest(), user);
        await reset(await linkFor(user.email, {}, keeping), NEW, keeping);
        expect(responseOf(await authorize(browser, webRequest({ prompt: 'none' }))).code).to.be.a('string');
      } finally {
        await keeping.stop();
      }
    });

    it('other links that were sent to the user', async () => {
      const email = `linked-${++people}@example.test`;
      await createAgent(server).request('/dbconnections/signup', {
        json: { client_id: 'spa', connection: 'users', email, password: USER.password },
      });
      const verification = new URL((await nextMessageTo(server, email)).link ?? '');
      await reset(await linkFor(email), NEW);
      expect((await createAgent(server).get(verification.pathname + verification.search)).status).to.equal(
        400,
      );
    });
  });

  describe('of linked accounts', () => {
    /** A user with an unverified address, and another user linked to them. */
    const linked = async () => {
      const [user, other] = [await someone(), await someone()];
      await server.users.update(user.id, { email_verified: false });
      await server.users.update(other.id, { email_verified: true });
      expect(await server.users.link(user.id, other.id)).to.equal(true);
      return { user, other };
    };
    const emailsOf = async (id: string) =>
      (await server.users.identitiesOf(id)).map(({ email }) => email).sort();

    it('verifies no address by a link that was sent to a linked identity', async () => {
      const { user, other } = await linked();
      expect((await reset(await linkFor(other.email), NEW)).status).to.equal(200);
      expect((await server.users.get(user.id))?.email_verified).to.equal(false);
    });

    it('detaches linked identities if the address was unverified, so that whoever created the account loses access', async () => {
      const { user, other } = await linked();
      expect((await reset(await linkFor(user.email), NEW)).status).to.equal(200);
      expect(await emailsOf(user.id)).to.deep.equal([user.email]);
      expect(await emailsOf(other.id)).to.deep.equal([other.email]);
      expect((await server.users.get(user.id))?.email_verified).to.equal(true);
    });

    it('keeps linked identities if the address was verified before', async () => {
      const { user, other } = await linked();
      await server.users.update(user.id, { email_verified: true });
      expect((await reset(await linkFor(user.email), NEW)).status).to.equal(200);
      expect(await emailsOf(user.id)).to.deep.equal([user.email, other.email].sort());
    });
  });

  describe('with a resultUrl', () => {
    let results: TestServer;
    before(async () => {
      results = await startServer({ tenant: resultTenant });
    });
    after(() => results.stop());

    it('redirects there with the result', async () => {
      const { email } = await someone(results);
      const done = await reset(await linkFor(email, {}, results), NEW, results);
      expect(done.status).to.equal(303);
      const url = new URL(done.location);
      expect(url.origin + url.pathname).to.equal('https://app.example.test/done');
      expect(Object.fromEntries(url.searchParams)).to.deep.equal({
        kept: 'yes',
        success: 'true',
        message: 'Your password has been changed.',
        email,
      });
    });

    it('names the organization of the request', async () => {
      const { email } = await someone(results);
      const done = await reset(await linkFor(email, { organization: 'org_acme' }, results), NEW, results);
      const { searchParams } = new URL(done.location);
      expect(searchParams.get('organization_id')).to.equal('org_acme');
      expect(searchParams.get('organization_name')).to.equal('acme');
    });

    it('has a link that is valid for four hours by default', async () => {
      const { email } = await someone();
      const [early, late] = [await linkFor(email), await linkFor((await someone()).email)];
      server.tick((4 * 3600 - 10) * 1000);
      expect((await createAgent(server).get(early)).status).to.equal(200);
      server.tick(20_000);
      expect((await createAgent(server).get(late)).status).to.equal(400);
    });

    it('has a link that is valid for as long as the template says', async () => {
      const { email } = await someone(results);
      const link = await linkFor(email, {}, results);
      results.tick(601_000);
      expect((await createAgent(results).get(link)).status).to.equal(400);
    });
  });

  describe('from the login page', () => {
    const open = async () => {
      const browser = createAgent(server);
      const page = await follow(browser, await authorize(browser, webRequest()), server.url);
      const href = /href="([^"]*forgot-password)"/.exec(page.text)?.[1] ?? '';
      return { browser, page: await browser.get(href) };
    };
    const send = async (browser: Agent, page: Answer, email: string) => {
      const { action, fields } = readForm(page, 'email');
      return browser.request(action, { form: { ...fields, email } });
    };

    it('sends a link, and shows the same page for an unknown address', async () => {
      const { email } = await someone();
      const texts = [];
      for (const address of [email, 'nobody@example.test']) {
        const { browser, page } = await open();
        const answer = await send(browser, page, address);
        expect(answer.status).to.equal(200);
        texts.push(answer.text.replaceAll(address, '*').replaceAll(/nonce="[^"]*"|\/u\/[\w-]+/g, ''));
      }
      expect(texts[0]).to.equal(texts[1]);
      expect(
        (await reset(new URL((await nextMessageTo(server, email)).link ?? '').href, NEW)).status,
      ).to.equal(200);
    });

    it('is not offered and sends nothing if the connection switches it off', async () => {
      const email = `forgetful-${++people}@example.test`;
      await server.users.create(
        databaseUser({ connection: 'without-reset', email, password: USER.password }),
      );
      const browser = createAgent(server);
      const start = await authorize(browser, webRequest({ connection: 'without-reset' }));
      const login = await browser.get(start.location);
      expect(login.text).not.to.contain('forgot-password');
      expect(readForm(login, 'password').fields).to.have.property('username');
      const { location } = await browser.get(`${new URL(start.location).pathname}/forgot-password`);
      expect(new URL(location).pathname).to.equal(new URL(start.location).pathname);
      const answer = await ask({ client_id: 'web', connection: 'without-reset', email });
      // The page is that of an unknown address, because the setting is the connection's.
      expect(answer.text).to.equal((await ask({ email: 'nobody@example.test' })).text);
      await server.tenant.close();
      expect(await messagesTo(server, email)).to.deep.equal([]);
    });

    it('sends the mail in the language of the page, also if `ui_locales` names no supported one', async () => {
      const { email } = await someone();
      const browser = createAgent(server);
      const headers = { 'accept-language': 'de-AT,de;q=0.9' };
      const start = await authorize(browser, webRequest({ ui_locales: 'xx' }));
      const login = await browser.get(start.location, headers);
      const forgot = await browser.get(/href="([^"]*forgot-password)"/.exec(login.text)?.[1] ?? '', headers);
      expect(forgot.headers['content-language']).to.equal('de');
      const { action, fields } = readForm(forgot, 'email');
      await browser.request(action, { form: { ...fields, email }, headers });
      expect((await nextMessageTo(server, email)).subject).to.contain('Passwort');
    });

    it('rejects an invalid address', async () => {
      const { browser, page } = await open();
      const answer = await send(browser, page, 'a b');
      expect(answer.status).to.equal(400);
      expect(answer.text).to.contain('This is not an email address.');
    });

    it('accepts only our form', async () => {
      const { browser, page } = await open();
      const { action } = readForm(page, 'email');
      expect((await browser.request(action, { form: { email: USER.email, _csrf: 'x' } })).status).to.equal(
        403,
      );
    });
  });
});

describe('verification of an e-mail address', () => {
  let server: TestServer;
  let people = 0;
  before(async () => {
    server = await startServer({ tenant });
  });
  after(() => server.stop());

  const signUp = async () => {
    const email = `new-${++people}@example.test`;
    const answer = await createAgent(server).request('/dbconnections/signup', {
      json: { client_id: 'spa', connection: 'users', email, password: USER.password },
      headers: { 'accept-language': 'de' },
    });
    expect(answer.status).to.equal(200);
    const link = new URL((await nextMessageTo(server, email)).link ?? '');
    return { email, id: `auth0|${answer.json()._id}`, path: link.pathname + link.search, link };
  };
  const confirm = async (path: string) => {
    const browser = createAgent(server);
    const page = await browser.get(path);
    const { action, fields } = readForm(page, 'ticket');
    return browser.request(action, { form: fields });
  };

  it('is requested after a sign-up, and then shows in profile and tokens', async () => {
    const { email, id, path, link } = await signUp();
    expect(link.origin + link.pathname).to.equal(`${server.url}/u/email-verification`);
    const claims = async () => {
      const back = await logIn(createAgent(server), server, webRequest({ response_type: 'token' }), {
        email,
        password: USER.password,
      });
      return payload(responseOf(back).id_token ?? '');
    };
    expect((await claims()).email_verified).to.equal(false);
    const done = await confirm(path);
    expect(done.status).to.equal(200);
    expect(done.text).to.contain('Your email address is verified');
    expect((await claims()).email_verified).to.equal(true);
    expect((await server.users.get(id))?.email_verified).to.equal(true);
  });

  it('is requested after a sign-up at the hosted page, too', async () => {
    const browser = createAgent(server);
    const page = await follow(
      browser,
      await authorize(browser, webRequest({ screen_hint: 'signup' })),
      server.url,
    );
    const { action, fields } = readForm(page, 'email');
    const email = `hosted-${++people}@example.test`;
    await browser.request(action, { form: { ...fields, email, password: USER.password } });
    expect((await nextMessageTo(server, email)).link).to.contain('/u/email-verification?ticket=');
  });

  it('needs the form: fetching the link does not verify', async () => {
    const { id, path } = await signUp();
    await createAgent(server).get(path);
    expect((await server.users.get(id))?.email_verified).to.equal(false);
  });

  it('accepts the link once', async () => {
    const { path } = await signUp();
    await confirm(path);
    expect((await createAgent(server).get(path)).status).to.equal(400);
  });

  it("rejects the link after the user's address changed", async () => {
    const { id, email, path } = await signUp();
    await server.users.update(id, { email: `moved-${email}` });
    expect((await createAgent(server).get(path)).status).to.equal(400);
    expect((await server.users.get(id))?.email_verified).to.equal(false);
  });

  it('accepts only our form', async () => {
    const { id, link } = await signUp();
    const ticket = link.searchParams.get('ticket') ?? '';
    const forged = await createAgent(server).request('/u/email-verification', {
      form: { ticket, _csrf: 'x' },
    });
    expect(forged.status).to.equal(403);
    expect((await server.users.get(id))?.email_verified).to.equal(false);
  });

  describe('of an account that somebody else created with the address', () => {
    const squatter = { password: USER.password };
    /** Opens the page. @returns a function that presses its button. */
    const openDiscard = async (path: string) => {
      const browser = createAgent(server);
      const { action, fields } = readForm(await browser.get(path), 'ticket');
      return () => browser.request(action, { form: { ...fields, decision: 'discard' } });
    };
    const discard = async (path: string) => (await openDiscard(path))();
    const passwordLogin = (email: string) =>
      token(createAgent(server), {
        grant_type: 'password',
        client_id: 'web',
        client_secret: 'web-secret',
        username: email,
        password: squatter.password,
        scope: 'openid offline_access',
      });

    it('says what confirming does, and offers to delete the account', async () => {
      const { email, path } = await signUp();
      const page = await createAgent(server).get(path);
      expect(page.text).to.contain(email);
      expect(page.text).to.match(/whoever it was can log in to this account with their password/);
      expect(page.text).to.match(/<button[^>]*name="decision"[^>]*value="discard"/);
      const { text } = await nextMessageTo(server, email);
      expect(text).to.contain('das Konto löschen');
    });

    it('deletes the account with its sessions and tokens, and frees the address', async () => {
      const { email, id, path } = await signUp();
      const theirs = createAgent(server);
      await logIn(theirs, server, webRequest(), { email, ...squatter });
      const { refresh_token } = (await passwordLogin(email)).json();
      const done = await discard(path);
      expect(done.status).to.equal(200);
      expect(done.text).to.contain('The account is deleted');
      expect(await server.users.get(id)).to.equal(undefined);
      expect((await passwordLogin(email)).status).to.equal(403);
      const refreshed = await token(createAgent(server), {
        grant_type: 'refresh_token',
        client_id: 'web',
        client_secret: 'web-secret',
        refresh_token,
      });
      expect(refreshed.status).to.equal(400);
      expect(refreshed.json().error).to.equal('invalid_grant');
      const silent = await authorize(theirs, webRequest({ prompt: 'none' }));
      expect(responseOf(silent)).to.include({ error: 'login_required' });
      const again = await createAgent(server).request('/dbconnections/signup', {
        json: { client_id: 'spa', connection: 'users', email, password: 'Quite-Another-Word-1' },
      });
      expect(again.status).to.equal(200);
      expect(again.json()._id).not.to.equal(id.split('|')[1]);
    });

    it('deletes it once, and only by our form', async () => {
      const { id, path, link } = await signUp();
      const forged = await createAgent(server).request('/u/email-verification', {
        form: { ticket: link.searchParams.get('ticket') ?? '', decision: 'discard', _csrf: 'x' },
      });
      expect(forged.status).to.equal(403);
      for (let i = 0; i < 3; i++) await createAgent(server).get(`${path}&decision=discard`);
      expect(await server.users.get(id)).not.to.equal(undefined);
      const open = await Promise.all(Array.from({ length: 10 }, () => openDiscard(path)));
      const answers = await Promise.all(open.map((press) => press()));
      expect(answers.filter(({ status }) => status === 200)).to.have.length(1);
      expect((await createAgent(server).get(path)).status).to.equal(400);
    });

    it('deletes nothing after the address was verified', async () => {
      const { id, path, email } = await signUp();
      const { action, fields } = readForm(await createAgent(server).get(path), 'ticket');
      await server.users.update(id, { email_verified: true });
      expect((await createAgent(server).get(path)).text).not.to.contain('value="discard"');
      const browser = createAgent(server);
      const csrf = readForm(await browser.get(path), 'ticket').fields._csrf ?? '';
      const late = await browser.request(action, {
        form: { ...fields, _csrf: csrf, decision: 'discard' },
      });
      expect(late.status).to.equal(400);
      expect((await server.users.get(id))?.email).to.equal(email);
    });

    it('ends a login of the account that is under way', async () => {
      const { email, path } = await signUp();
      const logins = Array.from({ length: 12 }, () => passwordLogin(email));
      const [done, ...answers] = await Promise.all([discard(path), ...logins]);
      expect(done?.status).to.equal(200);
      for (const answer of answers.filter(({ status }) => status === 200)) {
        const refreshed = await token(createAgent(server), {
          grant_type: 'refresh_token',
          client_id: 'web',
          client_secret: 'web-secret',
          refresh_token: answer.json().refresh_token,
        });
        expect(refreshed.status).to.equal(400);
      }
    });
  });
});
