// The MFA grants (docs/reference/wire/mfa.md), which give a second factor at the token endpoint.
import { z } from 'zod';
import type {
  AuthenticatedLogin,
  CompletedRequest,
  LoginRequirements,
  SecondFactor,
} from '../../engine/admission/second-factor.ts';
import { toResource } from '../../engine/base/request-extensions.ts';
import type { ApiToken, ApiTokenReader } from '../../engine/token/api-tokens.ts';
import type { BegunGrant, GrantDeclaration, GrantedLogin, GrantRequest } from '../../engine/token/tokens.ts';
import { AuthError } from '../../http/errors.ts';
import { languagesOf } from '../../http/languages.ts';
import { required } from '../../http/parameter-schemas.ts';
import { requiredField } from '../../http/server/body.ts';
import { authenticationClasses, MFA_POLICY } from '../../records/users/authentication-classes.ts';
import { type Clock, epochSeconds } from '../../runtime/clock.ts';
import { readPresence, withSecondFactor } from '../../users/login.ts';
import { issueChallenge } from './challenge-pages.ts';
import type { Factor, FactorDependencies, MfaGrant } from './factor.ts';
import { FACTORS } from './factors.ts';
import { activeAuthenticators, enrollable, hasFactor, policyFor, requirementsOf } from './policy.ts';

export interface MfaGrantDependencies extends FactorDependencies {
  mfaApi: string;
  readApiToken: ApiTokenReader;
  /** The clock for `auth_time`. */
  wallClock: Clock;
}

const mfaToken = required('The token from the error `mfa_required`, or from an enrolment.');

/** The MFA grants, one for each distinct grant of the factors. */
export const mfaGrants: readonly GrantDeclaration<MfaGrantDependencies>[] = [
  ...new Set(FACTORS.flatMap(({ grant }) => grant ?? [])),
].map((grant) => ({
  grantType: `/oauth/grant-type/mfa-${grant.name}`,
  summary: grant.summary,
  parameters: z.object({ mfa_token: mfaToken, ...grant.parameters.shape }),
  gty: `mfa-${grant.name}`,
  events: grant.events,
  begin: (deps, request) => begin(deps, request, grant),
}));

/** Does what all MFA grants share: reads the MFA token, then verifies the factor and uses the token. */
async function begin(
  deps: MfaGrantDependencies,
  request: GrantRequest,
  grant: MfaGrant,
): Promise<BegunGrant> {
  const token = requiredField(request.params, 'mfa_token');
  const enrollment = await enrollToken(deps, token, request);
  const session = enrollment?.session ?? (await readMfaToken(deps, token, request.clientId));
  if (session.clientId !== request.clientId) throw malformed();
  return {
    completes: session.request,
    authenticate: () => complete(deps, request, grant, { session, token: enrollment?.token }),
  };
}

async function complete(
  deps: MfaGrantDependencies,
  request: GrantRequest,
  grant: MfaGrant,
  { session, token }: { session: MfaSession; token: ApiToken | undefined },
): Promise<Omit<GrantedLogin, 'completes'>> {
  const { clientId, ip } = request;
  const user = await deps.users.get(session.userId);
  if (user === undefined) throw malformed();
  const { firstFactor } = session.request;
  const { credentialVersion, presence } = firstFactor;
  const login = { credentialVersion, presence, token };
  const claimant = { user, clientId, ip, ...login, languages: languagesOf(request.ctx) };
  const verified = await grant.verify(deps, claimant, request.params);
  if (!verified.ok) {
    if (verified.isGuess && token === undefined) await countMfaTokenFailure(deps, session);
    throw verified.error;
  }
  if (token === undefined) {
    if (!(await spendMfaToken(deps, session))) throw malformed();
    if (request.userAddress !== undefined)
      await deps.browsers.recordAddress(request.userAddress, firstFactor);
  }
  const factor = { amr: [], acr: MFA_POLICY, authTime: epochSeconds(deps.wallClock), ip };
  return {
    login: withSecondFactor(firstFactor, factor),
    ...(verified.recoveryCode !== undefined && { extra: { recovery_code: verified.recoveryCode } }),
  };
}

/**
 * Accepts an access token for the MFA API in place of an MFA token, to confirm what was enrolled with it.
 * @returns undefined when `text` is an MFA token.
 * @throws AuthError 401 when the access token lacks the scope `enroll` or has ended.
 */
