// Anonymous sessions: tokens for users who have not logged in.

import type { Context } from 'koa';
import { z } from 'zod';
import type { Challenges } from '../../../capabilities/protection/challenges.ts';
import { signJwt } from '../../../capabilities/signing/jwt.ts';
import { ANONYMOUS } from '../../../engine/base/signed-tokens.ts';
import { feature } from '../../../engine/provider/feature.ts';
import {
  ANONYMOUS_TRANSFER,
  anonymousGrant,
  issueTransfer,
  TRANSFER_SECONDS,
} from '../../../engine/session/anonymous-sessions.ts';
import { AuthError, oauthShape } from '../../../http/errors.ts';
import { limitsOf } from '../../../http/limits.ts';
import { CLIENT_FIELDS, optional, required } from '../../../http/parameter-schemas.ts';
import { type RouteDeclarations, route } from '../../../http/server/router.ts';
import { eventTypesOf } from '../../../records/base/log-events.ts';
import { scopeValues } from '../../../records/clients/apis.ts';
import type { ResourceServer } from '../../../records/collections.ts';
import { epochSeconds } from '../../../runtime/clock.ts';
import type { Config } from '../../../tenant/config.ts';
import type { Events } from '../../../tenant/events.ts';
import {
  type AnonymousSession,
  readSession,
  type SessionDependencies,
  startSession,
} from './session-token.ts';

// POST /anonymous/token and /anonymous/logout: tokens of anonymous sessions (docs/reference/wire/anonymous.md).
// docs/understand/decisions/tokens.md#an-anonymous-session-is-only-its-token-nothing-of-it-is-stored

interface AnonymousDependencies extends SessionDependencies {
  challenges: Pick<Challenges, 'issueTicket'>;
  events: Pick<Events, 'record'>;
  /** @returns its client_id. */
  authenticateClient(ctx: Context): Promise<string>;
}

/**
 * The most bytes of the metadata as JSON, which is in every request that the application sends with the session.
 */
const MAX_METADATA_BYTES = 1024;

const metadata = z
  .record(z.string(), z.unknown())
  .refine((given) => Buffer.byteLength(JSON.stringify(given)) <= MAX_METADATA_BYTES)
  .optional()
  .describe(
    'Metadata of the visitor, stored in the session token: a JSON object of at most 1 KiB. Only for a new session.',
  );

const tokenBody = z.object({
  ...CLIENT_FIELDS,
  session_token: optional('The session token; without it a new session begins.'),
  audience: optional(
    'The identifier of the API that the access token is for. Without it the token is for no API.',
  ),
  scope: optional('The requested scopes, separated by spaces; by default all that visitors may have.'),
  metadata,
});

const tokenAnswer = z.object({
  access_token: z.string(),
  token_type: z.literal('Bearer'),
  expires_in: z.number().int().describe('Lifetime of the access token, in seconds.'),
  scope: z.string().optional(),
  session_token: z.string().optional().describe('For a new session.'),
  session_expires_in: z.number().int().describe('Seconds until the session ends; it is not prolonged.'),
});

const transferAnswer = z.object({
  anon_transfer_token: z.string().describe('For one request to `/authorize`.'),
  token_type: z.literal('N_A'),
  expires_in: z.number().int().describe('Lifetime of the ticket, in seconds.'),
});

const logoutBody = z.object({ client_id: required('The application.') });

const limits = limitsOf({
  anonymous: { capacity: 50, perMinute: 100, per: 'address', where: '`/anonymous/`' },
});

const logEvents = eventTypesOf({
  anonymous_session: 'An anonymous session began, for a visitor who has not logged in.',
});

const api = { limit: limits.anonymous, cors: 'applications', errors: oauthShape } as const;

const anonymousRoutes: RouteDeclarations<AnonymousDependencies> = {
  'POST /anonymous/token': route({
    ...api,
    summary: 'Begin the session of a visitor who has not logged in, or get an access token for one',
    security: ['client'],
    bodyTypes: ['json'],
    answers: {
      200: {
        description: `The tokens; a ticket for the visitor's login, where \`audience\` is \`${ANONYMOUS_TRANSFER}\``,
        body: z.union([tokenAnswer, transferAnswer]),
      },
    },
    body: tokenBody,
    handle: issueTokens,
  }),
  'POST /anonymous/logout': route({
    ...api,
    summary: 'End the session of a visitor; the application deletes the session token',
    bodyTypes: ['json'],
    answers: { 204: 'Accepted; the server stores nothing about the session' },
    body: logoutBody,
    handle: endSession,
  }),
};

async function issueTokens(
  deps: AnonymousDependencies,
  ctx: Context,
  { body }: { body: z.output<typeof tokenBody> },
): Promise<void> {
  const { session_token: sessionToken, audience, scope, metadata: newMetadata } = body;
  ctx.set('Cache-Control', 'no-store');
  const clientId = await deps.authenticateClient(ctx);
  const { config, events, wallClock } = deps;
  if ((await config.client(clientId))?.anonymous_sessions?.active !== true)
    throw new AuthError(403, 'unauthorized_client', 'The client has no anonymous sessions.');
  if (sessionToken && newMetadata !== undefined)
    throw new AuthError(400, 'invalid_request', 'metadata cannot be provided when session_token is present');
  if (sessionToken && audience === ANONYMOUS_TRANSFER) {
    ctx.body = await issueTransferTicket(deps, clientId, sessionToken);
    return;
  }
  // Before the session begins: a request that is refused must not begin one.
  const access = await accessOf(config, clientId, audience || undefined, scope);
  const started = sessionToken ? undefined : await startSession(deps, clientId, newMetadata);
  const session = started?.session ?? (await readSession(deps, clientId, sessionToken ?? ''));
  const { token, seconds } = await accessToken(deps, clientId, session, access);
  if (started !== undefined) {
    const description = `A session of ${session.subject} began.`;
    events.record({ type: logEvents.anonymous_session, client_id: clientId, ip: ctx.ip, description });
  }
  ctx.body = {
    access_token: token,
    token_type: 'Bearer',
    expires_in: seconds,
    ...(access.scope !== '' && { scope: access.scope }),
    ...(started !== undefined && { session_token: started.token }),
    session_expires_in: session.expiresAt - epochSeconds(wallClock),
  };
}

