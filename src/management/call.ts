// What one call of the Management API is: method and path, the scopes that allow it, what it takes and gives.
import { z } from 'zod';
import type { MultipartRules } from '../http/multipart.ts';

type ManagementMethod = 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE';

/** Who calls. */
export interface Caller {
  /** `<client_id>@clients` of an application, or the id of the user whose token it is. */
  subject: string;
  clientId: string;
  scopes: ReadonlySet<string>;
  /** Whether the token is a user's own: its scopes reach no further than that user. */
  isUser: boolean;
  /** The name of an administrator, who is the subject. */
  administrator?: string | undefined;
}

/** A validated request. */
export interface CallRequest<Q = unknown, B = unknown> {
  params: Readonly<Record<string, string>>;
  query: Q;
  body: B;
  caller: Caller;
  ip: string;
  userAgent: string;
}

/** An answer, and what the log keeps of it. */
export interface Answer {
  status: number;
  body?: unknown;
  /** Of something that was changed, as it was. */
  before?: unknown;
  after?: unknown;
  /** Whether the call has found all as it was to be, so that the log says nothing; its writes tell where it does not. */
  isUnchanged?: boolean;
}

/** What a call says of itself. */
export interface CallRules {
  method: ManagementMethod;
  /** Below `/api/v2`; `:name` is one segment. */
  path: string;
  /** One of them is enough. */
  scopes: readonly string[];
  /** In place of {@link scopes}: all of them are needed. */
  allScopes?: readonly string[];
  /**
   * Scopes of a user's own token. Below `/users/:id` the call reaches that user alone, which is seen to; elsewhere its
   * handler sees to it, by the caller's subject.
   */
  ownScopes?: readonly string[];
  /** What the OpenAPI document says of it. */
  summary: string;
  query?: z.ZodObject;
  body?: z.ZodType;
  /** Whether the log keeps nothing of the body: it is a secret as a whole. */
  isBodySecret?: boolean;
  /** The largest body, bytes; that of every request otherwise. */
  largestBody?: number;
  /** For a form with a file (multipart): the file's text is the body's member `field`, and is not logged. */
  file?: MultipartRules & { field: string };
  /** Media types, beside JSON and forms, whose bodies the schema is given as the text that they are. */
  textTypes?: readonly string[];
}

/** A call. @template D what its handler is given: all of it, by name. */
export interface Call<D> extends CallRules {
  handle(deps: D, request: CallRequest<never, never>): Promise<Answer>;
}

/** Declares calls whose handlers are given `D`: what the schemas make of query and body is what they take. */
export function callsWith<D>() {
  return <Q extends z.ZodObject = z.ZodObject, B extends z.ZodType = z.ZodUnknown>(
    declaration: Omit<Call<D>, 'query' | 'body' | 'handle'> & {
      query?: Q;
      body?: B;
      handle(deps: D, request: CallRequest<z.output<Q>, z.output<B>>): Promise<Answer>;
    },
  ): Call<D> => declaration as Call<D>;
}

/** A body that is no JSON, as it came. */
export const bodyText = z.string();

export const ok = (body: unknown, log: Omit<Answer, 'status' | 'body'> = {}): Answer => ({
  status: 200,
  body,
  ...log,
});
export const created = (body: unknown): Answer => ({ status: 201, body, after: body });
export const noContent = (log: Pick<Answer, 'before' | 'after'> = {}): Answer => ({ status: 204, ...log });
export const accepted = (body?: unknown): Answer => ({ status: 202, body });
