// The Management API.

import type { Context } from 'koa';
import type { SecondFactor } from '../../engine/admission/second-factor.ts';
import { feature } from '../../engine/provider/feature.ts';
import { AuthError } from '../../http/errors.ts';
import { bodyOf, bodyWithoutFile } from '../../http/server/body.ts';
import { isMultipart } from '../../http/server/multipart.ts';
import { type RouteDeclaration, route } from '../../http/server/router.ts';
import type { TenantConfig } from '../../tenant/config.ts';
import type { TenantUsers } from '../../users/users.ts';
import {
  type AnswerDependencies,
  allow,
  authorize,
  type CallerDependencies,
  callerOf,
  execute,
  queryFor,
  recordFailure,
} from './answer.ts';
import { managementBuiltIns } from './api.ts';
import { largestBodyOf } from './body-size.ts';
import type { Call, Caller, CallRequest } from './call.ts';
import { MANAGEMENT_CALLS, type ManagementDependencies } from './calls.ts';
import { exportLinks, type LinkDependencies } from './jobs/links.ts';
import { managementAudience } from './management-audience.ts';
import { managementEvents, managementLimits } from './management-declaration.ts';
import { managementShape } from './management-errors.ts';
import { roleRefusal } from './roles/administrator-roles.ts';
import { executeForProgram } from './roles/role-call.ts';

// Routes for the calls of the Management API.

interface ManagementRoutesDependencies extends CallerDependencies, AnswerDependencies {}

function routeOf<D>(call: Call<D>): RouteDeclaration<D & ManagementRoutesDependencies> {
  return route({
    limit: managementLimits.management,
    cors: 'applications',
    errors: managementShape,
    bodies: {
      ...(call.body && { maxBytes: largestBodyOf(call.body), isShared: true }),
      ...(call.textTypes && { textTypes: call.textTypes }),
      ...(call.body === undefined && { ignoresNull: true }),
      ...(call.file && { file: call.file }),
    },
    admit: (deps: D & ManagementRoutesDependencies, ctx) => admit(deps, call, ctx),
    handle: (deps: D & ManagementRoutesDependencies, ctx, { admitted }) => answer(deps, call, ctx, admitted),
  });
}

/**
 * Authenticates the caller and checks its scopes. Refuses a wrong query or type of body if the body is a file, because
 * reading that is the expensive part.
 * @throws AuthError 4xx
 */
async function admit<D>(deps: ManagementRoutesDependencies, call: Call<D>, ctx: Context): Promise<Caller> {
  const caller = await callerOf(deps, ctx);
  const request = requestOf(deps, call, ctx, caller);
  allow(deps, call, request);
  if (call.file === undefined) return caller;
  try {
    queryFor(call, queryOf(call, ctx));
    if (!isMultipart(ctx))
      throw new AuthError(400, 'invalid_request', 'The request must be multipart/form-data.');
  } catch (thrown) {
    recordFailure(deps.events, call, request, thrown);
    throw thrown;
  }
  return caller;
}

async function answer<D>(
  deps: D & ManagementRoutesDependencies,
  call: Call<D>,
  ctx: Context,
  caller: Caller,
): Promise<void> {
  const request = requestOf(deps, call, ctx, caller);
  const input = { query: queryOf(call, ctx), body: bodyOf(ctx) };
  const { role } = caller;
  const response = await (role === undefined
    ? execute(deps, call, request, input)
    : executeForProgram(deps, role, call, request, input));
  ctx.status = response.status;
  ctx.set('Cache-Control', 'no-store');
  if (response.body === undefined) ctx.body = null;
  else ctx.body = response.body;
  // Assigning an empty body makes Koa set 204, so the status is set again.
  ctx.status = response.status;
}

/**
 * Returns the request for the log, with its path and body before validation. The query and an uploaded file are not
 * included.
 */
