// Runs a call of the Management API for an administrator: within what the role may do beyond its scopes, and without what it
// may not see. The console's pages and the tokens of administrators both come here.
// docs/understand/decisions/console-account.md#roles-are-judged-at-the-call
import type { AuthError } from '../../../http/errors.ts';
import type { AdministratorRole } from '../../../records/users/administrators.ts';
import { type AnswerDependencies, execute, recordFailure } from '../answer.ts';
import type { Answer, Call, CallRequest } from '../call.ts';
import { maySeeSecrets, roleRefusal } from './administrator-roles.ts';
import { searchesMasked, withoutSecrets } from './role-masks.ts';
import { mayMakeCall, mayReadDirectly, visibleTo } from './support-role.ts';

/**
 * Runs a call as `execute` does. The caller must have passed `allow`.
 * @throws AuthError 403 when the role does not allow it, recorded; otherwise as `execute`.
 */
export async function executeForRole<D>(
  deps: D & AnswerDependencies,
  role: AdministratorRole,
  call: Call<D>,
  request: CallRequest,
  input: { query: Readonly<Record<string, unknown>>; body: unknown },
): Promise<Answer> {
  const texts = textsIn(input.query);
  const isHidden = !maySeeSecrets(role) && searchesMasked(texts);
  if (isHidden || !mayMakeCall(role, nameOf(call), { texts, body: input.body }))
    throw refuse(deps, call, request);
  const rawAnswer = await execute(deps, call, request, input);
  // Converted as JSON would be: nothing must be hidden in what `toJSON` makes of a value.
  const answer =
    rawAnswer.body === undefined
      ? rawAnswer
      : { ...rawAnswer, body: JSON.parse(JSON.stringify(rawAnswer.body)) };
  return maySeeSecrets(role) ? answer : { ...answer, body: withoutSecrets(visibleTo(role, answer.body)) };
}

/** As {@link executeForRole}, for a program, which is given the answer as it is. */
export async function executeForProgram<D>(...given: Parameters<typeof executeForRole<D>>): Promise<Answer> {
  const [deps, role, call, request] = given;
  if (!mayReadDirectly(role, nameOf(call))) throw refuse(deps, call, request);
  return executeForRole(...given);
}

const nameOf = ({ method, path }: Pick<Call<never>, 'method' | 'path'>): string => `${method} ${path}`;

/** Returns the refusal, which it records. */
function refuse<D>({ events }: AnswerDependencies, call: Call<D>, request: CallRequest): AuthError {
  const refusal = roleRefusal();
  recordFailure(events, call, request, refusal);
  return refusal;
}

/** Returns all texts of a query, of repeated parameters each. */
function textsIn(query: unknown): string[] {
  if (typeof query === 'string') return [query];
  return typeof query === 'object' && query !== null ? Object.values(query).flatMap(textsIn) : [];
}
