// The console asks what the Management API is asked, by the very same code: the scopes are those of the administrator's role,
// and the log says who it was.
import type { Context } from 'koa';
import { AuthError } from '../http/errors.ts';
import type { AnswerDependencies } from '../management/answer.ts';
import { allow, carryOut, recordFailure } from '../management/answer.ts';
import type { Answer, Call, CallRequest } from '../management/call.ts';
import { MANAGEMENT_CALLS, type ManagementDependencies } from '../management/calls.ts';
import { RefusedBySchema } from '../management/errors.ts';
import type { Views } from '../pages/views.ts';
import { CONSOLE_CLIENT } from '../records/administrators.ts';
import { withoutSecrets } from './masked.ts';
import { roleRefusal, seesSecrets } from './roles.ts';
import { wordingIn } from './schema-words.ts';
import type { AtConsole } from './session.ts';
import { asShownTo, mayAsk } from './support.ts';

export interface AskDependencies {
  /** What the calls of the Management API are given. */
  management: ManagementDependencies & AnswerDependencies;
  views: Views;
}

/** What a call is asked with. */
interface Asked {
  params?: Readonly<Record<string, string>>;
  /** Texts, as they are in an address. */
  query?: Readonly<Record<string, string | undefined>>;
  body?: unknown;
}

/**
 * Asks a call of the Management API as the administrator who is there.
 * @param name method and path as they are declared, such as `GET /clients/:id`.
 * @throws AuthError 403 where the role does not allow it; 4xx as the call answers.
 * @throws Error when there is no such call.
 */
export async function ask(
  { management, views }: AskDependencies,
  ctx: Context,
  here: AtConsole,
  name: string,
  { params = {}, query = {}, body }: Asked = {},
): Promise<Answer> {
  const call = callOf(name);
  const about: CallRequest = {
    params,
    query: {},
    body: withoutFile(call, body),
    caller: {
      subject: here.administrator.userId,
      clientId: CONSOLE_CLIENT,
      scopes: here.scopes,
      isUser: false,
      administrator: here.administrator.email,
    },
    ip: ctx.ip,
    userAgent: ctx.get('User-Agent'),
  };
  allow(management, call, about);
  const { role } = here.administrator;
  if (!mayAsk(role, name, { query, body })) {
    const refusal = roleRefusal();
    recordFailure(management.events, call, about, refusal);
    throw refusal;
  }
  const given = await inWords(carryOut(management, call, about, { query: defined(query), body }), () =>
    wordingIn(views.locale(ctx).tag),
  );
  // As it would have gone out, in JSON: a page shows nothing that the API does not.
  const answer =
    given.body === undefined ? given : { ...given, body: JSON.parse(JSON.stringify(given.body)) };
  return seesSecrets(role) ? answer : { ...answer, body: withoutSecrets(asShownTo(role, answer.body)) };
}

/** What a schema has refused is told in the reader's words. */
async function inWords<T>(answer: Promise<T>, wording: () => ReturnType<typeof wordingIn>): Promise<T> {
  try {
    return await answer;
  } catch (thrown) {
    throw thrown instanceof RefusedBySchema ? thrown.worded(wording()) : thrown;
  }
}

/** Asks as {@link ask} does. @returns undefined where there is nothing of the kind: 404. */
export async function askIfThere(...asked: Parameters<typeof ask>): Promise<Answer | undefined> {
  try {
    return await ask(...asked);
  } catch (thrown) {
    if (thrown instanceof AuthError && thrown.status === 404) return undefined;
    throw thrown;
  }
}

/** The declaration of a call. @throws Error when there is none. */
export function callOf(name: string): Call<ManagementDependencies> {
  const found = MANAGEMENT_CALLS.find(({ method, path }) => `${method} ${path}` === name);
  if (found === undefined) throw new Error(`there is no call ${name}`);
  return found;
}

/** As the log is to have it: the text of a file is not in it. */
function withoutFile({ file }: Call<ManagementDependencies>, body: unknown): unknown {
  if (file === undefined || typeof body !== 'object' || body === null) return body;
  return Object.fromEntries(Object.entries(body).filter(([name]) => name !== file.field));
}

function defined(query: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(query).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
}
