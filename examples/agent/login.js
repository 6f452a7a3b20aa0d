// How the agent logs its user in: the SDK discovers, registers, refreshes and steps up; this keeps what it needs.
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';

const { CALLBACK_PORT, CLIENT_ID, CLIENT_METADATA_URL } = process.env;
const redirectUrl = `http://localhost:${CALLBACK_PORT}/callback`;

/** Client and tokens, in a file that only this user of the machine can read. */
const FILE = 'agent.json';
const kept = existsSync(FILE) ? JSON.parse(readFileSync(FILE, 'utf8')) : {};
const keep = (more) =>
  writeFileSync(FILE, JSON.stringify(Object.assign(kept, more), null, 2), { mode: 0o600 });

/** What belongs to the login that is under way. */
const login = {};

export const provider = {
  redirectUrl,
  clientMetadataUrl: CLIENT_METADATA_URL || undefined,
  clientMetadata: {
    client_name: 'Example agent',
    redirect_uris: [redirectUrl],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
  },
  clientInformation: () => (CLIENT_ID ? { client_id: CLIENT_ID } : kept.client),
  saveClientInformation: (client) => keep({ client }),
  tokens: () => kept.tokens,
  saveTokens: (tokens) => keep({ tokens }),
  // What Gatehouse no longer knows is forgotten here as well.
  invalidateCredentials: (what) => {
    if (what === 'all' || what === 'client') keep({ client: undefined });
    if (what === 'all' || what === 'tokens') keep({ tokens: undefined });
  },
  codeVerifier: () => login.verifier,
  saveCodeVerifier: (verifier) => Object.assign(login, { verifier }),
  // Where the login began: the SDK refuses the answer of another server (`iss`, RFC 9207).
  discoveryState: () => login.discovery,
  saveDiscoveryState: (discovery) => Object.assign(login, { discovery }),
  state: () => Object.assign(login, { state: randomUUID() }).state,
  redirectToAuthorization: async (url) => {
    const server = createServer();
    login.answer = answerAt(server);
    await once(server.listen(CALLBACK_PORT, 'localhost'), 'listening');
    console.log(`Open ${url.href}`);
  },
};

/** Waits until the browser comes back. */
const answerAt = (server) =>
  new Promise((resolve) => {
    server.on('request', (request, response) => {
      const { pathname, searchParams } = new URL(request.url, redirectUrl);
      // Anything else is no answer to this login, whoever sends it.
      if (pathname !== '/callback' || searchParams.get('state') !== login.state) {
        response.writeHead(404).end();
        return;
      }
      response.setHeader('connection', 'close').end('You can close this page.');
      server.close();
      resolve(searchParams);
    });
  });

/** Returns the parameters that the browser brings. */
export const answerOfLogin = () => login.answer;
