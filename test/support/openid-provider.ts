// An OpenID provider that a test controls completely: its metadata, signatures and answers.
import { createHash, randomUUID } from 'node:crypto';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { type CryptoKey, exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose';
import { json } from './oauth2-provider.ts';

/** A signing key. */
export interface SigningKey {
  kid: string;
  alg: string;
  privateKey: CryptoKey | Uint8Array;
  /** The public key as published. */
  jwk: JWK;
}

export interface OpenIdProvider {
  url: string;
  /** Members of the discovery document, added to or replacing its own. */
  document: Record<string, unknown>;
  /** Claims of the ID token, added to or replacing the correct ones. */
  claims: Record<string, unknown>;
  /** The answer of the userinfo endpoint. */
  userInfo: Record<string, unknown>;
  /** Members added to or replacing the token endpoint's own answer. */
  answer: Record<string, unknown>;
  /** The published keys. */
  keys: SigningKey[];
  /** The key that signs; by default the first one. */
  signer: SigningKey | undefined;
  /** Answers that replace an endpoint's own. */
  instead: Record<string, ((response: http.ServerResponse) => void) | undefined>;
  /** The requests by path. */
  seen: { path: string; form: Record<string, string>; headers: http.IncomingHttpHeaders }[];
  count(path: string): number;
  /** Returns an ID token for a request. */
  sign(more: Record<string, unknown>): Promise<string>;
  stop(): Promise<void>;
}

/** Creates a key. */
export async function signingKey(kid: string, alg = 'RS256'): Promise<SigningKey> {
  const { publicKey, privateKey } = await generateKeyPair(alg);
  return { kid, alg, privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg, use: 'sig' } };
}

const hash = (text: string) => createHash('sha256').update(text).digest();

/** Starts one on a port that the system chooses. */
export async function startOpenIdProvider(key: SigningKey): Promise<OpenIdProvider> {
  const codes = new Map<string, Record<string, string>>();
  const server = http.createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const seen: OpenIdProvider['seen'] = [];
  const provider: OpenIdProvider = {
    url,
    document: {},
    claims: {},
    userInfo: {},
    answer: {},
    keys: [key],
    signer: undefined,
    instead: {},
    seen,
    count: (path) => seen.filter((one) => one.path === path).length,
    sign: async (more) => {
      const { kid, alg, privateKey } = provider.signer ?? provider.keys[0] ?? key;
      const now = Math.floor(Date.now() / 1000);
      const claims = { iss: url, sub: 'grace', aud: 'gatehouse', iat: now, exp: now + 300, ...more };
      return new SignJWT(JSON.parse(JSON.stringify(claims)))
        .setProtectedHeader({ alg, kid })
        .sign(privateKey);
    },
    stop: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  const authorize = (query: Record<string, string>, response: http.ServerResponse) => {
    const code = `code-${randomUUID()}`;
    codes.set(code, query);
    const back = new URL(query.redirect_uri ?? '');
    back.searchParams.set('code', code);
    back.searchParams.set('state', query.state ?? '');
    response.writeHead(302, { location: back.href }).end();
  };
  let renewals = 0;
  const renew = async (form: Record<string, string>, response: http.ServerResponse) => {
    if (!form.refresh_token?.startsWith('refresh-')) return json(response, { error: 'invalid_grant' }, 400);
    const access_token = `renewed-${++renewals}`;
    const id_token = await provider.sign(provider.claims);
    json(response, { access_token, token_type: 'Bearer', expires_in: 3600, id_token, ...provider.answer });
  };
  const token = async (form: Record<string, string>, response: http.ServerResponse) => {
    if (form.grant_type === 'refresh_token') return renew(form, response);
    const asked = codes.get(form.code ?? '');
    codes.delete(form.code ?? '');
    const verifier = form.code_verifier ?? '';
    const right = asked?.code_challenge_method === 'plain' ? verifier : hash(verifier).toString('base64url');
    if (asked === undefined || (asked.code_challenge !== undefined && asked.code_challenge !== right)) {
      return json(response, { error: 'invalid_grant', error_description: 'secret detail' }, 400);
    }
    const access_token = `access-${form.code}`;
    const at_hash = hash(access_token).subarray(0, 16).toString('base64url');
    const id_token = await provider.sign({ nonce: asked.nonce, at_hash, ...provider.claims });
    json(response, { access_token, token_type: 'Bearer', expires_in: 3600, id_token, ...provider.answer });
  };
  server.on('request', async (request, response) => {
    const at = new URL(request.url ?? '/', url);
    let body = '';
    for await (const chunk of request) body += chunk;
    const form = Object.fromEntries(new URLSearchParams(body));
    seen.push({ path: at.pathname, form, headers: request.headers });
    const instead = provider.instead[at.pathname];
    if (instead !== undefined) return instead(response);
    if (at.pathname.endsWith('/.well-known/openid-configuration')) {
      return json(response, {
        issuer: url,
        authorization_endpoint: `${url}/authorize`,
        token_endpoint: `${url}/token`,
        userinfo_endpoint: `${url}/userinfo`,
        jwks_uri: `${url}/jwks`,
        ...provider.document,
      });
    }
    if (at.pathname === '/jwks') return json(response, { keys: provider.keys.map(({ jwk }) => jwk) });
    if (at.pathname === '/authorize') return authorize(Object.fromEntries(at.searchParams), response);
    if (at.pathname === '/token') return token(form, response);
    if (at.pathname === '/userinfo') return json(response, { sub: 'grace', ...provider.userInfo });
    response.writeHead(404).end();
  });
  return provider;
}
