// The My Account API, by which users manage their own account.

import type { Context } from 'koa';
import { z } from 'zod';
import { feature } from '../../engine/provider/feature.ts';
import type { Area, RouteDeclarations } from '../../http/router.ts';
import { DATABASE } from '../../records/connections.ts';
import { passkeyOptions } from '../../records/database-options.ts';
import type { Limits } from '../../records/limits.ts';
import { METHOD_TYPES, type MethodType } from '../../records/second-factors.ts';
import { connectedAccountView } from '../../users/connected-accounts.ts';
import { TICKET_SECONDS } from '../connections/connected/connecting.ts';
import { connectableConnections } from '../connections/connected/purposes.ts';
import { CONNECT } from '../connections/connected/routes.ts';
import type { Actor } from './actor.ts';
import {
  type ConnectedDependencies,
  completeConnection,
  listConnected,
  removeConnected,
  startConnection,
} from './connected-accounts.ts';
import {
  accountsAnswer,
  accountsQuery,
  completeBody,
  connectAnswer,
  connectBody,
  connectedAnswer,
  connectionsAnswer,
  pageQuery,
} from './connected-schemas.ts';
import { type AccountRoutesDependencies, handleCreate, handleVerify, METHODS_PATH } from './enroll-by-api.ts';
import { type EnrollmentDependencies, factorsOf } from './enrollments.ts';
import { invalidQuery, problemShape } from './errors.ts';
import { getMethod, listMethods, removeMethod, renameMethod } from './methods.ts';
import {
  begunAnswer,
  createBody,
  factorsAnswer,
  listAnswer,
  patchBody,
  verifyBody,
} from './parameter-schemas.ts';
import { actorIn, myAccountRoute, withToken, withTokenAndBody } from './route.ts';
import { methodAnswer } from './views.ts';

// Routes of the My Account API for connected accounts (docs/wire/my-account.md).

interface ConnectedRoutesDependencies extends AccountRoutesDependencies, ConnectedDependencies {}

const PATH = '/me/v1/connected-accounts';

/** The routes of connected accounts. */
const connectedAccountRoutes: RouteDeclarations<ConnectedRoutesDependencies> = {
  [`POST ${PATH}/connect` as const]: {
    ...myAccountRoute,
    summary: 'Begin to connect an account at another provider',
    answers: { 201: { description: 'The URL for the browser, with the ticket', body: connectAnswer } },
    ...withTokenAndBody<ConnectedRoutesDependencies, typeof connectBody>(
      'create:me:connected_accounts',
      connectBody,
      async (deps, ctx, actor, body) => {
        const { authSession, ticket } = await startConnection(deps, actor, body);
        ctx.status = 201;
        ctx.body = {
          connect_uri: `${deps.issuer}${CONNECT.slice(1)}`,
          connect_params: { ticket },
          auth_session: authSession,
          expires_in: TICKET_SECONDS,
        };
      },
    ),
  },
  [`POST ${PATH}/complete` as const]: {
    ...myAccountRoute,
    summary: 'Complete the connection of an account',
    answers: { 201: { description: 'The account', body: connectedAnswer } },
    ...withTokenAndBody<ConnectedRoutesDependencies, typeof completeBody>(
      'create:me:connected_accounts',
      completeBody,
      async (deps, ctx, actor, body) => {
        const account = await completeConnection(deps, actor, {
          authSession: body.auth_session,
          connectCode: body.connect_code,
          codeVerifier: body.code_verifier,
          redirectUri: body.redirect_uri,
        });
        ctx.status = 201;
        ctx.body = connectedAccountView(account);
      },
    ),
  },
  [`GET ${PATH}/accounts` as const]: {
    ...myAccountRoute,
    ...withToken<ConnectedRoutesDependencies>('read:me:connected_accounts'),
    summary: 'The accounts that the user has connected',
    query: accountsQuery,
    answers: { 200: { description: 'The accounts, without their tokens', body: accountsAnswer } },
    handle: async (deps, ctx) => {
      const { connection, ...page } = read(ctx, accountsQuery);
      const all = await listConnected(deps, actorIn(ctx), connection);
      const { items, next } = pageOf(all, ({ id }) => id, page);
      ctx.body = { accounts: items.map(connectedAccountView), ...next };
    },
  },
  [`DELETE ${PATH}/accounts/:id` as const]: {
    ...myAccountRoute,
    ...withToken<ConnectedRoutesDependencies>('delete:me:connected_accounts'),
    summary: 'Remove a connected account, with its tokens',
    answers: { 204: 'Removed' },
    handle: async (deps, ctx) => {
      await removeConnected(deps, actorIn(ctx), String(ctx.params.id));
      ctx.status = 204;
    },
  },
  [`GET ${PATH}/connections` as const]: {
    ...myAccountRoute,
    ...withToken<ConnectedRoutesDependencies>('read:me:connected_accounts'),
    summary: 'List the connections that can connect accounts',
    query: pageQuery,
    answers: { 200: { description: 'The connections of the application', body: connectionsAnswer } },
    handle: async (deps, ctx) => {
      const all = await connectableConnections(deps.config, actorIn(ctx).clientId);
      const { items, next } = pageOf(all, ({ connection }) => connection.name, read(ctx, pageQuery));
      const connections = items.map(({ connection: { name, strategy, options } }) => ({
        name,
        strategy,
        scopes: scopesOf(options),
      }));
      ctx.body = { connections, ...next };
    },
  },
};

