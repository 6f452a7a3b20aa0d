// The MFA grants (spec "Multi-factor authentication"): the second factor, at the token endpoint.
import type { ApiToken, ApiTokenReader } from '../engine/api-tokens.ts';
import { toResource } from '../engine/audience.ts';
import type { AuthenticatedUser } from '../engine/second-factor.ts';
import type { GrantRequest, VendorGrant } from '../engine/tokens.ts';
import { requiredField } from '../http/body-fields.ts';
import { AuthError } from '../http/errors.ts';
import type { Outcome } from '../protection/challenge-records.ts';
import { primaryIdentity } from '../users/identities.ts';
import { MFA_POLICY } from './policy.ts';
import {
  type MfaSession,
  malformed,
  penaliseMfaToken,
  readMfaToken,
  spendMfaToken,
} from './second-factor.ts';
import {
  type Given,
  type Giver,
  giveOob,
  giveOtp,
  giveRecoveryCode,
  type VerifyDependencies,
} from './verify.ts';

export interface MfaGrantDependencies extends VerifyDependencies {
  /** The identifier of the MFA API. */
  mfaApi: string;
  /** Reads an access token for an API of ours. */
  readApiToken: ApiTokenReader;
}

/** The three MFA grants of the tenant. */
export function mfaGrants(deps: MfaGrantDependencies): VendorGrant[] {
  const named = (name: string) => `http://${deps.config.settings().vendor_host}/oauth/grant-type/mfa-${name}`;
  return [
    {
      get grantType() {
        return named('otp');
      },
      parameters: ['mfa_token', 'otp'],
      gty: 'mfa-otp',
      events: { success: 'seotpft', failure: 'feotpft' },
      authenticate: (request) =>
        complete(deps, request, async (giver) => {
          const given = await giveOtp(deps, giver, requiredField(request.params, 'otp'));
          return given.ok ? given : new AuthError(403, 'invalid_grant', 'Invalid otp_code.');
        }),
    },
    {
      get grantType() {
        return named('oob');
      },
      parameters: ['mfa_token', 'oob_code', 'binding_code'],
      gty: 'mfa-oob',
      events: { success: 'seoobft', failure: 'feoobft' },
      authenticate: (request) =>
        complete(deps, request, async (giver) => {
          const oobCode = requiredField(request.params, 'oob_code');
          const challenge = await deps.oob.find(oobCode);
          const binding = request.params.binding_code;
          if (challenge?.needsCode === true && binding === undefined)
            requiredField(request.params, 'binding_code');
          const given = await giveOob(deps, giver, oobCode, binding);
          if (given.ok) return given;
          const client = await deps.config.client(request.clientId);
          return oobError(given.outcome, client?.oidc_conformant === true);
        }),
    },
    {
      get grantType() {
        return named('recovery-code');
      },
      parameters: ['mfa_token', 'recovery_code'],
      gty: 'mfa-recovery-code',
      events: { success: 'sercft', failure: 'fercft' },
      authenticate: (request) =>
        complete(deps, request, async (giver) => {
          const given = await giveRecoveryCode(deps, giver, requiredField(request.params, 'recovery_code'));
          return given.ok ? given : new AuthError(403, 'invalid_grant', 'MFA Authorization rejected.');
        }),
    },
  ];
}

type Done = Extract<Given, { ok: true }>;

/** The part that the three share: whose token it is, and that it is good once. */
async function complete(
  deps: MfaGrantDependencies,
  request: GrantRequest,
  give: (giver: Giver) => Promise<Done | AuthError>,
): Promise<AuthenticatedUser> {
  const { clientId, ip } = request;
  const token = requiredField(request.params, 'mfa_token');
  const enrolling = await enrollToken(deps, token);
  const session = enrolling?.session ?? (await readMfaToken(deps, token, clientId));
  const user = await deps.users.get(session.userId);
  if (user === undefined || session.clientId !== clientId) throw malformed();
  const { credentialVersion } = session.request.firstFactor;
  const given = await give({ user, clientId, ip, credentialVersion, token: enrolling?.token });
  if (given instanceof AuthError) {
    if (given.status === 403 && enrolling === undefined) await penaliseMfaToken(deps, session);
    throw given;
  }
  if (enrolling === undefined) {
    if (!(await spendMfaToken(deps, session))) throw malformed();
    if (request.userAddress !== undefined)
      await deps.browsers.noteAddress(request.userAddress, session.request.firstFactor);
  }
  const { firstFactor } = session.request;
  return {
    ...firstFactor,
    amr: [...new Set([...firstFactor.amr, 'mfa'])],
    acr: MFA_POLICY,
    completes: session.request,
    ...(given.recoveryCode !== undefined && { extra: { recovery_code: given.recoveryCode } }),
  };
}

/**
 * An access token for the MFA API in place of an MFA token: it may confirm what was enrolled with it.
 * @returns undefined when it is an MFA token.
 * @throws AuthError 401 when it is not good for that any more.
 */
async function enrollToken(
  deps: MfaGrantDependencies,
  text: string,
): Promise<{ session: MfaSession; token: ApiToken } | undefined> {
  if (text.split('.').length !== 3) return undefined;
  const token = await deps.readApiToken(text, deps.mfaApi);
  if (token?.scopes.includes('enroll') !== true) throw malformed();
  if ((await deps.elevation.judge(token)) === undefined) throw malformed();
  const { userId, clientId, scopes, claims } = token;
  const firstFactor = {
    userId,
    amr: claims.amr as string[],
    connection: primaryIdentity(await deps.users.identitiesOf(userId))?.connection ?? '',
    credentialVersion: Number(claims.credential_version),
  };
  const request = { scope: scopes.join(' '), gty: 'mfa', resource: toResource(deps.mfaApi), firstFactor };
  return { session: { userId, clientId, request, ticket: '' }, token };
}

/**
 * The states table's answers. By the specification they come with 200; an application with
 * `oidc_conformant: true` gets 400, because SDKs take a 200 for tokens.
 */
function oobError(outcome: Outcome, conformant: boolean): AuthError {
  const status = conformant ? 400 : 200;
  switch (outcome) {
    case 'pending':
      return new AuthError(
        status,
        'authorization_pending',
        'Authorization pending: please repeat the request in a few seconds.',
      );
    case 'too-fast':
      return new AuthError(
        status,
        'slow_down',
        'You are polling faster than allowed. Try again in a few seconds.',
      );
    case 'rejected':
      return new AuthError(status, 'invalid_grant', 'MFA Authorization rejected.');
    case 'wrong':
      return new AuthError(403, 'invalid_grant', 'Invalid binding_code.');
    default:
      return new AuthError(403, 'invalid_grant', 'Invalid oob_code.');
  }
}
