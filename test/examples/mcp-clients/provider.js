// What the two SDKs ask of a program for a login: where to keep things, and how the answer of the browser comes.
import { createServer } from 'node:http';

const { CALLBACK_PORT, CLIENT_ID, CLIENT_METADATA_URL } = process.env;
const redirectUrl = `http://localhost:${CALLBACK_PORT}/callback`;
const kept = {};

/** @param name what the user is told */
export const providerOf = (name) => ({
  redirectUrl,
  clientMetadataUrl: CLIENT_METADATA_URL,
  clientMetadata: {
    client_name: name,
    redirect_uris: [redirectUrl],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
  },
  clientInformation: () => (CLIENT_ID ? { client_id: CLIENT_ID } : kept.client),
  saveClientInformation: (client) => Object.assign(kept, { client }),
  tokens: () => kept.tokens,
  saveTokens: (tokens) => Object.assign(kept, { tokens }),
  invalidateCredentials: (what) => {
    if (what === 'all' || what === 'tokens') delete kept.tokens;
  },
  discoveryState: () => kept.discovery,
  saveDiscoveryState: (discovery) => Object.assign(kept, { discovery }),
  codeVerifier: () => kept.verifier,
  saveCodeVerifier: (verifier) => Object.assign(kept, { verifier }),
  redirectToAuthorization: (url) => console.log(`Open ${url.href}`),
});

/** Waits for the browser. @returns the parameters that it brings */
export const answerOfLogin = () =>
  new Promise((resolve) => {
    const server = createServer((request, response) => {
      response.setHeader('connection', 'close').end('You can close this page.');
      const { searchParams } = new URL(request.url, redirectUrl);
      if (!searchParams.has('code') && !searchParams.has('error')) return;
      server.close();
      resolve(searchParams);
    }).listen(CALLBACK_PORT, 'localhost');
  });

/** Waits for the browser. @returns the code */
export const codeOfLogin = async () => {
  const answer = await answerOfLogin();
  if (!answer.has('code')) throw new Error(answer.get('error'));
  return answer.get('code');
};
