// The end of a login at the token endpoint: from the authenticated user to the token response.
import type { Context } from 'koa';
import type { Client, Grant, KoaContextWithOIDC } from 'oidc-provider';
import { executionDetails } from '../actions/actions.ts';
import { AuthError } from '../http/errors.ts';
import type { EventType } from '../records/log-events.ts';
import type { Events } from '../tenant/events.ts';
import { type Login, methodsOfFirstFactor } from '../users/login.ts';
import type { User } from '../users/user.ts';
import { applicationSettings } from './applications.ts';
import { toAudience } from './audience.ts';
import type { AuthorizationDetail } from './authorization-details.ts';
import type { JudgedUsers } from './claims.ts';
import type { Commits } from './commit.ts';
import { actorOf, exchangedOf } from './exchanged.ts';
import { buildGrant, type GrantDependencies } from './grants.ts';
import { issueTokenResponse } from './internals.ts';
import type { LoginActions } from './login-actions.ts';
import type { LoginExecutions } from './login-executions.ts';
import type { ProvedKeys } from './proof-of-possession.ts';
import { grantableScopes, refuseUnasked, requestedResource } from './requested-api.ts';
import type { SecondFactor } from './second-factor.ts';
import type { Settle } from './settle.ts';

export interface TokenDependencies extends GrantDependencies {
  events: Events;
  secondFactor: Pick<SecondFactor, 'refusal' | 'factorsOf'>;
  settle: Settle;
  commits: Commits;
  judged: JudgedUsers;
  loginActions: Pick<LoginActions, 'atToken'>;
  executions: LoginExecutions;
}

/** What a token request needs besides its parameters. */
interface AskedTokens {
  /** As recorded in the tokens. */
  gty: string;
  /** The log event of the exchange, if it has one besides the login's. */
  event: EventType | undefined;
  /** @see GrantRequest.userAddress */
  userAddress: string | undefined;
  /** The id of the organization that the tokens are for. */
  organization: string | undefined;
  /** @see Granted.isFromPages */
  isFromPages: boolean | undefined;
  /** @see Granted.isRecorded */
  isRecorded: boolean | undefined;
  /** What the tokens are bound to. */
  keys: ProvedKeys;
  /** @see CompletedRequest.authorizationDetails */
  authorizationDetails?: AuthorizationDetail[] | undefined;
}

/**
 * Issues tokens to an authenticated user for the requested scopes and API.
 * @throws AuthError when the user is blocked or no member of the organization, a second factor is missing, or the
 *   application is a third party, which needs consent.
 */
export async function respondWithTokens(
  deps: TokenDependencies,
  ctx: KoaContextWithOIDC,
  given: Login,
  asked: AskedTokens,
): Promise<void> {
  const { provider, client } = ctx.oidc;
  if (client === undefined) throw new TypeError('a grant is asked for without an application');
  const { clientId } = client;
  if (!applicationSettings(client).firstParty && asked.isFromPages !== true) {
    throw new AuthError(
      403,
      'unauthorized_client',
      'Third-party applications must send the user to /authorize.',
    );
  }
  const resource = await requestedResource(deps, ctx);
  const scopes = await grantableScopes(deps, ctx, resource);
  if (asked.isFromPages !== true) await refuseUnasked(deps, resource);
  const about = { ...asked, clientId, resource };
  const factorsOf = (userId: string) => deps.secondFactor.factorsOf(userId);
  // At once: a change of the factors that comes between them ends what is given for the older one.
  const [{ login, user }, known] = await Promise.all([
    judgedLogin(deps, ctx, given, { ...about, scopes }),
    factorsOf(given.userId),
  ]);
  const { organization } = asked;
  const grant = await buildGrant(
    deps,
    provider,
    { userId: login.userId, user, client, organization },
    { scopes, resources: resource === undefined ? [] : [resource] },
  );
  Object.assign(grant, {
    amr: [...login.amr],
    credentialVersion: login.credentialVersion,
    factors: login.userId === given.userId ? known : await factorsOf(login.userId),
    // Whoever asks for what was allowed elsewhere, by a device code for instance, need not be the user who was there.
    ...(asked.isFromPages !== true && login.isTimeUnproved !== true && { authTime: login.authTime }),
    ...(organization !== undefined && { organization }),
    ...(login.connection !== '' && { connection: login.connection }),
  });
  const isRecorded = asked.isRecorded === true && login.userId === given.userId;
  const refusal = await deps.settle.settle(login, clientId, {
    store: (...loginWrites) =>
      deps.commits.together(loginWrites, () =>
        issue(ctx, login, client, { ...asked, ...asked.keys, grant, scopes, resource }),
      ),
    takeBack: () => Promise.all([grant.destroy(), provider.AccessToken.revokeByGrantId(grant.jti)]),
    execution: deps.executions.of(ctx),
    // Of another user, whom an action has put in place of theirs, it is the first login.
    isRecorded,
  });
  if (refusal !== undefined) throw refusal;
  recordExchange(deps, ctx, login, { type: asked.event, clientId, isRecorded });
}

/** Records what the tokens were given for, where that has an event of its own. */
function recordExchange(
  { events, executions }: Pick<TokenDependencies, 'events' | 'executions'>,
  ctx: KoaContextWithOIDC,
  { userId, ip }: Login,
  { type, clientId, isRecorded }: { type: EventType | undefined; clientId: string; isRecorded: boolean },
): void {
  if (type === undefined) return;
  // Of a login that was not recorded before, its own event has them.
  const details = isRecorded ? executionDetails(executions.of(ctx)) : {};
  events.record({ type, client_id: clientId, user_id: userId, ip, ...details });
}

