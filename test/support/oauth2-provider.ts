// An OAuth 2.0 provider for connections: it logs in whichever user the test sets, and can misbehave.
import { createHash, randomUUID } from 'node:crypto';
import http from 'node:http';
import type { AddressInfo } from 'node:net';

/** The answer of a token or profile endpoint. */
export type Misbehaviour = (response: http.ServerResponse, request: SeenRequest) => void;

export interface SeenRequest {
  method: string;
  path: string;
  headers: http.IncomingHttpHeaders;
  query: Record<string, string>;
  /** The fields of a form. */
  form: Record<string, string>;
}

export interface OAuth2Provider {
  url: string;
  /** The next user: the answer of the profile endpoint. */
  user: Record<string, unknown>;
  /** Members that the token endpoint adds to its answer or replaces. */
  tokenAnswer: Record<string, unknown>;
  /** Whether it answers authorization requests with an auto-submitted form, as OpenID providers may. */
  postsAnswer: boolean;
  /** Answers instead of the endpoint until it is set to undefined. */
  token: Misbehaviour | undefined;
  profile: Misbehaviour | undefined;
  seen: SeenRequest[];
  /** The refresh tokens it has issued; with rotation only the last one is valid. */
  refreshTokens: string[];
  /** Returns the last request to a path. */
  last(path: string): SeenRequest;
  stop(): Promise<void>;
}

/** Starts one on a port that the system chooses. */
export async function startProvider(): Promise<OAuth2Provider> {
  const codes = new Map<string, Record<string, string>>();
  const seen: SeenRequest[] = [];
  const provider = {
    user: { id: 42, email: 'grace@upstream.test', email_verified: true, name: 'Grace' },
    tokenAnswer: {},
    postsAnswer: false,
    token: undefined as Misbehaviour | undefined,
    profile: undefined as Misbehaviour | undefined,
    refreshTokens: [] as string[],
  };
  let count = 0;
  const { refreshTokens } = provider;
  const authorize = ({ query }: SeenRequest, response: http.ServerResponse) => {
    const code = `code-${++count}-${randomUUID()}`;
    codes.set(code, query);
    if (provider.postsAnswer) return postForm(response, query, code);
    const back = new URL(query.redirect_uri ?? '');
    back.searchParams.set('code', code);
    back.searchParams.set('state', query.state ?? '');
    response.writeHead(302, { location: back.href }).end();
  };
  const refresh = (form: SeenRequest['form'], response: http.ServerResponse) => {
    const isRight = form.refresh_token === refreshTokens.at(-1) && form.client_secret === 'upstream-secret';
    if (!isRight) return json(response, { error: 'invalid_grant' }, 400);
    refreshTokens.push(`refresh-again-${++count}`);
    const tokens = { access_token: `renewed-${count}`, refresh_token: refreshTokens.at(-1) };
    json(response, { ...tokens, token_type: 'Bearer', expires_in: 3600 });
  };
  const token = ({ form }: SeenRequest, response: http.ServerResponse) => {
    if (form.grant_type === 'refresh_token') return refresh(form, response);
    const asked = codes.get(form.code ?? '');
    codes.delete(form.code ?? '');
    const challenge = createHash('sha256')
      .update(form.code_verifier ?? '')
      .digest('base64url');
    const isRight =
      asked !== undefined &&
      asked.redirect_uri === form.redirect_uri &&
      asked.client_id === form.client_id &&
      form.client_secret === 'upstream-secret' &&
      (asked.code_challenge === undefined || asked.code_challenge === challenge);
    if (!isRight) return json(response, { error: 'invalid_grant' }, 400);
    refreshTokens.push(`refresh-${count}`);
    json(response, {
      access_token: `token-${count}`,
      token_type: 'Bearer',
      expires_in: 3600,
      refresh_token: `refresh-${count}`,
      ...provider.tokenAnswer,
    });
  };
  const server = http.createServer(async (request, response) => {
    const url = new URL(request.url ?? '/', 'http://localhost');
    let body = '';
    for await (const chunk of request) body += chunk;
    const one: SeenRequest = {
      method: request.method ?? '',
      path: url.pathname,
      headers: request.headers,
      query: Object.fromEntries(url.searchParams),
      form: Object.fromEntries(new URLSearchParams(body)),
    };
    seen.push(one);
    if (url.pathname === '/authorize') return authorize(one, response);
    if (url.pathname === '/token') return (provider.token ?? ((r) => token(one, r)))(response, one);
    if (url.pathname === '/userinfo')
      return (provider.profile ?? ((r) => json(r, provider.user)))(response, one);
    response.writeHead(404).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return Object.assign(provider, {
    url,
    seen,
    last: (path: string) => {
      const found = seen.findLast((one) => one.path === path);
      if (found === undefined) throw new Error(`nobody asked for ${path}`);
      return found;
    },
    stop: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  });
}

/** OAuth 2.0 Form Post Response Mode. */
function postForm(response: http.ServerResponse, query: Record<string, string>, code: string): void {
  response.writeHead(200, { 'content-type': 'text/html' }).end(`<!doctype html><title>Provider</title>
    <form method="post" action="${query.redirect_uri}"><input type="hidden" name="code" value="${code}">
    <input type="hidden" name="state" value="${query.state}"></form><script>document.forms[0].submit()</script>`);
}

export function json(response: http.ServerResponse, body: unknown, status = 200): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

/** A script that requests a provider's profile endpoint, like most published ones. */
export function profileScript(url: string): string {
  return `function fetchUserProfile(accessToken, context, callback) {
    request.get({ url: '${url}/userinfo', headers: { Authorization: 'Bearer ' + accessToken } }, (err, resp, body) => {
      if (err) return callback(err);
      if (resp.statusCode !== 200) return callback(new Error(body));
      let profile;
      try { profile = JSON.parse(body); } catch (e) { return callback(new Error('no JSON')); }
      callback(null, { ...profile, user_id: profile.id });
    });
  }`;
}

/** Returns the options of a connection to a provider. */
export function optionsFor(provider: { url: string }, more: object = {}): Record<string, unknown> {
  return {
    authorizationURL: `${provider.url}/authorize`,
    tokenURL: `${provider.url}/token`,
    client_id: 'gatehouse',
    client_secret: 'upstream-secret',
    scope: 'profile email',
    scripts: { fetchUserProfile: profileScript(provider.url) },
    ...more,
  };
}