/** Issues a ticket that carries the session's metadata into a login. */
async function issueTransferTicket(
  deps: AnonymousDependencies,
  clientId: string,
  token: string,
): Promise<z.output<typeof transferAnswer>> {
  const { subject, metadata: newMetadata } = await readSession(deps, clientId, token);
  return {
    anon_transfer_token: await issueTransfer(deps, clientId, {
      subject,
      ...(newMetadata && { metadata: newMetadata }),
    }),
    token_type: 'N_A',
    expires_in: TRANSFER_SECONDS,
  };
}

/**
 * Answers a logout. SDKs neither authenticate here nor send the session token: they delete it after this answer.
 */
async function endSession(
  { config }: AnonymousDependencies,
  ctx: Context,
  { body: { client_id: clientId } }: { body: z.output<typeof logoutBody> },
): Promise<void> {
  if ((await config.client(clientId)) === undefined)
    throw new AuthError(401, 'invalid_client', 'Unauthorized');
  ctx.set('Cache-Control', 'no-store');
  ctx.status = 204;
}

// Access tokens of anonymous sessions, and which API and scopes they may be for.

interface Access {
  /** Undefined for a token without an API, which contains nothing but its subject. */
  api: ResourceServer | undefined;
  scope: string;
}

/**
 * Returns the API and scope of a request.
 * @param audience the API's identifier.
 * @param requestedScope the requested scopes; without any, all that are granted.
 * @throws AuthError 400 `invalid_target` for an API that does not accept anonymous sessions of this application;
 *   `invalid_scope` for scopes that are not granted.
 */
async function accessOf(
  config: Config,
  clientId: string,
  audience: string | undefined,
  requestedScope: string | undefined,
): Promise<Access> {
  const api = audience === undefined ? undefined : await config.resourceServer(audience);
  const granted = audience === undefined ? [] : await grantedScopes(config, clientId, api);
  const requestedScopes = scopeValues(requestedScope);
  const refused = requestedScopes.filter((scope) => !granted.includes(scope));
  if (refused.length > 0)
    throw new AuthError(
      400,
      'invalid_scope',
      `Scopes are not granted to anonymous users: ${refused.join(' ')}`,
    );
  return { api, scope: (requestedScopes.length > 0 ? [...new Set(requestedScopes)] : granted).join(' ') };
}

/** Returns the scopes of the client grant, as far as the API still has them. */
async function grantedScopes(
  config: Config,
  clientId: string,
  api: ResourceServer | undefined,
): Promise<string[]> {
  const grant = api && (await anonymousGrant(config, await config.client(clientId), api));
  if (api === undefined || grant === undefined)
    // The same answer, whether the API exists or not.
    throw new AuthError(400, 'invalid_target', 'The API takes no anonymous users of this client.');
  const all = api.scopes.map(({ value }) => value);
  return grant.allow_all_scopes === true ? all : all.filter((scope) => grant.scope.includes(scope));
}

/** Lifetime of a token that is for no API, seconds. */
const NO_API_SECONDS = 3600;

/**
 * Makes an access token. It cannot be revoked, so it has the API's shorter lifetime for browsers, and ends with the
 * session.
 * @returns the token, and its lifetime in seconds.
 */
async function accessToken(
  { issuer, random, signing, wallClock }: SessionDependencies,
  clientId: string,
  { subject, expiresAt }: AnonymousSession,
  { api, scope }: Access,
): Promise<{ token: string; seconds: number }> {
  const now = epochSeconds(wallClock);
  const lifetime =
    api === undefined ? NO_API_SECONDS : Math.min(api.token_lifetime, api.token_lifetime_for_web);
  const seconds = Math.max(1, Math.min(lifetime, expiresAt - now));
  const alg = api?.signing_alg ?? 'RS256';
  // The tenant file is checked for it; with a store that was edited by hand this fails instead of signing with
  // another key.
  if (alg === 'HS256') throw new Error(`the API ${api?.identifier} has HS256, and takes anonymous users`);
  const rfc9068 = api?.token_dialect.startsWith('rfc9068') === true;
  const claims = {
    iss: issuer,
    sub: subject,
    aud: api?.identifier ?? `${issuer}anonymous`,
    iat: now,
    exp: now + seconds,
    ...(rfc9068 ? { client_id: clientId, jti: random(16).toString('base64url') } : { azp: clientId }),
    ...(scope !== '' && { scope }),
    gty: ANONYMOUS,
    ...(api?.token_dialect.endsWith('_authz') === true && {
      permissions: scopeValues(scope),
    }),
  };
  // Always `at+jwt` (RFC 9068 §2.1), whatever the API's token dialect, so that nobody takes it for an ID token.
  return { token: await signJwt(signing, { alg, typ: 'at+jwt' }, claims), seconds };
}

export const anonymous = feature<AnonymousDependencies>({
  name: 'anonymous',
  limits,
  events: logEvents,
  routes: anonymousRoutes,
});
