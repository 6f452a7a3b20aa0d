// /console/security: second factors, attack protection, blocks, keys, sessions, and the tenant.
import { expect } from 'chai';
import { createAgent } from '../support/agent.ts';
import { type ConsoleAgent, openConsole, startConsole } from '../support/console.ts';
import { tenant, token, USER } from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';
import { expectFaultAt } from './forms.ts';

const HOSTILE = '"><img src=x onerror=alert(1)><script>alert(2)</script>';
const BASE = '/console/security';
const MINUTE = 60_000;

describe('the security section of the console', () => {
  let server: TestServer;
  let owner: ConsoleAgent;

  beforeEach(async () => {
    server = await startConsole({
      tenant: {
        ...tenant,
        attackProtection: { ...tenant.attackProtection, bruteForceProtection: { max_attempts: 2 } },
      },
    });
    owner = await openConsole(server);
  });
  afterEach(() => server.stop());

  /** Reports whether a box is checked. */
  const isChecked = (text: string, id: string) => new RegExp(`<input id="${id}"[^>]* checked`).test(text);
  const filledIn = (text: string, id: string) =>
    new RegExp(`<input id="${id}"[^>]*? value="([^"]*)"`).exec(text)?.[1];
  const wrongPassword = (username: string) =>
    token(createAgent(server), {
      grant_type: 'password',
      client_id: 'web',
      client_secret: 'web-secret',
      username,
      password: 'wrong',
    });
  const lock = async (username: string) => {
    for (let n = 0; n < 3; n += 1) await wrongPassword(username);
    await server.tenant.close();
  };
  /** Returns the paths of the changes in the log. */
  const changes = async () => {
    await server.tenant.close();
    const { records } = await server.store.collection('logs').list({ limit: 500 });
    return records
      .filter(({ type }) => type === 'sapi')
      .map(({ details }) => (details as { request: { path: string } }).request.path);
  };

  it('shows the parts that a role may see, and the first of them', async () => {
    const tabs = async (role: 'owner' | 'viewer' | 'support') => {
      const { text } = await (await openConsole(server, role)).get(BASE);
      return [...text.matchAll(/<a href="\/console\/security\/(\w+)"/g)].map(([, part]) => part);
    };
    const all = ['factors', 'attacks', 'blocked', 'keys', 'sessions', 'tenant'];
    expect(await tabs('owner')).to.deep.equal(all);
    expect(await tabs('viewer')).to.deep.equal(all);
    expect(await tabs('support')).to.deep.equal(['blocked']);
  });

  it('switches second factors and their policy, and logs what has changed', async () => {
    const before = (await owner.get(`${BASE}/factors`)).text;
    const on = [...before.matchAll(/name="factor-([\w-]+)" type="checkbox" value="on" checked/g)].map(
      ([, name]) => name,
    );
    const form = Object.fromEntries(on.map((name) => [`factor-${name}`, 'on']));
    const answer = await owner.post(`${BASE}/factors`, {
      ...form,
      'factor-recovery-code': 'on',
      'factor-otp': 'on',
      policy: 'all-applications',
    });
    expect(answer.status).to.equal(303);
    const { text } = await owner.get(answer.location);
    expect(text).to.contain('Saved.');
    expect(isChecked(text, 'factor-otp')).to.equal(true);
    expect(isChecked(text, 'factor-recovery-code')).to.equal(true);
    expect(isChecked(text, 'policy-all-applications')).to.equal(true);
    expect(text).to.not.contain('factor-duo');
    expect(await changes()).to.include('/api/v2/guardian/policies');
    const count = (await changes()).length;
    await owner.post(`${BASE}/factors`, {
      ...form,
      'factor-recovery-code': 'on',
      'factor-otp': 'on',
      policy: 'all-applications',
    });
    expect(await changes(), 'nothing has changed').to.have.length(count);
  });

  it('changes attack protection, and keeps settings that the form does not have', async () => {
    const form = {
      enabled: 'on',
      notify: 'on',
      max_attempts: '7',
      mode: 'count_per_identifier',
      allowlist: '203.0.113.0/24\n::1',
    };
    expect((await owner.post(`${BASE}/attacks/bruteForce`, form)).status).to.equal(303);
    const { bruteForceProtection: kept } = (await server.store.collection('tenant').get('tenant'))!
      .attackProtection!;
    expect(kept).to.deep.include({
      enabled: true,
      max_attempts: 7,
      mode: 'count_per_identifier',
      shields: ['user_notification'],
      allowlist: ['203.0.113.0/24', '::1'],
    });
    await owner.post(`${BASE}/attacks/suspiciousIp`, {
      enabled: 'on',
      block: 'on',
      login: '33',
      signup: '44',
      allowlist: '',
    });
    const { suspiciousIpThrottling } = (await server.store.collection('tenant').get('tenant'))!
      .attackProtection!;
    const { stage } = suspiciousIpThrottling!;
    expect(stage['pre-login'].max_attempts).to.equal(33);
    expect(stage['pre-user-registration'].max_attempts).to.equal(44);
    expect(stage['pre-custom-token-exchange'].max_attempts).to.equal(10);
  });

  it('shows faults, changes nothing, and keeps the entered values', async () => {
    for (const [form, field, said] of [
      [{ enabled: 'on', max_attempts: '0' }, 'max_attempts', 'Too small'],
      [{ enabled: 'on', max_attempts: 'many' }, 'max_attempts', 'Expected type number'],
      [{ enabled: 'on', max_attempts: '5', allowlist: `192.0.2.1 ${HOSTILE}` }, 'allowlist', '2: Invalid'],
      [{ enabled: 'on', max_attempts: '5', mode: 'no such mode' }, 'mode', 'Invalid option'],
    ] as const) {
      const mode = 'count_per_identifier';
      const refused = await owner.post(`${BASE}/attacks/bruteForce`, { mode, ...form });
      const { status, text } = refused;
      expect(status, JSON.stringify(form)).to.equal(400);
      expectFaultAt(refused, `bruteForce-${field}`, said);
      expect(text).to.not.contain('<img src=x');
      expect(filledIn(text, 'bruteForce-max_attempts')).to.equal(form.max_attempts);
    }
    const deep = await owner.post(`${BASE}/attacks/suspiciousIp`, { login: '0', signup: '3' });
    expectFaultAt(deep, 'suspiciousIp-login', 'Too small');
    expect(await changes()).to.deep.equal([]);
  });

  it('lists blocked accounts, and unblocks them', async () => {
    await lock(USER.email);
    await lock('nobody@example.test');
    expect((await wrongPassword(USER.email)).status).to.equal(429);
    const { text } = await owner.get(`${BASE}/blocked`);
    expect(text)
      .to.contain(`<strong>${USER.email}</strong>`)
      .and.to.contain('<strong>nobody@example.test</strong>');
    const answer = await owner.post(`${BASE}/blocked/account`, { identifier: USER.email });
    expect(answer.status).to.equal(303);
    const after = (await owner.get(answer.location)).text;
    expect(after).to.contain('Unblocked.').and.to.not.contain(`<strong>${USER.email}</strong>`);
    expect(after).to.contain('<strong>nobody@example.test</strong>');
    expect((await wrongPassword(USER.email)).status).to.equal(403);
    expect(await changes()).to.include('/api/v2/user-blocks');
  });

  it('finds a blocked account by name when the log no longer contains it', async () => {
    await lock(USER.email);
    const { records } = await server.store.collection('logs').list({ limit: 500 });
    for (const { id } of records) await server.store.collection('logs').delete(id);
    expect((await owner.get(`${BASE}/blocked`)).text).to.not.contain(`<strong>${USER.email}</strong>`);
    const { text } = await owner.get(`${BASE}/blocked?who=${encodeURIComponent(USER.email)}`);
    expect(text).to.contain(`<strong>${USER.email}</strong>`);
  });

  it('lists throttled addresses, and unblocks them', async () => {
    await owner.post(`${BASE}/attacks/suspiciousIp`, {
      enabled: 'on',
      block: 'on',
      login: '2',
      signup: '50',
      allowlist: '',
    });
    for (const one of ['a', 'b', 'c', 'd']) await wrongPassword(`${one}@example.test`);
    await server.tenant.close();
    expect((await owner.get(`${BASE}/blocked`)).text).to.contain('<strong>127.0.0.1</strong>');
    await owner.post(`${BASE}/blocked/address`, { ip: '127.0.0.1' });
    expect((await owner.get(`${BASE}/blocked`)).text).to.not.contain('<strong>127.0.0.1</strong>');
    expect((await owner.post(`${BASE}/blocked/address`, { ip: 'no address' })).status).to.equal(400);
  });

  it('shows hostile identifiers as text', async () => {
    await lock(HOSTILE);
    const { text } = await owner.get(`${BASE}/blocked?who=${encodeURIComponent(HOSTILE)}`);
    expect(text).to.contain('onerror=alert(1)');
    expect(text).to.not.contain('<img src=x').and.to.not.contain('<script>alert');
  });

  it('rotates keys, and revokes one that no longer signs', async () => {
    const kids = async () =>
      [
        ...(await owner.get(`${BASE}/keys`)).text.matchAll(
          /<code dir="ltr">([^<]+)<\/code> <span class="tag[^>]*>([^<]+)</g,
        ),
      ].map(([, kid = '', state = '']) => ({ kid, state }));
    const [first] = (await kids()).filter(({ state }) => state === 'current');
    const rotated = await owner.post(`${BASE}/keys/rotate`, { alg: 'RS256' });
    expect((await owner.get(rotated.location)).text).to.contain('The next key signs from now on.');
    expect(await kids()).to.deep.include({ kid: first!.kid, state: 'previous' });
    const [current] = (await kids()).filter(({ state }) => state === 'current');
    const refused = await owner.post(`${BASE}/keys/revoke`, { kid: current!.kid });
    expect(refused.status).to.equal(400);
    expect(refused.text).to.contain('rotate first');
    expect((await owner.post(`${BASE}/keys/revoke`, { kid: first!.kid })).status).to.equal(303);
    expect((await kids()).map(({ kid }) => kid)).to.not.include(first!.kid);
    expect((await owner.post(`${BASE}/keys/rotate`, { alg: 'none' })).status).to.equal(400);
    expect((await owner.post(`${BASE}/keys/revoke`, { kid: 'none' })).status).to.equal(404);
  });

  it('changes sessions and the tenant; an empty field restores the default', async () => {
    const lifetimes = { session_lifetime: '24', idle_session_lifetime: '0.5' };
    expect((await owner.post(`${BASE}/sessions/sessions`, lifetimes)).status).to.equal(303);
    const settings = async () => (await server.store.collection('tenant').get('tenant'))!.tenant;
    expect(await settings()).to.include({ session_lifetime: 24, idle_session_lifetime: 0.5 });
    await owner.post(`${BASE}/tenant/tenant`, {
      friendly_name: HOSTILE,
      support_email: 'help@example.test',
      log_retention_days: '90',
      account_linking: 'suggest',
      allowed_logout_urls: 'https://a.example.test/\nhttps://b.example.test/',
    });
    expect(await settings()).to.deep.include({
      friendly_name: HOSTILE,
      log_retention_days: 90,
      allowed_logout_urls: ['https://a.example.test/', 'https://b.example.test/'],
      session_lifetime: 24,
    });
    const { text } = await owner.get(`${BASE}/tenant`);
    expect(text).to.contain('onerror=alert(1)').and.to.not.contain('<img src=x');
    await owner.post(`${BASE}/sessions/sessions`, { session_lifetime: '', idle_session_lifetime: '0.5' });
    expect((await settings())!.session_lifetime).to.equal(168);
    expect((await owner.post(`${BASE}/tenant/tenant`, { log_retention_days: '-1' })).status).to.equal(400);
  });

  it('ignores values without a field', async () => {
    await owner.post(`${BASE}/tenant/tenant`, { friendly_name: 'A', sandbox_version: '12', flags: 'x' });
    const settings = (await server.store.collection('tenant').get('tenant'))!.tenant!;
    expect(settings.friendly_name).to.equal('A');
    expect(settings).to.not.have.property('sandbox_version');
    expect(settings.flags).to.not.equal('x');
  });

  const dangerous: [string, Record<string, string>][] = [
    ['factors', { policy: 'never' }],
    ['attacks/bruteForce', { max_attempts: '9' }],
    ['attacks/suspiciousIp', { login: '9', signup: '9' }],
    ['keys/rotate', { alg: 'RS256' }],
    ['keys/revoke', { kid: 'any' }],
    ['sessions/sessions', { session_lifetime: '1' }],
    // This setting decides how long the log is kept.
    ['tenant/tenant', { log_retention_days: '1' }],
  ];
  const forms: [string, Record<string, string>][] = [
    ...dangerous,
    ['blocked/account', { identifier: 'a' }],
    ['blocked/address', { ip: '127.0.0.1' }],
  ];

  it('requires a recent login for dangerous changes', async () => {
    server.tick(11 * MINUTE);
    for (const [path, form] of dangerous) {
      const { status, location } = await owner.post(`${BASE}/${path}`, form);
      expect(status, path).to.equal(303);
      expect(location, path).to.contain('/authorize');
    }
    expect(await changes()).to.deep.equal([]);
  });

  it('rejects forms of other sites, and forms without a token', async () => {
    for (const [path, form] of forms) {
      expect((await owner.agent.request(`${BASE}/${path}`, { form })).status, path).to.equal(403);
    }
    expect(await changes()).to.deep.equal([]);
  });

  it('rejects forms of roles that may only read', async () => {
    const viewer = await openConsole(server, 'viewer');
    const support = await openConsole(server, 'support');
    for (const [path, form] of forms) {
      expect((await viewer.post(`${BASE}/${path}`, form)).status, path).to.equal(403);
      if (!path.startsWith('blocked/'))
        expect((await support.post(`${BASE}/${path}`, form)).status, path).to.equal(403);
    }
    expect((await viewer.get(`${BASE}/attacks`)).text).to.not.contain('type="submit">Save');
    expect(await changes()).to.deep.equal([]);
    expect((await support.get(`${BASE}/keys`)).status).to.equal(403);
  });

  it('lets support unblock users', async () => {
    await lock(USER.email);
    const support = await openConsole(server, 'support');
    expect((await support.get(`${BASE}/blocked`)).text).to.contain(`<strong>${USER.email}</strong>`);
    expect((await support.post(`${BASE}/blocked/account`, { identifier: USER.email })).status).to.equal(303);
    expect((await wrongPassword(USER.email)).status).to.equal(403);
  });

  it("is in the reader's language", async () => {
    expect((await owner.get(`${BASE}/attacks`, { 'accept-language': 'de' })).text).to.contain(
      'Angriffsschutz',
    );
    expect((await owner.get(`${BASE}/keys`, { 'accept-language': 'ar' })).text).to.contain('مفاتيح التوقيع');
  });
});
