// Refresh tokens of a tenant of the hosted service that this one takes the place of. One that is not known here is
// redeemed once there; then one of ours takes its place, and the request goes on as a refresh with that one, by the rules
// of all refreshes. The value of ours is derived from the other with a secret of this tenant, so that it is found again
// without being stored: an application that repeats its request, or keeps the old value, presents ours with it.
// docs/understand/decisions/moving.md#a-refresh-token-of-the-old-tenant-is-exchanged-for-one-of-ours
import { createHmac } from 'node:crypto';
import type { Context } from 'koa';
import type Provider from 'oidc-provider';
import { type Client, errors, type KoaContextWithOIDC } from 'oidc-provider';
import { thawed } from '../../records/base/record.ts';
import type { ArtifactRecord } from '../../records/state/engine.ts';
import { type Clock, epochSeconds } from '../../runtime/clock.ts';
import type { Random } from '../../runtime/secrets.ts';
import { sha256 } from '../../runtime/secrets.ts';
import { sharedSecret } from '../../store/shared-secret.ts';
import type { Users } from '../../users/users.ts';
import type { SecondFactor } from '../admission/second-factor.ts';
import { toResource } from '../base/request-extensions.ts';
import { applicationSettings } from '../client/applications.ts';
import { derivedTokenId, isRefreshTokenId } from '../session/refresh-families.ts';
import { buildGrant, type GrantDependencies } from './token-grants.ts';

/** What a refresh token of the old tenant stands for, as that tenant has just proved. */
export interface MovedGrant {
  userId: string;
  amr: readonly string[];
  acr: string | undefined;
  /** Epoch seconds; undefined where the old tenant does not say it. */
  authTime: number | undefined;
  /** The scopes that it grants. */
  scopes: readonly string[];
  /** The API that its access tokens are for, by identifier; undefined for none. */
  audience: string | undefined;
  /** The id of the organization, whose member the user is here. */
  organization: string | undefined;
  /** The name of the connection of the user's login, where only one is possible. */
  connection: string | undefined;
}

/**
 * What became of a token of the old tenant. `refused`: it will not be asked about again for a day. `failed`: it could not be asked
 * about, or the answer was not accepted.
 */
export type OldTokenOutcome = 'moved' | 'refused' | 'failed';

export interface OldRefreshTokens {
  /** Whether a text has the form of refresh tokens of the hosted service. */
  hasForm(token: string): boolean;
  /** Whether the old tenant may still be asked about a token of an application. */
  isOpenTo(ctx: Context, clientId: string): Promise<boolean>;
  /** Takes what asking needs from the limits. @returns false if there were too many. */
  admit(ctx: Context, clientId: string): Promise<boolean>;
  /**
   * Redeems a token at the old tenant. Called once for each token and application.
   * @param issue stores ours for it, or returns false where it is not granted here. Only then is anything done for good.
   */
  redeem(
    ctx: Context,
    request: { clientId: string; token: string },
    issue: (grant: MovedGrant) => Promise<boolean>,
  ): Promise<OldTokenOutcome>;
}

interface MovedTokenDependencies extends GrantDependencies {
  users: Users;
  secondFactor: Pick<SecondFactor, 'factorsOf'>;
  clock: Clock;
  random: Random;
}

/** Puts our token in the place of one of the old tenant, before the engine reads the parameters of a refresh. */
export type ReplaceOldToken = (ctx: KoaContextWithOIDC) => Promise<void>;

const SECRET = 'moved refresh tokens';
const MODEL = 'MovedRefreshToken';

/**
 * How long it is remembered that a token was asked about, seconds: while the answer is awaited, after a failure, after a refusal,
 * and after a success, when it must not be redeemed anew once its successor has ended (longer than a move can be open).
 */
const REMEMBERED = { asking: 60, failed: 30, refused: 86_400, moved: 400 * 86_400 } as const;
/** How often a process looks for the outcome while another one asks, and for how long; milliseconds. */
const POLL_MS = 100;
const WAIT_MS = 15_000;

/** How long requests with a token count as sent together with the first one, seconds. */
const AT_ONCE = 30;

type State = keyof typeof REMEMBERED;

