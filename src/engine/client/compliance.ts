// Enforces an application's `compliance_level` on its authorization requests and on its access tokens. The rules
// are in records/compliance.ts; a request or token that breaks them is refused on every path.
import { type Client as EngineClient, errors, type KoaContextWithOIDC } from 'oidc-provider';
import type { Rule } from '../../records/client-compliance.ts';
import type { Client, ResourceServer } from '../../records/collections.ts';
import {
  BACKCHANNEL_RULES,
  brokenRules,
  clientFaults,
  type ProfiledRequest,
  REQUEST_RULES,
  TOKEN_RULES,
} from '../../records/compliance.ts';
import { profileOf } from '../../records/compliance-levels.ts';
import { applicationSettings } from './applications.ts';
import type { ServerLoginCallbacks } from './server-login-callbacks.ts';

const NOT_COMPLIANT = 'The application is not as its compliance_level demands';

/**
 * Returns why an authorization request breaks its application's level.
 * @returns the description of `invalid_request`; undefined when it breaks no rule.
 */
export function requestFault(client: Client, request: ProfiledRequest): string | undefined {
  return faultOf(client, REQUEST_RULES, request);
}

/** Returns why a CIBA request breaks its application's level; undefined when it breaks no rule. */
export function backchannelFault(
  client: Client,
  request: Omit<ProfiledRequest, 'isPushed'>,
): string | undefined {
  return faultOf(client, BACKCHANNEL_RULES, request);
}

function faultOf<S>(client: Client, rules: readonly Rule<S>[], request: S): string | undefined {
  const profile = profileOf(client);
  if (profile === undefined) return undefined;
  const [clientFault] = clientFaults(client);
  if (clientFault !== undefined) return `${NOT_COMPLIANT}: ${clientFault}`;
  const [fault] = profile === null ? [NOT_COMPLIANT] : brokenRules(rules, profile, request);
  return fault && `The compliance_level of the application demands: ${fault}`;
}

/**
 * Refuses an access token that is weaker than its application's level allows, from whichever grant or endpoint.
 * @param api the API of the token; undefined for an opaque one.
 * @throws errors.UnauthorizedClient when the application itself breaks its level; errors.InvalidDpopProof or
 *   errors.InvalidRequest when the token does.
 */
export function refuseNoncompliant(
  client: EngineClient,
  api: ResourceServer | undefined,
  boundTo: { dpop: boolean; mtls: boolean },
): void {
  const { profile, profileFaults } = applicationSettings(client);
  if (profile === undefined) return;
  const [clientFault] = profileFaults;
  if (profile === null || clientFault !== undefined)
    throw new errors.UnauthorizedClient(`${NOT_COMPLIANT}: ${clientFault ?? ''}`);
  const [fault] = brokenRules(TOKEN_RULES, profile, {
    boundTo,
    alg: api && tokenAlgorithm(api, client),
  });
  if (fault === undefined) return;
  const description = `The compliance_level of the application demands: ${fault}`;
  if (profile.possession === 'dpop' && !boundTo.dpop) throw new errors.InvalidDpopProof(description);
  throw new errors.InvalidRequest(description);
}

/**
 * Returns the signing algorithm of an API's tokens for an application. Our own APIs have no setting for it: with a
 * compliance level, which forbids RS256, their tokens are signed like the application's ID tokens.
 */
export function tokenAlgorithm(
  { is_system, signing_alg }: ResourceServer,
  client: EngineClient,
): ResourceServer['signing_alg'] {
  const isSystemApi = is_system === true && applicationSettings(client).profile !== undefined;
  return isSystemApi ? (client.idTokenSignedResponseAlg as ResourceServer['signing_alg']) : signing_alg;
}

/**
 * Returns the FAPI profile of a client for the engine, which alone can do some of what FAPI 1.0 requires, such as
 * `s_hash` in the ID token beside a code (Part 2 §5.1.1). Our own requests on the client's behalf, for an approval
 * by CIBA, are exempt: their codes yield no tokens.
 */
export function engineProfile(
  { oidc }: KoaContextWithOIDC,
  client: EngineClient | undefined,
  serverLoginCallbacks: Pick<ServerLoginCallbacks, 'has'>,
): '1.0 Final' | '2.0' | undefined {
  const isAuthorization = oidc.route === 'authorization' || oidc.route === 'resume';
  if (isAuthorization && serverLoginCallbacks.has(String(oidc.params?.redirect_uri))) return undefined;
  const standards = client && applicationSettings(client).profile?.standards;
  if (standards === undefined) return undefined;
  return standards.includes('fapi1') ? '1.0 Final' : '2.0';
}
