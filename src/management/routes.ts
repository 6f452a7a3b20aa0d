// Calls as routes.
import type { Context } from 'koa';
import { bodyOf } from '../http/body-fields.ts';
import { readMultipart } from '../http/multipart.ts';
import type { RouteDeclarations } from '../http/routes.ts';
import { type AnswerDependencies, allow, carryOut, queryFor, recordFailure } from './answer.ts';
import type { Call, Caller, CallRequest, CallRules } from './call.ts';
import { type CallerDependencies, callerOf } from './caller.ts';
import { managementShape } from './errors.ts';

export interface ManagementRoutesDependencies extends CallerDependencies, AnswerDependencies {}

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
          ...(call.body === undefined && { isNullNone: true }),
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
  allow(deps, call, aboutOf(ctx, caller));
}

async function answer<D>(deps: D & ManagementRoutesDependencies, call: Call<D>, ctx: Context): Promise<void> {
  const { about, body } = await received(deps, call, ctx);
  const given = await carryOut(deps, call, about, { query: queryOf(ctx), body });
  ctx.status = given.status;
  ctx.set('Cache-Control', 'no-store');
  if (given.body === undefined) ctx.body = null;
  else ctx.body = given.body;
  // Koa answers an empty body with 204 unless it is told otherwise after.
  ctx.status = given.status;
}

/** What came, and of it what the log is to have: of a form all but its file. @throws AuthError 4xx */
async function received<D>(
  { events }: ManagementRoutesDependencies,
  call: Call<D>,
  ctx: Context,
): Promise<{ about: CallRequest; body: unknown }> {
  const about = aboutOf(ctx, ctx.state.caller as Caller);
  if (call.file === undefined) return { about, body: about.body };
  try {
    // Before the file is read, which is the larger part of it.
    queryFor(call, queryOf(ctx));
    const form = await formOf(call.file, ctx);
    return { about: { ...about, body: form.fields }, body: form.all };
  } catch (thrown) {
    recordFailure(events, call, about, thrown);
    throw thrown;
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

/** A repeated name is a list; all others are texts. */
function queryOf(ctx: Context): Record<string, unknown> {
  return Object.fromEntries(Object.entries(ctx.query).filter(([, value]) => value !== undefined));
}
