// `gatehouse keys trust`: the public keys of an old tenant are published for a time, and verify the hints of logouts.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { createLocalJWKSet, exportJWK, generateKeyPair, type JWK, jwtVerify } from 'jose';
import { REALM_GRANT } from '../factors/tenant.ts';
import { createAgent } from '../support/agent.ts';
import { runCommand } from '../support/command.ts';
import { API } from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { tenantWith } from '../support/tenant.ts';
import { OLD, type StandIn, startStandIn } from './stand-in.ts';

const AFTER_LOGOUT = 'https://app.example.test/bye';
const DAY = 86_400_000;
const tenant = tenantWith({ change: { web: { allowed_logout_urls: [AFTER_LOGOUT] } } });

describe('keys of the old tenant', () => {
  let old: StandIn;
  let server: TestServer;
  let folder: string;
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'gatehouse-trust-'));
    old = await startStandIn();
    server = await startServer({ tenant });
  });
  after(async () => {
    await server.stop();
    await old.stop();
    rmSync(folder, { recursive: true });
  });
  afterEach(() => old.reset());

  const run = (...args: string[]) =>
    runCommand({ cwd: folder, env: { DATA_DIR: server.dataDir }, args: ['keys', 'trust', ...args] });
  const trust = async (until = '2027-03-31') => {
    const { code, stdout, stderr } = await run(
      '--jwks',
      `${old.origin}/.well-known/jwks.json`,
      '--until',
      until,
      '--json',
    );
    if (code !== 0) throw new Error(stderr);
    return JSON.parse(stdout) as { id: string }[];
  };
  const end = () => run('--end');
  const agent = () => createAgent(server);
  const keySet = async () => (await agent().get('/.well-known/jwks.json')).json() as { keys: JWK[] };
  /** Logs in at the old tenant. */
  const oldTokens = async (more: Record<string, string> = {}) => {
    const { email, password } = OLD.bcrypt;
    const answer = await createAgent({ url: old.origin, ca: old.ca }).request('/oauth/token', {
      form: {
        client_id: 'web',
        client_secret: 'web-secret',
        grant_type: REALM_GRANT,
        realm: 'users',
        username: email,
        password,
        scope: 'openid profile',
        ...more,
      },
    });
    return answer.json() as { id_token: string; access_token: string };
  };
  const logout = (hint: string) =>
    agent().get(
      `/oidc/logout?${new URLSearchParams({ id_token_hint: hint, post_logout_redirect_uri: AFTER_LOGOUT })}`,
    );

  it('are published beside ours, so that an API accepts an access token from before the move', async () => {
    const own = await keySet();
    const trusted = await trust();
    const all = await keySet();
    expect(all.keys.slice(0, own.keys.length)).to.deep.equal(own.keys);
    expect(all.keys.slice(own.keys.length).map(({ kid }) => kid)).to.have.members(
      trusted.map(({ id }) => id),
    );
    expect(all.keys.some((key) => 'd' in key || 'p' in key)).to.equal(false);
    const { access_token } = await oldTokens({ audience: API });
    const { payload } = await jwtVerify(access_token, createLocalJWKSet(all), { audience: API });
    expect(payload.sub).to.equal(OLD.bcrypt.id);
    await end();
    expect(await keySet()).to.deep.equal(own);
  });

  it('verify an ID token as the hint of a logout, until their date', async () => {
    const { id_token: hint } = await oldTokens();
    expect((await logout(hint)).status).to.equal(400);
    await trust();
    const answer = await logout(hint);
    expect(answer.location, answer.text).to.equal(AFTER_LOGOUT);
    await end();
    expect((await logout(hint)).status).to.equal(400);
  });

  it('verify no hint that is unsigned, signed by another key, for another application or of another issuer', async () => {
    await trust();
    const { id_token: hint } = await oldTokens();
    const refused = [
      await old.resign(hint, {}, { key: 'none' }),
      await old.resign(hint, {}, { key: 'other' }),
      await old.resign(hint, { iss: 'https://elsewhere.example/' }),
      await old.resign(hint, { aud: 'nobody' }),
      await old.resign(hint, { azp: 'web' }),
      await old.resign(hint, { events: {} }),
    ];
    for (const one of refused) expect((await logout(one)).status).to.equal(400);
    await end();
  });

  it('verify nothing else: no call of an API, no token exchange, no hint of a login', async () => {
    await trust();
    const { id_token, access_token } = await oldTokens();
    for (const token of [access_token, id_token, await old.resign(id_token, { iss: server.issuer })])
      for (const path of [
        '/userinfo',
        '/api/v2/users',
        '/me/v1/authentication-methods',
        '/mfa/authenticators',
      ])
        expect((await agent().get(path, { authorization: `Bearer ${token}` })).status, path).to.be.oneOf([
          400, 401, 403,
        ]);
    const asOurs = await old.resign(id_token, { iss: server.issuer });
    const silent = await agent().get(
      `/authorize?${new URLSearchParams({
        client_id: 'web',
        response_type: 'code',
        redirect_uri: 'http://localhost:3001/callback',
        scope: 'openid',
        prompt: 'none',
        id_token_hint: asOurs,
      })}`,
    );
    expect(silent.location).to.not.contain('code=');
    const exchanged = await agent().request('/oauth/token', {
      form: {
        client_id: 'web',
        client_secret: 'web-secret',
        grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
        subject_token: asOurs,
        subject_token_type: 'urn:ietf:params:oauth:token-type:id_token',
      },
    });
    expect(exchanged.status).to.be.within(400, 403);
    await end();
  });

  it('end by themselves at their date, of which start, check and doctor warn before', async () => {
    const tomorrow = new Date(Date.now() + DAY).toISOString();
    await trust(tomorrow);
    const { id_token: hint } = await oldTokens();
    const { stdout } = await runCommand({
      cwd: folder,
      env: { DATA_DIR: server.dataDir, BASE_URL: server.url },
      args: ['check'],
    });
    expect(stdout).to.contain(`warning: the trust in the keys of ${old.origin}`);
    server.tick(DAY + 1000);
    expect((await logout(hint)).status).to.equal(400);
    expect((await keySet()).keys.some(({ kid }) => kid !== undefined && hint.includes(kid))).to.equal(false);
    expect((await run('--list')).stdout).to.contain('over since');
    server.tick(-DAY - 1000);
    await end();
  });

  describe('are refused', () => {
    const trustFile = async (set: unknown) => {
      writeFileSync(join(folder, 'jwks.json'), typeof set === 'string' ? set : JSON.stringify(set));
      return run('--jwks', 'jwks.json', '--until', '2027-03-31');
    };
    const publicKey = async (alg = 'RS256', options: object = {}) => ({
      ...(await exportJWK((await generateKeyPair(alg, { extractable: true, ...options })).publicKey)),
      kid: `key-${alg}`,
    });

    it('with a private member, of a symmetric or another kind, or too small', async () => {
      const { privateKey } = await generateKeyPair('RS256', { extractable: true });
      const refused: [object, string][] = [
        [{ ...(await exportJWK(privateKey)), kid: 'a' }, 'private member d'],
        [{ kty: 'oct', k: 'c2VjcmV0', kid: 'a' }, 'private member k'],
        [{ ...(await publicKey('EdDSA')), kid: 'a' }, 'keys.0.kty'],
        [{ ...(await publicKey()), kid: undefined }, 'keys.0.kid'],
        [{ ...(await publicKey()), use: 'enc' }, 'keys.0.use'],
        [{ ...(await publicKey()), alg: 'HS256' }, 'keys.0.alg'],
        [{ ...(await publicKey('ES256')), alg: 'ES512' }, 'is a key of P-256'],
        [{ kty: 'EC', crv: 'P-256', x: 'AAAA', y: 'AAAA', kid: 'a' }, 'is no public key'],
        [{ kty: 'RSA', n: Buffer.alloc(128, 255).toString('base64url'), e: 'AQAB', kid: 'a' }, '1024 bits'],
      ];
      for (const [key, reason] of refused) {
        const { code, stderr } = await trustFile({ keys: [key] });
        expect(code, reason).to.equal(1);
        expect(stderr).to.contain(reason);
      }
      expect((await run('--list')).stdout).to.contain('No keys of others');
    });

    it('with the id of one of ours, twice one id, in no key set, or too many', async () => {
      const [ours] = (await keySet()).keys;
      const key = await publicKey();
      for (const set of [
        { keys: [{ ...key, kid: ours?.kid }] },
        { keys: [key, key] },
        { keys: [] },
        { keys: Array.from({ length: 21 }, (_, index) => ({ ...key, kid: `k${index}` })) },
        'no JSON',
      ])
        expect((await trustFile(set)).code).to.equal(1);
    });

    it('until a date that is none, is over, or is more than a year away; from an address that redirects', async () => {
      await trustFile({ keys: [await publicKey()] });
      for (const until of ['soon', '2026-02-30', '2020-01-01', '2099-01-01'])
        expect((await run('--jwks', 'jwks.json', '--until', until)).code, until).to.equal(1);
      old.instead['GET /.well-known/jwks.json'] = (_asked, response) =>
        response.writeHead(302, { location: `${old.origin}/elsewhere` }).end();
      expect(
        (await run('--jwks', `${old.origin}/.well-known/jwks.json`, '--until', '2027-03-31')).code,
      ).to.equal(1);
      await end();
    });

    it('where EC keys of proper size are accepted', async () => {
      expect((await trustFile({ keys: [await publicKey('ES256'), await publicKey('PS256')] })).code).to.equal(
        0,
      );
      await end();
    });
  });
});
