// What the log says of management calls: who changed what, before and after, without secrets.
import { isNamedSecret } from '../records/secrets.ts';
import type { Events } from '../tenant/events.ts';
import type { Answer, CallRequest, CallRules } from './call.ts';

/** Members that are never logged, wherever they are. */
const isSecret = (name: string): boolean =>
  isNamedSecret(name) ||
  /token|private|^(pem|key|code|totp|signing_keys|scripts|customscripts|configuration)$/i.test(name);

/** How deep and how long a logged value may be: it is there to be read by people. */
const DEEPEST = 8;
const LONGEST_TEXT = 500;

/** A copy without what must not be read in a log. */
export function redacted(value: unknown, depth = 0): unknown {
  if (typeof value === 'string')
    return value.length > LONGEST_TEXT ? `${value.slice(0, LONGEST_TEXT)}…` : value;
  if (typeof value !== 'object' || value === null) return value;
  if (depth >= DEEPEST) return '…';
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

/** Records a change: `sapi` where it was made, `fapi` where it was refused. Reads are not recorded. */
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
    type: answer === undefined ? 'fapi' : 'sapi',
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
      ...(answer?.after === undefined ? {} : { after: redacted(answer.after) }),
    },
  });
}

function pathOf({ path }: CallRules, params: Readonly<Record<string, string>>): string {
  return `/api/v2${path.replaceAll(/:(\w+)/g, (_all, name: string) => encodeURIComponent(params[name] ?? ''))}`;
}
