// Issues session transfer tokens. An application exchanges its refresh token, or a token that an action has
// checked, for one, and opens a browser with it: a single request to /authorize then begins a session without a
// login page. session-transfer-redemption.ts redeems the tokens.
import type { Context } from 'koa';
import { errors, type Grant, type KoaContextWithOIDC, type RefreshToken } from 'oidc-provider';
import type { Challenges } from '../../capabilities/protection/challenges.ts';
import { AuthError } from '../../http/errors.ts';
import { tenantHostOf } from '../../http/request-target.ts';
import { requestValue } from '../../http/request-value.ts';
import { scopeValues } from '../../records/apis.ts';
import type { Client } from '../../records/collections.ts';
import type { Frozen } from '../../records/record.ts';
import type { SessionTransfer } from '../../records/session-transfer.ts';
import { type Clock, epochSeconds } from '../../runtime/clock.ts';
import type { Random } from '../../runtime/secrets.ts';
import type { Events } from '../../tenant/events.ts';
import { primaryIdentity } from '../../users/changes.ts';
import type { Login, Transfer } from '../../users/login.ts';
import type { Users } from '../../users/users.ts';
import { transferOf } from '../admission/transferred-session.ts';
import { artifactKey } from '../base/artifact-keys.ts';
import { deviceOf } from '../base/device.ts';
import { applicationSettings } from '../client/applications.ts';
import { applyForwardedAddress } from '../client/client-authentication.ts';
import { familyKey } from './refresh-families.ts';
import { credentialVersionOf, factorsOf } from './user-session.ts';

/** The token type identifier of session transfer tokens (RFC 8693 §3). */
const SESSION_TRANSFER_TOKEN = 'urn:auth0:params:oauth:token-type:session_transfer_token';

/** Lifetime of a session transfer token, seconds. */
const TRANSFER_SECONDS = 60;

/** The purpose of the ticket that a session transfer token is. */
export const SESSION_TRANSFER = 'session_transfer';

/** The `audience` that asks for a session transfer token. It contains our host as the application knows it. */
const AUDIENCE = /^urn:(?:https:\/\/)?([^/]+):session_transfer$/;

/** The login that a session transfer token stands for. */
export interface TransferredLogin {
  login: Login & { transfer: Transfer };
  organization?: string | undefined;
  /** {@link SecondFactor.factorsOf} when the second factor was given; undefined for a login without one. */
  factors?: string | undefined;
}

/** Whether an audience asks for a session transfer token of this host. */
export function isTransferAudience(ctx: Context, audience: string | undefined): boolean {
  const { host, hostname } = tenantHostOf(ctx);
  const audienceHost = AUDIENCE.exec(audience ?? '')?.[1];
  return audienceHost !== undefined && (audienceHost === host || audienceHost === hostname);
}

/** The audience with which a token request asks for a session transfer token; undefined when it does not. */
export const transferAudience = requestValue<string>('transfer audience');

interface IssueDependencies {
  challenges: Pick<Challenges, 'issueTicket'>;
  random: Random;
}

/**
 * Issues a session transfer token.
 * @returns the members of the token response that describe it (RFC 8693 §2.2.1).
 */
export async function issueTransferToken(
  { challenges, random }: IssueDependencies,
  transferred: TransferredLogin,
): Promise<Record<string, unknown>> {
  const { secret } = await challenges.issueTicket({
    purpose: SESSION_TRANSFER,
    // A random subject, so that a second token does not replace the first: an application may open two windows at
    // once.
    subject: random(16).toString('base64url'),
    userId: transferred.login.userId,
    ttlSeconds: TRANSFER_SECONDS,
    data: { ...transferred },
  });
  return {
    access_token: secret,
    issued_token_type: SESSION_TRANSFER_TOKEN,
    token_type: 'N_A',
    expires_in: TRANSFER_SECONDS,
  };
}

/**
 * Describes a transfer: the application, the time, and the device that asks.
 * @param scope the scope of the token request.
 */
export function transferFrom(
  ctx: Context,
  { clientId, scope }: { clientId: string; scope: string | undefined },
  wallClock: Clock,
): Transfer {
  const { last_user_agent: userAgent, last_ip: ip } = deviceOf(ctx, undefined);
  return { clientId, at: epochSeconds(wallClock), ip, userAgent, scopes: scopeValues(scope) };
}

