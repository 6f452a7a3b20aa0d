// Members of an authorization request beyond the standard. They are taken out before the engine sees the request,
// and passed through the engine in one parameter that no client can set.
import { z } from 'zod';
import { jsonOf } from '../../runtime/json.ts';
import type { Login } from '../../users/login.ts';

/** Internal parameter that carries {@link RequestExtensions} through the engine; a client's own value is dropped. */
export const EXTENSIONS_PARAMETER = 'gatehouse_notes';

/** Stands for a missing nonce where the engine requires one. */
export const PLACEHOLDER_NONCE = 'none-was-sent';

const visitorSchema = z.object({
  /** The `sub` of the anonymous session's access tokens. */
  subject: z.string(),
  /** The metadata that the application has stored in the session. */
  metadata: z.record(z.string(), z.unknown()).optional(),
});

/** The user of an anonymous session. */
export type Visitor = z.infer<typeof visitorSchema>;

/** What the application's own request contained, which stays true when a login page restarts the request. */
const sentSchema = z.object({
  /** `offline_access` was asked for. */
  offline: z.boolean(),
  /** The nonce is {@link PLACEHOLDER_NONCE}. */
  withoutNonce: z.boolean(),
  /** Unknown parameters, for the upstream provider. */
  upstream: z.record(z.string(), z.string()),
  /** The user's anonymous session before this login. */
  visitor: visitorSchema.optional(),
  /** Why the named API is invalid. */
  invalidTarget: z.string().optional(),
  /** Whether the parameters were pushed or signed, and must not be changed by a page. */
  isFixed: z.boolean().optional(),
  /** The key of a pushed request in the store. */
  pushed: z.string().optional(),
});

/** What `normalizeRequest` takes out of a request, to be restored later. */
const extensionsSchema = sentSchema.extend({
  /** Ticket of a login before this request (cross-origin, or by a link). */
  loginTicket: z.string().optional(),
  /** A session transfer token, as received. */
  transferToken: z.string().optional(),
  /** The login that the session transfer token stands for. Set only by this server. */
  handed: z.custom<Login>((one) => typeof one === 'object').optional(),
  /** Hash of the request's secret in its browser. */
  browser: z.string().optional(),
  /** Why the request is refused before the engine looks at it. */
  refused: z.object({ error: z.string(), description: z.string() }).optional(),
});

export type RequestExtensions = z.infer<typeof extensionsSchema>;

/** Returns the extensions of a normalized request; empty for any other. */
export function readExtensions(params: Readonly<Record<string, unknown>>): RequestExtensions {
  const extensions = params[EXTENSIONS_PARAMETER];
  const read = extensionsSchema.safeParse(typeof extensions === 'string' ? jsonOf(extensions) : undefined);
  return read.success ? read.data : { offline: false, withoutNonce: false, upstream: {} };
}

/** Returns only what the application's own request contained: no login that was handed over, no secret of a browser. */
export function sentExtensions(extensions: RequestExtensions): z.infer<typeof sentSchema> {
  return sentSchema.parse(extensions);
}

/** Returns the unknown parameters of a normalized request, which are for an upstream provider. */
export function upstreamParameters(params: Readonly<Record<string, unknown>>): Record<string, string> {
  return readExtensions(params).upstream;
}