async function enrollToken(
  deps: MfaGrantDependencies,
  text: string,
  { ip, ctx }: Pick<GrantRequest, 'ip' | 'ctx'>,
): Promise<{ session: MfaSession; token: ApiToken } | undefined> {
  if (text.split('.').length !== 3) return undefined;
  const token = await deps.readApiToken(ctx, text, deps.mfaApi);
  if (token?.scopes.includes('enroll') !== true) throw malformed();
  if ((await deps.elevation.permissionOf(token)) === undefined) throw malformed();
  const { userId, clientId, scopes, claims } = token;
  const firstFactor = {
    userId,
    amr: claims.amr as string[],
    presence: readPresence(claims.presence),
    connection: '',
    authTime: epochSeconds(deps.wallClock),
    ip,
    credentialVersion: Number(claims.credential_version),
  };
  const request = { scope: scopes.join(' '), gty: 'mfa', resource: toResource(deps.mfaApi), firstFactor };
  return { session: { userId, clientId, request, ticket: '' }, token };
}

// The MFA token of `mfa_required` (docs/reference/wire/mfa.md).

// docs/understand/decisions/second-factors.md#an-mfa-token-is-opaque-and-bound-to-user-application-and-request
/** Lifetime of an MFA token in seconds, and how many wrong codes it allows. */
const TOKEN_SECONDS = 600;
const TOKEN_TRIES = 10;
const PURPOSE = 'mfa_token';

type TokenDependencies = Pick<FactorDependencies, 'challenges' | 'clock' | 'random' | 'users'>;

interface MfaSession {
  userId: string;
  clientId: string;
  request: CompletedRequest;
  /** The part of the token that the store keeps as a hash. */
  ticket: string;
}

/** Issues an MFA token for a login that lacks its second factor. */
async function issueMfaToken(
  { challenges, clock, random }: TokenDependencies,
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
  // The expiry is readable in the token, so that a token whose record is gone still gets `expired_token`.
  return `${secret}.${(epochSeconds(clock) + TOKEN_SECONDS).toString(36)}`;
}

/**
 * @param clientId the application that must have received the token; undefined for any.
 * @throws AuthError 401 `expired_token` or `invalid_grant`.
 */
export async function readMfaToken(
  { challenges, clock, users }: TokenDependencies,
  token: string,
  clientId?: string,
): Promise<MfaSession> {
  const [ticket = '', expiry = ''] = token.split('.');
  const verifiedChallenge = await challenges.peekTicket(PURPOSE, ticket);
  if (verifiedChallenge?.userId === undefined) {
    const isExpired = /^[0-9a-z]{5,9}$/.test(expiry) && Number.parseInt(expiry, 36) <= epochSeconds(clock);
    if (isExpired) throw new AuthError(401, 'expired_token', 'mfa_token is expired');
    throw malformed();
  }
  const { clientId: issuedTo, request } = verifiedChallenge.data as {
    clientId: string;
    request: CompletedRequest;
  };
  if (clientId !== undefined && clientId !== issuedTo) throw malformed();
  // The token may have been issued while a new password was being set.
  if ((await users.credentialVersion(verifiedChallenge.userId)) !== request.firstFactor.credentialVersion)
    throw malformed();
  return { userId: verifiedChallenge.userId, clientId: issuedTo, request, ticket };
}

/** Returns the error for a wrong MFA token. SDKs compare its text (docs/reference/wire/mfa.md). */
export function malformed(): AuthError {
  return new AuthError(401, 'invalid_grant', 'Malformed mfa_token');
}

/** @returns false when another request has used it. */
async function spendMfaToken({ challenges }: TokenDependencies, { ticket }: MfaSession): Promise<boolean> {
  return (await challenges.spendTicket(PURPOSE, ticket)) !== undefined;
}

/** Counts a wrong code against an MFA token. */
function countMfaTokenFailure({ challenges }: TokenDependencies, { ticket }: MfaSession): Promise<void> {
  return challenges.countFailure(PURPOSE, ticket);
}

// The engine's view of second factors: whether a login needs one, and what to answer when it lacks one.

/** SDKs compare this text character by character. */
const REQUIRED = 'Multifactor authentication required';

/**
 * Returns what the engine needs to know of second factors ({@link SecondFactor}).
 * @param userApis the identifiers of the APIs by which users manage their second factors.
 */