/**
 * Checks that an application may create session transfer tokens.
 * @throws AuthError 403 `unauthorized_client` when it may not.
 */
export function refuseTransfer({ session_transfer: settings }: Pick<Client, 'session_transfer'>): void {
  if (!canTransfer(settings)) throw new AuthError(403, 'unauthorized_client', NOT_ENABLED);
}

function canTransfer(settings: Frozen<Partial<SessionTransfer>> | null | undefined): boolean {
  return settings?.can_create_session_transfer_token === true;
}

const NOT_ENABLED = 'Session transfer is not enabled for this client.';

/** Session transfer tokens at the refresh_token grant. */
export interface SessionTransfers {
  /**
   * Checks, before the refresh token is used up, that it may be exchanged for a session transfer token, where one
   * is asked for.
   * @throws errors.CustomOIDCProviderError when it may not.
   */
  check(ctx: KoaContextWithOIDC): void;
  /** Puts a session transfer token in place of the access token, where a refresh has asked for one. */
  answerRefresh(ctx: KoaContextWithOIDC): Promise<void>;
}

interface TransferDependencies extends IssueDependencies {
  users: Pick<Users, 'identitiesOf'>;
  events: Events;
  wallClock: Clock;
}

/** Makes the functions that issue session transfer tokens for refresh tokens. */
export function sessionTransfers(deps: TransferDependencies): SessionTransfers {
  return {
    check: (ctx) => {
      if (transferAudience.of(ctx) === undefined) return;
      const { Client: client, Grant: grant } = ctx.oidc.entities;
      if (client === undefined || !canTransfer(applicationSettings(client).sessionTransfer))
        throw new errors.CustomOIDCProviderError('unauthorized_client', NOT_ENABLED);
      // Otherwise each transferred session could yield the next refresh token, without end.
      if (transferOf(grant) === undefined) return;
      throw new errors.InvalidRequest('A session that was handed over is not handed over again.');
    },
    answerRefresh: async (ctx) => {
      if (transferAudience.of(ctx) === undefined) return;
      const { RefreshToken: token, Grant: grant, Client: client } = ctx.oidc.entities;
      if (token === undefined || grant === undefined || client === undefined)
        throw new TypeError('a refresh without its token');
      applyForwardedAddress(ctx, client);
      const transfer = transferFrom(
        ctx,
        { clientId: client.clientId, scope: ctx.oidc.params?.scope as string | undefined },
        deps.wallClock,
      );
      const transferred = await loginOfRefreshToken(deps, token, grant, transfer);
      const { scope, id_token, refresh_token } = ctx.body as Record<string, unknown>;
      ctx.body = { ...(await issueTransferToken(deps, transferred)), scope, id_token, refresh_token };
      const { userId: user_id, ip } = transferred.login;
      deps.events.record({ type: 'sertft', client_id: client.clientId, user_id, ip });
    },
  };
}

/** The members of a grant that describe its login. */
interface StoredLogin {
  amr?: readonly string[];
  authTime?: number;
  organization?: string;
  connection?: string;
}

async function loginOfRefreshToken(
  { users }: TransferDependencies,
  token: RefreshToken,
  grant: Grant,
  transfer: Transfer,
): Promise<TransferredLogin> {
  const { accountId: userId, acr, jti } = token;
  const { amr = [], authTime, organization, connection } = grant as StoredLogin;
  const parent = familyKey(jti) ?? artifactKey('RefreshToken', jti);
  const connectionName = connection ?? primaryIdentity(await users.identitiesOf(userId))?.connection ?? '';
  return {
    login: {
      userId,
      connection: connectionName,
      amr,
      ...(acr !== undefined && { acr }),
      // The user has proved nothing now.
      presence: 'absent',
      authTime: authTime ?? token.authTime ?? 0,
      ip: transfer.ip,
      credentialVersion: credentialVersionOf(grant),
      transfer: { ...transfer, parent },
    },
    organization,
    factors: factorsOf(grant),
  };
}
