// Refresh tokens of the old tenant are exchanged once for ours, while the bridge is open.
import { expect } from 'chai';
import { createAgent } from '../support/agent.ts';
import { countStore } from '../support/counted-store.ts';
import { API, authorize, logIn, payload, spaTokens, token, webRequest } from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';
import { tenantWith } from '../support/tenant.ts';
import { until } from '../support/wait-until.ts';
import {
  answering,
  broken,
  changing,
  huge,
  OLD,
  redirecting,
  type StandIn,
  silent,
  slow,
  startStandIn,
} from './stand-in.ts';
import { browserAt, DAY, eventsOf, newTenant, OFFLINE, openBridges, startNew } from './support.ts';

const INVALID = { error: 'invalid_grant', error_description: 'Unknown or invalid refresh token.' };

describe('a refresh token of the old tenant', () => {
  let old: StandIn;
  let server: TestServer;
  before(async () => {
    old = await startStandIn();
    server = await startNew(old, tenantWith({ attackProtection: GENEROUS }, newTenant));
  });
  after(async () => {
    await server?.stop();
    await old?.stop();
  });
  afterEach(() => old.reset());

  const GENEROUS = {
    rateLimits: Object.fromEntries(
      ['oldTokensOfAddress', 'oldTokensOfClient', 'oldTokens', 'token', 'login'].map((name) => [
        name,
        { capacity: 10_000, perMinute: 10_000 },
      ]),
    ),
  };
  /** Returns a refresh token of the old tenant, by a login there. */
  const oldToken = async (
    clientId: 'spa' | 'web' | 'leeway' | 'third',
    user: { email: string; password: string } = OLD.bcrypt,
    over: object = {},
  ) => {
    const there = createAgent({ url: old.origin, ca: old.ca });
    if (clientId === 'spa')
      return (await spaTokens(there, { url: old.origin }, { ...OFFLINE, ...over }, user))
        .refresh_token as string;
    const answer = await token(there, {
      grant_type: 'password',
      client_id: clientId,
      client_secret: `${clientId}-secret`,
      username: user.email,
      password: user.password,
      scope: OFFLINE.scope,
      audience: API,
      ...over,
    });
    expect(answer.status, answer.text).to.equal(200);
    return answer.json().refresh_token as string;
  };
  const SECRETS: Record<string, object> = { spa: {} };
  const refresh = (clientId: string, refresh_token: string, more = {}, headers = {}) =>
    createAgent(server).request('/oauth/token', {
      json: {
        grant_type: 'refresh_token',
        client_id: clientId,
        ...(SECRETS[clientId] ?? { client_secret: `${clientId}-secret` }),
        refresh_token,
        ...more,
      },
      headers,
    });
  const revoked = () => old.asked('/oauth/revoke').map(({ form }) => form.token ?? '');
  const asked = () => old.asked('/oauth/token').filter(({ form }) => form.grant_type === 'refresh_token');

  it('is exchanged for tokens of ours, of the same user, for the same API and scopes, and revoked there', async () => {
    const theirs = await oldToken('web');
    const answer = await refresh('web', theirs);
    expect(answer.status, answer.text).to.equal(200);
    const { access_token, id_token, refresh_token, scope } = answer.json();
    expect(payload(access_token)).to.deep.include({ iss: server.issuer, sub: OLD.bcrypt.id, azp: 'web' });
    expect(payload(access_token).aud).to.deep.equal([API, `${server.issuer}userinfo`]);
    expect(payload(id_token)).to.include({ iss: server.issuer, sub: OLD.bcrypt.id, aud: 'web' });
    expect(scope.split(' ').sort()).to.deep.equal(OFFLINE.scope.split(' ').sort());
    expect(refresh_token).to.be.a('string').and.not.equal(theirs);
    expect((await refresh('web', refresh_token)).status, 'ours').to.equal(200);
    const [moved] = await eventsOf(server, 'moved_refresh_token');
    expect(moved).to.include({ client_id: 'web', user_id: OLD.bcrypt.id });
    expect(JSON.stringify(moved)).not.to.contain(theirs);
    await until(() => revoked().includes(theirs));
    const there = createAgent({ url: old.origin, ca: old.ca });
    const again = await token(there, {
      grant_type: 'refresh_token',
      client_id: 'web',
      client_secret: 'web-secret',
      refresh_token: theirs,
    });
    expect(again.json().error).to.equal('invalid_grant');
  });

  /** The families of refresh tokens that a user has here. */
  const families = async (userId: string) =>
    (await server.store.collection('artifacts').findBy('account', userId)).filter(
      ({ model }) => model === 'RefreshToken',
    );
  const jsonOf = async (answer: Promise<{ json(): Record<string, any> }>) => (await answer).json(); // any: a test reads what it expects

  it('moves once in a race of 50, to one family; where used tokens may not be used again, the others are refused', async () => {
    const before = (await families(OLD.argon2.id)).length;
    const theirs = await oldToken('spa', OLD.argon2);
    const answers = await Promise.all(Array.from({ length: 50 }, () => refresh('spa', theirs)));
    const good = answers.filter(({ status }) => status === 200);
    expect(good.length).to.equal(1);
    for (const answer of answers.filter(({ status }) => status !== 200))
      expect({ status: answer.status, ...answer.json() }).to.deep.equal({ status: 400, ...INVALID });
    expect(asked().length).to.equal(1);
    expect((await families(OLD.argon2.id)).length).to.equal(before + 1);
    const next = await refresh('spa', good[0]?.json().refresh_token);
    expect(next.status, 'the tokens of the one that won stay').to.equal(200);
  });

  it('moves once in a race of 50, to one family; where used tokens may be used again for a time, all get tokens', async () => {
    const before = (await families(OLD.argon2.id)).length;
    const theirs = await oldToken('leeway', OLD.argon2);
    const answers = await Promise.all(Array.from({ length: 50 }, () => refresh('leeway', theirs)));
    expect(new Set(answers.map(({ status }) => status))).to.deep.equal(new Set([200]));
    expect(asked().length).to.equal(1);
    expect((await families(OLD.argon2.id)).length).to.equal(before + 1);
  });

  it('that is presented again later is a reuse, which ends its family', async () => {
    const theirs = await oldToken('spa');
    const { refresh_token } = await jsonOf(refresh('spa', theirs));
    server.tick(60_000);
    expect(await jsonOf(refresh('spa', theirs))).to.deep.equal(INVALID);
    expect(await jsonOf(refresh('spa', refresh_token))).to.deep.equal(INVALID);
    expect(await jsonOf(refresh('spa', theirs)), 'not asked for again').to.deep.equal(INVALID);
    expect(asked().length).to.equal(1);
  });

  it('stands for ours where the application does not rotate tokens and keeps the old one', async () => {
    const theirs = await oldToken('web');
    const first = await jsonOf(refresh('web', theirs));
    server.tick(3_600_000);
    const second = await jsonOf(refresh('web', theirs));
    expect(second.refresh_token).to.equal(first.refresh_token);
    expect(asked().length).to.equal(1);
    await server.store.collection('moves').delete('move');
    expect((await refresh('web', theirs)).status, 'after the move').to.equal(200);
    expect(await jsonOf(refresh('web', `v1.${'N'.repeat(86)}`))).to.deep.equal(INVALID);
    expect(asked().length).to.equal(1);
    await openBridges(server, old);
  });

  it('of a stranger is refused as any other, asked about once, and only if it has the form of theirs', async () => {
    const made = `v1.${'M'.repeat(87)}`;
    for (const _ of [1, 2]) expect(await jsonOf(refresh('spa', made))).to.deep.equal(INVALID);
    expect(asked().length).to.equal(1);
    for (const other of [
      'x',
      'v1.short',
      'y'.repeat(65),
      `v1.${'M'.repeat(300)}`,
      `v1.${'M'.repeat(80)}&a=b`,
    ])
      expect(await jsonOf(refresh('spa', other))).to.deep.equal(INVALID);
    expect(asked().length).to.equal(1);
  });

  it('of another application is refused, and still moves for its own', async () => {
    const theirs = await oldToken('web');
    expect(await jsonOf(refresh('leeway', theirs))).to.deep.equal(INVALID);
    const mine = await refresh('web', theirs);
    expect(mine.status).to.equal(200);
    expect(await jsonOf(refresh('leeway', theirs)), 'moved').to.deep.equal(INVALID);
  });

  /** Has the old tenant answer otherwise. @returns our answer */
  const answeredWith = async (
    instead: Parameters<typeof changing>[0],
    clientId: 'web' | 'spa' = 'web',
  ): Promise<Record<string, any>> => {
    const theirs = await oldToken(clientId);
    old.instead['POST /oauth/token'] = changing((body, asked) =>
      asked.form.grant_type === 'refresh_token' ? instead(body, asked) : body,
    );
    const answer = await jsonOf(refresh(clientId, theirs));
    delete old.instead['POST /oauth/token'];
    return answer;
  };

  it('is refused where the answer is of two users, of an unknown one, or of none', async () => {
    const other = { sub: OLD.argon2.id };
    const nobody = { sub: 'auth0|nobody' };
    const access = async (body: Record<string, any>, claims: object) => old.resign(body.access_token, claims);
    const id = async (body: Record<string, any>, claims: object) =>
      old.resign(body.id_token, { ...claims, at_hash: undefined });
    expect(await answeredWith(async (body) => ({ ...body, id_token: await id(body, other) }))).to.deep.equal(
      INVALID,
    );
    expect(
      await answeredWith(async (body) => ({
        ...body,
        access_token: await access(body, other),
        id_token: await id(body, {}),
      })),
    ).to.deep.equal(INVALID);
    expect(
      await answeredWith(async (body) => ({
        ...body,
        id_token: await id(body, nobody),
        access_token: await access(body, nobody),
      })),
    ).to.deep.equal(INVALID);
    expect(
      await answeredWith((body) => ({
        ...body,
        id_token: undefined,
        access_token: 'opaque',
        scope: 'offline_access',
      })),
    ).to.deep.equal(INVALID);
  });

  it('is refused where the ID token is of another issuer, for another application, unsigned, or signed by another key', async () => {
    const idToken =
      (claims: object, how?: Parameters<typeof old.resign>[2]) => async (body: Record<string, any>) => ({
        ...body,
        id_token: await old.resign(body.id_token, claims, how),
      });
    expect((await answeredWith(idToken({}))).access_token, 'unchanged').to.be.a('string');
    for (const change of [
      idToken({ iss: server.issuer }),
      idToken({ iss: 'https://other.example/' }),
      idToken({ aud: 'leeway' }),
      idToken({ aud: ['web', 'leeway'] }),
      idToken({ azp: 'leeway' }),
      idToken({ exp: Math.floor(Date.now() / 1000) - 3_600 }),
      idToken({}, { key: 'none' }),
      idToken({}, { key: 'other' }),
      idToken({ sub: '' }),
    ])
      expect(await answeredWith(change)).to.deep.equal(INVALID);
  });

  it('is refused where the access token is of another issuer or application, unsigned, or for an API that is not here', async () => {
    const accessToken =
      (claims: object, how?: Parameters<typeof old.resign>[2]) => async (body: Record<string, any>) => ({
        ...body,
        access_token: await old.resign(body.access_token, claims, how),
        id_token: await old.resign(body.id_token, { at_hash: undefined }),
      });
    expect((await answeredWith(accessToken({}))).access_token, 'unchanged').to.be.a('string');
    for (const change of [
      accessToken({ iss: server.issuer }),
      accessToken({ azp: 'leeway', client_id: 'leeway' }),
      accessToken({ aud: 'https://elsewhere.example/' }),
      accessToken({ aud: [API, 'guarded-api'] }),
      accessToken({}, { key: 'none' }),
      accessToken({}, { key: 'other' }),
    ])
      expect(await answeredWith(change)).to.deep.equal(INVALID);
  });

  it('moves to no API where the access token cannot be read, with the scopes of OpenID Connect alone', async () => {
    const answer = await answeredWith(async (body) => ({
      ...body,
      access_token: 'opaque',
      id_token: await old.resign(body.id_token, { at_hash: undefined }),
    }));
    expect(answer.access_token.split('.').length).to.equal(1);
    expect(answer.scope.split(' ').sort()).to.deep.equal(['email', 'offline_access', 'openid', 'profile']);
  });

  it('has no more scopes than were granted there, or than the user may have here', async () => {
    const fewer = await answeredWith((body) => ({ ...body, scope: 'openid offline_access' }));
    expect(fewer.scope.split(' ').sort()).to.deep.equal(['offline_access', 'openid']);
    const more = await answeredWith((body) => ({
      ...body,
      scope: `${body.scope} write:things admin look invented`,
    }));
    expect(more.scope)
      .to.contain('write:things')
      .and.not.match(/admin|look|invented/);
  });

  it('is refused where the old tenant redirects, fails, answers without end, with something else, or not at all', async () => {
    const theirs: string[] = [];
    const answers = [
      redirecting(`${server.url}/oauth/token`),
      answering(500, { error: 'server_error' }),
      answering(429, { error: 'too_many_requests' }),
      answering(200, { access_token: 17 }),
      answering(200, 'text'),
      huge,
      broken,
    ];
    for (const _ of answers) theirs.push(await oldToken('leeway'));
    old.instead['POST /oauth/token'] = (asked, response, pass) =>
      answers[theirs.indexOf(asked.form.refresh_token ?? '')]?.(asked, response, pass);
    const all = await Promise.all(theirs.map((one) => jsonOf(refresh('leeway', one))));
    for (const answer of all) expect(answer).to.deep.equal(INVALID);
    expect(server.logged()).not.to.contain(theirs[0]);
  });

  it('is not asked about after its date, after the end of the move, or when somebody has ended it', async () => {
    const theirs = await oldToken('web');
    const over = new Date(Date.now() - 1_000).toISOString();
    const later = new Date(Date.now() + DAY).toISOString();
    const opened_at = new Date(Date.now() - DAY).toISOString();
    for (const more of [
      { refresh_tokens: { opened_at, until: over } },
      { refresh_tokens: { opened_at, until: later, ended_at: over } },
      { refresh_tokens: undefined },
      { until: over },
      { ended_at: over },
      { refresh_tokens: { opened_at, until: 'never' } },
      { refresh_tokens: { opened_at, until: later, applications: { web: null } } },
    ]) {
      await openBridges(server, old, more);
      expect(await jsonOf(refresh('web', theirs)), JSON.stringify(more)).to.deep.equal(INVALID);
    }
    await openBridges(server, old);
    expect(await jsonOf(refresh('web', theirs, {}, { dpop: 'a.b.c' }))).to.have.property('error');
    expect(asked().length).to.equal(0);
    expect((await refresh('web', theirs)).status).to.equal(200);
  });

  it('is redeemed with other credentials where the application has others there', async () => {
    const theirs = await oldToken('leeway');
    await openBridges(server, old, {
      refresh_tokens: {
        opened_at: new Date().toISOString(),
        until: new Date(Date.now() + DAY).toISOString(),
        applications: { web: { client_id: 'leeway', client_secret: 'leeway-secret' } },
      },
    });
    const answer = await jsonOf(refresh('web', theirs));
    expect(payload(answer.access_token).azp).to.equal('web');
    await openBridges(server, old);
  });

  it('of a user who is blocked or deleted here is refused, and revoked there', async () => {
    const theirs = await oldToken('web', OLD.linked);
    await server.users.update(OLD.linked.id, { blocked: true });
    expect(await jsonOf(refresh('web', theirs))).to.deep.equal(INVALID);
    await server.users.update(OLD.linked.id, { blocked: false });
    await until(() => revoked().includes(theirs));
    const second = await oldToken('web', OLD.unverified);
    await server.users.remove(OLD.unverified.id);
    expect(await jsonOf(refresh('web', second))).to.deep.equal(INVALID);
    const [failed] = (await eventsOf(server, 'old_refresh_token_failed')).slice(-1);
    expect(failed?.description).to.contain('user');
  });

  it('of a user whose access was ended here after the move began is refused', async () => {
    const theirs = await oldToken('web', OLD.linked);
    await server.store.collection('users').update(OLD.linked.id, (user) => ({
      ...user,
      access_ended_at: new Date(Date.now() + 1_000).toISOString(),
    }));
    expect(await jsonOf(refresh('web', theirs))).to.deep.equal(INVALID);
  });

  it('of a third-party application is refused where the user has not consented here', async () => {
    const theirs = `v1.${'T'.repeat(86)}`;
    old.instead['POST /oauth/token'] = answering(200, {
      access_token: 'opaque',
      id_token: await signed('third', OLD.argon2.id),
    });
    const before = (await eventsOf(server, 'moved_refresh_token')).length;
    expect(await jsonOf(refresh('third', theirs))).to.deep.equal(INVALID);
    expect((await eventsOf(server, 'moved_refresh_token')).length, 'none has moved').to.equal(before);
    const [failed] = (await eventsOf(server, 'old_refresh_token_failed')).slice(-1);
    expect(failed?.description).to.contain('may not have a refresh token of this application');
  });

  /** Returns an ID token of the old tenant. */
  const signed = async (aud: string, sub: string) => {
    const there = createAgent({ url: old.origin, ca: old.ca });
    const { id_token } = (
      await token(there, {
        grant_type: 'password',
        client_id: 'web',
        client_secret: 'web-secret',
        username: OLD.argon2.email,
        password: OLD.argon2.password,
        scope: 'openid',
      })
    ).json();
    return old.resign(id_token, { aud, sub, at_hash: undefined });
  };

  it('that cannot be revoked there moves all the same, and the log says so', async () => {
    const theirs = await oldToken('web');
    old.instead['POST /oauth/revoke'] = answering(503, {});
    expect((await refresh('web', theirs)).status).to.equal(200);
    await until(async () =>
      (await eventsOf(server, 'old_refresh_token_failed')).some(({ description }) =>
        description?.includes('not revoked there (503)'),
      ),
    );
  });
});

