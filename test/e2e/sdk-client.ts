// A program as people write them with published SDKs. It runs in its own process, so that it can trust the server's CA by
// NODE_EXTRA_CA_CERTS, which is read at start. The test tells it what to call.
import { AuthClient, type AuthClientOptions } from '@auth0/auth0-auth-js';
import { AuthenticationClient } from 'auth0-5';
import * as oidc from 'openid-client';
import { requestCalls } from './request-client.ts';

type Arguments = Record<string, any>; // any: each call has its own, given by the test that knows them

const authClients = new Map<string, AuthClient>();

function authClient(options: AuthClientOptions): AuthClient {
  const key = JSON.stringify(options);
  const existing = authClients.get(key) ?? new AuthClient(options);
  authClients.set(key, existing);
  return existing;
}

async function discover({ issuer, clientId, secret, privateKey }: Arguments): Promise<oidc.Configuration> {
  if (secret === null) return oidc.discovery(new URL(issuer), clientId, undefined, oidc.None());
  if (privateKey === undefined) return oidc.discovery(new URL(issuer), clientId, secret);
  const der = Buffer.from(privateKey.replace(/-----[^-]+-----|\s/g, ''), 'base64');
  const key = await crypto.subtle.importKey(
    'pkcs8',
    der,
    { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' },
    false,
    ['sign'],
  );
  return oidc.discovery(new URL(issuer), clientId, undefined, oidc.PrivateKeyJwt(key));
}

const calls: Record<string, (args: Arguments) => Promise<unknown>> = {
  ...requestCalls,
  // `method` may be that of a sub-client: `passwordless.sendEmail`.
  'auth-js': async ({ options, method, args }) => {
    type Client = Record<string, unknown>;
    const path = (method as string).split('.');
    const name = path.pop() ?? '';
    const client = path.reduce((at, part) => at[part] as Client, authClient(options) as unknown as Client);
    const call = client[name];
    if (typeof call !== 'function') throw new Error(`no such method: ${method}`);
    return call.apply(client, args);
  },
  'auth-js-code': ({ options, callback, codeVerifier }) =>
    authClient(options).getTokenByCode(new URL(callback), { codeVerifier }),
  'auth-js-magic-link': ({ options, callback, state }) =>
    authClient(options).getTokenByMagicLinkCode(new URL(callback), { expectedState: state }),
  'auth-js-signup': ({ options, user }) => authClient(options).database.signUp(user),
  'oidc-discovery': async (args) => (await discover(args)).serverMetadata(),
  'oidc-authorization-url': async (args) => {
    const verifier = oidc.randomPKCECodeVerifier();
    const code_challenge = await oidc.calculatePKCECodeChallenge(verifier);
    const url = oidc.buildAuthorizationUrl(await discover(args), {
      code_challenge,
      code_challenge_method: 'S256',
      ...args.parameters,
    });
    return { url: url.href, verifier };
  },
  'oidc-code': async (args) => {
    const config = await discover(args);
    const tokens = await oidc.authorizationCodeGrant(config, new URL(args.callback), {
      pkceCodeVerifier: args.verifier,
      expectedState: args.state,
      expectedNonce: args.nonce,
      idTokenExpected: true,
    });
    const claims = tokens.claims();
    const profile = await oidc.fetchUserInfo(config, tokens.access_token, claims?.sub ?? '');
    return { tokens, claims, profile };
  },
  'oidc-refresh': async (args) => {
    const tokens = await oidc.refreshTokenGrant(await discover(args), args.refreshToken);
    return { tokens, claims: tokens.claims() };
  },
  'oidc-end-session-url': async (args) => oidc.buildEndSessionUrl(await discover(args), args.parameters).href,
  'oidc-device': async (args) => oidc.initiateDeviceAuthorization(await discover(args), args.parameters),
  'oidc-device-poll': async (args) => {
    const tokens = await oidc.pollDeviceAuthorizationGrant(await discover(args), args.codes);
    return { tokens, claims: tokens.claims() };
  },
  'oidc-backchannel': async (args) =>
    oidc.initiateBackchannelAuthentication(await discover(args), args.parameters),
  'oidc-backchannel-poll': async (args) => {
    const tokens = await oidc.pollBackchannelAuthenticationGrant(await discover(args), args.begun);
    return { tokens, claims: tokens.claims() };
  },
  'node-auth0-backchannel': async ({ options, method, args }) =>
    (new AuthenticationClient(options).backchannel as unknown as Record<string, (of: object) => unknown>)[
      method
    ]?.(args),
  'oidc-client-credentials': async (args) =>
    oidc.clientCredentialsGrant(await discover(args), args.parameters),
};

process.on('message', async ({ id, name, args }: { id: number; name: string; args: Arguments }) => {
  try {
    const call = calls[name];
    if (call === undefined) throw new Error(`no such call: ${name}`);
    process.send?.({ id, result: JSON.parse(JSON.stringify((await call(args)) ?? null)) });
  } catch (thrown) {
    const error = thrown as Error & { code?: string; cause?: { error?: string; error_description?: string } };
    process.send?.({
      id,
      error: { name: error.name, message: error.message, code: error.code, cause: { ...error.cause } },
    });
  }
});
process.send?.({ ready: true });
