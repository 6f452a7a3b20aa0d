// Organizations have no members yet. SDKs take `org_id` in an ID token as proof of membership, so no token has it, and
// logins for an organization are refused.
import { errors } from 'oidc-provider';
import type { Config } from '../tenant/config.ts';
import { applicationSettings } from './applications.ts';

/** The hosted service's text. */
export const ORGANIZATION_REQUIRED = 'parameter organization is required for this client';

/**
 * Refuses the `organization` of an authorization request.
 * @param idOrName as sent; undefined or empty if not.
 * @throws InvalidRequest for an unknown organization, or a missing one that the application requires; AccessDenied for a
 *   known one.
 */
export async function checkOrganization(
  config: Config,
  idOrName: string | undefined,
  client: object,
): Promise<void> {
  if (idOrName === undefined || idOrName === '') {
    if (applicationSettings(client).membersOnly) throw new errors.InvalidRequest(ORGANIZATION_REQUIRED);
    return;
  }
  if ((await config.organization(idOrName)) === undefined) {
    throw new errors.InvalidRequest('the organization was not found');
  }
  throw new errors.AccessDenied('The user is not part of the organization.');
}
