// The second factor as the rest of Gatehouse asks for it: whether a login needs one, the token that an
// application goes on with, and what a user can give.
import type { CompletedRequest, LoginToJudge, SecondFactor } from '../engine/second-factor.ts';
import { AuthError } from '../http/errors.ts';
import type { Attempts } from '../protection/attempts.ts';
import type { Challenges } from '../protection/challenges.ts';
import { type Clock, epochSeconds } from '../runtime/clock.ts';
import type { Random } from '../runtime/random.ts';
import type { Config } from '../tenant/config.ts';
import type { Events } from '../tenant/events.ts';
import { isByAddress } from '../users/identities.ts';
import type { User } from '../users/user.ts';
import type { Users } from '../users/users.ts';
import { type Authenticator, type Authenticators, FACTORS, onlyId } from './authenticators.ts';
import type { KnownBrowsers } from './browsers.ts';
import type { Elevation } from './elevation.ts';
import { canEnroll, demandOf, enabledFactors, type FactorType, MFA_POLICY } from './policy.ts';

/** An MFA token is good for ten minutes and takes ten wrong codes. */
const TOKEN_SECONDS = 600;
const TOKEN_TRIES = 10;
const PURPOSE = 'mfa_token';

const ORDER: FactorType[] = ['otp', 'phone', 'email', 'push-notification', 'recovery-code'];

export interface MfaDependencies {
  config: Config;
  users: Users;
  authenticators: Authenticators;
  elevation: Elevation;
  browsers: KnownBrowsers;
  challenges: Challenges;
  attempts: Attempts;
  events: Events;
  clock: Clock;
  random: Random;
}

/** What an MFA token stands for. */
export interface MfaSession {
  userId: string;
  clientId: string;
  request: CompletedRequest;
  /** The part of the token that is kept as a hash. */
  ticket: string;
}

/** A user's authenticators that count: confirmed, of a factor that is on, and a verified address where e-mail is. */
export async function activeAuthenticators(deps: MfaDependencies, user: User): Promise<Authenticator[]> {
  const factors = enabledFactors(deps.config);
  const own = (await deps.authenticators.of(user.id)).filter(
    ({ active, kind }) => active && factors.has(FACTORS[kind]),
  );
  const profile = factors.has('email') ? await profileEmail(deps, user) : undefined;
  const all = profile === undefined || own.some(({ kind }) => kind === 'email') ? own : [...own, profile];
  // What recovers a factor is none without one.
  return all.some(({ kind }) => kind !== 'recovery-code') ? all : [];
}

/**
 * The verified address of a user's profile is an authenticator by itself, unless it is what
 * they log in with: that would be one factor twice.
 */
async function profileEmail(
  { users }: Pick<MfaDependencies, 'users'>,
  user: User,
): Promise<Authenticator | undefined> {
  if (user.email === undefined || !user.email_verified) return undefined;
  if (isByAddress(await users.identitiesOf(user.id), ['email'])) return undefined;
  return {
    id: onlyId('email', user.id),
    user_id: user.id,
    kind: 'email',
    active: true,
    email: user.email,
    created_at: user.created_at,
  };
}

/** Whether an authenticator is that of the profile, which is in no store. */
export async function isProfileEmail(
  deps: Pick<MfaDependencies, 'users'>,
  user: User,
  { id }: Authenticator,
): Promise<boolean> {
  return (await profileEmail(deps, user))?.id === id;
}

/** `mfa_requirements`: what the user can give, or, who has nothing yet, what they can enrol. */
export async function requirementsOf(
  deps: MfaDependencies,
  user: User,
): Promise<Record<string, { type: FactorType }[]>> {
  const active = await activeAuthenticators(deps, user);
  const types = (kinds: Iterable<FactorType>) => [...new Set(kinds)].map((type) => ({ type }));
  if (active.length > 0) {
    // In the order of the factors, whatever the ids are.
    const kinds = active.map(({ kind }) => FACTORS[kind]);
    return { challenge: types(ORDER.filter((type) => kinds.includes(type))) };
  }
  return {
    enroll: types([...enabledFactors(deps.config)].filter((factor) => factor !== 'recovery-code')),
  };
}

/**
 * The engine's question, answered.
 * @param mfaApi the identifier of the API by which users manage their second factors.
 */
