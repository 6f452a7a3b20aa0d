// The bridge of refresh tokens: what the old tenant says of a refresh token that is not known here. Everything else is in
// src/engine/token/moved-refresh-tokens.ts.
import type { JWTPayload } from 'jose';
import type { Context } from 'koa';
import type { Logger } from 'pino';
import type { RateLimits } from '../../capabilities/protection/rate-limit.ts';
import type { Organizations } from '../../engine/admission/admission.ts';
import type {
  MovedGrant,
  OldRefreshTokens,
  OldTokenOutcome,
} from '../../engine/token/moved-refresh-tokens.ts';
import type { Frozen } from '../../records/base/record.ts';
import { authenticationMethod } from '../../records/clients/client-authentication.ts';
import type { Client } from '../../records/collections.ts';
import { isOpen, type MoveRecord } from '../../records/tenant/move.ts';
import type { Background } from '../../runtime/background.ts';
import type { Config } from '../../tenant/config.ts';
import type { Events } from '../../tenant/events.ts';
import type { CountMove } from './move-counts.ts';
import { moveEvents, moveLimits } from './move-declaration.ts';
import { credentialsAt } from './old-credentials.ts';
import type { SendToOldTenant } from './old-requests.ts';
import {
  type OldCredentials,
  type OldTokenDependencies,
  type OldTokens,
  readOldAccessToken,
  requestOldTokens,
  revokeOldToken,
  verifyOldIdToken,
} from './old-tokens.ts';
import {
  methodsIn,
  NotAdmitted,
  type OldUserDependencies,
  onlyConnection,
  userOfProof,
} from './old-users.ts';

export interface RefreshBridgeDependencies extends OldTokenDependencies, OldUserDependencies {
  oldTenantSends: Readonly<Record<'refresh_tokens', SendToOldTenant>>;
  config: Config;
  events: Pick<Events, 'record'>;
  log: Pick<Logger, 'warn'>;
  rateLimits: Pick<RateLimits, 'spend' | 'giveBack'>;
  background: Pick<Background, 'run'>;
  isMember: Organizations['isMember'];
  countMove: CountMove;
}

/**
 * The forms of the hosted service's refresh tokens: of 46 characters in older tenants, of some ninety after `v1.` in
 * others. Ours have 65.
 */
const FORM = /^(?:v1\.[\w-]{40,200}|[\w-]{40,64})$/;

/** The most scopes that are taken over. */
const MAX_SCOPES = 200;

export function oldRefreshTokens(deps: RefreshBridgeDependencies): OldRefreshTokens {
  const { config, rateLimits, wallClock } = deps;
  /** Returns the move, the application and its credentials there; undefined where the old tenant is not asked for it. */
  const openFor = async (ctx: Context, clientId: string) => {
    const [move, client] = await Promise.all([config.move(), config.client(clientId)]);
    if (move === undefined || client === undefined) return undefined;
    if (!isOpen(move, move.refresh_tokens, wallClock())) return undefined;
    // A token that is bound to a key is bound to it there; nothing of it can be proved by us.
    if (ctx.get('DPoP') !== '') return undefined;
    const credentials = credentialsAt(move, client);
    return credentials && { move, client, credentials };
  };
  return {
    hasForm: (token) => FORM.test(token),
    isOpenTo: async (ctx, clientId) => (await openFor(ctx, clientId)) !== undefined,
    admit: async (ctx, clientId) => {
      const client = await config.client(clientId);
      for (const [limit, key] of limitsFor(ctx, client))
        if (!(await rateLimits.spend(limit, key))) return false;
      return true;
    },
    redeem: async (ctx, { clientId, token }, issue) => {
      const open = await openFor(ctx, clientId);
      if (open === undefined) return 'failed';
      const outcome = await redeem(deps, ctx, open, { token, issue });
      deps.countMove('refresh_tokens', outcome);
      // Only tokens that bring none of ours take from the limits in the end.
      if (outcome === 'moved')
        for (const [limit, key] of limitsFor(ctx, open.client)) await rateLimits.giveBack(limit, key);
      return outcome;
    },
  };
}

/** Anybody can send tokens as a public application, so these are limited by address, too. */
function limitsFor(ctx: Context, client: Client | undefined) {
  const { oldTokensOfAddress, oldTokensOfClient, oldTokens } = moveLimits;
  const isPublic = client === undefined || authenticationMethod(client) === 'none';
  return [
    ...(isPublic ? [[oldTokensOfAddress, ctx.ip] as const] : []),
    [oldTokensOfClient, client?.client_id ?? ''] as const,
    [oldTokens, ''] as const,
  ];
}

interface Open {
  move: Frozen<MoveRecord>;
  client: Client;
  credentials: OldCredentials;
}

