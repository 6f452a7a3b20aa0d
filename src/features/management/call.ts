// The declaration of one call of the Management API: its method, path, scopes, input and output.
import { z } from 'zod';
import type { MultipartRules } from '../../http/server/multipart.ts';
import { isNamedSecret } from '../../records/secrets.ts';
import type { AdministratorRole } from '../../records/users/administrators.ts';
import type { Events } from '../../tenant/events.ts';
import type { UserAct } from '../../users/login.ts';
import { managementEvents } from './management-declaration.ts';

type ManagementMethod = 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE';

export interface Caller {
  /** `<client_id>@clients` for a client, or the id of the user that the token was issued to. */
  subject: string;
  clientId: string;
  scopes: ReadonlySet<string>;
  /** Whether the token was issued to a user. Its scopes then reach that user alone. */
  isUser: boolean;
  /** Whether the token was issued to an application of somebody else. */
  isThirdParty?: boolean;
  /** Whether the login of a user's token is enough for an act. */
  mayDo?(act: UserAct): boolean;
  /** The administrator's name, for a call from the console or of a program. `subject` is the administrator's id. */
  administrator?: string | undefined;
  /** The role, for a call of a program that an administrator has approved. */
  role?: AdministratorRole;
}

export interface CallRequest<Q = unknown, B = unknown> {
  params: Readonly<Record<string, string>>;
  query: Q;
  body: B;
  caller: Caller;
  ip: string;
  userAgent: string;
  /**
   * Authenticates the caller again. A handler calls it before a write, after it has waited for another server: meanwhile the
   * token may be revoked, the client deleted or the user blocked.
   * @throws AuthError 401, 403
   */
  admitAgain(): Promise<void>;
}

/** The response of a call, and what the log records of it. */
export interface Answer {
  status: number;
  body?: unknown;
  /** The object before the call changed it. */
  before?: unknown;
  after?: unknown;
  /**
   * Whether the call changed nothing, so that nothing is logged. If unset, the call's writes to the store decide.
   */
  isUnchanged?: boolean;
  // docs/understand/decisions/management-api.md#a-call-that-sets-what-has-no-effect-here-is-accepted-with-a-warning
  /** What has no effect here of what the call set: each names it, and what follows. They are logged. */
  warnings?: readonly string[];
}

export interface CallRules {
  method: ManagementMethod;
  /** Path below `/api/v2`; `:name` matches one segment. */
  path: string;
  /** Any one of them allows the call. */
  scopes: readonly string[];
  /** If set, replaces {@link scopes}: the token needs all of them. */
  allScopes?: readonly string[];
  /**
   * Scopes that allow the call to a token issued to a user. Below `/users/:id`, `authorize` restricts the call to
   * that user; elsewhere the handler must do so, by the caller's subject.
   */
  currentUserScopes?: readonly string[];
  /** What such a call does, for its user's login to be judged by; required for all but GET. */
  currentUserAct?: UserAct;
  // docs/understand/decisions/console-account.md#roles-are-judged-at-the-call
  /**
   * Scopes that an administrator's role needs besides, all of them. Roles see some data masked and change nothing by
   * scopes to read; a call that hands the data out or starts something on such a scope says here who may do that.
   */
  roleScopes?: readonly string[];
  summary: string;
  query?: z.ZodObject;
  body?: z.ZodType;
  /** Whether the whole body is a secret, so that the log omits it. */
  isBodySecret?: boolean;
  /** For a multipart form with a file: the file's text becomes the body's member `field`, and is not logged. */
  file?: MultipartRules & { field: string };
  /** Media types, besides JSON and forms, whose bodies are passed to the schema as text. */
  textTypes?: readonly string[];
}

/** A call. @template D the dependencies of its handler. */
export interface Call<D> extends CallRules {
  handle(deps: D, request: CallRequest<never, never>): Promise<Answer>;
}

/**
 * Declares calls whose handlers take the dependencies `D`. The query and body of the handler have the output types of
 * the schemas.
 * @throws Error for a call that does something on a scope to read and does not say which roles may.
 */
