// Identity providers revoke the sessions of their users (global token revocation).

import { errors, type JWTVerifyGetKey } from 'jose';
import type { Context } from 'koa';
import { z } from 'zod';
import { verifyJwt } from '../../../capabilities/signing/verify-jwt.ts';
import { recordUse } from '../../../engine/base/request-replay.ts';
import { feature } from '../../../engine/provider/feature.ts';
import type { Sessions } from '../../../engine/session/sessions.ts';
import { AuthError, oauthShape } from '../../../http/errors.ts';
import { limitsOf } from '../../../http/limits.ts';
import { bodyOf } from '../../../http/server/body.ts';
import { lookupEmail } from '../../../records/base/email.ts';
import { eventTypesOf } from '../../../records/base/log-events.ts';
import type { Connection } from '../../../records/collections.ts';
import { strategyRecord } from '../../../records/connections/connections.ts';
import { identityId } from '../../../records/connections/identities.ts';
import { ASYMMETRIC_ALGS } from '../../../records/connections/openid.ts';
import { isHttpsOrLoopback } from '../../../records/connections/upstream.ts';
import { type Clock, epochSeconds } from '../../../runtime/clock.ts';
import type { Store } from '../../../store/contract.ts';
import type { Config } from '../../../tenant/config.ts';
import type { Events } from '../../../tenant/events.ts';
import type { Users } from '../../../users/users.ts';
import type { OpenIdProviders } from '../oidc/providers.ts';

// Global token revocation (draft-parecki-oauth-global-token-revocation; providers call it "universal logout"): an identity
// provider requests, with a JWT that it signs, that one of its users is logged out everywhere.

interface RevocationDependencies {
  baseUrl: string;
  config: Config;
  events: Events;
  openId: OpenIdProviders;
  sessions: Pick<Sessions, 'endAllOf'>;
  store: Store;
  users: Pick<Users, 'withEmail' | 'identitiesOf'>;
  wallClock: Clock;
}

/** Path of the endpoint; the name of the connection follows. */
const REVOCATION = '/oauth/global-token-revocation/connection';

/** Largest age of the JWT, seconds. */
const FRESH = 300;
/** Allowed difference between the provider's clock and ours, seconds. */
const TOLERANCE = 60;

const text = z.string().min(1).max(1_000);

/** The request body: the subject identifier of the user (RFC 9493 §3.2). */
const revocationBody = z.object({
  sub_id: z.discriminatedUnion('format', [
    z.object({ format: z.literal('iss_sub'), iss: text, sub: text }),
    z.object({ format: z.literal('email'), email: text }),
    z.object({ format: z.literal('opaque'), id: text }),
  ]),
});

type SubjectId = z.output<typeof revocationBody>['sub_id'];

/**
 * Ends all sessions and refresh tokens of the user that a provider names; of all of them, if it names several by an e-mail
 * address.
 * @throws AuthError 401 without a valid JWT of the connection's provider, 400 for an unsupported subject identifier, 404 if no
 *   user matches.
 */
async function revokeGlobally(deps: RevocationDependencies, ctx: Context): Promise<void> {
  const { config, events, sessions, store, wallClock } = deps;
  const connection = await config.connection(String(ctx.params.connection));
  const jwt = /^Bearer ([^\s]+)$/i.exec(ctx.get('Authorization'))?.[1];
  const issuer = await verifiedIssuer(deps, connection, jwt);
  if (connection === undefined || jwt === undefined) throw unauthorized();
  const parsed = revocationBody.safeParse(bodyOf(ctx));
  if (!parsed.success) throw new AuthError(400, 'invalid_request', 'The sub_id is none that is known.');
  // The JWT does not name the user: if it could be used twice, it would end the sessions of any user. The signature is left
  // out of the comparison, because some algorithms allow several signatures of the same content.
  // docs/understand/decisions/sessions-logout.md#a-providers-request-to-log-a-user-out-needs-a-jwt-for-this-purpose-used-once
  const signedPart = jwt.slice(0, jwt.lastIndexOf('.'));
  const rememberedUntil = epochSeconds(wallClock) + FRESH + 2 * TOLERANCE;
  if (!(await recordUse(store, ['revocation', connection.name, signedPart], rememberedUntil)))
    throw unauthorized();
  const userIds = await usersOf(deps, connection, issuer, parsed.data.sub_id);
  const details = { connection: connection.name, ip: ctx.ip };
  if (userIds.length === 0) {
    events.record({
      type: logEvents.universal_logout_failed,
      ...details,
      description: 'There is no such user.',
    });
    throw new AuthError(404, 'not_found', 'There is no such user.');
  }
  for (const userId of userIds) {
    await sessions.endAllOf(userId, { reason: 'session-revoked', refreshTokens: true });
    events.record({ type: logEvents.universal_logout_succeeded, ...details, user_id: userId });
  }
}

