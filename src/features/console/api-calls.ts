// Calls of the Management API made by the console run the API's own code, with the scopes of the administrator's
// role, and are logged under the administrator's name.
import type { Context } from 'koa';
import type { Views } from '../../capabilities/pages/views.ts';
import { AuthError } from '../../http/errors.ts';
import { CONSOLE_CLIENT } from '../../records/users/administrators.ts';
import type { AnswerDependencies } from '../management/answer.ts';
import { allow } from '../management/answer.ts';
import type { Answer, Call, CallRequest } from '../management/call.ts';
import { MANAGEMENT_CALLS, type ManagementDependencies } from '../management/calls.ts';
import { ValidationError } from '../management/management-errors.ts';
import { roleRefusal } from '../management/roles/administrator-roles.ts';
import { executeForRole } from '../management/roles/role-call.ts';
import { type ConsoleSession, type ConsoleSessionDependencies, consoleSession } from './console-session.ts';
import { wordingIn } from './schema-words.ts';

export interface ApiCallDependencies extends ConsoleSessionDependencies {
  management: ManagementDependencies & AnswerDependencies;
  views: Views;
}

interface CallInput {
  params?: Readonly<Record<string, string>>;
  /** Strings, as in a URL. */
  query?: Readonly<Record<string, string | undefined>>;
  body?: unknown;
}

/**
 * Runs a call of the Management API as the logged-in administrator.
 * @param name method and path as declared, for example `GET /clients/:id`.
 * @throws AuthError 403 when the role does not allow it; 4xx as the call answers.
 * @throws Error when there is no such call.
 */
export async function callApi(
  { management, views, ...sessions }: ApiCallDependencies,
  ctx: Context,
  session: ConsoleSession,
  name: string,
  { params = {}, query = {}, body }: CallInput = {},
): Promise<Answer> {
  const call = callOf(name);
  const request: CallRequest = {
    params,
    query: {},
    body: withoutFile(call, body),
    caller: {
      subject: session.administrator.userId,
      clientId: CONSOLE_CLIENT,
      scopes: session.scopes,
      isUser: false,
      administrator: session.administrator.email,
    },
    ip: ctx.ip,
    userAgent: ctx.get('User-Agent'),
    admitAgain: async () => {
      const now = await consoleSession(sessions, ctx, session.section);
      if (now?.administrator.role !== session.administrator.role) throw roleRefusal();
    },
  };
  allow(management, call, request);
  return withWording(
    executeForRole(management, session.administrator.role, call, request, {
      query: withoutUndefined(query),
      body,
    }),
    () => wordingIn(views.locale(ctx).tag),
  );
}

/** Words the refusal of a schema in the reader's language. */
async function withWording<T>(answer: Promise<T>, wording: () => ReturnType<typeof wordingIn>): Promise<T> {
  try {
    return await answer;
  } catch (thrown) {
    throw thrown instanceof ValidationError ? thrown.withWording(wording()) : thrown;
  }
}

/** Runs a call as {@link callApi} does. @returns undefined when it answers 404. */
export async function callApiIfFound(...args: Parameters<typeof callApi>): Promise<Answer | undefined> {
  try {
    return await callApi(...args);
  } catch (thrown) {
    if (thrown instanceof AuthError && thrown.status === 404) return undefined;
    throw thrown;
  }
}

/** @throws Error when there is none. */
export function callOf(name: string): Call<ManagementDependencies> {
  const found = MANAGEMENT_CALLS.find(({ method, path }) => `${method} ${path}` === name);
  if (found === undefined) throw new Error(`there is no call ${name}`);
  return found;
}

/** Returns the body for the log, without the content of an uploaded file. */
function withoutFile({ file }: Call<ManagementDependencies>, body: unknown): unknown {
  if (file === undefined || typeof body !== 'object' || body === null) return body;
  return Object.fromEntries(Object.entries(body).filter(([name]) => name !== file.field));
}

function withoutUndefined(query: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(query).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
}
