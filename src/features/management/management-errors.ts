// The errors of the Management API: {statusCode, error, message, errorCode}.
// docs/understand/decisions/management-api.md#ids-of-connections-may-have-any-form-and-an-unknown-path-is-a-plain-404
import { STATUS_CODES } from 'node:http';
import type { Context } from 'koa';
import type { z } from 'zod';
import { AuthError, type ErrorShape, isBusy } from '../../http/errors.ts';

/** @param errorCode the code for programs, if the hosted service has one; omitted from the body if empty. */
export function apiError(status: number, message: string, errorCode = ''): AuthError {
  return new AuthError(status, errorCode, message);
}

/** Writes the body of every error. Management clients decode no other form. */
export const managementShape: ErrorShape = (ctx: Context, error: AuthError): void => {
  const { status, error_description: message } = error;
  ctx.status = status;
  ctx.set('Cache-Control', 'no-store');
  if (isBusy(error)) ctx.set('Retry-After', '1');
  // A failed proof of possession has set its own header.
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

/** Error codes of the router and the body reader, as this API names them; '' omits the code. */
const COMMON_CODES: Readonly<Record<string, string>> = {
  invalid_request: 'invalid_body',
  server_error: '',
  not_found: '',
  access_denied: '',
};

/** Returns the error of a search that took too long; a narrower search may succeed. */
export function searchTimeout(): AuthError {
  return apiError(
    503,
    'The query exceeded the timeout. Please try refining your search criteria and try again.',
    'search_unavailable',
  );
}

/** The parts of a request, and the error code for each. */
const PARTS = {
  body: { name: 'Payload', code: 'invalid_body' },
  query: { name: 'Query', code: 'invalid_query_string' },
  path: { name: 'Path', code: 'invalid_uri' },
} as const;

/**
 * The error of a value that a schema refused. Its message has the first issue and the path of the refused member.
 */
export class ValidationError extends AuthError {
  readonly #part: keyof typeof PARTS;
  /** Private, because the issue holds the refused input, which an ordinary property would bring into logs. */
  readonly #issue: z.core.$ZodIssue | undefined;

  constructor(part: keyof typeof PARTS, issue: z.core.$ZodIssue | undefined, wording = issueMessage) {
    const { name, code } = PARTS[part];
    const fault = issue === undefined ? 'Invalid value' : wording(issue);
    const place = issue === undefined || issue.path.length === 0 ? '' : ` on property ${pathOf(issue.path)}`;
    super(400, code, `${name} validation error: '${fault}'${place}.`);
    this.#part = part;
    this.#issue = issue;
  }

  withWording(wording: (issue: z.core.$ZodIssue) => string): ValidationError {
    return new ValidationError(this.#part, this.#issue, wording);
  }
}

/** Returns the error of a value that a schema refused. */
export const validationError = (part: keyof typeof PARTS, error: z.ZodError): AuthError =>
  new ValidationError(part, error.issues[0]);

/** @param issue of a parse with `reportInput`. */
export function issueMessage(issue: z.core.$ZodIssue): string {
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

/** Returns the path of a member, such as `groups[0].email`. */
function pathOf(path: readonly PropertyKey[]): string {
  return path
    .map((part, index) =>
      typeof part === 'number' ? `[${part}]` : `${index === 0 ? '' : '.'}${String(part)}`,
    )
    .join('');
}

/** Parses a value with a schema and returns the result. @throws AuthError 400 with the hosted service's message */
export function validated<S extends z.ZodType>(
  part: keyof typeof PARTS,
  schema: S,
  value: unknown,
): z.output<S> {
  // `reportInput` adds the input to each issue, which tells a missing member from one of another type.
  const result = schema.safeParse(value, { reportInput: true });
  if (!result.success) throw validationError(part, result.error);
  return result.data;
}