describe('unknown refresh tokens during a move', () => {
  it('are limited before the old tenant is asked, and tokens that it accepts take nothing from the limit', async () => {
    const old = await startStandIn();
    const limits = { rateLimits: { oldTokensOfAddress: { capacity: 3, perMinute: 1 } } };
    const server = await startNew(old, tenantWith({ attackProtection: limits }, newTenant));
    try {
      const ask = async (refresh_token: string) => {
        const json = { grant_type: 'refresh_token', client_id: 'spa', refresh_token };
        return (await createAgent(server).request('/oauth/token', { json })).status;
      };
      for (let n = 0; n < 4; n++) {
        const there = createAgent({ url: old.origin, ca: old.ca });
        const { refresh_token } = await spaTokens(there, { url: old.origin }, OFFLINE, OLD.bcrypt);
        expect(await ask(refresh_token), 'accepted').to.equal(200);
      }
      old.reset();
      const statuses: number[] = [];
      for (let n = 0; n < 5; n++) statuses.push(await ask(`v1.${'M'.repeat(80)}${n}`));
      expect(statuses).to.deep.equal([400, 400, 400, 429, 429]);
      expect(old.asked('/oauth/token').length).to.equal(3);
      server.tick(60_000);
      expect(await ask(`v1.${'M'.repeat(80)}-later`)).to.equal(400);
    } finally {
      await server.stop();
      await old.stop();
    }
  });

  it('that many requests wait for are looked for once, and not by each of them', async () => {
    const [old, count] = [await startStandIn(), countStore()];
    const limits = { rateLimits: { oldTokensOfAddress: { capacity: 100, perMinute: 1 } } };
    const tenant = tenantWith({ attackProtection: limits }, newTenant);
    const server = await startNew(old, tenant, {}, count.open);
    try {
      const held: (() => unknown)[] = [];
      old.instead['POST /oauth/token'] = (_asked, response) => held.push(() => response.destroy());
      const agent = createAgent(server);
      const refresh = () =>
        token(agent, { grant_type: 'refresh_token', client_id: 'spa', refresh_token: 'w'.repeat(46) });
      count.reset();
      const waiting = Array.from({ length: 30 }, refresh);
      await until(() => held.length === 1);
      // Others take their time meanwhile.
      const login = webRequest({ prompt: 'login' });
      for (let n = 0; n < 5; n++) await logIn(createAgent(server), server, login, OLD.argon2);
      for (const end of held) end();
      for (const answer of await Promise.all(waiting)) expect(answer.json().error).to.equal('invalid_grant');
      const reads = count
        .trips()
        .flat()
        .filter((one) => one === 'artifacts.get').length;
      expect(reads).to.be.below(200);
    } finally {
      await server.stop();
      await old.stop();
    }
  });

  it('of applications that registered themselves are not asked about', async () => {
    const old = await startStandIn();
    const flags = { enable_dynamic_client_registration: true };
    const server = await startNew(old, tenantWith({ tenant: { flags } }, newTenant));
    try {
      await openBridges(server, old);
      const registration = { json: { redirect_uris: ['https://agent.example.test/callback'] } };
      const registered = await createAgent(server).request('/oidc/register', registration);
      expect(registered.status, registered.text).to.equal(201);
      const { client_id, client_secret } = registered.json();
      old.reset();
      const refresh_token = `v1.${'M'.repeat(80)}`;
      const json = { grant_type: 'refresh_token', client_id, client_secret, refresh_token };
      const answer = await createAgent(server).request('/oauth/token', { json });
      expect(answer.json().error).to.equal('invalid_grant');
      expect(old.asked('/oauth/token').length).to.equal(0);
    } finally {
      await server.stop();
      await old.stop();
    }
  });

  it('wait for the old tenant only so long', async () => {
    const old = await startStandIn();
    const server = await startNew(old, newTenant, { oldTenant: 500 });
    try {
      for (const [index, late] of [silent, slow].entries()) {
        old.instead['POST /oauth/token'] = late;
        const refresh_token = `v1.${'M'.repeat(80)}${index}`;
        const json = { grant_type: 'refresh_token', client_id: 'spa', refresh_token };
        const answer = await createAgent(server).request('/oauth/token', { json });
        expect(answer.json()).to.deep.equal(INVALID);
      }
      old.reset();
      old.instead['POST /oauth/token'] = silent;
      const browser = browserAt(server, old);
      await logIn(browser.there, { url: old.origin }, webRequest(), OLD.bcrypt);
      const page = await browser.follow(await authorize(browser.here, webRequest()));
      expect(page.text).to.match(/name="password"/);
    } finally {
      await server.stop();
      await old.stop();
    }
  });
});
