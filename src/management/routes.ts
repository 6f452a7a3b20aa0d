// Calls as routes: every call is authorized, validated and recorded here, so that none has to remember it.
import type { Context } from 'koa';
import { z } from 'zod';
import { bodyOf } from '../http/body-fields.ts';
import { AuthError } from '../http/errors.ts';
import { readMultipart } from '../http/multipart.ts';
import type { RouteDeclarations } from '../http/routes.ts';
import { QueryTimeout, type Store } from '../store/contract.ts';
import type { Events } from '../tenant/events.ts';
import type { Call, Caller, CallRequest, CallRules } from './call.ts';
import { authorize, type CallerDependencies, callerOf } from './caller.ts';
import { managementShape, searchTimeout, validated } from './errors.ts';
import { recordCall } from './events.ts';
import { watchStore } from './unchanged.ts';

export interface ManagementRoutesDependencies extends CallerDependencies {
  events: Pick<Events, 'record'>;
  store: Store;
}

const NOTHING = z.strictObject({});

/** The routes of calls. */
export function routesOfCalls<D>(
  calls: readonly Call<D>[],
): RouteDeclarations<D & ManagementRoutesDependencies> {
  return Object.fromEntries(
    calls.map((call) => [
      `${call.method} /api/v2${call.path}`,
      {
        limit: 'management',
        cors: 'applications',
        errors: managementShape,
        bodies: {
          ...(call.largestBody !== undefined && { largest: call.largestBody }),
          ...(call.textTypes && { texts: call.textTypes }),
        },
        admit: (deps: D & ManagementRoutesDependencies, ctx: Context) => admit(deps, call, ctx),
        handle: (deps: D & ManagementRoutesDependencies, ctx: Context) => answer(deps, call, ctx),
      },
    ]),
  );
}

/** Whether the caller may make the call, before anything else of the request is read. @throws AuthError 4xx */
async function admit<D>(deps: ManagementRoutesDependencies, call: Call<D>, ctx: Context): Promise<void> {
  const caller = await callerOf(deps, ctx);
  ctx.state.caller = caller;
  const about = aboutOf(ctx, caller);
  try {
    authorize(call, caller, about.params);
  } catch (thrown) {
    recordFailure(deps, call, about, thrown);
    throw thrown;
  }
}

async function answer<D>(deps: D & ManagementRoutesDependencies, call: Call<D>, ctx: Context): Promise<void> {
  let about = aboutOf(ctx, ctx.state.caller as Caller);
  try {
    const query = validated('query', call.query ?? NOTHING, queryOf(ctx));
    const form = call.file && (await formOf(call.file, ctx));
    if (form !== undefined) about = { ...about, body: form.fields };
    const request: CallRequest = {
      ...about,
      query,
      body: call.body === undefined ? undefined : validated('body', call.body, form?.all ?? about.body ?? {}),
    };
    const watched = watchStore(deps.store);
    const to = call.method === 'GET' ? deps : { ...deps, store: watched.store };
    const given = await call.handle(to, request as CallRequest<never, never>);
    ctx.status = given.status;
    ctx.set('Cache-Control', 'no-store');
    if (given.body === undefined) ctx.body = null;
    else ctx.body = given.body;
    // Koa answers an empty body with 204 unless it is told otherwise after.
    ctx.status = given.status;
    const isRecorded = call.method === 'DELETE' || !(given.isUnchanged ?? watched.isUnchanged());
    if (isRecorded) recordCall(deps.events, call, about, { answer: given });
  } catch (thrown) {
    const failure = thrown instanceof QueryTimeout ? searchTimeout() : thrown;
    recordFailure(deps, call, about, failure);
    throw failure;
  }
}

/** A form's fields, and the same with its file. @throws AuthError 4xx */
async function formOf(rules: NonNullable<CallRules['file']>, ctx: Context) {
  const { fields, file } = await readMultipart(ctx.req, rules);
  if (file === undefined) return { fields, all: { ...fields } };
  return { fields, all: { ...fields, [file.field]: file.data.toString('utf8') } };
}

/** What is known of a request before it was looked at. */
function aboutOf(ctx: Context, caller: Caller): CallRequest {
  return {
    params: ctx.params as Record<string, string>,
    query: {},
    body: bodyOf(ctx),
    caller,
    ip: ctx.ip,
    userAgent: ctx.get('User-Agent'),
  };
}

function recordFailure<D>(
  { events }: ManagementRoutesDependencies,
  call: Call<D>,
  about: CallRequest,
  thrown: unknown,
): void {
  const isOurs = thrown instanceof AuthError;
  const { status, message } = isOurs ? thrown : { status: 500, message: 'An unexpected error occurred.' };
  recordCall(events, call, about, { status, message });
}

/** A repeated name is a list; all others are texts. */
function queryOf(ctx: Context): Record<string, unknown> {
  return Object.fromEntries(Object.entries(ctx.query).filter(([, value]) => value !== undefined));
}
