// Routes of the My Account API for connected accounts (docs/wire/my-account.md).
import type { Context } from 'koa';
import type { z } from 'zod';
import type { RouteDeclarations } from '../../http/routes.ts';
import { connectedAccountView } from '../../users/connected-accounts.ts';
import { TICKET_SECONDS } from '../connections/connected/connecting.ts';
import { connectableConnections } from '../connections/connected/purposes.ts';
import { CONNECT } from '../connections/connected/routes.ts';
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
import type { AccountRoutesDependencies } from './enroll-by-api.ts';
import { invalidQuery } from './errors.ts';
import { actorIn, myAccountRoute, withToken, withTokenAndBody } from './route.ts';

export interface ConnectedRoutesDependencies extends AccountRoutesDependencies, ConnectedDependencies {}

const PATH = '/me/v1/connected-accounts';

/** The routes of connected accounts. */
export const connectedAccountRoutes: RouteDeclarations<ConnectedRoutesDependencies> = {
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
