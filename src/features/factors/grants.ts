// The MFA grants (docs/wire/mfa.md), which give a second factor at the token endpoint.

import { z } from 'zod';
import type { ApiToken, ApiTokenReader } from '../../engine/api-tokens.ts';
import { toResource } from '../../engine/audience.ts';
import type { BegunGrant, GrantDeclaration, GrantedLogin, GrantRequest } from '../../engine/tokens.ts';
import { requiredField } from '../../http/body-fields.ts';
import { languagesOf } from '../../http/languages.ts';
import { required } from '../../http/parameter-schemas.ts';
import { MFA_POLICY } from '../../records/authentication-classes.ts';
import { type Clock, epochSeconds } from '../../runtime/clock.ts';
import { primaryIdentity } from '../../users/identities.ts';
import { readPresence, withSecondFactor } from '../../users/login.ts';
import type { FactorDependencies, MfaGrant } from './factor.ts';
import { FACTORS } from './factors.ts';
import {
  countMfaTokenFailure,
  type MfaSession,
  malformed,
  readMfaToken,
  spendMfaToken,
} from './mfa-token.ts';

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
  const { credentialVersion, presence: stated } = firstFactor;
  const login = { credentialVersion, presence: readPresence(stated), token };
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