export function createSecondFactor(deps: FactorDependencies, userApis: readonly string[]): SecondFactor {
  return {
    isRequired: (login, asked) => isRequired(deps, userApis, login, asked),
    isSufficient: async (login, user) => {
      if (!login.amr.includes('mfa') && (await hasFactor(deps, user))) return false;
      if ((await deps.users.credentialVersion(user.id)) !== login.credentialVersion) return false;
      return deps.elevation.isCurrent(login);
    },
    error: 'mfa_required',
    description: REQUIRED,
    availabilityOf: async (user, { mode, types }, amr) => {
      const active = await activeAuthenticators(deps, user);
      const has = ({ kind }: Factor) => active.some((one) => one.kind === kind);
      const requested = deps.factors.filter(({ type }) => types.includes(type));
      if (mode === 'challenge') return requested.some(has) ? 'available' : 'unavailable';
      if (!enrollable(deps, user).some((factor) => requested.includes(factor) && !has(factor)))
        return requested.some(has) ? 'enrolled' : 'unavailable';
      return active.length === 0 || amr.includes('mfa') ? 'available' : 'needs-other-factor';
    },
    isRemembered: (ctx, login) => deps.browsers.isRemembered(ctx, login),
    includesFactor: ({ mode, types }, given) => {
      const proves = ({ type, amr }: Factor) =>
        types.includes(type) && amr.length > 0 && amr.every((one) => given.includes(one));
      // Without a password, `otp` may be the code of the first factor.
      const isSecond = given.includes('pwd') && given.includes('mfa');
      return mode === 'challenge' && isSecond && deps.factors.some(proves);
    },
    challenge: (ctx, asked) => issueChallenge(deps, ctx, asked),
    enrolledFactors: async (user) => {
      const kinds = new Set((await activeAuthenticators(deps, user)).map(({ kind }) => kind));
      return deps.factors.filter(({ kind }) => kinds.has(kind)).map(({ type }) => ({ type }));
    },
    factorsOf: (userId) => deps.elevation.lastChangeOf(userId),
    tokenClaims: async (audience, login) =>
      userApis.includes(audience) ? deps.elevation.claimsOf(login) : {},
    refusal: async (userId, clientId, request) => {
      const user = await deps.users.get(userId);
      if (user === undefined) return new AuthError(403, 'invalid_grant', 'The user does not exist.');
      const mfa_token = await issueMfaToken(deps, userId, clientId, request);
      return new AuthError(403, 'mfa_required', REQUIRED, {
        extra: { mfa_token, mfa_requirements: await requirementsOf(deps, user) },
      });
    },
  };
}

async function isRequired(
  deps: FactorDependencies,
  userApis: readonly string[],
  login: AuthenticatedLogin,
  asked: LoginRequirements,
): Promise<boolean> {
  const { userId, amr } = login;
  const { clientId, acrValues, browser, userAddress, ctx } = asked;
  const audience = asked.audience ?? deps.config.settings().tenant.default_audience;
  const managesFactors = audience !== undefined && userApis.includes(audience);
  // A session may outlive a password change, but must not get a token that can change factors.
  if (managesFactors && (await deps.users.credentialVersion(userId)) !== login.credentialVersion) return true;
  // Nor may a session whose second factor may have been removed.
  const hasOutdatedFactor = managesFactors && !(await deps.elevation.isCurrent(login));
  if (amr.includes('mfa') && !hasOutdatedFactor) return false;
  const user = asked.user ?? (await deps.users.get(userId));
  if (user === undefined) return false;
  const isEnrolled = async () => (await activeAuthenticators(deps, user)).length > 0;
  const { needsFactor } = authenticationClasses(deps.config.settings().tenant);
  if (acrValues.some(needsFactor) && (enrollable(deps, user).length > 0 || (await isEnrolled()))) return true;
  // Whatever the policy is: tokens for these APIs add and remove factors, which a password alone must not allow.
  // docs/understand/decisions/second-factors.md#a-token-for-the-mfa-api-requires-the-second-factor-from-every-user-who-has-one
  if (managesFactors && (await isEnrolled())) return true;
  const policy = await policyFor(deps, await deps.config.client(clientId), user);
  if (policy === 'never') return false;
  if (browser && (await deps.browsers.isRemembered(ctx, login))) return false;
  if (policy === 'always') return true;
  // The risk policy: the browser is unknown, or, at the token endpoint, the address. A server that does not send
  // its users' addresses has one address for all of them, attackers included, so it counts as unknown.
  if (browser) return !(await deps.browsers.isKnown(ctx, login));
  return userAddress === undefined || !(await deps.browsers.isKnownAddress(userAddress, login));
}