function requestOf<D>(
  deps: ManagementRoutesDependencies,
  call: Call<D>,
  ctx: Context,
  caller: Caller,
): CallRequest {
  const params = ctx.params as Record<string, string>;
  return {
    params,
    query: {},
    body: bodyWithoutFile(ctx),
    caller,
    ip: ctx.ip,
    userAgent: ctx.get('User-Agent'),
    admitAgain: async () => {
      const now = await callerOf(deps, ctx);
      // What the role may do beyond its scopes was judged for the one it was.
      if (now.role !== caller.role) throw roleRefusal();
      authorize(call, now, params);
    },
  };
}

/**
 * Returns the query: a parameter that is repeated is an array, any other a string. The forms that clients in Go and PHP
 * send for lists, `strategy[0]=…` and `strategy[]=…`, mean a repeated `strategy`.
 */
function queryOf(call: Pick<Call<never>, 'query'>, ctx: Context): Record<string, unknown> {
  const query: Record<string, unknown> = {};
  for (const [sent, value] of Object.entries(ctx.query)) {
    if (value === undefined) continue;
    const name = /^(\w+)\[\d{0,4}\]$/.exec(sent)?.[1] ?? sent;
    const isIndexed = name !== sent && Object.hasOwn(call.query?.shape ?? {}, name);
    if (isIndexed) query[name] = [query[name] ?? [], value].flat();
    else query[sent] = query[sent] === undefined ? value : [query[sent], value].flat();
  }
  return query;
}

/** What the Management API needs. It may show no administrator. */
export type ManagementFeatureDependencies = {
  users: TenantUsers;
  config: TenantConfig;
} & ManagementDependencies &
  ManagementRoutesDependencies &
  LinkDependencies;

/** What it is given by another name: users and applications of the tenant alone, and the reading of its tokens. */
interface Renamed {
  tenantUsers: TenantUsers;
  tenantConfig: TenantConfig;
  tenantRefreshTokens: ManagementFeatureDependencies['refreshTokens'];
  tenantSessionDirectory: ManagementFeatureDependencies['sessionDirectory'];
  readManagementToken: ManagementFeatureDependencies['readToken'];
  administratorTokens: Pick<ManagementFeatureDependencies, 'administratorOf'>;
  secondFactor: Pick<SecondFactor, 'isSufficient'>;
  issuer: string;
}

export type ManagementNeeds = Renamed &
  Omit<
    ManagementFeatureDependencies,
    | 'users'
    | 'config'
    | 'refreshTokens'
    | 'sessionDirectory'
    | 'readToken'
    | 'administratorOf'
    | 'isSufficient'
    | 'audience'
  >;

export function managementDependencies(needs: ManagementNeeds): ManagementFeatureDependencies {
  return {
    ...needs,
    users: needs.tenantUsers,
    config: needs.tenantConfig,
    refreshTokens: needs.tenantRefreshTokens,
    sessionDirectory: needs.tenantSessionDirectory,
    readToken: needs.readManagementToken,
    administratorOf: needs.administratorTokens.administratorOf,
    isSufficient: needs.secondFactor.isSufficient,
    audience: managementAudience(needs.issuer),
  };
}

export const management = feature<ManagementNeeds, unknown, ManagementFeatureDependencies>({
  given: managementDependencies,
  name: 'management',
  // Unknown paths below `/api/v2/` are answered in the API's error format too: clients decode no other.
  area: { prefix: '/api/v2/', limit: managementLimits.management, errors: managementShape },
  hasResources: true,
  builtIns: managementBuiltIns,
  limits: managementLimits,
  events: managementEvents,
  routes: {
    ...Object.fromEntries(
      MANAGEMENT_CALLS.map((call) => [`${call.method} /api/v2${call.path}` as const, routeOf(call)]),
    ),
    ...exportLinks,
  },
  collections: [
    'connectionKeys',
    'documents',
    'jobs',
    'jobParts',
    'logStreamPositions',
    'invitations',
    'memberships',
    'roles',
  ],
});
