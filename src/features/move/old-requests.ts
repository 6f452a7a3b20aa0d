// How the old tenant is asked: bounded in time, size and number, and without following redirects.
import type { z } from 'zod';
import type { Pause } from '../../capabilities/delivery/deliveries.ts';
import type { Outbound, OutboundInit } from '../../http/outbound/outbound.ts';
import type { BridgeKind } from '../../records/tenant/move.ts';
import type { Clock } from '../../runtime/clock.ts';
import { jsonOf } from '../../runtime/json.ts';

/** An answer that is not accepted. Its message is for the log and has nothing that was received, but error codes. */
export class OldTenantFault extends Error {}

/** Where the old tenant is asked, and how. */
export interface OldAddress {
  /** The origin that its answer is for. */
  origin: string;
  /** The host that answers for it, where the name of the origin leads here. */
  via?: string;
  /** Sent with every request. */
  headers?: Readonly<Record<string, string>>;
}

/** What a request has beside its address. Redirects are an error, unless the answer is to be returned (`manual`). */
type OldRequest = Pick<OutboundInit, 'method' | 'body' | 'headOnly'> & {
  headers?: Readonly<Record<string, string>>;
  redirect?: 'manual';
};

/**
 * Sends a request.
 * @param path with its query.
 * @throws OldTenantFault, OutboundError
 */
export type SendToOldTenant = (address: OldAddress, path: string, request: OldRequest) => Promise<Response>;

interface Bounds {
  /** How long an answer may take, milliseconds. */
  timeout: number;
  /** Bytes of an answer. */
  maxBytes: number;
  /** The most requests at a time: those of a burst fail, and do not wait for a tenant that is slow. */
  maxAtOnce: number;
  /** A shorter wait for a rate limit there is waited for, and the request sent once more; milliseconds. */
  maxRetry: number;
}

/** The requests of each bridge are bounded by themselves, so that none waits for those of another. */
export const BOUNDS = {
  /** Actions there may run for some seconds, and old tenants keep up to 1 MB of metadata of a user. */
  passwords: { timeout: 8_000, maxBytes: 4 * 1024 * 1024, maxAtOnce: 100, maxRetry: 2_000 },
  refresh_tokens: { timeout: 5_000, maxBytes: 64 * 1024, maxAtOnce: 100, maxRetry: 2_000 },
  /** A browser waits for these, whose user may log in as well. */
  sessions: { timeout: 5_000, maxBytes: 64 * 1024, maxAtOnce: 50, maxRetry: 0 },
} as const satisfies Record<BridgeKind, Bounds>;

export function sendToOldTenant({
  fetch,
  clock,
  pause,
  bounds,
  timeout = bounds.timeout,
}: {
  fetch: Outbound['fetch'];
  clock: Clock;
  pause: Pause;
  bounds: Bounds;
  /** Instead of that of the bounds. */
  timeout?: number | undefined;
}): SendToOldTenant {
  let atOnce = 0;
  return async ({ origin, via, headers }, path, request) => {
    if (atOnce >= bounds.maxAtOnce) throw new OldTenantFault('too many requests wait for it');
    atOnce += 1;
    try {
      const init: OutboundInit = {
        redirect: 'error',
        ...request,
        timeout,
        maxBytes: bounds.maxBytes,
        headers: { ...request.headers, ...headers },
        ...(via !== undefined && { via }),
      };
      const response = await fetch(`${origin}${path}`, init);
      const wait = retryAfter(response, clock());
      if (wait === undefined || wait >= bounds.maxRetry) return response;
      await pause(wait, new AbortController().signal);
      return await fetch(`${origin}${path}`, init);
    } finally {
      atOnce -= 1;
    }
  };
}

/** Returns how long a limited request has to wait, milliseconds; undefined for one that is not limited, or without an end. */
function retryAfter({ status, headers }: Response, now: number): number | undefined {
  if (status !== 429) return undefined;
  const seconds = headers.get('retry-after') ?? '';
  const reset = headers.get('x-ratelimit-reset') ?? '';
  const wait = /^\d{1,6}$/.test(seconds)
    ? Number(seconds) * 1000
    : /^\d{9,11}$/.test(reset)
      ? Number(reset) * 1000 - now
      : undefined;
  return wait === undefined ? undefined : Math.max(0, wait);
}

/** Returns the body of an answer that is not an error. @param of what has answered. @throws OldTenantFault */
export async function parsed<T>(response: Response, schema: z.ZodType<T>, of: string): Promise<T> {
  const body = jsonOf(await response.text());
  if (response.status !== 200) throw new OldTenantFault(`${of} answered ${response.status}${codeIn(body)}`);
  const result = schema.safeParse(body);
  if (result.success) return result.data;
  const path = result.error.issues[0]?.path.join('.') ?? '';
  throw new OldTenantFault(`${of} answered what is not expected${path === '' ? '' : ` at ${path}`}`);
}

/** Returns the code of an error in brackets, for the log; the empty text without one. */
export function codeIn(body: unknown): string {
  const { error, errorCode } = Object(body) as Record<string, unknown>;
  const code = errorCode ?? error;
  return typeof code === 'string' && /^[\w .-]{1,64}$/.test(code) ? ` (${code})` : '';
}
