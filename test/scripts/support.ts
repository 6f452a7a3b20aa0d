// A sandbox for tests, and a provider of profiles on this machine that scripts request.
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { SCRIPT_LIMITS, type ScriptLimits } from '../../src/capabilities/scripts/limits.ts';
import { createScripts, type ScriptOutcome, type ScriptRun } from '../../src/capabilities/scripts/scripts.ts';
import {
  createOutbound,
  LOOPBACK_RANGES,
  outboundRules,
  type ResolvedAddress,
} from '../../src/http/outbound/outbound.ts';
import { PATIENCE } from '../support/wait-until.ts';

interface Seen {
  method: string;
  url: string;
  headers: http.IncomingHttpHeaders;
  body: string;
}

export interface Provider {
  url: string;
  /** The requests so far. */
  seen: Seen[];
  stop(): Promise<unknown>;
}

export const PROFILE = { sub: '248289761001', name: 'Jane Doe', email: 'jane@example.test' };

/** Answers `/userinfo` for the token `token`, `/echo` with the request, and other paths as their names say. */
export async function startProvider(
  more: Record<string, (request: http.IncomingMessage, response: http.ServerResponse) => void> = {},
): Promise<Provider> {
  const seen: Seen[] = [];
  const server = http.createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', () => {
      const { method = '', url = '', headers } = request;
      const one = { method, url, headers, body: Buffer.concat(chunks).toString() };
      seen.push(one);
      const json = (status: number, value: unknown) =>
        response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
      const path = new URL(url, 'http://provider').pathname;
      if (more[path] !== undefined) more[path](request, response);
      else if (path === '/userinfo' && headers.authorization === 'Bearer token') json(200, PROFILE);
      else if (path === '/userinfo') json(401, { error: 'invalid_token' });
      else if (path === '/echo') json(200, one);
      else if (path === '/text') response.end('not { json');
      else if (path === '/bytes') response.end(Buffer.from([0, 255, 254, 1]));
      else if (path === '/slow') setTimeout(() => response.end('late'), 60_000).unref();
      else if (path === '/moved') response.writeHead(302, { location: '/userinfo' }).end();
      else json(404, {});
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen,
    stop: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}

interface SandboxOptions {
  limits?: Partial<ScriptLimits>;
  allow?: readonly string[];
  lookup?: (host: string) => Promise<ResolvedAddress[]>;
  threads?: number;
}

/** Starts a sandbox; it runs `fetchUserProfile(token, context, callback)` unless told otherwise. */
export function startSandbox({ limits, allow = LOOPBACK_RANGES, lookup, threads }: SandboxOptions = {}) {
  const outbound = createOutbound({ rules: outboundRules(allow), ...(lookup && { lookup }) });
  const scripts = createScripts({
    outbound,
    clock: Date.now,
    keepsLog: true,
    limits: { ...SCRIPT_LIMITS, ...limits },
    // On a busy machine a thread takes its time to start.
    waitMs: PATIENCE,
    ...(threads !== undefined && { threads }),
  });
  const run = (source: string, more: Partial<ScriptRun> = {}): Promise<ScriptOutcome> =>
    scripts.run({
      of: 'connection',
      askedBy: undefined,
      source,
      entry: 'fetchUserProfile',
      args: ['token', {}],
      ...more,
    });
  return {
    scripts,
    run,
    /** Returns the result of `body` as that of a function (token, context, callback). @throws Error when it fails. */
    result: async (body: string, more: Partial<ScriptRun> = {}): Promise<any> => {
      const outcome = await run(`async function (token, context) { ${body} }`, more);
      if (outcome.failure !== undefined)
        throw new Error(`${outcome.failure.kind}: ${outcome.failure.message}`);
      return outcome.result;
    },
    stop: () => scripts.close(),
  };
}
