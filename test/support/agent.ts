// An HTTP client that keeps cookies like a browser and trusts the test server's CA: one per user agent.
import { lookup } from 'node:dns';
import http from 'node:http';
import https from 'node:https';
import type { LookupFunction } from 'node:net';

export interface Answer {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  text: string;
  /** The `Location` header as an absolute URL; empty without one. */
  location: string;
  /** Parses the body as JSON. @throws SyntaxError when it is not JSON. */
  json(): Record<string, any>; // any: a test reads what it expects, and fails on anything else
}

export interface AgentRequest {
  method?: string;
  headers?: Record<string, string>;
  /** Sent as a form. */
  form?: Record<string, string> | [string, string][];
  /** Sent as JSON. */
  json?: unknown;
  body?: string;
}

export interface Agent {
  request(path: string, options?: AgentRequest): Promise<Answer>;
  get(path: string, headers?: Record<string, string>): Promise<Answer>;
  cookies(): { name: string; value: string; path: string }[];
}

interface Cookie {
  name: string;
  value: string;
  path: string;
}

/** Keeps connections open: a TLS handshake takes longer than most answers. */
const SECURE = new https.Agent({ keepAlive: true });
const PLAIN = new http.Agent({ keepAlive: true });

/** @param server its address (`url`) and the CA to trust (`ca`, PEM). */
export function createAgent(server: { url: string; ca: string }): Agent {
  const jar = new Map<string, Cookie>();
  const request = async (path: string, options: AgentRequest = {}): Promise<Answer> => {
    const url = new URL(path, server.url);
    const { body, type } = encode(options);
    const cookie = [...jar.values()]
      .filter((c) => url.pathname === c.path || url.pathname.startsWith(c.path.replace(/\/?$/, '/')))
      .map((c) => `${c.name}=${c.value}`)
      .join('; ');
    const headers = {
      ...(type === undefined
        ? {}
        : { 'content-type': type, 'content-length': String(Buffer.byteLength(body)) }),
      ...(cookie === '' ? {} : { cookie }),
      ...options.headers,
    };
    const method = options.method ?? (type === undefined ? 'GET' : 'POST');
    const { response, text } = await exchange(url, { method, headers }, body, server.ca);
    for (const line of response.headers['set-cookie'] ?? []) keep(jar, line, url);
    const to = response.headers.location;
    return {
      status: response.statusCode ?? 0,
      headers: response.headers,
      text,
      location: to === undefined ? '' : new URL(to, url).href,
      json: () => JSON.parse(text),
    };
  };
  return {
    request,
    get: (path, headers = {}) => request(path, { headers }),
    cookies: () => [...jar.values()],
  };
}

/** Finds hosts below `.test`, which exist nowhere, on this machine: a server's `BASE_URL` may have one. */
const onThisMachine: LookupFunction = (host, options, done) =>
  lookup(host.endsWith('.test') ? 'localhost' : host, options, done);

/** Sends a request, and again if the server had closed the kept connection before the request arrived. */
function exchange(
  url: URL,
  options: { method: string; headers: Record<string, string> },
  body: string,
  ca: string,
): Promise<{ response: http.IncomingMessage; text: string }> {
  const secure = { ...options, agent: SECURE, ca, lookup: onThisMachine, servername: url.hostname };
  return new Promise((resolve, reject) => {
    const sent =
      url.protocol === 'http:' ? http.request(url, { ...options, agent: PLAIN }) : https.request(url, secure);
    sent.once('response', (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.once('error', reject);
      response.once('end', () => resolve({ response, text: Buffer.concat(chunks).toString('utf8') }));
    });
    sent.on('error', (error: NodeJS.ErrnoException) => {
      if (sent.reusedSocket && error.code === 'ECONNRESET') resolve(exchange(url, options, body, ca));
      else reject(error);
    });
    sent.end(body);
  });
}

function encode({ form, json, body }: AgentRequest): { body: string; type?: string } {
  if (json !== undefined) return { body: JSON.stringify(json), type: 'application/json' };
  if (form !== undefined) {
    return { body: new URLSearchParams(form).toString(), type: 'application/x-www-form-urlencoded' };
  }
  return { body: body ?? '' };
}

function keep(jar: Map<string, Cookie>, line: string, url: URL): void {
  const [pair = '', ...attributes] = line.split(';').map((part) => part.trim());
  const [name = '', ...rest] = pair.split('=');
  const attribute = (wanted: string) =>
    attributes.find((a) => a.toLowerCase().startsWith(`${wanted}=`))?.slice(wanted.length + 1);
  const path = attribute('path') ?? url.pathname;
  const expires = attribute('expires');
  const gone = rest.join('=') === '' || (expires !== undefined && Date.parse(expires) <= Date.now());
  if (gone) jar.delete(`${name} ${path}`);
  else jar.set(`${name} ${path}`, { name, value: rest.join('='), path });
}

/** Returns the fields of the first form on a page that has the field `field`, and the form's action. */
export function readForm(page: Answer, field?: string): { action: string; fields: Record<string, string> } {
  for (const [, tag = '', inside = ''] of page.text.matchAll(/<form([^>]*)>([\s\S]*?)<\/form>/g)) {
    const fields: Record<string, string> = {};
    for (const [input] of inside.matchAll(/<input[^>]*>/g)) {
      const name = /\bname="([^"]*)"/.exec(input)?.[1];
      if (name !== undefined) fields[name] = unescapeHtml(/\bvalue="([^"]*)"/.exec(input)?.[1] ?? '');
    }
    if (field === undefined || field in fields) {
      return { action: unescapeHtml(/\baction="([^"]*)"/.exec(tag)?.[1] ?? ''), fields };
    }
  }
  throw new Error(`no form${field === undefined ? '' : ` with ${field}`} on the page:\n${page.text}`);
}

function unescapeHtml(html: string): string {
  return html
    .replaceAll('&quot;', '"')
    .replaceAll('&#34;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&amp;', '&');
}
