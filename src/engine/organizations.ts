// Organizations have no members yet. SDKs take `org_id` in an ID token for proof that the user is a member, so
// no token names one, and a login on behalf of one is refused.
import { errors } from 'oidc-provider';
import type { Config } from '../tenant/config.ts';
import { applicationSettings } from './applications.ts';

/** In the hosted service's words, which applications may show. */
export const ORGANIZATION_REQUIRED = 'parameter organization is required for this client';

/**
 * Checks the `organization` of an authorization request: there is none that the user could be a member of.
 * @param idOrName as it was sent; undefined or empty when it was not.
 * @throws InvalidRequest for an unknown organization, and when the application is for members alone and the
 *   request names none; AccessDenied for a known one.
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