export function createSecondFactor(deps: MfaDependencies, mfaApi: string): SecondFactor {
  return {
    isDemanded: (login) => isDemanded(deps, mfaApi, login),
    factorsOf: (userId) => deps.elevation.factorsOf(userId),
    tokenClaims: async (audience, login) => (audience === mfaApi ? deps.elevation.claimsOf(login) : {}),
    refusal: async (userId, clientId, request) => {
      const user = await deps.users.get(userId);
      if (user === undefined) return new AuthError(403, 'invalid_grant', 'The user does not exist.');
      const mfa_token = await issueMfaToken(deps, userId, clientId, request);
      return new AuthError(403, 'mfa_required', 'Multifactor authentication required', {
        extra: { mfa_token, mfa_requirements: await requirementsOf(deps, user) },
      });
    },
  };
}

async function isDemanded(deps: MfaDependencies, mfaApi: string, login: LoginToJudge): Promise<boolean> {
  const { userId, clientId, amr, acrValues, browser, userAddress, ctx } = login;
  const audience = login.audience ?? deps.config.settings().tenant.default_audience;
  // A session may be kept when a new password is set; no token comes of it that has a say in the factors.
  if (audience === mfaApi && (await deps.users.credentialVersion(userId)) !== login.credentialVersion)
    return true;
  // Nor of one whose second factor need not be among those that the user has now.
  const isOutdated =
    login.factors !== undefined && login.factors !== (await deps.elevation.factorsOf(userId));
  if (amr.includes('mfa') && !(audience === mfaApi && isOutdated)) return false;
  const user = await deps.users.get(userId);
  if (user === undefined) return false;
  if (acrValues.includes(MFA_POLICY) && canEnroll(enabledFactors(deps.config))) return true;
  // Whatever the policy: a token for the MFA API adds and removes factors, which the password alone must not.
  if (audience === mfaApi && (await activeAuthenticators(deps, user)).length > 0) return true;
  const demand = await demandOf(deps, await deps.config.client(clientId), user);
  if (demand === 'never') return false;
  if (browser && (await deps.browsers.isRemembered(ctx, login))) return false;
  if (demand === 'always') return true;
  // Risk: a browser, or at the token endpoint an address, that the user is not known by. A server that does not say
  // where its users are has one address for all of them and for whoever guesses their passwords there.
  if (browser) return !(await deps.browsers.isKnown(ctx, login));
  return userAddress === undefined || !(await deps.browsers.isKnownAddress(userAddress, login));
}

async function issueMfaToken(
  { challenges, clock, random }: MfaDependencies,
  userId: string,
  clientId: string,
  request: CompletedRequest,
): Promise<string> {
  const { secret } = await challenges.issueTicket({
    purpose: PURPOSE,
    subject: random(16).toString('base64url'),
    userId,
    ttlSeconds: TOKEN_SECONDS,
    tries: TOKEN_TRIES,
    data: { clientId, request: { ...request } },
  });
  // Its end in the clear, so that a token whose record is gone can still be called expired.
  return `${secret}.${(epochSeconds(clock) + TOKEN_SECONDS).toString(36)}`;
}

/**
 * What an MFA token stands for, for the application that got it.
 * @throws AuthError 401 `expired_token` or `invalid_grant`.
 */
export async function readMfaToken(
  { challenges, clock, users }: MfaDependencies,
  token: string,
  clientId?: string,
): Promise<MfaSession> {
  const [ticket = '', end = ''] = token.split('.');
  const met = await challenges.peekTicket(PURPOSE, ticket);
  if (met?.userId === undefined) {
    const isOver = /^[0-9a-z]{5,9}$/.test(end) && Number.parseInt(end, 36) <= epochSeconds(clock);
    if (isOver) throw new AuthError(401, 'expired_token', 'mfa_token is expired');
    throw malformed();
  }
  const { clientId: own, request } = met.data as { clientId: string; request: CompletedRequest };
  if (clientId !== undefined && clientId !== own) throw malformed();
  // One that was being issued while a new password was set.
  if ((await users.credentialVersion(met.userId)) !== request.firstFactor.credentialVersion)
    throw malformed();
  return { userId: met.userId, clientId: own, request, ticket };
}

/** SDKs compare the text letter by letter. */
export function malformed(): AuthError {
  return new AuthError(401, 'invalid_grant', 'Malformed mfa_token');
}

/** Uses an MFA token up. @returns false when somebody else was faster. */
export async function spendMfaToken(
  { challenges }: MfaDependencies,
  { ticket }: MfaSession,
): Promise<boolean> {
  return (await challenges.spendTicket(PURPOSE, ticket)) !== undefined;
}

/** A wrong code counts against the token, too. */
export function penaliseMfaToken({ challenges }: MfaDependencies, { ticket }: MfaSession): Promise<void> {
  return challenges.penalise(PURPOSE, ticket);
}
