// Users manage their own account: by the My Account API, and at the account page.

import type { Context } from 'koa';
import { z } from 'zod';
import { presentedToken } from '../../engine/binding/proof-of-possession.ts';
import { feature } from '../../engine/provider/feature.ts';
import { type ApiTokenReader, loginOfToken } from '../../engine/token/api-tokens.ts';
import { AuthError } from '../../http/errors.ts';
import {
  type BodySource,
  type RouteDeclaration,
  type RouteDeclarations,
  route,
  type TypedRoute,
} from '../../http/server/router.ts';
import { DATABASE } from '../../records/connections/connections.ts';
import { passkeyOptions } from '../../records/database-options.ts';
import { METHOD_TYPES, type MethodType } from '../../records/users/second-factors.ts';
import type { Config } from '../../tenant/config.ts';
import { connectedAccountView } from '../../users/users-connected-accounts.ts';
import { CONNECT } from '../connections/connected/connected-routes.ts';
import { TICKET_SECONDS } from '../connections/connected/connecting.ts';
import { connectableConnections } from '../connections/connected/purposes.ts';
import { accountAudience } from './account-audience.ts';
import {
  type ConnectedDependencies,
  completeConnection,
  listConnected,
  removeConnected,
  startConnection,
} from './account-connected-accounts.ts';
import { accountEvents, accountLimits } from './account-declaration.ts';
import { invalidQuery, problemShape } from './account-errors.ts';
import { type Actor, actorFrom } from './actor.ts';
import { type AccountScope, accountBuiltIns } from './api.ts';
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
import {
  beginMethod,
  confirmMethod,
  factorsOf,
  getMethod,
  listMethods,
  type MethodDependencies,
  removeMethod,
  renameMethod,
} from './methods.ts';
import { type AccountPagesDependencies, accountPages } from './page/account-pages.ts';
import { methodAnswer } from './views.ts';

// Schemas of bodies and answers of the My Account API, for validation and for the API document.

const listAnswer = z.object({ authentication_methods: z.array(methodAnswer) });
const factorsAnswer = z.object({
  factors: z.array(
    z.object({ type: z.enum(METHOD_TYPES), usage: z.array(z.enum(['primary', 'secondary'])) }),
  ),
});

const createBody = z.object({
  type: z.enum(METHOD_TYPES),
  connection: z.string().max(255).optional().describe('For a passkey or a password: its connection.'),
  identity_user_id: z
    .string()
    .max(255)
    .optional()
    .describe('For a passkey or a password: the identity that it belongs to.'),
  identity: z
    .string()
    .max(255)
    .optional()
    .describe('The same as `identity_user_id`, under the name that one SDK sends.'),
  phone_number: z.string().max(40).optional().describe('For `phone`: the phone number, in E.164.'),
  preferred_authentication_method: z.enum(['sms']).optional().describe('For `phone`.'),
  email: z.string().max(320).optional().describe('For `email`: the e-mail address.'),
});
const begunAnswer = z.looseObject({
  auth_session: z.string().describe('For `/verify`, within ten minutes, with a token of the same login.'),
  id: z.string().optional(),
  authn_params_public_key: z
    .looseObject({})
    .optional()
    .describe('For a passkey and `webauthn-…`: the options for `navigator.credentials.create`.'),
  barcode_uri: z.string().optional().describe('For `totp` and `push-notification`.'),
  manual_input_code: z.string().optional().describe('For `totp`.'),
  recovery_code: z.string().optional(),
  policy: z.looseObject({}).optional().describe('For a password: the password policy.'),
});
export const verifyBody = z.object({
  auth_session: z.string().max(100),
  otp_code: z.string().max(20).optional().describe('For `totp`, `phone` and `email`.'),
  new_password: z.string().max(1024).optional().describe('For a password.'),
  authn_response: z
    .looseObject({})
    .optional()
    .describe('For a passkey and `webauthn-…`: the credential, as its `toJSON` returns it.'),
});
const patchBody = z.object({
  name: z.string().trim().min(1).max(100).optional(),
  preferred_authentication_method: z.enum(['sms']).optional(),
});

// Verifies the access token of a request to the My Account API.

export interface CallerDependencies {
  issuer: string;
  config: Pick<Config, 'clientGrant'>;
  readApiToken: ApiTokenReader;
}

/**
 * Returns the user of a request, and the login that its access token was issued for.
 * @throws AuthError 401 `invalid_token` for a missing or invalid token: of another audience, of a session that has
 *   ended or a password that was changed, of a blocked user, or of an application whose client grant was removed; 403
 *   `insufficient_scope`.
 */
async function actorOf(deps: CallerDependencies, ctx: Context, scope: AccountScope): Promise<Actor> {
  const presented = presentedToken(ctx);
  if (presented === undefined) throw invalidToken();
  const token = await deps.readApiToken(ctx, presented.value, accountAudience(deps.issuer));
  if (token === undefined) throw invalidToken();
  const { clientId, user } = token;
  const grant = await deps.config.clientGrant(clientId, accountAudience(deps.issuer));
  if (grant === undefined) throw invalidToken();
  if (!token.scopes.includes(scope))
    throw new AuthError(403, 'insufficient_scope', `Insufficient scope, expected: ${scope}`, {
      extra: { scope },
    });
  const login = loginOfToken(token);
  return actorFrom(ctx, { user, clientId, login: { ...login, id: login.sessionId } });
}