export function callsWith<D>() {
  return <Q extends z.ZodObject = z.ZodObject, B extends z.ZodType = z.ZodUnknown>(
    declaration: Omit<Call<D>, 'query' | 'body' | 'handle'> & {
      query?: Q;
      body?: B;
      handle(deps: D, request: CallRequest<z.output<Q>, z.output<B>>): Promise<Answer>;
    },
  ): Call<D> => {
    const { method, path, scopes, allScopes = [], roleScopes } = declaration;
    const isRead = [...scopes, ...allScopes].some((scope) => scope.startsWith('read:'));
    if (method !== 'GET' && isRead && roleScopes === undefined)
      throw new Error(`${method} ${path} does something on a scope to read: it needs roleScopes`);
    return declaration as Call<D>;
  };
}

/** A body that is passed on as text. */
export const bodyText = z.string();

export const ok = (body: unknown, log: Omit<Answer, 'status' | 'body'> = {}): Answer => ({
  status: 200,
  body,
  ...log,
});
export const created = (body: unknown, warnings: readonly string[] = []): Answer => ({
  status: 201,
  body,
  after: body,
  warnings,
});
export const noContent = (log: Pick<Answer, 'before' | 'after'> = {}): Answer => ({ status: 204, ...log });
export const accepted = (body?: unknown): Answer => ({ status: 202, body });

// The log events of management calls: who changed what, with the values before and after, without secrets.

/** Whether a member of this name is masked, at any depth. */
const isSecret = (name: string): boolean =>
  isNamedSecret(name) ||
  /token|private|^(pem|key|code|totp|signing_keys|scripts|customscripts|configuration)$/i.test(name);

/** Limits of a logged value, which is meant for people to read: nesting levels, and characters of a text. */
const MAX_DEPTH = 8;
const MAX_TEXT = 500;

/** Returns a copy with secrets masked, and long or deep values cut off. */
export function redacted(value: unknown, depth = 0): unknown {
  if (typeof value === 'string') return value.length > MAX_TEXT ? `${value.slice(0, MAX_TEXT)}…` : value;
  if (typeof value !== 'object' || value === null) return value;
  if (depth >= MAX_DEPTH) return '…';
  if (Array.isArray(value)) return value.slice(0, 50).map((item) => redacted(item, depth + 1));
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [
      name,
      isSecret(name) && member !== null && typeof member !== 'boolean' && typeof member !== 'number'
        ? '*****'
        : redacted(member, depth + 1),
    ]),
  );
}

/** Records a call that changes something: `sapi` for success, `fapi` for failure. Calls by GET are not recorded. */
export function recordCall(
  events: Pick<Events, 'record'>,
  call: CallRules,
  request: CallRequest,
  outcome: { answer: Answer } | { status: number; message: string },
): void {
  if (call.method === 'GET') return;
  const { caller, ip } = request;
  const answer = 'answer' in outcome ? outcome.answer : undefined;
  events.record({
    type: answer === undefined ? managementEvents.fapi : managementEvents.sapi,
    description: 'message' in outcome ? outcome.message : call.summary,
    client_id: caller.clientId,
    ...(caller.isUser || caller.administrator !== undefined ? { user_id: caller.subject } : {}),
    ...(caller.administrator !== undefined && { user_name: caller.administrator }),
    ip,
    details: {
      request: {
        method: call.method.toLowerCase(),
        path: pathOf(call, request.params),
        body: call.isBodySecret === true ? '*****' : redacted(request.body),
        scopes: [...caller.scopes].slice(0, 200),
      },
      response: { status: 'status' in outcome ? outcome.status : answer?.status },
      ...(answer?.before === undefined ? {} : { before: redacted(answer.before) }),
      ...(answer?.warnings?.length ? { warnings: answer.warnings } : {}),
      ...(answer?.after === undefined ? {} : { after: redacted(answer.after) }),
    },
  });
}

function pathOf({ path }: CallRules, params: Readonly<Record<string, string>>): string {
  return `/api/v2${path.replaceAll(/:(\w+)/g, (_all, name: string) => encodeURIComponent(params[name] ?? ''))}`;
}
