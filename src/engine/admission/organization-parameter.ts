// The `organization` of a request, at the authorization endpoint and at the token endpoint.
// docs/decisions/organizations.md#organization-in-the-token-requests-of-users-is-checked-as-at-authorize
import { errors, type KoaContextWithOIDC } from 'oidc-provider';
import type { Organization } from '../../records/collections.ts';
import type { Config } from '../../tenant/config.ts';
import { type ApplicationSettings, applicationSettings } from '../client/applications.ts';

/** The hosted service's text. */
export const ORGANIZATION_REQUIRED = 'parameter organization is required for this client';
const NOT_ALLOWED = 'parameter organization is not allowed for this client';
const NOT_FOUND = 'the organization was not found';

// docs/decisions/organizations.md#names-of-organizations-are-accepted-where-the-tenant-or-the-page-allows-them
/** Whether requests may contain the name of an organization, and tokens do. */
export function allowsOrganizationNames(config: Config): boolean {
  return config.settings().tenant.allow_organization_name_in_authentication_api === true;
}

/**
 * Checks the `organization` of an authorization request and replaces a name by the id.
 * @throws errors.InvalidRequest
 */
export async function checkOrganization(
  config: Config,
  { oidc: { params } }: KoaContextWithOIDC,
  idOrName: string | undefined,
  client: object,
): Promise<void> {
  const { organizationUsage: usage, organizationPrompt: prompt } = applicationSettings(client);
  if (params === undefined) return;
  if (idOrName === undefined || idOrName === '') {
    params.organization = undefined;
    // An invitation is to an organization, whatever the user would choose.
    if (params.invitation !== undefined || (usage === 'require' && prompt === 'no_prompt'))
      throw new errors.InvalidRequest(ORGANIZATION_REQUIRED);
    return;
  }
  params.organization = await usableOrganization(config, idOrName, client);
}

async function usableOrganization(config: Config, idOrName: string, client: object): Promise<string> {
  const { organizationUsage: usage } = applicationSettings(client);
  const organization = await requestedOrganization(config, usage, idOrName);
  if ('fault' in organization) throw new errors.InvalidRequest(organization.fault);
  return organization.id;
}

/**
 * Returns the organization that a request names, if its application may log in for one.
 * @param usage the application's `organization_usage`.
 * @param idOrName the id, or the name where the tenant allows that.
 * @returns its id, or the description of `invalid_request`.
 */
export async function requestedOrganization(
  config: Config,
  usage: ApplicationSettings['organizationUsage'],
  idOrName: string,
): Promise<{ id: string } | { fault: string }> {
  if (usage === 'deny') return { fault: NOT_ALLOWED };
  const found = await organizationOf(config, idOrName);
  return found === undefined ? { fault: NOT_FOUND } : { id: found.id };
}

/**
 * Returns the organization that a request names by its id, or by its name where the tenant allows that.
 * @throws errors.InvalidRequest when there is none.
 */
export async function findOrganization(config: Config, idOrName: string): Promise<Organization> {
  const found = await organizationOf(config, idOrName);
  if (found === undefined) throw new errors.InvalidRequest(NOT_FOUND);
  return found;
}

async function organizationOf(config: Config, idOrName: string): Promise<Organization | undefined> {
  const found = await config.organization(idOrName);
  return found?.id === idOrName || allowsOrganizationNames(config) ? found : undefined;
}

/**
 * Returns the organization of a request to the token endpoint, where no page can ask for one.
 * @param idOrName the request's `organization`.
 * @param earlier the login that this request completes: its organization cannot be changed.
 * @returns the id; undefined when none is asked for.
 * @throws errors.InvalidRequest when there is none of that name, or the application denies or requires one.
 */
export async function organizationAtToken(
  config: Config,
  client: object,
  idOrName: string | undefined,
  earlier?: { organization?: string | undefined },
): Promise<string | undefined> {
  const requested = idOrName ? await usableOrganization(config, idOrName, client) : undefined;
  if (earlier !== undefined && requested !== undefined && requested !== earlier.organization)
    throw new errors.InvalidRequest('parameter organization is not that of the login');
  const id = earlier?.organization ?? requested;
  if (id === undefined && applicationSettings(client).organizationUsage === 'require')
    throw new errors.InvalidRequest(ORGANIZATION_REQUIRED);
  return id;
}
