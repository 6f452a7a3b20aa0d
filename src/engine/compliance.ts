// What an application's level (`compliance_level`) demands of its authorization requests and of the access tokens that it
// is issued. The rules are records/compliance.ts; a level is kept on every path, or nothing is given.
import { type Client as EngineClient, errors, type KoaContextWithOIDC } from 'oidc-provider';
import type { Rule } from '../records/client-compliance.ts';
import type { Client, ResourceServer } from '../records/collections.ts';
import {
  BACKCHANNEL_RULES,
  brokenRules,
  clientFaults,
  type ProfiledRequest,
  REQUEST_RULES,
  TOKEN_RULES,
} from '../records/compliance.ts';
import { profileOf } from '../records/compliance-levels.ts';
import { applicationSettings } from './applications.ts';
import type { OwnCallbacks } from './own-callbacks.ts';

const UNFIT = 'The application is not as its compliance_level demands';

/**
 * What keeps an authorization request of an application from being answered.
 * @returns the description of `invalid_request`; undefined where nothing does.
 */
export function requestFault(client: Client, request: ProfiledRequest): string | undefined {
  return faultOf(client, REQUEST_RULES, request);
}

/** The same for a request that a user is to approve (CIBA). */
export function backchannelFault(
  client: Client,
  request: Omit<ProfiledRequest, 'isPushed'>,
): string | undefined {
  return faultOf(client, BACKCHANNEL_RULES, request);
}

function faultOf<S>(client: Client, rules: readonly Rule<S>[], request: S): string | undefined {
  const profile = profileOf(client);
  if (profile === undefined) return undefined;
  const [own] = clientFaults(client);
  if (own !== undefined) return `${UNFIT}: ${own}`;
  const [fault] = profile === null ? [UNFIT] : brokenRules(rules, profile, request);
  return fault && `The compliance_level of the application demands: ${fault}`;
}

/**
 * Refuses an access token that is weaker than its application's level allows, whichever grant or endpoint it comes from.
 * @param api whose token it is; undefined for an opaque one.
 * @throws errors.UnauthorizedClient for an application that is itself not as its level demands; errors.InvalidDpopProof;
 *   errors.InvalidRequest.
 */
export function refuseNoncompliant(
  client: EngineClient,
  api: ResourceServer | undefined,
  boundTo: { dpop: boolean; mtls: boolean },
): void {
  const { profile, profileFaults } = applicationSettings(client);
  if (profile === undefined) return;
  const [own] = profileFaults;
  if (profile === null || own !== undefined) throw new errors.UnauthorizedClient(`${UNFIT}: ${own ?? ''}`);
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
 * What an API's tokens for an application are signed with. Those for our own APIs, which have no setting, are signed as the
 * application's ID tokens are where its level allows no RS256.
 */
export function tokenAlgorithm(
  { is_system, signing_alg }: ResourceServer,
  client: EngineClient,
): ResourceServer['signing_alg'] {
  const isOurs = is_system === true && applicationSettings(client).profile !== undefined;
  return isOurs ? (client.idTokenSignedResponseAlg as ResourceServer['signing_alg']) : signing_alg;
}

/**
 * A client's level as the engine has it: some of what FAPI 1.0 wants is in its hands alone, such as `s_hash` in the ID token
 * beside a code (Part 2 §5.1.1).
 * A request of our own, for an approval by CIBA, is outside of it: its code is for us, and good for no token.
 */
export function engineProfile(
  { oidc }: KoaContextWithOIDC,
  client: EngineClient | undefined,
  ownCallbacks: Pick<OwnCallbacks, 'has'>,
): '1.0 Final' | '2.0' | undefined {
  const isAsked = oidc.route === 'authorization' || oidc.route === 'resume';
  if (isAsked && ownCallbacks.has(String(oidc.params?.redirect_uri))) return undefined;
  const standards = client && applicationSettings(client).profile?.standards;
  if (standards === undefined) return undefined;
  return standards.includes('fapi1') ? '1.0 Final' : '2.0';
}
