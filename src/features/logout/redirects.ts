// What the two logout requests have in common about the URL where the browser goes.
// docs/understand/decisions/sessions-logout.md#redirect-urls-of-a-logout-are-compared-as-they-are-written
import { isLogoutUrlOf, type ListOwner } from '../../records/clients/allowed-urls.ts';
import type { Organization } from '../../records/collections.ts';
import type { Config } from '../../tenant/config.ts';

/** Returns the first logout URL that is one URL and no pattern, where a request names none. */
export function firstLogoutUrl(
  owner: ListOwner & { readonly allowed_logout_urls: readonly string[] },
): string | undefined {
  return owner.allowed_logout_urls.find((entry) => isLogoutUrlOf(owner, entry, 'whole'));
}

/** Returns the organization with an id, which may have been deleted since. */
export async function organizationById(
  config: Pick<Config, 'organization'>,
  id: string | undefined,
): Promise<Organization | undefined> {
  const found = id === undefined ? undefined : await config.organization(id);
  return found?.id === id ? found : undefined;
}
