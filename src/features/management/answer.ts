// Authorizes, validates, carries out and records a call, whether it came with a token at `/api/v2` or from an
// administrator at the console. Both callers use these functions, so neither can forget a step.

import { isDeepStrictEqual } from 'node:util';
import type { Context } from 'koa';
import type { Logger } from 'pino';
import { z } from 'zod';
import type { SecondFactor } from '../../engine/admission/second-factor.ts';
import { presentedToken } from '../../engine/binding/proof-of-possession.ts';
import {
  type AdministratorToken,
  loginOfToken,
  type ManagementTokenReader,
} from '../../engine/token/api-tokens.ts';
import { AuthError } from '../../http/errors.ts';
import type { AdministratorRole } from '../../records/users/administrators.ts';
import { type Clock, epochSeconds } from '../../runtime/clock.ts';
import { raiseStanding } from '../../runtime/requester.ts';
import { type Collection, collectionByName, QueryTimeout, type Store } from '../../store/contract.ts';
import type { Config } from '../../tenant/config.ts';
import type { Events } from '../../tenant/events.ts';
import { FIRST_PARTY_ACTS, lackFor } from '../../users/login.ts';
import { type Answer, type Call, type Caller, type CallRequest, type CallRules, recordCall } from './call.ts';
import { apiError, searchTimeout, validated } from './management-errors.ts';

// Authenticates the caller of the Management API and checks the scopes of the token.

/** The administrator who has approved a program, and what it may do now. */
export interface ProgramAdministrator {
  role: AdministratorRole;
  email: string;
  scopes: readonly string[];
}

export interface CallerDependencies {
  /** The identifier of the Management API. */
  audience: string;
  readToken: ManagementTokenReader;
  /** Judges the administrator, the application and what it was granted, as they are now. */
  administratorOf(token: AdministratorToken): Promise<ProgramAdministrator | undefined>;
  config: Pick<Config, 'client'>;
  /** @see SecondFactor.isSufficient */
  isSufficient: SecondFactor['isSufficient'];
  wallClock: Clock;
}

// docs/understand/decisions/management-api.md#a-users-token-for-the-management-api-is-judged-like-one-for-the-my-account-api
/**
 * Reads the access token of a request (RFC 6750 §2.1; RFC 9449 §7.1).
 * @throws AuthError 401 if there is no token, the token is invalid or has ended, or the proof of possession fails; 401
 *   `insufficient_user_authentication` if a user's token does not prove their second factor; 400 if the Authorization
 *   header has another scheme.
 */
export async function callerOf(deps: CallerDependencies, ctx: Context): Promise<Caller> {
  const header = ctx.get('Authorization');
  if (header === '') throw apiError(401, 'Missing authentication');
  const token = presentedToken(ctx);
  if (token === undefined) throw apiError(400, 'Bad HTTP authentication header format', 'Bearer');
  const result = await deps.readToken(ctx, token.value, deps.audience);
  if ('fault' in result) throw refusal(result.fault);
  if ('ofAdministrator' in result) return callerOfAdministrator(deps, result.ofAdministrator);
  const { subject, clientId, scopes, ofUser } = result;
  // A token ends with the client that it was issued to.
  const client = await deps.config.client(clientId);
  if (client === undefined) throw refusal('invalid');
  const caller = { subject, clientId, scopes: new Set(scopes), isUser: ofUser !== undefined };
  if (ofUser === undefined) {
    raiseStanding('trusted');
    return caller;
  }
  const login = loginOfToken(ofUser);
  if (!(await deps.isSufficient(login, ofUser.user))) throw insufficientLogin();
  raiseStanding('known');
  return {
    ...caller,
    isThirdParty: client.is_first_party === false,
    mayDo: (act) => lackFor(act, login, epochSeconds(deps.wallClock)) === undefined,
  };
}

// docs/understand/decisions/management-api.md#an-administrator-approves-a-programs-user-code-at-the-console
async function callerOfAdministrator(
  { administratorOf }: CallerDependencies,
  token: AdministratorToken,
): Promise<Caller> {
  const found = await administratorOf(token);
  if (found === undefined) throw refusal('invalid');
  raiseStanding('trusted');
  const { userId: subject, clientId } = token;
  const { role, email: administrator, scopes } = found;
  return { subject, clientId, scopes: new Set(scopes), isUser: false, administrator, role };
}

