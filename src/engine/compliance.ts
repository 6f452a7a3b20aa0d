// What an application's level (`compliance_level`) demands of its authorization requests and of the access tokens that it
// is issued. The rules are records/compliance.ts; a level is kept on every path, or nothing is given.
import type { ParsedUrlQuery } from 'node:querystring';
import { type Client as EngineClient, errors } from 'oidc-provider';
import type { Client, ResourceServer } from '../records/collections.ts';
import {
  brokenRules,
  clientFaults,
  type ProfiledRequest,
  REQUEST_RULES,
  TOKEN_RULES,
} from '../records/compliance.ts';
import { profileOf } from '../records/compliance-levels.ts';
import { applicationSettings } from './applications.ts';

const UNFIT = 'The application is not as its compliance_level demands';

/**
 * What keeps an authorization request of an application from being answered.
 * @returns the description of `invalid_request`; undefined where nothing does.
 */
export function requestFault(
  client: Client,
  parameters: ParsedUrlQuery,
  came: Omit<ProfiledRequest, 'parameters'>,
): string | undefined {
  const profile = profileOf(client);
  if (profile === undefined) return undefined;
  const [own] = clientFaults(client);
  if (own !== undefined) return `${UNFIT}: ${own}`;
  const [fault] = profile === null ? [UNFIT] : brokenRules(REQUEST_RULES, profile, { parameters, ...came });
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
  const [fault] = brokenRules(TOKEN_RULES, profile, { boundTo, alg: api?.signing_alg });
  if (fault === undefined) return;
  const description = `The compliance_level of the application demands: ${fault}`;
  if (profile.possession === 'dpop' && !boundTo.dpop) throw new errors.InvalidDpopProof(description);
  throw new errors.InvalidRequest(description);
}

/**
 * A client's level as the engine has it: some of what FAPI 1.0 wants is in its hands alone, such as `s_hash` in the ID token
 * beside a code (Part 2 §5.1.1).
 */
export function engineProfile(client: EngineClient | undefined): '1.0 Final' | '2.0' | undefined {
  const standards = client && applicationSettings(client).profile?.standards;
  if (standards === undefined) return undefined;
  return standards.includes('fapi1') ? '1.0 Final' : '2.0';
}
