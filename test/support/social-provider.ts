// A social provider made of data: its token endpoint issues a token for the right code, and its profile endpoint and
// the paths below return what the test sets.
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { json, type SeenRequest } from './oauth2-provider.ts';

export type Answer = object | string | ((request: SeenRequest) => { status: number; body: object | string });

export interface SocialProvider {
  url: string;
  /** Answers by path; `/token` has an answer of its own if there is none here. */
  answers: Record<string, Answer>;
  seen: SeenRequest[];
  /** Returns the last request to a path. */
  last(path: string): SeenRequest;
  stop(): Promise<void>;
}

/** Starts one on a port that the system chooses. */
export async function startSocialProvider(): Promise<SocialProvider> {
  const seen: SeenRequest[] = [];
  const answers: Record<string, Answer> = {};
  const server = http.createServer(async (request, response) => {
    const url = new URL(request.url ?? '/', 'http://localhost');
    let text = '';
    for await (const chunk of request) text += chunk;
    const one = {
      method: request.method ?? '',
      path: url.pathname,
      headers: request.headers,
      query: Object.fromEntries(url.searchParams),
      form: Object.fromEntries(new URLSearchParams(text)),
    };
    seen.push(one);
    if (url.pathname === '/authorize') {
      const back = new URL(one.query.redirect_uri ?? '');
      back.searchParams.set('code', 'their-code');
      back.searchParams.set('state', one.query.state ?? '');
      return void response.writeHead(302, { location: back.href }).end();
    }
    const given = answers[url.pathname] ?? (url.pathname === '/token' ? TOKEN : undefined);
    const { status, body } =
      typeof given === 'function' ? given(one) : { status: given === undefined ? 404 : 200, body: given };
    if (typeof body === 'string')
      return void response.writeHead(status, { 'content-type': 'application/json' }).end(body);
    json(response, body ?? { message: 'Not Found' }, status);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    answers,
    seen,
    last: (path) => {
      const found = seen.findLast((one) => one.path === path);
      if (found === undefined) throw new Error(`nobody asked for ${path}`);
      return found;
    },
    stop: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const TOKEN = { access_token: 'their-token', token_type: 'bearer', expires_in: 3600 };