/** The error for a login that is too old or lacks the second factor (RFC 9470 §3), as for the My Account API. */
function insufficientLogin(): AuthError {
  const message = 'A recent login by the user, with their second factor, is required.';
  return apiError(401, message, 'insufficient_user_authentication');
}

/**
 * Checks that a user's token is enough for what a call does: its application, and its login.
 * @throws AuthError 403; 401 `insufficient_user_authentication`
 */
function requireLogin({ currentUserAct, method }: CallRules, { isThirdParty, mayDo }: Caller): void {
  if (currentUserAct === undefined && method === 'GET') return;
  if (isThirdParty === true && currentUserAct !== undefined && FIRST_PARTY_ACTS.has(currentUserAct))
    throw apiError(403, 'Third-party applications cannot do this.', 'operation_not_supported');
  if (currentUserAct === undefined || mayDo?.(currentUserAct) !== true) throw insufficientLogin();
}

function refusal(fault: 'expired' | 'signature' | 'invalid'): AuthError {
  const messages = {
    expired: 'Expired token received for JSON Web Token validation',
    signature: 'Invalid signature received for JSON Web Token validation',
    invalid: 'Invalid token',
  };
  return apiError(401, messages[fault]);
}

/**
 * Checks that the caller may make a call.
 * @throws AuthError 403 `insufficient_scope`, with the message that deploy tools parse; 403 if a user's token is used
 *   at another user's path; 401 `insufficient_user_authentication` if its login is not enough for the call.
 */
export function authorize(call: CallRules, caller: Caller, params: Readonly<Record<string, string>>): void {
  const { scopes, allScopes, currentUserScopes = [] } = call;
  const has = (scope: string) => caller.scopes.has(scope);
  if (caller.isUser) {
    // Whatever other scopes it has, a user's token reaches that user alone.
    if (!currentUserScopes.some(has))
      throw insufficient(currentUserScopes.length > 0 ? currentUserScopes : scopes);
    // The owner is the first parameter: in `/users/:id/identities/:provider/:user_id`, the last one is the linked
    // identity's.
    const owner = /^\/users\/:(\w+)/.exec(call.path)?.[1];
    if (owner !== undefined && params[owner] !== caller.subject) {
      throw apiError(403, 'User to be acted on does not match subject in bearer token.');
    }
    requireLogin(call, caller);
    return;
  }
  const isAllowed = caller.administrator === undefined ? hasScopes(call, has) : allowsRole(call, has);
  if (!isAllowed) throw insufficient([...(allScopes ?? scopes), ...currentUserScopes]);
}

function hasScopes({ scopes, allScopes }: CallRules, has: (scope: string) => boolean): boolean {
  return allScopes === undefined ? scopes.some(has) : allScopes.every(has);
}

/** Whether an administrator whose role has the scopes may make a call. */
export function allowsRole(call: CallRules, has: (scope: string) => boolean): boolean {
  return hasScopes(call, has) && (call.roleScopes ?? []).every(has);
}

function insufficient(scopes: readonly string[]): AuthError {
  return apiError(403, `Insufficient scope, expected any of: ${scopes.join(',')}`, 'insufficient_scope');
}

export interface AnswerDependencies {
  events: Pick<Events, 'record'>;
  store: Store;
  log: Logger;
}

/** The parts of a request that are not validated yet. */
interface ReceivedInput {
  query: unknown;
  /** Includes the text of an uploaded file, which the log leaves out. */
  body: unknown;
}

const EMPTY_QUERY = z.strictObject({});

/** Checks that the caller may make a call, and records a refusal. @throws AuthError 403 */
export function allow<D>({ events }: AnswerDependencies, call: Call<D>, request: CallRequest): void {
  try {
    authorize(call, request.caller, request.params);
  } catch (thrown) {
    recordFailure(events, call, request, thrown);
    throw thrown;
  }
}

/** @throws AuthError 400 for a parameter that the call does not declare, or a bad value. */
export function queryFor<D>(call: Call<D>, query: unknown): unknown {
  return validated('query', call.query ?? EMPTY_QUERY, query);
}