const unauthorized = () => new AuthError(401, 'invalid_client', 'Unauthorized');

/** Verifies the JWT of a request. @returns its issuer. @throws AuthError 401 if it is not valid for this connection. */
async function verifiedIssuer(
  { baseUrl, openId, wallClock }: RevocationDependencies,
  connection: Connection | undefined,
  jwt: string | undefined,
): Promise<string> {
  const expected = connection && expectedClaims(connection);
  if (connection === undefined || expected === undefined || jwt === undefined) throw unauthorized();
  const { issuer, subject } = expected;
  const key: JWTVerifyGetKey = async (header, token) => {
    const { jwks_uri: address } = await openId.metadata(issuer);
    if (address === undefined) throw new errors.JWKSNoMatchingKey();
    return openId.keysOf(address)(header, token);
  };
  try {
    await verifyJwt(jwt, key, {
      types: ['global-token-revocation+jwt'],
      algorithms: ASYMMETRIC_ALGS,
      issuer,
      audience: `${baseUrl}${REVOCATION}/${encodeURIComponent(connection.name)}`,
      ...(subject !== undefined && { subject }),
      maxTokenAge: FRESH,
      clockTolerance: TOLERANCE,
      currentDate: new Date(wallClock()),
      requiredClaims: ['exp', 'iat', 'iss', 'sub', 'aud'],
    });
    return issuer;
  } catch (thrown) {
    // A JWT that cannot be verified is rejected, even if the reason is that the provider's keys cannot be read.
    throw Object.assign(unauthorized(), { cause: thrown });
  }
}

const settings = z.object({
  global_token_revocation_jwt_iss: z.string().optional().catch(undefined),
  global_token_revocation_jwt_sub: z.string().optional().catch(undefined),
  domain: z.string().optional().catch(undefined),
});

/**
 * Returns the issuer and subject that a connection's JWTs must have: those that its options name, which must be both or
 * none; or else the provider's domain as the issuer, for strategies whose provider uses that.
 */
function expectedClaims({
  strategy,
  options,
}: Connection): { issuer: string; subject: string | undefined } | undefined {
  const {
    global_token_revocation_jwt_iss: issuer,
    global_token_revocation_jwt_sub: subject,
    domain,
  } = settings.parse(options ?? {});
  if (issuer !== undefined && subject !== undefined)
    return isHttpsOrLoopback(issuer) ? { issuer, subject } : undefined;
  const isDomain = strategyRecord(strategy)?.signsAsDomain === true;
  if (!isDomain || !domain || issuer !== undefined || subject !== undefined) return undefined;
  return { issuer: `https://${domain.replace(/^https:\/\/|\/$/g, '')}`, subject: undefined };
}

/** Returns the ids of the users of a connection that a subject identifier names; an e-mail address may name several. */
async function usersOf(
  { store, users }: RevocationDependencies,
  { name }: Connection,
  issuer: string,
  id: SubjectId,
): Promise<string[]> {
  if (id.format === 'email') {
    const found: string[] = [];
    for (const user of await users.withEmail(lookupEmail(id.email) ?? id.email)) {
      const identities = await users.identitiesOf(user.id);
      if (identities.some(({ connection }) => connection === name)) found.push(user.id);
    }
    return found;
  }
  if (id.format === 'iss_sub' && id.iss !== issuer) return [];
  const sub = id.format === 'iss_sub' ? id.sub : id.id;
  const identityRecords = store.collection('identities');
  // For connections whose user identifiers are unique within the connection only, the stored identifier has its name first.
  const found =
    (await identityRecords.get(identityId(name, `${name}|${sub}`))) ??
    (await identityRecords.get(identityId(name, sub)));
  return found === undefined ? [] : [found.user_id];
}

const limits = limitsOf({
  globalRevocation: { capacity: 100, perMinute: 300, per: 'address', where: `\`${REVOCATION}/*\`` },
});

const logEvents = eventTypesOf({
  universal_logout_succeeded: "An identity provider ended a user's sessions and refresh tokens.",
  universal_logout_failed: "An identity provider's request to end a user's sessions matched no user.",
});

export const revocation = feature<RevocationDependencies>({
  name: 'revocation',
  limits,
  events: logEvents,
  routes: {
    [`POST ${REVOCATION}/:connection` as const]: {
      limit: limits.globalRevocation,
      cors: 'none',
      errors: oauthShape,
      summary: "End a user's sessions and refresh tokens, by a JWT that their identity provider signs",
      uncheckedBody: revocationBody,
      bodyTypes: ['json'],
      answers: { 204: 'The sessions and refresh tokens have ended' },
      handle: async (deps, ctx) => {
        await revokeGlobally(deps, ctx);
        ctx.status = 204;
      },
    },
  },
});
