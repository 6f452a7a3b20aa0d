// The requests of scripts. They go through the one HTTP client for addresses that others name.
import { z } from 'zod';
import type { Outbound } from '../../http/outbound/outbound.ts';
import { OutboundError, type OutboundFailure } from '../../http/outbound/outbound-error.ts';
import type { ScriptFailure, ScriptLine, ScriptUsage } from './limits.ts';
import type { AnswerMessage, RequestMessage } from './scripts-messages.ts';

/** A request as the sandbox describes it. A script may send anything in its place. */
const requestSchema = z.object({
  url: z.string(),
  method: z.string(),
  headers: z.array(z.tuple([z.string(), z.string()])),
  redirect: z.enum(['follow', 'manual', 'error']).default('follow'),
  timeout: z.number().positive().optional(),
});

export type ScriptRequest = z.infer<typeof requestSchema> & Pick<RequestMessage, 'body'>;

/** The error codes of Node.js, which scripts may read. */
const CODES: Record<OutboundFailure, string> = {
  refused: 'EACCES',
  unreachable: 'ECONNREFUSED',
  timeout: 'ETIMEDOUT',
  'too-large': 'ERR_BODY_TOO_LARGE',
  redirects: 'ERR_TOO_MANY_REDIRECTS',
  invalid: 'ECONNRESET',
};

/** @returns undefined where it is not a valid one. */
export function readRequest({ head, body }: RequestMessage): ScriptRequest | undefined {
  try {
    return { ...requestSchema.parse(JSON.parse(head)), body };
  } catch {
    return undefined;
  }
}

/** Reports whether a request's method is safe: GET or HEAD (RFC 9110 §9.2.1). */
export const isSafe = ({ method }: ScriptRequest): boolean => ['GET', 'HEAD'].includes(method.toUpperCase());

/**
 * @param signal aborts it, when the script has ended.
 * @param timeout how long it may take, milliseconds.
 * @returns the answer for the script, or the failure as one.
 */
export async function scriptRequest(
  outbound: Outbound,
  request: ScriptRequest | undefined,
  signal: AbortSignal,
  timeout: number,
): Promise<Pick<AnswerMessage, 'head' | 'content'>> {
  try {
    if (request === undefined) throw new TypeError('it is no request');
    const { body } = request;
    const response = await outbound.fetch(request.url, {
      method: request.method,
      headers: request.headers,
      redirect: request.redirect,
      ...(body.length > 0 && { body: body as string | Uint8Array<ArrayBuffer> }),
      timeout: Math.min(request.timeout ?? timeout, timeout),
      signal,
    });
    const { status, statusText, url, headers } = response;
    const head = { status, statusText, url, headers: [...headers] };
    return { head: JSON.stringify(head), content: contentOf(new Uint8Array(await response.arrayBuffer())) };
  } catch (thrown) {
    return { head: JSON.stringify({ error: errorOf(thrown) }), content: '' };
  }
}

/** Returns a body as text where it is valid UTF-8: most answers are, and converting bytes is slow in the sandbox. */
function contentOf(bytes: Uint8Array): string | Uint8Array {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return bytes;
  }
}

function errorOf(thrown: unknown): { code: string; message: string } {
  if (thrown instanceof OutboundError) return { code: CODES[thrown.failure], message: thrown.message };
  return { code: 'ERR_INVALID_ARG_VALUE', message: 'it is not a request that can be sent' };
}

// Counts by key.

interface Counts {
  of(key: string): number;
  isEmpty(): boolean;
  /** @param more what to add; negative to subtract. */
  add(key: string, more: number): void;
}

/** Makes an empty counter. */
export function countByKey(): Counts {
  const counts = new Map<string, number>();
  const of = (key: string) => counts.get(key) ?? 0;
  return {
    of,
    isEmpty: () => counts.size === 0,
    add: (key, more) => {
      const now = of(key) + more;
      if (now > 0) counts.set(key, now);
      else counts.delete(key);
    },
  };
}

// What scripts printed recently, in memory, for developers.

/** A run, as the log keeps it. */
export interface LoggedRun {
  /** When it began, epoch milliseconds. */
  at: number;
  /** What the script belongs to, such as the name of a connection. */
  of: string;
  entry: string;
  printed: ScriptLine[];
  used: ScriptUsage;
  failure: ScriptFailure | undefined;
}

export interface ScriptLog {
  add(run: LoggedRun): void;
  /** Newest first. */
  runs(): readonly LoggedRun[];
}

/** How many runs are kept, over all scripts. */
const MAX_RUNS = 100;

/** @param isEnabled whether it keeps anything. */
export function createScriptLog(isEnabled: boolean): ScriptLog {
  const runs: LoggedRun[] = [];
  return {
    runs: () => runs,
    add: (run) => {
      if (!isEnabled) return;
      runs.unshift(run);
      runs.length = Math.min(runs.length, MAX_RUNS);
    },
  };
}
