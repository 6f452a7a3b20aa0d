// The `organization` of a request, at the authorization endpoint and at the token endpoint.
import { errors, type KoaContextWithOIDC } from 'oidc-provider';
import type { Organization } from '../records/collections.ts';
import type { Config } from '../tenant/config.ts';
import { applicationSettings } from './applications.ts';

/** The hosted service's text. */
export const ORGANIZATION_REQUIRED = 'parameter organization is required for this client';
const NOT_ALLOWED = 'parameter organization is not allowed for this client';
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
  if (applicationSettings(client).organizationUsage === 'deny') throw new errors.InvalidRequest(NOT_ALLOWED);
  return (await namedOrganization(config, idOrName)).id;
}

/**
 * Returns the organization that a request names by its id, or by its name where the tenant allows that.
 * @throws errors.InvalidRequest when there is none.
 */
export async function namedOrganization(config: Config, idOrName: string): Promise<Organization> {
  const found = await config.organization(idOrName);
  const isNamed = found !== undefined && found.id !== idOrName;
  if (found === undefined || (isNamed && !allowsOrganizationNames(config)))
    throw new errors.InvalidRequest('the organization was not found');
  return found;
}

/**
 * Returns the organization of a request to the token endpoint, where no page can ask for one.
 * @param sent the request's `organization`.
 * @param earlier the login that this request completes: its organization cannot be changed.
 * @returns the id; undefined when none is asked for.
 * @throws errors.InvalidRequest when there is none of that name, or the application denies or requires one.
 */
export async function organizationAtToken(
  config: Config,
  client: object,
  sent: string | undefined,
  earlier?: { organization?: string | undefined },
): Promise<string | undefined> {
  const asked =
    sent === undefined || sent === '' ? undefined : await usableOrganization(config, sent, client);
  if (earlier !== undefined && asked !== undefined && asked !== earlier.organization)
    throw new errors.InvalidRequest('parameter organization is not that of the login');
  const id = earlier?.organization ?? asked;
  if (id === undefined && applicationSettings(client).organizationUsage === 'require')
    throw new errors.InvalidRequest(ORGANIZATION_REQUIRED);
  return id;
}