export function replaceOldTokens(
  provider: Provider,
  oldRefreshTokens: OldRefreshTokens,
  deps: MovedTokenDependencies,
): ReplaceOldToken {
  const { clock } = deps;
  const artifacts = deps.store.collection('artifacts');
  const exists = async (value: string) =>
    (await provider.RefreshToken.find(value, { ignoreExpiration: true })) !== undefined;
  const remember = async (key: string, state: State) => {
    const at = epochSeconds(clock);
    await artifacts.put({ id: key, model: MODEL, payload: { state, at }, expiresAt: at + REMEMBERED[state] });
  };
  /** @returns whether nobody else has asked about the token, or does. */
  const begin = async (key: string): Promise<boolean> => {
    let isFirst = false;
    const now = epochSeconds(clock);
    await artifacts.upsert(key, (current): ArtifactRecord => {
      isFirst = current === undefined || (current.expiresAt ?? 0) <= now;
      if (current !== undefined && !isFirst) return thawed(current);
      return {
        id: key,
        model: MODEL,
        payload: { state: 'asking', at: now },
        expiresAt: now + REMEMBERED.asking,
      };
    });
    return isFirst;
  };
  /**
   * Refuses requests that came together with the one that was answered, where a used token may not be used again for a time.
   * Taken for the reuse of a stolen token they would end the tokens of that one, too: an application that refreshes in
   * several windows would be logged out by the move.
   * @throws errors.InvalidGrant
   */
  const refuseAtOnce = async (client: Client, key: string): Promise<void> => {
    const { rotation_type: rotation, leeway } = applicationSettings(client).refreshToken;
    if (rotation !== 'rotating' || leeway > 0) return;
    const asked = await artifacts.get(key);
    if (asked !== undefined && epochSeconds(clock) - Number(asked.payload.at) < AT_ONCE)
      throw new errors.InvalidGrant(USED_AT_ONCE);
  };
  /** By key, what requests of this process wait for together: one of them asks, or looks for what another process brings. */
  const waits = new Map<string, Promise<boolean>>();
  const together = (key: string, work: () => Promise<boolean>): Promise<boolean> => {
    const running = work().finally(() => waits.delete(key));
    waits.set(key, running);
    return running;
  };
  /** Waits for the process that asks. @returns whether it has brought our token. */
  const awaitOther = async (key: string, value: string): Promise<boolean> => {
    for (let waited = 0; waited < WAIT_MS; waited += POLL_MS) {
      if (await exists(value)) return true;
      if ((await artifacts.get(key))?.payload.state !== 'asking') return exists(value);
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
    return false;
  };
  /** @returns whether our token is stored now. */
  const ask = async (
    ctx: KoaContextWithOIDC,
    client: Client,
    { key, token, value }: { key: string; token: string; value: string },
  ): Promise<boolean> => {
    let outcome: State = 'failed';
    try {
      outcome = await oldRefreshTokens.redeem(ctx, { clientId: client.clientId, token }, (grant) =>
        issue(deps, provider, client, { grant, value }),
      );
      return outcome === 'moved';
    } finally {
      await remember(key, outcome);
    }
  };
  return async (ctx) => {
    const { client, params } = ctx.oidc;
    const token = params?.refresh_token;
    if (client === undefined || params === undefined || typeof token !== 'string') return;
    if (isRefreshTokenId(token) || !oldRefreshTokens.hasForm(token)) return;
    const { clientId } = client;
    const isOpen = await oldRefreshTokens.isOpenTo(ctx, clientId);
    // After the move, values of the old tenant still mean tokens of ours. Where none has moved, there is no secret.
    if (!isOpen && (await deps.store.collection('sharedSecrets').get(SECRET)) === undefined) return;
    const about = `${clientId}\n${token}`;
    const value = derivedTokenId(
      createHmac('sha512', await sharedSecret(deps, SECRET))
        .update(about)
        .digest(),
    );
    const key = `${MODEL}.sha256:${sha256(about)}`;
    const place = async () => {
      await refuseAtOnce(client, key);
      Object.assign(params, { refresh_token: value });
    };
    if (await exists(value)) return place();
    if (!isOpen) return;
    if (
      !waits.has(key) &&
      (await artifacts.get(key)) === undefined &&
      !(await oldRefreshTokens.admit(ctx, clientId))
    )
      throw tooMany();
    let isAsker = false;
    const running =
      waits.get(key) ??
      together(key, async () => {
        isAsker = await begin(key);
        return isAsker ? ask(ctx, client, { key, token, value }) : awaitOther(key, value);
      });
    if (!(await running)) return;
    if (isAsker) Object.assign(params, { refresh_token: value });
    else await place();
  };
}

/** Not logged as reuse, unlike what comes later. */
const USED_AT_ONCE = 'used by another request at the same time';

function tooMany(): errors.OIDCProviderError {
  const description = 'Too many requests with unknown refresh tokens. Try again later.';
  return Object.assign(new errors.CustomOIDCProviderError('too_many_requests', description), {
    status: 429,
    statusCode: 429,
  });
}

/**
 * Stores our refresh token, with its grant: at most what the old tenant has granted, and what this one allows.
 * @param value the value of the token.
 * @returns false where the user may not have a refresh token here.
 */
async function issue(
  deps: MovedTokenDependencies,
  provider: Provider,
  client: Client,
  { grant: moved, value }: { grant: MovedGrant; value: string },
): Promise<boolean> {
  const { userId, amr, acr, authTime, audience, organization, connection } = moved;
  const api = audience === undefined ? undefined : await deps.config.resourceServer(audience);
  if (audience !== undefined && api === undefined) return false;
  if (api?.allow_offline_access === false) return false;
  const resource = audience === undefined ? undefined : toResource(audience);
  const [credentialVersion, factors, grant] = await Promise.all([
    deps.users.credentialVersion(userId),
    deps.secondFactor.factorsOf(userId),
    buildGrant(
      deps,
      provider,
      { userId, client, organization },
      { scopes: new Set(moved.scopes), resources: resource === undefined ? [] : [resource] },
    ),
  ]);
  const oidcScopes = grant.getOIDCScope();
  // What the user of a third-party application has not consented to here is not in the grant.
  if (!oidcScopes.split(' ').includes('offline_access')) return false;
  Object.assign(grant, {
    amr: [...amr],
    credentialVersion,
    factors,
    // A token stands for the user, who has proved nothing now.
    presence: 'absent',
    ...(organization !== undefined && { organization }),
    ...(connection !== undefined && { connection }),
  });
  const scopes = [
    oidcScopes,
    resource === undefined ? '' : grant.getResourceScopeFiltered(resource, [...moved.scopes]),
  ];
  const token = new provider.RefreshToken({
    accountId: userId,
    client,
    grantId: await grant.save(),
    gty: 'refresh_token',
    jti: value,
    scope: [...new Set(scopes.flatMap((one) => one.split(' ')))].filter(Boolean).join(' '),
    amr: [...amr],
    ...(acr !== undefined && { acr }),
    ...(authTime !== undefined && { authTime }),
    ...(resource !== undefined && { resource }),
  } as never);
  await token.save();
  return true;
}
