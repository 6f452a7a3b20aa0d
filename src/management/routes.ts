// Routes for the calls of the Management API.
import type { Context } from 'koa';
import { bodyOf } from '../http/body-fields.ts';
import { readMultipart } from '../http/multipart.ts';
import type { RouteDeclarations } from '../http/routes.ts';
import { type AnswerDependencies, allow, carryOut, queryFor, recordFailure } from './answer.ts';
import type { Call, Caller, CallRequest, CallRules } from './call.ts';
import { type CallerDependencies, callerOf } from './caller.ts';
import { managementShape } from './errors.ts';

export interface ManagementRoutesDependencies extends CallerDependencies, AnswerDependencies {}

/** Returns the route of each call. */
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

/** Authenticates the caller and checks its scopes before the body is read. @throws AuthError 4xx */
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
  // Assigning an empty body makes Koa set 204, so the status is set again.
  ctx.status = given.status;
}

/** Returns the request for the log, which leaves out an uploaded file, and the whole body. @throws AuthError 4xx */
async function received<D>(
  { events }: ManagementRoutesDependencies,
  call: Call<D>,
  ctx: Context,
): Promise<{ about: CallRequest; body: unknown }> {
  const about = aboutOf(ctx, ctx.state.caller as Caller);
  if (call.file === undefined) return { about, body: about.body };
  try {
    // The query is validated before the file is read, because reading the file is the expensive part.
    queryFor(call, queryOf(ctx));
    const form = await formOf(call.file, ctx);
    return { about: { ...about, body: form.fields }, body: form.all };
  } catch (thrown) {
    recordFailure(events, call, about, thrown);
    throw thrown;
  }
}

/** Returns the fields of a form, without and with the text of its file. @throws AuthError 4xx */
async function formOf(rules: NonNullable<CallRules['file']>, ctx: Context) {
  const { fields, file } = await readMultipart(ctx.req, rules);
  if (file === undefined) return { fields, all: { ...fields } };
  return { fields, all: { ...fields, [file.field]: file.data.toString('utf8') } };
}

/** Returns the request with its path and body, before validation; the query is not included. */
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

/** Returns the query: a parameter that is repeated is an array, any other a string. */
function queryOf(ctx: Context): Record<string, unknown> {
  return Object.fromEntries(Object.entries(ctx.query).filter(([, value]) => value !== undefined));
}
