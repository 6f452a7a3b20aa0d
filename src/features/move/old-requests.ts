// How the old tenant is asked: bounded in time, size and number, and without following redirects.
import type { z } from 'zod';
import type { Pause } from '../../capabilities/delivery/deliveries.ts';
import type { Outbound, OutboundInit } from '../../http/outbound/outbound.ts';
import type { Clock } from '../../runtime/clock.ts';
import { jsonOf } from '../../runtime/json.ts';

/** An answer that is not accepted. Its message is for the log and has nothing that was received, but error codes. */
export class OldTenantFault extends Error {}

/**
 * Sends a request, and once more if the old tenant says that its rate limit has room in a moment.
 * @throws OldTenantFault, OutboundError
 */
export type SendToOldTenant = (url: string, init: OutboundInit) => Promise<Response>;

/** How long an answer may take, milliseconds: actions there may run for some seconds. */
const TIMEOUT = 8_000;
/** Bytes of an answer: tenants that are old enough keep up to 1 MB of metadata of a user. */
const MAX_BYTES = 4 * 1024 * 1024;
/** The most requests at a time: those of a burst fail, and do not wait for a tenant that is slow. */
const MAX_AT_ONCE = 100;
/** The longest wait for a rate limit there, milliseconds. */
const MAX_RETRY = 2_000;

export function sendToOldTenant({
  fetch,
  clock,
  pause,
  timeout = TIMEOUT,
}: {
  fetch: Outbound['fetch'];
  clock: Clock;
  pause: Pause;
  timeout?: number | undefined;
}): SendToOldTenant {
  let atOnce = 0;
  return async (url, init) => {
    if (atOnce >= MAX_AT_ONCE) throw new OldTenantFault('too many requests wait for it');
    atOnce += 1;
    try {
      const bounded = { timeout, maxBytes: MAX_BYTES, ...init, redirect: 'error' } as const;
      const response = await fetch(url, bounded);
      const wait = retryAfter(response, clock());
      if (wait === undefined) return response;
      await pause(wait, new AbortController().signal);
      return await fetch(url, bounded);
    } finally {
      atOnce -= 1;
    }
  };
}

/** Returns how long to wait before a limited request is sent again, milliseconds; undefined if it is not. */
function retryAfter({ status, headers }: Response, now: number): number | undefined {
  if (status !== 429) return undefined;
  const seconds = headers.get('retry-after') ?? '';
  const reset = headers.get('x-ratelimit-reset') ?? '';
  const wait = /^\d{1,6}$/.test(seconds)
    ? Number(seconds) * 1000
    : /^\d{9,11}$/.test(reset)
      ? Number(reset) * 1000 - now
      : undefined;
  return wait === undefined || wait > MAX_RETRY ? undefined : Math.max(0, wait);
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
