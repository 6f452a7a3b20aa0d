// The log events of management calls: who changed what, with the values before and after, without secrets.
import { isNamedSecret } from '../../records/secrets.ts';
import type { Events } from '../../tenant/events.ts';
import type { Answer, CallRequest, CallRules } from './call.ts';

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
      ...(answer?.warnings?.length ? { warnings: answer.warnings } : {}),
      ...(answer?.after === undefined ? {} : { after: redacted(answer.after) }),
    },
  });
}

function pathOf({ path }: CallRules, params: Readonly<Record<string, string>>): string {
  return `/api/v2${path.replaceAll(/:(\w+)/g, (_all, name: string) => encodeURIComponent(params[name] ?? ''))}`;
}