async function redeem(
  deps: RefreshBridgeDependencies,
  ctx: Context,
  open: Open,
  { token, issue }: { token: string; issue: (grant: MovedGrant) => Promise<boolean> },
): Promise<OldTokenOutcome> {
  const { client, credentials, move } = open;
  const about = { client_id: client.client_id, ip: ctx.ip };
  let redeemed: ReadonlySet<string> | undefined;
  try {
    const tokens = await requestOldTokens(deps.oldTenantSends.refresh_tokens, move, credentials, {
      grant_type: 'refresh_token',
      refresh_token: token,
    });
    if (tokens === undefined) return 'refused';
    redeemed = new Set([tokens.refresh_token ?? token, token]);
    const grant = await grantOf(deps, open, tokens);
    if (!(await issue(grant)))
      throw new NotAdmitted('its user may not have a refresh token of this application or API here');
    revokeThere(deps, open, redeemed);
    const { userId: user_id, audience, scopes } = grant;
    const details = { ...(audience !== undefined && { audience }), scope: scopes.join(' ') };
    deps.events.record({ type: moveEvents.moved_refresh_token, ...about, user_id, details });
    return 'moved';
  } catch (thrown) {
    const description = thrown instanceof Error ? thrown.message.slice(0, 300) : 'it failed';
    deps.events.record({ type: moveEvents.old_refresh_token_failed, ...about, description });
    if (!(thrown instanceof NotAdmitted)) {
      // Not revoked: what failed may be the old tenant's keys, which can be read again, with the same token.
      deps.log.warn({ err: thrown }, 'a refresh token was not moved');
      return 'failed';
    }
    if (redeemed !== undefined) revokeThere(deps, open, redeemed);
    return 'refused';
  }
}

/** Revokes tokens at the old tenant: the one that was redeemed, and what it was rotated to. The request does not wait for it. */
function revokeThere(
  deps: RefreshBridgeDependencies,
  { move, credentials, client }: Open,
  tokens: ReadonlySet<string>,
): void {
  deps.background.run('the revocation of a refresh token at the old tenant', async () => {
    for (const token of tokens) {
      try {
        await revokeOldToken(deps.oldTenantSends.refresh_tokens, move, credentials, token);
      } catch (thrown) {
        const description =
          `It was not revoked there: ${thrown instanceof Error ? thrown.message : ''}`.slice(0, 300);
        deps.events.record({
          type: moveEvents.old_refresh_token_failed,
          client_id: client.client_id,
          description,
        });
      }
    }
  });
}

/**
 * Verifies what the old tenant has answered.
 * @throws NotAdmitted; AuthError of upstreamFault, OldTenantFault, JOSEError for an answer that is not accepted.
 */
async function grantOf(
  deps: RefreshBridgeDependencies,
  { move, client, credentials }: Open,
  { access_token: accessToken, id_token: idToken, scopes: granted }: OldTokens,
): Promise<MovedGrant> {
  const { client_id: clientId, client_secret } = credentials;
  // An application whose ID tokens are signed with its secret; a public one has none that counts.
  const signsWithSecret = client.jwt_configuration?.alg === 'HS256' && credentials.method !== 'none';
  const secret = signsWithSecret ? client_secret : undefined;
  const [claims, access] = await Promise.all([
    idToken === undefined
      ? undefined
      : verifyOldIdToken(deps, move, idToken, { clientId, secret, accessToken }),
    readOldAccessToken(deps, move, accessToken, clientId),
  ]);
  const userId = claims?.sub ?? access?.userId;
  if (userId === undefined) throw new NotAdmitted('its answer names no user: the token is without openid');
  if (access !== undefined && access.userId !== userId) throw new NotAdmitted('its tokens are of two users');
  const { amr, acr, auth_time, org_id }: JWTPayload = claims ?? {};
  const authTime = typeof auth_time === 'number' ? auth_time : undefined;
  const user = await userOfProof(deps, move, userId, authTime);
  const organization = typeof org_id === 'string' ? org_id : undefined;
  if (organization !== undefined && !(await deps.isMember(organization, user.id)))
    throw new NotAdmitted('its user is no member of the organization here');
  return {
    userId: user.id,
    amr: methodsIn(amr),
    acr: typeof acr === 'string' ? acr.slice(0, 200) : undefined,
    authTime,
    scopes: scopesOf(access?.scopes, granted),
    audience: await audienceOf(deps, access?.audiences ?? []),
    organization,
    connection: await onlyConnection(deps, user.id),
  };
}

/** Returns the scopes that the old tenant has granted. A refresh token was granted `offline_access`. */
function scopesOf(ofToken: readonly string[] = ['openid'], ofAnswer: readonly string[] = ofToken): string[] {
  return [...new Set(['offline_access', ...ofAnswer])].slice(0, MAX_SCOPES);
}

// docs/understand/decisions/moving.md#an-opaque-access-token-of-the-old-tenant-moves-to-no-api
/** Returns the API that an access token is for. @throws NotAdmitted where it is for several, or for none of here. */
async function audienceOf(
  { config }: Pick<RefreshBridgeDependencies, 'config'>,
  audiences: readonly string[],
): Promise<string | undefined> {
  const [audience, ...others] = audiences;
  if (others.length > 0) throw new NotAdmitted('its access token is for several APIs');
  if (audience !== undefined && (await config.resourceServer(audience)) === undefined)
    throw new NotAdmitted('its API is not here');
  return audience;
}