/**
 * Validates query and body, runs the call's handler, and records the outcome. The caller must have passed `allow`.
 * @param request the request as the log shows it.
 * @param input query and body as received.
 * @throws AuthError 4xx; 503 when the store's query timed out
 */
export async function execute<D>(
  deps: D & AnswerDependencies,
  call: Call<D>,
  request: CallRequest,
  input: ReceivedInput,
): Promise<Answer> {
  try {
    const query = queryFor(call, input.query);
    const body = call.body === undefined ? undefined : validated('body', call.body, input.body ?? {});
    const watched = watchStore(deps.store);
    const handlerDeps = call.method === 'GET' ? deps : { ...deps, store: watched.store };
    const answer = await call.handle(handlerDeps, { ...request, query, body } as CallRequest<never, never>);
    const isRecorded = call.method === 'DELETE' || !(answer.isUnchanged ?? watched.isUnchanged());
    if (isRecorded) {
      recordCall(deps.events, call, request, { answer });
      for (const warning of answer.warnings ?? []) deps.log.warn({ path: call.path }, warning);
    }
    return answer;
  } catch (thrown) {
    const failure = thrown instanceof QueryTimeout ? searchTimeout() : thrown;
    recordFailure(deps.events, call, request, failure);
    throw failure;
  }
}

/** Records that a call failed before its handler ran, for example because of its query. */
export function recordFailure<D>(
  events: Pick<Events, 'record'>,
  call: Call<D>,
  request: CallRequest,
  thrown: unknown,
): void {
  const isOurs = thrown instanceof AuthError;
  const { status, message } = isOurs ? thrown : { status: 500, message: 'An unexpected error occurred.' };
  recordCall(events, call, request, { status, message });
}

// Detects calls that change nothing, because the records have the requested values already. Such a call writes no
// record, not even a new `updated_at`, and is not logged. Deploy tools send their whole configuration at each run.
// docs/understand/decisions/management-api.md#a-call-that-changes-nothing-leaves-no-trace

/** The store that a call is given, and whether the call changed anything. */
interface WatchedStore {
  store: Store;
  /** Whether the call tried to change records and each of them had the requested values already. */
  isUnchanged(): boolean;
}

interface Dated {
  id: string;
  updated_at?: unknown;
}

/** Wraps a store for one call. An update that would only change `updated_at` leaves the record unchanged. */
function watchStore(store: Store): WatchedStore {
  const counts = { unchanged: 0, changed: 0 };
  /** Returns the record to write: the current one if the new one is equal to it. */
  const recordToWrite = <T extends Dated>(current: T | undefined, next: T): T => {
    const isSame = current !== undefined && isDeepStrictEqual(withoutDate(current), withoutDate(next));
    counts[isSame ? 'unchanged' : 'changed'] += 1;
    return isSame ? current : next;
  };
  const countingChange = <A extends unknown[], R>(write: (...args: A) => R) => {
    return (...args: A): R => {
      counts.changed += 1;
      return write(...args);
    };
  };
  const watchedCollection = (collection: Collection<Dated>): Collection<Dated> => ({
    ...collection,
    update: (id, change) => collection.update(id, (current) => recordToWrite(current, change(current))),
    upsert: (id, change) => collection.upsert(id, (current) => recordToWrite(current, change(current))),
    put: async (record) => {
      const current = await collection.get(record.id);
      if (recordToWrite(current, record) === record) await collection.put(record);
    },
    insert: countingChange(collection.insert),
    take: countingChange(collection.take),
    delete: countingChange(collection.delete),
    deleteBy: countingChange(collection.deleteBy),
  });
  return {
    store: {
      ...store,
      // The cast restores the record type of the collection.
      collection: (name) => watchedCollection(collectionByName<Dated>(store, name)) as never,
      batch: countingChange(store.batch),
    },
    isUnchanged: () => counts.unchanged > 0 && counts.changed === 0,
  };
}

/** Returns a record as it would be stored, without `updated_at`. */
function withoutDate(record: Dated): object {
  const { updated_at: _, ...rest } = JSON.parse(JSON.stringify(record)) as Dated;
  return rest;
}
