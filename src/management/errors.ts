// How the Management API words its failures: {statusCode, error, message, errorCode}.
import { STATUS_CODES } from 'node:http';
import type { Context } from 'koa';
import type { z } from 'zod';
import { AuthError, type ErrorShape, isBusy } from '../http/errors.ts';

/**
 * A failure of a management call.
 * @param errorCode the machine-readable word, where the hosted service has one.
 */
export function apiError(status: number, message: string, errorCode = ''): AuthError {
  return new AuthError(status, errorCode, message);
}

/** The body of every failure; management clients decode nothing else. */
export const managementShape: ErrorShape = (ctx: Context, error: AuthError): void => {
  const { status, error_description: message } = error;
  ctx.status = status;
  ctx.set('Cache-Control', 'no-store');
  if (isBusy(error)) ctx.set('Retry-After', '1');
  // Where a proof of possession failed, the header says so already.
  if (status === 401 && !ctx.res.hasHeader('WWW-Authenticate'))
    ctx.set('WWW-Authenticate', 'Bearer error="invalid_token"');
  const errorCode = COMMON_CODES[error.error] ?? error.error;
  ctx.body = {
    statusCode: status,
    error: STATUS_CODES[status] ?? 'Error',
    message: status === 429 ? 'Global limit has been reached' : message,
    ...(errorCode === '' ? {} : { errorCode }),
    ...error.extra,
  };
};

/** What the router and the body reader call a failure, in the words of this API. */
const COMMON_CODES: Readonly<Record<string, string>> = {
  invalid_request: 'invalid_body',
  server_error: '',
  not_found: '',
  access_denied: '',
};

/** A search that took too long: whoever asks for less finds it. */
export function searchTimeout(): AuthError {
  return apiError(
    503,
    'The query exceeded the timeout. Please try refining your search criteria and try again.',
    'search_unavailable',
  );
}

/** Which part of a request was refused, and the code that goes with it. */
const PARTS = {
  body: { name: 'Payload', code: 'invalid_body' },
  query: { name: 'Query', code: 'invalid_query_string' },
  path: { name: 'Path', code: 'invalid_uri' },
} as const;

/** A value that a schema refused; the first fault is told, with the member that it is at. */
export class RefusedBySchema extends AuthError {
  readonly #part: keyof typeof PARTS;
  /** In no member that a log would write: it has what was sent. */
  readonly #issue: z.core.$ZodIssue | undefined;

  constructor(part: keyof typeof PARTS, issue: z.core.$ZodIssue | undefined, wording = faultWording) {
    const { name, code } = PARTS[part];
    const fault = issue === undefined ? 'Invalid value' : wording(issue);
    const place = issue === undefined || issue.path.length === 0 ? '' : ` on property ${pathOf(issue.path)}`;
    super(400, code, `${name} validation error: '${fault}'${place}.`);
    this.#part = part;
    this.#issue = issue;
  }

  /** The same in other words. */
  worded(wording: (issue: z.core.$ZodIssue) => string): RefusedBySchema {
    return new RefusedBySchema(this.#part, this.#issue, wording);
  }
}

/** The failure of a value that a schema refused. */
export const validationError = (part: keyof typeof PARTS, error: z.ZodError): AuthError =>
  new RefusedBySchema(part, error.issues[0]);

/** What is wrong with a value, in the words of this API. @param issue of a schema that was given `reportInput`. */
export function faultWording(issue: z.core.$ZodIssue): string {
  if (issue.code === 'unrecognized_keys')
    return `Additional properties not allowed: ${issue.keys.join(', ')}`;
  if (issue.code !== 'invalid_type') return issue.message;
  if (issue.input === undefined) return `Missing required property: ${String(issue.path.at(-1) ?? '')}`;
  return `Expected type ${issue.expected} but found type ${typeOf(issue.input)}`;
}

function typeOf(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'array' : typeof value;
}

/** `groups[0].email`. */
function pathOf(path: readonly PropertyKey[]): string {
  return path
    .map((part, index) =>
      typeof part === 'number' ? `[${part}]` : `${index === 0 ? '' : '.'}${String(part)}`,
    )
    .join('');
}

/**
 * Reads a value by a schema.
 * @throws AuthError 400 with the vendor's wording.
 */
export function validated<S extends z.ZodType>(
  part: keyof typeof PARTS,
  schema: S,
  value: unknown,
): z.output<S> {
  // The value is told again beside each fault, so that a missing member is told from one of another type.
  const result = schema.safeParse(value, { reportInput: true });
  if (!result.success) throw validationError(part, result.error);
  return result.data;
}
