// What an authorization request says beyond the standard: taken out of it before the engine sees it, and carried through
// the engine in one parameter that nobody else can write.
import { z } from 'zod';
import { jsonOf } from '../runtime/json.ts';
import type { Login } from '../users/login.ts';

/** Internal parameter that carries {@link RequestExtensions} through the engine; a client's own value is dropped. */
export const EXTENSIONS_PARAMETER = 'gatehouse_notes';

/** Stands for a missing nonce where the engine requires one. */
export const PLACEHOLDER_NONCE = 'none-was-sent';

const visitorSchema = z.object({
  /** As access tokens of the anonymous session name them. */
  subject: z.string(),
  /** What their application noted of them. */
  metadata: z.record(z.string(), z.unknown()).optional(),
});

/** A visitor who had not logged in before the request. */
export type Visitor = z.infer<typeof visitorSchema>;

/** What `normalizeRequest` takes out of a request, to be restored later. */
const extensionsSchema = z.object({
  /** `offline_access` was asked for. */
  offline: z.boolean(),
  /** The nonce is {@link PLACEHOLDER_NONCE}. */
  withoutNonce: z.boolean(),
  /** Unknown parameters, for the upstream provider. */
  upstream: z.record(z.string(), z.string()),
  /** Ticket of a login before this request (cross-origin, or by a link). */
  loginTicket: z.string().optional(),
  /** A session transfer token, as it came. */
  transferToken: z.string().optional(),
  /** The login that it stands for; ours alone to write. */
  handed: z.custom<Login>((one) => typeof one === 'object').optional(),
  /** Who the user was before they logged in. */
  visitor: visitorSchema.optional(),
  /** Why the named API is invalid. */
  invalidTarget: z.string().optional(),
  /** Hash of the request's secret in its browser. */
  browser: z.string().optional(),
  /** Why the request is refused before the engine looks at it. */
  refused: z.object({ error: z.string(), description: z.string() }).optional(),
  /** The parameters were pushed or signed: no page changes them. */
  isFixed: z.boolean().optional(),
  /** What a pushed request is known by. */
  pushed: z.string().optional(),
});

export type RequestExtensions = z.infer<typeof extensionsSchema>;

/** The extensions of a normalized request; empty for any other. */
export function readExtensions(params: Readonly<Record<string, unknown>>): RequestExtensions {
  const extensions = params[EXTENSIONS_PARAMETER];
  const read = extensionsSchema.safeParse(typeof extensions === 'string' ? jsonOf(extensions) : undefined);
  return read.success ? read.data : { offline: false, withoutNonce: false, upstream: {} };
}

/** The parameters of a normalized request that are known to nobody here, and are for an upstream provider. */
export function upstreamAdditional(params: Readonly<Record<string, unknown>>): Record<string, string> {
  return readExtensions(params).upstream;
}
