// The device flow (RFC 8628): codes, pages, polling, and attempts to abuse them.
import { expect } from 'chai';
import qrcode from 'qrcode';
import { createAgent, readForm } from '../support/agent.ts';
import { API, follow, payload, submitLogin, token, USER } from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { callsOf, deviceTenant, DEVICE_GRANT as GRANT, told } from './tenant.ts';

describe('the device flow', () => {
  let server: TestServer;
  beforeEach(async () => {
    server = await startServer({ tenant: deviceTenant });
  });
  afterEach(() => server.stop());

  const { begin, poll, open, decide, connect } = callsOf(() => server);

  it('issues tokens once for a login in another browser', async () => {
    const answer = await begin({ audience: API, scope: 'openid profile offline_access read:things' });
    expect(answer.status).to.equal(200);
    const codes = answer.json();
    expect(codes).to.include({
      verification_uri: `${server.url}/activate`,
      verification_uri_complete: `${server.url}/activate?user_code=${codes.user_code}`,
      expires_in: 900,
      interval: 5,
    });
    expect(codes.user_code).to.match(/^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$/);
    expect(told(await poll(codes.device_code))).to.deep.equal([
      403,
      'authorization_pending',
      'User has yet to authorize device code.',
    ]);
    const agent = createAgent(server);
    const form = readForm(await agent.get('/activate'), 'user_code');
    const typed = codes.user_code.toLowerCase().replace('-', ' ');
    const posted = await agent.request(form.action, { form: { ...form.fields, user_code: typed } });
    expect(posted.status).to.equal(303);
    const confirm = await follow(agent, posted, server.url);
    expect(confirm.text).to.contain('The tv').and.to.contain(codes.user_code);
    // The QR code contains the same URL.
    const picture = { type: 'svg', errorCorrectionLevel: 'M', margin: 0 } as const;
    expect(confirm.text).to.contain(await qrcode.toString(codes.verification_uri_complete, picture));
    const done = await submitLogin(agent, server, await decide(agent, confirm));
    expect([done.status, done.text.includes('Your device is connected')]).to.deep.equal([200, true]);
    server.tick(5_000);
    const tokens = (await poll(codes.device_code)).json();
    expect(tokens).to.include.keys('access_token', 'id_token', 'refresh_token');
    expect(payload(tokens.access_token)).to.include({ azp: 'tv', gty: GRANT });
    expect(payload(tokens.access_token).scope.split(' ')).to.include('read:things');
    expect(told(await poll(codes.device_code))[1]).to.equal('invalid_grant');
    const again = await token(createAgent(server), {
      grant_type: 'refresh_token',
      client_id: 'tv',
      refresh_token: tokens.refresh_token,
    });
    expect(again.status).to.equal(200);
  });

  it('counts and logs the login at the pages once', async () => {
    const codes = (await begin()).json();
    await connect(codes);
    server.tick(5_000);
    expect((await poll(codes.device_code)).status).to.equal(200);
    const { records } = await server.store.collection('logs').list({ limit: 1000 });
    const types = records.map(({ type }) => type).filter((type) => ['s', 'sede'].includes(type));
    expect(types.sort()).to.deep.equal(['s', 'sede']);
    expect((await server.users.withEmail(USER.email))[0]?.logins_count).to.equal(1);
  });

  it('issues tokens to one of several simultaneous polls', async () => {
    const codes = (await begin()).json();
    await connect(codes);
    const answers = await Promise.all(Array.from({ length: 5 }, () => poll(codes.device_code)));
    expect(answers.filter(({ status }) => status === 200)).to.have.length(1);
  });

  it('answers slow_down to a device that polls too often, and expired_token once when the code has expired', async () => {
    const { device_code, user_code } = (await begin()).json();
    await poll(device_code);
    server.tick(2_000);
    expect(told(await poll(device_code))).to.deep.equal([
      429,
      'slow_down',
      'You are polling faster than the specified interval of 5 seconds.',
    ]);
    server.tick(5_000);
    expect(told(await poll(device_code))[1]).to.equal('authorization_pending');
    server.tick(900_000);
    expect((await open(createAgent(server), user_code)).status).to.equal(400);
    expect(told(await poll(device_code)).slice(0, 2)).to.deep.equal([403, 'expired_token']);
    expect(told(await poll(device_code))[1]).to.equal('invalid_grant');
  });

  it('answers access_denied when the user cancels', async () => {
    const { device_code, user_code } = (await begin()).json();
    const agent = createAgent(server);
    const denied = await decide(agent, await open(agent, user_code), 'deny');
    expect(denied.text).to.contain('Your device was not connected');
    expect(told(await poll(device_code))).to.deep.equal([
      403,
      'access_denied',
      'User cancelled the confirmation prompt.',
    ]);
    expect((await open(agent, user_code)).status).to.equal(400);
  });

  it('shows the name of a third-party application with its invisible characters', async () => {
    const { user_code } = (await begin({ client_id: 'third-tv' })).json();
    const page = await open(createAgent(server), user_code);
    expect(page.text).to.contain('Third[U+202E]tv').and.not.to.contain('\u202E');
  });

  it('binds a device code to its client; another client’s poll does not use it up', async () => {
    const codes = (await begin()).json();
    await connect(codes);
    expect(told(await poll(codes.device_code, 'other-tv'))[1]).to.equal('invalid_grant');
    expect((await poll(codes.device_code)).status).to.equal(200);
  });

  it('refuses clients without the grant, and unknown APIs', async () => {
    expect(told(await begin({ client_id: 'spa' })).slice(0, 2)).to.deep.equal([403, 'unauthorized_client']);
    expect(told(await begin({ client_id: 'nobody' }))[1]).to.equal('invalid_client');
    expect(told(await begin({ audience: 'https://nowhere.test/' }))).to.deep.equal([
      403,
      'access_denied',
      'Service not found: https://nowhere.test/',
    ]);
    expect(told(await begin({ scope: 'x'.repeat(3_000) }))[1]).to.equal('invalid_request');
    const { device_code } = (await begin()).json();
    const other = await token(createAgent(server), { grant_type: GRANT, client_id: 'spa', device_code });
    expect(other.json().error).to.equal('unauthorized_client');
  });

  it('limits wrong user codes, and does not count right ones', async () => {
    const { user_code } = (await begin()).json();
    const agent = createAgent(server);
    for (let n = 0; n < 12; n++) expect((await open(agent, user_code)).status).to.equal(200);
    const wrong = [];
    for (let n = 0; n < 12; n++) wrong.push((await open(agent, 'BBBB-BBBB')).status);
    expect([...new Set(wrong)]).to.deep.equal([400, 429]);
    expect((await open(agent, user_code)).status).to.equal(429);
  });

  it('limits wrong user codes of one network, without blocking others', async () => {
    const proxied = await startServer({
      tenant: deviceTenant,
      env: { TLS: 'proxy', TRUSTED_PROXIES: '127.0.0.1', BASE_URL: 'https://login.example.test' },
    });
    try {
      const guess = async (ip: string) => {
        const address = `http://127.0.0.1:${proxied.settings.port}/activate?user_code=BBBB-BBBB`;
        const headers = { 'x-forwarded-proto': 'https', 'x-forwarded-for': ip };
        return (await fetch(address, { headers })).status;
      };
      for (const network of ['192.0.2.', '2001:db8:1:']) {
        const address = (n: number) => (network.endsWith('.') ? `${network}${n}` : `${network}${n}::1`);
        const begun = performance.now();
        const statuses = await Promise.all(Array.from({ length: 100 }, (_, n) => guess(address(n + 1))));
        // Sixty, and one more for each six seconds that have passed.
        const more = Math.ceil((performance.now() - begun) / 6000);
        const guessed = statuses.filter((status) => status === 400).length;
        expect(guessed).to.be.within(60, 60 + more);
        expect(statuses.filter((status) => status === 429)).to.have.length(100 - guessed);
      }
      expect(await guess('198.51.100.1')).to.equal(400);
      expect(await guess('2001:db8:2:1::1')).to.equal(400);
    } finally {
      await proxied.stop();
    }
  });

  it('requires the CSRF token of the page', async () => {
    const { user_code } = (await begin()).json();
    for (const path of ['/activate', '/activate/confirm']) {
      const answer = await createAgent(server).request(path, { form: { user_code, decision: 'accept' } });
      expect(answer.status).to.equal(403);
    }
  });

  it('finishes a login only in the browser that began it', async () => {
    const codes = (await begin()).json();
    const agent = createAgent(server);
    const { action, fields } = readForm(await open(agent, codes.user_code), 'user_code');
    const begun = await agent.request(action, { form: { ...fields, decision: 'accept' } });
    const other = createAgent(server);
    const end = await submitLogin(other, server, await follow(other, begun, server.url));
    expect(end.status).to.equal(400);
    expect(told(await poll(codes.device_code))[1]).to.equal('authorization_pending');
  });

  it('refuses a login for another API or organization than the device asked for', async () => {
    const codes = (await begin({ audience: API })).json();
    const agent = createAgent(server);
    const { action, fields } = readForm(await open(agent, codes.user_code), 'user_code');
    const begun = await agent.request(action, { form: { ...fields, decision: 'accept' } });
    const changed = new URL(begun.location);
    changed.searchParams.set('audience', 'urn:rfc9068');
    const end = await submitLogin(
      agent,
      server,
      await follow(agent, await agent.get(changed.href), server.url),
    );
    expect(end.text).to.contain('Your device was not connected');
    expect(told(await poll(codes.device_code))[1]).to.equal('access_denied');
  });

  it('refuses an authorization request of an application to its callback', async () => {
    const query = new URLSearchParams({
      client_id: 'tv',
      response_type: 'code',
      redirect_uri: `${server.url}/activate/callback/tv`,
    });
    const answer = await createAgent(server).get(`/authorize?${query}`);
    expect([answer.status, answer.text.includes('not for applications to use')]).to.deep.equal([400, true]);
  });

  it('asks for consent to a third-party application, and issues only the allowed scopes', async () => {
    const codes = (await begin({ client_id: 'third-tv', audience: API, scope: 'openid read:things' })).json();
    const agent = createAgent(server);
    const consent = await connect(codes, agent);
    expect(consent.text).to.contain('Read things');
    const { action, fields } = readForm(consent, '_csrf');
    await follow(agent, await agent.request(action, { form: { ...fields, decision: 'accept' } }), server.url);
    const tokens = (await poll(codes.device_code, 'third-tv')).json();
    expect(payload(tokens.access_token).scope).to.equal('openid read:things');
    const more = (
      await begin({ client_id: 'third-tv', audience: API, scope: 'openid read:things write:things' })
    ).json();
    const asked = await decide(agent, await open(agent, more.user_code));
    const form = readForm(asked, '_csrf');
    await follow(
      agent,
      await agent.request(form.action, { form: { ...form.fields, decision: 'deny' } }),
      server.url,
    );
    expect(told(await poll(more.device_code, 'third-tv'))[1]).to.equal('access_denied');
  });

  it('issues nothing for a user who was blocked meanwhile', async () => {
    const codes = (await begin()).json();
    await connect(codes);
    const [user] = await server.users.withEmail(USER.email);
    await server.users.update(user?.id ?? '', { blocked: true });
    expect(told(await poll(codes.device_code))[1]).to.equal('unauthorized');
  });

  it('issues nothing after the user’s sessions were ended', async () => {
    const codes = (await begin()).json();
    await connect(codes);
    const artifacts = server.store.collection('artifacts');
    for (const { id, model } of (await artifacts.list({ limit: 1000 })).records)
      if (model === 'Session') await artifacts.delete(id);
    expect(told(await poll(codes.device_code))[1]).to.equal('invalid_grant');
  });

  it('is announced in the metadata', async () => {
    const found = (await createAgent(server).get('/.well-known/openid-configuration')).json();
    expect(found.device_authorization_endpoint).to.equal(`${server.url}/oauth/device/code`);
    expect(found.grant_types_supported).to.include(GRANT);
  });
});