function invalidToken(): AuthError {
  return new AuthError(401, 'invalid_token', 'The access token is invalid.');
}

/** Declares a route of the API, whose handler is given the user. @param scope the scope that the access token must have. */
function accountRoute<D extends CallerDependencies, B = unknown>(
  scope: AccountScope,
  declared: Pick<TypedRoute<D, Actor, B>, 'summary' | 'query' | 'body' | 'answers' | 'handle'> &
    BodySource<NoInfer<B>>,
): RouteDeclaration<D> {
  return route<D, Actor, B>({
    limit: accountLimits.myAccount,
    cors: 'applications',
    errors: problemShape,
    security: ['accessToken'],
    admit: async (deps, ctx) => {
      ctx.set('Cache-Control', 'no-store');
      return actorOf(deps, ctx, scope);
    },
    ...declared,
  });
}

// Routes of the My Account API for connected accounts (docs/reference/wire/my-account.md).

interface AccountRoutesDependencies extends MethodDependencies, CallerDependencies {
  config: MethodDependencies['config'];
}

interface ConnectedRoutesDependencies extends AccountRoutesDependencies, ConnectedDependencies {}

const PATH = '/me/v1/connected-accounts';

const connectedAccountRoutes: RouteDeclarations<ConnectedRoutesDependencies> = {
  [`POST ${PATH}/connect` as const]: accountRoute('create:me:connected_accounts', {
    summary: 'Begin to connect an account at another provider',
    answers: { 201: { description: 'The URL for the browser, with the ticket', body: connectAnswer } },
    body: connectBody,
    handle: async (deps, ctx, { admitted: actor, body }) => {
      const { authSession, ticket } = await startConnection(deps, actor, body);
      ctx.status = 201;
      ctx.body = {
        connect_uri: `${deps.issuer}${CONNECT.slice(1)}`,
        connect_params: { ticket },
        auth_session: authSession,
        expires_in: TICKET_SECONDS,
      };
    },
  }),
  [`POST ${PATH}/complete` as const]: accountRoute('create:me:connected_accounts', {
    summary: 'Complete the connection of an account',
    answers: { 201: { description: 'The account', body: connectedAnswer } },
    body: completeBody,
    handle: async (deps, ctx, { admitted: actor, body }) => {
      const account = await completeConnection(deps, actor, {
        authSession: body.auth_session,
        connectCode: body.connect_code,
        codeVerifier: body.code_verifier,
        redirectUri: body.redirect_uri,
      });
      ctx.status = 201;
      ctx.body = connectedAccountView(account);
    },
  }),
  [`GET ${PATH}/accounts` as const]: accountRoute('read:me:connected_accounts', {
    summary: 'The accounts that the user has connected',
    query: accountsQuery,
    answers: { 200: { description: 'The accounts, without their tokens', body: accountsAnswer } },
    handle: async (deps, ctx, { admitted: actor }) => {
      const { connection, ...page } = read(ctx, accountsQuery);
      const all = await listConnected(deps, actor, connection);
      const { items, next } = pageOf(all, ({ id }) => id, page);
      ctx.body = { accounts: items.map(connectedAccountView), ...next };
    },
  }),
  [`DELETE ${PATH}/accounts/:id` as const]: accountRoute('delete:me:connected_accounts', {
    summary: 'Remove a connected account, with its tokens',
    answers: { 204: 'Removed' },
    handle: async (deps, ctx, { admitted: actor }) => {
      await removeConnected(deps, actor, String(ctx.params.id));
      ctx.status = 204;
    },
  }),
  [`GET ${PATH}/connections` as const]: accountRoute('read:me:connected_accounts', {
    summary: 'List the connections that can connect accounts',
    query: pageQuery,
    answers: { 200: { description: 'The connections of the application', body: connectionsAnswer } },
    handle: async (deps, ctx, { admitted: actor }) => {
      const all = await connectableConnections(deps.config, actor.clientId);
      const { items, next } = pageOf(all, ({ connection }) => connection.name, read(ctx, pageQuery));
      const connections = items.map(({ connection: { name, strategy, options } }) => ({
        name,
        strategy,
        scopes: scopesOf(options),
      }));
      ctx.body = { connections, ...next };
    },
  }),
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

/** @param from the name of the last item of the page before; if it is gone, the list starts again. */
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

// Routes of the My Account API for authentication methods (docs/reference/wire/my-account.md).

type Deps = AccountRoutesDependencies;

const METHODS_PATH = '/me/v1/authentication-methods';

const methodRoutes: RouteDeclarations<Deps> = {
  [`GET ${METHODS_PATH}` as const]: accountRoute('read:me:authentication_methods', {
    summary: "List the user's authentication methods",
    query: z.object({ type: z.enum(METHOD_TYPES).optional().describe('Only methods of this type.') }),
    answers: { 200: { description: 'Passwords, passkeys, and confirmed second factors', body: listAnswer } },
    handle: async (deps, ctx, { admitted: actor }) => {
      const { type } = ctx.query;
      if (type !== undefined && !isMethodType(type)) throw invalidQuery('type', 'There is no such type.');
      const all = await listMethods(deps, actor);
      ctx.body = { authentication_methods: all.filter((one) => type === undefined || one.type === type) };
    },
  }),
  [`POST ${METHODS_PATH}` as const]: accountRoute('create:me:authentication_methods', {
    summary: 'Begin to add an authentication method',
    answers: {
      201: {
        description: 'The method, which must now be verified (at `Location` with `/verify`)',
        body: begunAnswer,
      },
    },
    body: createBody,
    handle: async (deps, ctx, { admitted: actor, body }) => {
      const { type, phone_number, email, connection, identity, identity_user_id = identity } = body;
      const address = phone_number ?? email;
      const begun = await beginMethod(deps, actor, { type, address, connection, identity_user_id });
      ctx.status = 201;
      ctx.set('Location', `${deps.issuer}${METHODS_PATH.slice(1)}/${encodeURIComponent(begun.id)}`);
      ctx.body = {
        // A passkey has no id before it is created.
        id: type === 'passkey' ? undefined : begun.id,
        auth_session: begun.authSession,
        policy: begun.policy,
        authn_params_public_key: begun.options,
        barcode_uri: begun.barcodeUri,
        manual_input_code: begun.secret,
        recovery_code: begun.recoveryCode,
      };
    },
  }),
  [`POST ${METHODS_PATH}/:id/verify` as const]: accountRoute('create:me:authentication_methods', {
    summary: 'Verify a new authentication method, which is then active',
    answers: { 201: { description: 'The authentication method', body: methodAnswer } },
    body: verifyBody,
    handle: async (deps, ctx, { admitted: actor, body }) => {
      ctx.body = await confirmMethod(deps, ctx, actor, {
        id: String(ctx.params.id),
        authSession: body.auth_session,
        code: body.otp_code,
        response: body.authn_response && JSON.stringify(body.authn_response),
        password: body.new_password,
      });
      ctx.status = 201;
    },
  }),
  [`GET ${METHODS_PATH}/:id` as const]: accountRoute('read:me:authentication_methods', {
    summary: 'One authentication method of the user',
    answers: { 200: { description: 'The authentication method', body: methodAnswer } },
    handle: async (deps, ctx, { admitted: actor }) => {
      ctx.body = await getMethod(deps, actor, String(ctx.params.id));
    },
  }),
  [`PATCH ${METHODS_PATH}/:id` as const]: accountRoute('update:me:authentication_methods', {
    summary: 'Name an authentication method',
    answers: { 200: { description: 'The authentication method', body: methodAnswer } },
    body: patchBody,
    handle: async (deps, ctx, { admitted: actor, body: { name } }) => {
      const id = String(ctx.params.id);
      ctx.body =
        name === undefined ? await getMethod(deps, actor, id) : await renameMethod(deps, actor, id, name);
    },
  }),
  [`DELETE ${METHODS_PATH}/:id` as const]: accountRoute('delete:me:authentication_methods', {
    summary: 'Remove an authentication method',
    answers: { 204: 'Removed' },
    handle: async (deps, ctx, { admitted: actor }) => {
      await removeMethod(deps, actor, String(ctx.params.id));
      ctx.status = 204;
    },
  }),
  'GET /me/v1/factors': accountRoute('read:me:factors', {
    summary: 'List the factors that the tenant has enabled',
    answers: { 200: { description: 'The enabled factors', body: factorsAnswer } },
    handle: async (deps, ctx, { admitted: actor }) => {
      ctx.body = { factors: await offeredTypes(deps, actor) };
    },
  }),
};

const isMethodType = (text: unknown): text is MethodType => METHOD_TYPES.some((type) => type === text);

// The authentication methods that a user may have, by the tenant's configuration and the user's connections.

/** A type of authentication method, and whether it is a first or a second factor. */
interface OfferedType {
  type: MethodType;
  usage: ('primary' | 'secondary')[];
}

/** Returns the first factors of the user's connections, then the second factors that are on. */
async function offeredTypes(deps: MethodDependencies, { user }: Actor): Promise<OfferedType[]> {
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

export const account = feature<ConnectedRoutesDependencies & AccountPagesDependencies>({
  name: 'account',
  // Below `/me/`, unknown paths are answered in the API's error format, too.
  area: { prefix: '/me/', limit: accountLimits.myAccount, errors: problemShape },
  hasResources: true,
  builtIns: accountBuiltIns,
  limits: accountLimits,
  events: accountEvents,
  routes: { ...methodRoutes, ...connectedAccountRoutes, ...accountPages },
});
