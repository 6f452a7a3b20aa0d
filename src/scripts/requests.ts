// The requests of scripts, through the one client for addresses that others name.
import { z } from 'zod';
import type { Outbound } from '../http/outbound.ts';
import { OutboundError, type OutboundFailure } from '../http/outbound-error.ts';
import type { AnswerMessage, RequestMessage } from './messages.ts';

/** What a script asks for; the sandbox may say anything. */
const requestSchema = z.object({
  url: z.string(),
  method: z.string(),
  headers: z.array(z.tuple([z.string(), z.string()])),
  redirect: z.enum(['follow', 'manual', 'error']).default('follow'),
  timeout: z.number().positive().optional(),
});

export type ScriptRequest = z.infer<typeof requestSchema> & Pick<RequestMessage, 'body'>;

/** Node's codes, which scripts may look at. */
const CODES: Record<OutboundFailure, string> = {
  refused: 'EACCES',
  unreachable: 'ECONNREFUSED',
  timeout: 'ETIMEDOUT',
  'too-large': 'ERR_BODY_TOO_LARGE',
  redirects: 'ERR_TOO_MANY_REDIRECTS',
  invalid: 'ECONNRESET',
};

/** What a script asks for, of what it says. @returns undefined for what is no request. */
export function readRequest({ head, body }: RequestMessage): ScriptRequest | undefined {
  try {
    return { ...requestSchema.parse(JSON.parse(head)), body };
  } catch {
    return undefined;
  }
}

/** Whether a request asks for something and changes nothing (RFC 9110 §9.2.1). */
export const isReading = ({ method }: ScriptRequest): boolean =>
  ['GET', 'HEAD'].includes(method.toUpperCase());

/**
 * Makes a request of a script.
 * @param signal aborts it, when the script has ended.
 * @param timeout what it may take at most, milliseconds.
 * @returns what the script is told; a failure, too.
 */
export async function scriptRequest(
  outbound: Outbound,
  asked: ScriptRequest | undefined,
  signal: AbortSignal,
  timeout: number,
): Promise<Pick<AnswerMessage, 'head' | 'content'>> {
  try {
    if (asked === undefined) throw new TypeError('it is no request');
    const { body } = asked;
    const response = await outbound.fetch(asked.url, {
      method: asked.method,
      headers: asked.headers,
      redirect: asked.redirect,
      ...(body.length > 0 && { body: body as string | Uint8Array<ArrayBuffer> }),
      timeout: Math.min(asked.timeout ?? timeout, timeout),
      signal,
    });
    const { status, statusText, url, headers } = response;
    const told = { status, statusText, url, headers: [...headers] };
    return { head: JSON.stringify(told), content: contentOf(new Uint8Array(await response.arrayBuffer())) };
  } catch (thrown) {
    return { head: JSON.stringify({ error: errorOf(thrown) }), content: '' };
  }
}

/** Text where it is some: most answers are, and the sandbox is slow at converting. */
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