/** Returns the scopes that a connection requests from its provider, as far as its options name them. */
function scopesOf({ scope }: Readonly<Record<string, unknown>>): string[] {
  const named = Array.isArray(scope)
    ? scope.map(String)
    : typeof scope === 'string'
      ? scope.split(/[\s,]+/)
      : [];
  return named.filter((one) => one !== '');
}

/** Parses the query. @throws AuthError 400 */
function read<Q extends z.ZodType>(ctx: Context, schema: Q): z.output<Q> {
  const result = schema.safeParse(ctx.query);
  if (result.success) return result.data;
  const [{ path, message } = { path: [], message: '' }] = result.error.issues;
  throw invalidQuery(path.join('.'), message);
}

/**
 * Returns one page of a list.
 * @param from the name of the last item of the page before; if it is gone, the list starts again.
 */
function pageOf<T>(
  all: readonly T[],
  nameOf: (one: T) => string,
  { from, take = 50 }: z.output<typeof pageQuery>,
) {
  const start = from === undefined ? 0 : all.findIndex((one) => nameOf(one) === from) + 1;
  const items = all.slice(start, start + take);
  const last = items.at(-1);
  const hasMore = last !== undefined && start + take < all.length;
  return { items, next: hasMore ? { next: nameOf(last) } : {} };
}

// Routes of the My Account API for authentication methods (docs/wire/my-account.md).

type Deps = AccountRoutesDependencies;

