// The part of sdk-client.ts for pushed and signed authorization requests and signed responses.
import type { JsonWebKey } from 'node:crypto';
import { AuthenticationClient as AuthenticationClient4 } from 'auth0-4';
import { AuthenticationClient as AuthenticationClient5 } from 'auth0-5';
import * as oauth from 'oauth4webapi';
import * as oidc from 'openid-client';

type Arguments = Record<string, any>; // any: each call has its own, given by the test that knows them

/** The key that signs requests, ES256. */
const signingKey = (jwk: JsonWebKey) =>
  crypto.subtle.importKey('jwk', jwk, { name: 'ECDSA', namedCurve: 'P-256' }, false, ['sign']);

/** openid-client as a strict application configures it: a requested signed response is required. */
async function configuration({ issuer, clientId, secret, jarm }: Arguments): Promise<oidc.Configuration> {
  const execute = [oidc.enableNonRepudiationChecks, ...(jarm ? [oidc.useJwtResponseMode] : [])];
  return oidc.discovery(new URL(issuer), clientId, secret, undefined, { execute });
}

async function server(issuer: string): Promise<oauth.AuthorizationServer> {
  const url = new URL(issuer);
  return oauth.processDiscoveryResponse(url, await oauth.discoveryRequest(url));
}

export const requestCalls: Record<string, (args: Arguments) => Promise<unknown>> = {
  'oidc-request': async (args) => {
    const config = await configuration(args);
    const verifier = oidc.randomPKCECodeVerifier();
    let parameters: URLSearchParams | Record<string, string> = {
      code_challenge: await oidc.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
      ...args.parameters,
    };
    let url = oidc.buildAuthorizationUrl(config, parameters);
    if (args.key !== undefined) {
      url = await oidc.buildAuthorizationUrlWithJAR(config, parameters, await signingKey(args.key));
      parameters = url.searchParams;
    }
    if (args.par) url = await oidc.buildAuthorizationUrlWithPAR(config, parameters);
    return { url: url.href, verifier };
  },
  'oidc-response': async (args) => {
    const tokens = await oidc.authorizationCodeGrant(await configuration(args), new URL(args.callback), {
      pkceCodeVerifier: args.verifier,
      expectedState: args.state,
      idTokenExpected: true,
    });
    return { tokens, claims: tokens.claims() };
  },
  'oauth-request': async ({ issuer, clientId, secret, key, parameters }) => {
    const as = await server(issuer);
    const client = { client_id: clientId };
    const verifier = oauth.generateRandomCodeVerifier();
    const all = {
      client_id: clientId,
      code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
      ...parameters,
    };
    const request = await oauth.issueRequestObject(as, client, all, await signingKey(key));
    const post = oauth.ClientSecretPost(secret);
    const response = await oauth.pushedAuthorizationRequest(as, client, post, {
      client_id: clientId,
      request,
    });
    const { request_uri } = await oauth.processPushedAuthorizationResponse(as, client, response);
    const url = new URL(as.authorization_endpoint ?? '');
    url.search = String(new URLSearchParams({ client_id: clientId, request_uri }));
    return { url: url.href, verifier };
  },
  'oauth-response': async ({ issuer, clientId, secret, callback, verifier, state, redirectUri }) => {
    const as = await server(issuer);
    const client = { client_id: clientId };
    const callbackUrl = new URL(callback);
    const parameters = callbackUrl.searchParams.has('response')
      ? await oauth.validateJwtAuthResponse(as, client, callbackUrl, state)
      : oauth.validateAuthResponse(as, client, callbackUrl, state);
    const post = oauth.ClientSecretPost(secret);
    const response = await oauth.authorizationCodeGrantRequest(
      as,
      client,
      post,
      parameters,
      redirectUri,
      verifier,
    );
    return oauth.processAuthorizationCodeResponse(as, client, response);
  },
  'node-pushed': async ({ version, options, parameters }) => {
    const auth0 = version === 4 ? new AuthenticationClient4(options) : new AuthenticationClient5(options);
    return (await auth0.oauth.pushedAuthorization(parameters)).data;
  },
};
