// POST /anonymous/token and /anonymous/logout: tokens of anonymous sessions (docs/wire/anonymous.md).
import type { Context } from 'koa';
import { z } from 'zod';
import type { Challenges } from '../../../capabilities/protection/challenges.ts';
import { ANONYMOUS_TRANSFER, issueTransfer, TRANSFER_SECONDS } from '../../../engine/anonymous-transfer.ts';
import { AuthError, oauthShape } from '../../../http/errors.ts';
import { CLIENT_FIELDS, optional, required } from '../../../http/parameter-schemas.ts';
import { type RouteDeclarations, withBody } from '../../../http/routes.ts';
import { epochSeconds } from '../../../runtime/clock.ts';
import type { Events } from '../../../tenant/events.ts';
import { accessOf, accessToken } from './access.ts';
import { readSession, type SessionDependencies, startSession } from './session-token.ts';

export interface AnonymousDependencies extends SessionDependencies {
  challenges: Pick<Challenges, 'issueTicket'>;
  events: Pick<Events, 'record'>;
  /** Authenticates the application that sent the request. @returns its client_id. */
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

const api = { limit: 'anonymous', cors: 'applications', errors: oauthShape } as const;

export const anonymousRoutes: RouteDeclarations<AnonymousDependencies> = {
  'POST /anonymous/token': {
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
    ...withBody(tokenBody, issueTokens),
  },
  'POST /anonymous/logout': {
    ...api,
    summary: 'End the session of a visitor; the application deletes the session token',
    bodyTypes: ['json'],
    answers: { 204: 'Accepted; the server stores nothing about the session' },
    ...withBody(logoutBody, endSession),
  },
};

async function issueTokens(
  deps: AnonymousDependencies,
  ctx: Context,
  { session_token: sessionToken, audience, scope, metadata: newMetadata }: z.output<typeof tokenBody>,
): Promise<void> {
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
    events.record({ type: 'anonymous_session', client_id: clientId, ip: ctx.ip, description });
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
  { client_id: clientId }: z.output<typeof logoutBody>,
): Promise<void> {
  if ((await config.client(clientId)) === undefined)
    throw new AuthError(401, 'invalid_client', 'Unauthorized');
  ctx.set('Cache-Control', 'no-store');
  ctx.status = 204;
}