/** The routes of authentication methods and factors. */
const accountRoutes: RouteDeclarations<Deps> = {
  [`GET ${METHODS_PATH}` as const]: {
    ...myAccountRoute,
    ...withToken<Deps>('read:me:authentication_methods'),
    summary: "List the user's authentication methods",
    query: z.object({ type: z.enum(METHOD_TYPES).optional().describe('Only methods of this type.') }),
    answers: { 200: { description: 'Passwords, passkeys, and confirmed second factors', body: listAnswer } },
    handle: async (deps, ctx) => {
      const { type } = ctx.query;
      if (type !== undefined && !isMethodType(type)) throw invalidQuery('type', 'There is no such type.');
      const all = await listMethods(deps, actorIn(ctx));
      ctx.body = { authentication_methods: all.filter((one) => type === undefined || one.type === type) };
    },
  },
  [`POST ${METHODS_PATH}` as const]: {
    ...myAccountRoute,
    summary: 'Begin to add an authentication method',
    answers: {
      201: {
        description: 'The method, which must now be verified (at `Location` with `/verify`)',
        body: begunAnswer,
      },
    },
    ...withTokenAndBody('create:me:authentication_methods', createBody, handleCreate),
  },
  [`POST ${METHODS_PATH}/:id/verify` as const]: {
    ...myAccountRoute,
    summary: 'Verify a new authentication method, which is then active',
    answers: { 201: { description: 'The authentication method', body: methodAnswer } },
    ...withTokenAndBody('create:me:authentication_methods', verifyBody, handleVerify),
  },
  [`GET ${METHODS_PATH}/:id` as const]: {
    ...myAccountRoute,
    ...withToken<Deps>('read:me:authentication_methods'),
    summary: 'One authentication method of the user',
    answers: { 200: { description: 'The authentication method', body: methodAnswer } },
    handle: async (deps, ctx) => {
      ctx.body = await getMethod(deps, actorIn(ctx), String(ctx.params.id));
    },
  },
  [`PATCH ${METHODS_PATH}/:id` as const]: {
    ...myAccountRoute,
    summary: 'Name an authentication method',
    answers: { 200: { description: 'The authentication method', body: methodAnswer } },
    ...withTokenAndBody('update:me:authentication_methods', patchBody, async (deps, ctx, actor, { name }) => {
      const id = String(ctx.params.id);
      ctx.body =
        name === undefined ? await getMethod(deps, actor, id) : await renameMethod(deps, actor, id, name);
    }),
  },
  [`DELETE ${METHODS_PATH}/:id` as const]: {
    ...myAccountRoute,
    ...withToken<Deps>('delete:me:authentication_methods'),
    summary: 'Remove an authentication method',
    answers: { 204: 'Removed' },
    handle: async (deps, ctx) => {
      await removeMethod(deps, actorIn(ctx), String(ctx.params.id));
      ctx.status = 204;
    },
  },
  'GET /me/v1/factors': {
    ...myAccountRoute,
    ...withToken<Deps>('read:me:factors'),
    summary: 'List the factors that the tenant has enabled',
    answers: { 200: { description: 'The enabled factors', body: factorsAnswer } },
    handle: async (deps, ctx) => {
      ctx.body = { factors: await offeredTypes(deps, actorIn(ctx)) };
    },
  },
};

const isMethodType = (text: unknown): text is MethodType => METHOD_TYPES.some((type) => type === text);

// The authentication methods that a user may have, by the tenant's configuration and the user's connections.

/** A type of authentication method, and whether it is a first or a second factor. */
interface OfferedType {
  type: MethodType;
  usage: ('primary' | 'secondary')[];
}

/** Returns the first factors of the user's connections, then the second factors that are on. */
async function offeredTypes(deps: EnrollmentDependencies, { user }: Actor): Promise<OfferedType[]> {
  const identities = await deps.users.identitiesOf(user.id);
  const databases = identities.filter(({ provider }) => provider === DATABASE);
  const connections = await Promise.all(
    databases.map(({ connection }) => deps.config.connection(connection)),
  );
  const hasPasskeys = connections.some((one) => one !== undefined && passkeyOptions(one) !== undefined);
  const first: MethodType[] = [
    ...(databases.length > 0 ? ['password' as const] : []),
    ...(hasPasskeys ? ['passkey' as const] : []),
  ];
  return [
    ...first.map((type): OfferedType => ({ type, usage: ['primary'] })),
    ...[...factorsOf(deps).keys()].map((type): OfferedType => ({ type, usage: ['secondary'] })),
  ];
}

const limits = {
  myAccount: { capacity: 100, perMinute: 100, per: 'address', where: '`/me/`' },
} satisfies Limits;

const events = {
  passkey_removed: 'A user removed one of their passkeys.',
  account_connected: 'A user connected an account at another provider, for its tokens.',
  account_disconnected: 'A user removed an account that they had connected, with its tokens.',
};

declare module '../../records/limits.ts' {
  interface LimitNames extends Record<keyof typeof limits, Bucket> {}
}

declare module '../../records/log-events.ts' {
  interface EventTypes extends Record<keyof typeof events, string> {}
}

export const account = feature<ConnectedRoutesDependencies>({
  name: 'account',
  limits,
  events,
  routes: { ...accountRoutes, ...connectedAccountRoutes },
});

/** Below `/me/`, unknown paths are answered in the API's error format, too. */
export const accountArea: Area = { prefix: '/me/', limit: 'myAccount', errors: problemShape };
