// Second factors with published SDKs, unmodified, on a server and in a browser.
import { generateKeyPairSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import http from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { exportJWK, SignJWT } from 'jose';
import type { Page } from 'playwright-core';
import { codeOf, tenant } from '../factors/tenant.ts';
import { createAgent } from '../support/agent.ts';
import { launchBrowser, type TestBrowser } from '../support/browser.ts';
import { payload, USER } from '../support/flows.ts';
import { nextMessageTo } from '../support/inbox.ts';
import { type SdkProcess, startSdkProcess } from '../support/sdk.ts';
import { startServer, type TestServer } from '../support/server.ts';

const sdkTenant = {
  ...tenant,
  clients: tenant.clients.map((client) => ({
    ...client,
    oidc_conformant: true,
    ...(client.client_id === 'spa' && { grant_types: [...client.grant_types, 'password'] }),
  })),
};

describe('@auth0/auth0-auth-js, MFA', () => {
  let server: TestServer;
  let sdk: SdkProcess;
  let people = 0;
  before(async () => {
    server = await startServer({ tenant: sdkTenant });
    sdk = await startSdkProcess(server.caFile);
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
  const someone = () => `mfa-${people++}@example.test`;
  /** Returns what the SDK's error contains when a second factor is required. */
  const required = async (username: string, more: object = {}) => {
    const failure = await call('getTokenByPassword', {
      username,
      password: USER.password,
      scope: 'openid email',
      ...more,
    }).catch((error) => error);
    expect(failure.cause).to.include({ error: 'mfa_required' });
    return failure.cause as { mfa_token: string; mfa_requirements: Record<string, { type: string }[]> };
  };

  it('reads mfa_required with its requirements, enrolls an app, verifies, lists', async () => {
    const user = someone();
    const { mfa_token: mfaToken, mfa_requirements: requirements } = await required(user);
    expect(requirements.enroll?.map(({ type }) => type)).to.include.members([
      'otp',
      'phone',
      'email',
      'push-notification',
    ]);
    const enrolled = await call('mfa.enrollAuthenticator', { authenticatorTypes: ['otp'], mfaToken });
    expect(enrolled).to.include({ authenticatorType: 'otp' });
    expect(enrolled.barcodeUri).to.match(/^otpauth:/);
    const tokens = await call('mfa.verify', { factorType: 'otp', otp: codeOf(enrolled.secret), mfaToken });
    expect(payload(tokens.accessToken ? tokens.idToken : '')).to.deep.include({ email: user, amr: ['mfa'] });
    server.tick(31_000);
    const next = await required(user);
    expect(next.mfa_requirements.challenge?.map(({ type }) => type)).to.deep.equal(['otp', 'recovery-code']);
    const all = await call('mfa.listAuthenticators', { mfaToken: next.mfa_token });
    expect(
      all.map(({ authenticatorType }: { authenticatorType: string }) => authenticatorType),
    ).to.have.members(['otp', 'recovery-code']);
    const challenge = await call('mfa.challengeAuthenticator', {
      challengeType: 'otp',
      mfaToken: next.mfa_token,
    });
    expect(challenge).to.include({ challengeType: 'otp' });
    const wrong = await call('mfa.verify', {
      factorType: 'otp',
      otp: '000000',
      mfaToken: next.mfa_token,
    }).catch((e) => e);
    expect(wrong.message).to.contain('Invalid otp_code.');
    const recovered = await call('mfa.verify', {
      factorType: 'recovery-code',
      recoveryCode: enrolled.recoveryCodes[0],
      mfaToken: next.mfa_token,
    });
    expect(recovered.recoveryCode).to.match(/^[A-Z0-9]{24}$/);
  });

  for (const [channel, fields, to] of [
    ['sms', { phoneNumber: '+16505550142' }, '+16505550142'],
    ['email', { email: 'sdk-second@example.test' }, 'sdk-second@example.test'],
  ] as const) {
    it(`enrolls, challenges and verifies by ${channel}`, async () => {
      const user = someone();
      const { mfa_token: mfaToken } = await required(user);
      const enrolled = await call('mfa.enrollAuthenticator', {
        authenticatorTypes: ['oob'],
        oobChannels: [channel],
        mfaToken,
        ...fields,
      });
      expect(enrolled).to.include({ authenticatorType: 'oob', oobChannel: channel, bindingMethod: 'prompt' });
      const verify = async (token: string, oobCode: string, count: number) => {
        const { code: bindingCode } = await nextMessageTo(server, to, count);
        return call('mfa.verify', { factorType: 'oob', oobCode, bindingCode, mfaToken: token });
      };
      expect((await verify(mfaToken, enrolled.oobCode, 1)).accessToken).to.be.a('string');
      const next = await required(user);
      const { oobCode } = await call('mfa.challengeAuthenticator', {
        challengeType: 'oob',
        mfaToken: next.mfa_token,
      });
      expect((await verify(next.mfa_token, oobCode, 2)).accessToken).to.be.a('string');
    });
  }

  it('enrolls a device, polls, and gets tokens after the device approved', async () => {
    const { mfa_token: mfaToken } = await required(someone());
    const { barcodeUri, oobCode } = await call('mfa.enrollAuthenticator', {
      authenticatorTypes: ['oob'],
      oobChannels: ['auth0'],
      mfaToken,
    });
    const poll = () => call('mfa.verify', { factorType: 'oob', oobCode, mfaToken });
    const pending = await poll().catch((error) => error);
    expect(pending.message).to.contain('Authorization pending');
    const keys = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const ticket = new URL(barcodeUri).searchParams.get('enrollment_tx_id') ?? '';
    const proof = await new SignJWT({ enrollment_tx_id: ticket })
      .setProtectedHeader({ alg: 'ES256' })
      .setAudience(server.url)
      .setIssuedAt(Math.floor(Date.now() / 1000))
      .sign(keys.privateKey);
    await createAgent(server).request('/authenticator/devices', {
      json: { enrollment_tx_id: ticket, public_key: await exportJWK(keys.publicKey), name: 'Phone', proof },
    });
    expect((await poll()).accessToken).to.be.a('string');
  });

  it('deletes an authenticator with a token for the MFA API', async () => {
    const user = someone();
    const audience = `${server.issuer}mfa/`;
    const scope = 'enroll read:authenticators remove:authenticators';
    const { mfa_token: mfaToken } = await required(user, { audience, scope });
    const { secret } = await call('mfa.enrollAuthenticator', { authenticatorTypes: ['otp'], mfaToken });
    const { accessToken } = await call('mfa.verify', { factorType: 'otp', otp: codeOf(secret), mfaToken });
    const [first] = await call('mfa.listAuthenticators', { mfaToken: accessToken });
    await call('mfa.deleteAuthenticator', { authenticatorId: first.id, mfaToken: accessToken });
    const left = await call('mfa.listAuthenticators', { mfaToken: accessToken });
    expect(left.map(({ id }: { id: string }) => id)).not.to.include(first.id);
  });
});

const require = createRequire(import.meta.url);
const SPA_JS = readFileSync(
  join(dirname(require.resolve('@auth0/auth0-spa-js/package.json')), 'dist/auth0-spa-js.production.js'),
);

describe('@auth0/auth0-spa-js, MFA in a browser', () => {
  let server: TestServer;
  let browser: TestBrowser;
  let application: http.Server;
  let page: Page;
  let origin: string;
  before(async () => {
    application = http.createServer((request, response) => {
      const isScript = request.url === '/sdk.js';
      response.setHeader('content-type', isScript ? 'text/javascript' : 'text/html');
      response.end(isScript ? SPA_JS : '<!doctype html><title>App</title><script src="/sdk.js"></script>');
    });
    await new Promise<void>((resolve) => application.listen(0, 'localhost', resolve));
    origin = `http://localhost:${(application.address() as AddressInfo).port}`;
    server = await startServer({
      tenant: {
        ...sdkTenant,
        clients: sdkTenant.clients.map((client) =>
          client.client_id === 'spa' ? { ...client, callbacks: [origin], web_origins: [origin] } : client,
        ),
      },
    });
    browser = await launchBrowser(server.ca);
    page = await (await browser.newContext()).newPage();
    await page.goto(origin);
  });
  after(async () => {
    await browser?.close();
    await server?.stop();
    application?.close();
  });

  it('lists, enrolls, challenges and verifies: mfa.getAuthenticators, enroll, challenge, verify', async () => {
    const user = 'mfa-40@example.test';
    const login = async () =>
      (
        await createAgent(server).request('/oauth/token', {
          json: {
            grant_type: 'password',
            client_id: 'spa',
            username: user,
            password: USER.password,
            scope: 'openid email',
          },
        })
      ).json();
    const call = (method: string, ...args: unknown[]) =>
      page.evaluate(
        async ([domain, name, given]) => {
          const scope = globalThis as any; // any: the SDK is a script of the page
          scope.client ??= new scope.auth0.Auth0Client({ domain, clientId: 'spa' });
          try {
            return await scope.client.mfa[name](...given);
          } catch (error) {
            return { thrown: String(error), error: (error as any).error }; // any: as above
          }
        },
        [new URL(server.url).host, method, args] as const,
      ) as Promise<any>; // any: a test reads what it expects
    const first = await login();
    expect(first.error).to.equal('mfa_required');
    await call('setMFAAuthDetails', first.mfa_token, 'openid email', undefined, first.mfa_requirements);
    expect(await call('getAuthenticators', first.mfa_token)).to.deep.equal([]);
    const enrolled = await call('enroll', { mfaToken: first.mfa_token, factorType: 'otp' });
    expect(enrolled.barcodeUri, JSON.stringify(enrolled)).to.match(/^otpauth:/);
    const done = await call('verify', { mfaToken: first.mfa_token, otp: codeOf(enrolled.secret) });
    expect(done.access_token, JSON.stringify(done)).to.be.a('string');
    const second = await login();
    await call('setMFAAuthDetails', second.mfa_token, 'openid email', undefined, second.mfa_requirements);
    const all = await call('getAuthenticators', second.mfa_token);
    expect(all.map(({ type }: { type: string }) => type)).to.have.members(['otp', 'recovery-code']);
    expect(await call('challenge', { mfaToken: second.mfa_token, challengeType: 'otp' })).to.include({
      challengeType: 'otp',
    });
    const recovered = await call('verify', {
      mfaToken: second.mfa_token,
      recoveryCode: enrolled.recoveryCodes[0],
    });
    expect(recovered.access_token, JSON.stringify(recovered)).to.be.a('string');
  });
});