type Judged = AskedTokens & { clientId: string; resource: string | undefined };

/**
 * A login that is good, after the actions of the tenant; that of another user where one of them names whom it was linked to.
 * @throws AuthError as {@link refuseUnfit}.
 */
async function judgedLogin(
  deps: TokenDependencies,
  ctx: KoaContextWithOIDC,
  login: Login,
  asked: Judged & { scopes: ReadonlySet<string> },
): Promise<{ login: Login; user: User }> {
  const user = await enter(deps, ctx, login, asked);
  const { clientId, organization, scopes } = asked;
  const toJudge = { ...login, user, clientId, organization, scopes: [...scopes] };
  const run = { ...toJudge, protocol: protocolOf(asked.gty), isUncounted: asked.isRecorded !== true };
  const { lacksFactor, primary, keep } = await deps.loginActions.atToken(ctx, run);
  if (primary === undefined) {
    if (lacksFactor) throw await lacksFactorOf(deps, ctx, login, asked);
    await keep();
    return { login, user };
  }
  // Judged as any login of that user would be.
  const { userId, credentialVersion } = primary;
  const amr = methodsOfFirstFactor(login.amr);
  const other = { ...login, userId, credentialVersion, amr, acr: undefined };
  // What the pages asked for, they asked of the one that the login was of.
  const judged = await enter(deps, ctx, other, { ...asked, isFromPages: false });
  if (lacksFactor) throw await lacksFactorOf(deps, ctx, other, asked);
  await keep();
  return { login: other, user: judged };
}

/** Judges a login, and makes its user a member whom the connection makes one. @throws AuthError as {@link refuseUnfit}. */
async function enter(
  deps: TokenDependencies,
  ctx: KoaContextWithOIDC,
  login: Login,
  asked: Judged,
): Promise<User> {
  const user = await refuseUnfit(deps, ctx, login, asked);
  const { clientId, organization } = asked;
  // Whom the connection makes a member is one from here on.
  const outside = await deps.organizations.enter(login, { clientId, organization });
  if (outside !== undefined) throw outside;
  deps.judged.set(ctx.oidc, user);
  return user;
}

/** Stores the grant and issues its tokens, in the token response. */
async function issue(
  ctx: KoaContextWithOIDC,
  { userId, amr, acr, authTime }: Login,
  client: Client,
  what: ProvedKeys & {
    grant: Grant;
    scopes: ReadonlySet<string>;
    resource: string | undefined;
  } & Pick<AskedTokens, 'gty' | 'authorizationDetails'>,
): Promise<void> {
  const { grant, scopes, resource, gty, dPoP, authorizationDetails: rar } = what;
  const { provider } = ctx.oidc;
  const grantId = await grant.save();
  ctx.oidc.entity('Grant', grant);
  // Never stored: the engine issues tokens from this shape.
  const source = new provider.AuthorizationCode({ accountId: userId, client, grantId } as never);
  Object.assign(source, {
    scope: [...scopes].join(' '),
    authTime,
    ...(resource === undefined ? {} : { resource }),
    amr: [...amr],
    ...(acr === undefined ? {} : { acr }),
    ...(rar === undefined ? {} : { rar }),
  });
  await issueTokenResponse(provider, ctx, source, grant, { gty, dPoP });
}

/**
 * @returns the user whose login it is.
 * @throws AuthError when the login does not hold any more, or its user may not come in; 403, with the way to go on,
 *   where it lacks a second factor.
 */
async function refuseUnfit(
  { settle, secondFactor }: TokenDependencies,
  ctx: KoaContextWithOIDC,
  login: Login,
  asked: AskedTokens & { clientId: string; resource: string | undefined },
): Promise<User> {
  const { clientId, resource, userAddress, organization, isFromPages } = asked;
  const verdict = await settle.judge(login, {
    clientId,
    organization,
    acrValues: [],
    audience: resource === undefined ? undefined : toAudience(resource),
    browser: false,
    isComplete: isFromPages,
    userAddress,
    ctx: ctx as unknown as Context,
  });
  if (verdict.is === 'refused') throw verdict.refusal;
  if (verdict.is === 'complete') return verdict.user;
  throw await lacksFactorOf({ secondFactor }, ctx, login, asked);
}

/** As the hosted service calls a login at the token endpoint. */
const protocolOf = (gty: string): string => {
  const name = gty.slice(gty.lastIndexOf(':') + 1).replaceAll('_', '-');
  return name === 'ciba' ? 'oidc-ciba' : `oauth2-${name}`;
};

/** The refusal of a login that lacks a second factor, with the way to go on; one of our pages has none here. */
async function lacksFactorOf(
  { secondFactor }: Pick<TokenDependencies, 'secondFactor'>,
  ctx: KoaContextWithOIDC,
  login: Login,
  asked: AskedTokens & { clientId: string; resource: string | undefined },
): Promise<AuthError> {
  const { clientId, resource, gty, organization } = asked;
  // The token for a second factor also enrols one: it is for who has just given the first, not for who holds a token.
  // And what follows it would not say who acts.
  if (exchangedOf(ctx) !== undefined || actorOf(ctx) !== undefined)
    return new AuthError(400, 'invalid_request', 'The subject_token lacks the second factor that is needed.');
  const { scope } = ctx.oidc.params ?? {};
  return secondFactor.refusal(login.userId, clientId, {
    scope: typeof scope === 'string' ? scope : '',
    gty,
    firstFactor: login,
    ...(resource !== undefined && { resource }),
    ...(organization !== undefined && { organization }),
  });
}
