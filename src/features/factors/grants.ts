// The MFA grants (docs/wire/mfa.md), which give a second factor at the token endpoint.
import { z } from 'zod';
import type { CompletedRequest } from '../../engine/admission/second-factor.ts';
import { toResource } from '../../engine/base/requested-audience.ts';
import type { ApiToken, ApiTokenReader } from '../../engine/token/api-tokens.ts';
import type { BegunGrant, GrantDeclaration, GrantedLogin, GrantRequest } from '../../engine/token/tokens.ts';
import { requiredField } from '../../http/body.ts';
import { AuthError } from '../../http/errors.ts';
import { languagesOf } from '../../http/languages.ts';
import { required } from '../../http/parameter-schemas.ts';
import { MFA_POLICY } from '../../records/authentication-classes.ts';
import { type Clock, epochSeconds } from '../../runtime/clock.ts';
import { primaryIdentity } from '../../users/changes.ts';
import { readPresence, withSecondFactor } from '../../users/login.ts';
import type { FactorDependencies, MfaGrant } from './factor.ts';
import { FACTORS } from './factors.ts';

export interface MfaGrantDependencies extends FactorDependencies {
  /** The identifier of the MFA API. */
  mfaApi: string;
  /** Verifies an access token for one of our own APIs. */
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
  if (verified instanceof Error) {
    if (verified.status === 403 && token === undefined) await countMfaTokenFailure(deps, session);
    throw verified;
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
    connection: primaryIdentity(await deps.users.identitiesOf(userId))?.connection ?? '',
    authTime: epochSeconds(deps.wallClock),
    ip,
    credentialVersion: Number(claims.credential_version),
  };
  const request = { scope: scopes.join(' '), gty: 'mfa', resource: toResource(deps.mfaApi), firstFactor };
  return { session: { userId, clientId, request, ticket: '' }, token };
}

// The MFA token of `mfa_required` (docs/wire/mfa.md).

// docs/decisions/second-factors.md#an-mfa-token-is-opaque-and-bound-to-user-application-and-request
/** Lifetime of an MFA token in seconds, and how many wrong codes it allows. */
const TOKEN_SECONDS = 600;
const TOKEN_TRIES = 10;
const PURPOSE = 'mfa_token';

type TokenDependencies = Pick<FactorDependencies, 'challenges' | 'clock' | 'random' | 'users'>;

/** What an MFA token was issued for. */
interface MfaSession {
  userId: string;
  clientId: string;
  request: CompletedRequest;
  /** The part of the token that the store keeps as a hash. */
  ticket: string;
}

/** Issues an MFA token for a login that lacks its second factor. */
export async function issueMfaToken(
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
 * Returns what an MFA token was issued for.
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

/** Returns the error for a wrong MFA token. SDKs compare its text (docs/wire/mfa.md). */
export function malformed(): AuthError {
  return new AuthError(401, 'invalid_grant', 'Malformed mfa_token');
}

/** Uses an MFA token. @returns false when another request has used it. */
async function spendMfaToken({ challenges }: TokenDependencies, { ticket }: MfaSession): Promise<boolean> {
  return (await challenges.spendTicket(PURPOSE, ticket)) !== undefined;
}

/** Counts a wrong code against an MFA token. */
function countMfaTokenFailure({ challenges }: TokenDependencies, { ticket }: MfaSession): Promise<void> {
  return challenges.countFailure(PURPOSE, ticket);
}
