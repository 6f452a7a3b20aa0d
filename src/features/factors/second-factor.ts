// The engine's view of second factors: whether a login needs one, and what to answer when it lacks one.
import type {
  AuthenticatedLogin,
  LoginRequirements,
  SecondFactor,
} from '../../engine/admission/second-factor.ts';
import { AuthError } from '../../http/errors.ts';
import { authenticationClasses } from '../../records/authentication-classes.ts';
import { issueChallenge } from './challenge-pages.ts';
import type { Factor, FactorDependencies } from './factor.ts';
import { issueMfaToken } from './grants.ts';
import { activeAuthenticators, enrollable, policyFor, requirementsOf } from './policy.ts';

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
      if (!login.amr.includes('mfa') && (await activeAuthenticators(deps, user)).length > 0) return false;
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
  const hasFactor = async () => (await activeAuthenticators(deps, user)).length > 0;
  const { needsFactor } = authenticationClasses(deps.config.settings().tenant);
  if (acrValues.some(needsFactor) && (enrollable(deps, user).length > 0 || (await hasFactor()))) return true;
  // Whatever the policy is: tokens for these APIs add and remove factors, which a password alone must not allow.
  // docs/decisions/second-factors.md#a-token-for-the-mfa-api-requires-the-second-factor-from-every-user-who-has-one
  if (managesFactors && (await hasFactor())) return true;
  const policy = await policyFor(deps, await deps.config.client(clientId), user);
  if (policy === 'never') return false;
  if (browser && (await deps.browsers.isRemembered(ctx, login))) return false;
  if (policy === 'always') return true;
  // The risk policy: the browser is unknown, or, at the token endpoint, the address. A server that does not send
  // its users' addresses has one address for all of them, attackers included, so it counts as unknown.
  if (browser) return !(await deps.browsers.isKnown(ctx, login));
  return userAddress === undefined || !(await deps.browsers.isKnownAddress(userAddress, login));
}
