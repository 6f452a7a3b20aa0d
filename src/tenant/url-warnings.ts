// Entries of lists of URLs in a tenant file: those that must not be there, and those that may not do what they look like.
import {
  entryFault,
  hasMark,
  isInForce,
  isPattern,
  URL_LISTS,
  wildcardsOf,
} from '../records/clients/allowed-urls.ts';
import type { TenantFile } from '../records/tenant/tenant.ts';

/** Returns wildcards and placeholders that are not allowed, with the reason. */
export function urlFaults({ tenant, clients }: TenantFile): string[] {
  const faultsOf = (list: readonly string[], at: string, isTenants: boolean) =>
    list.flatMap((entry, index) => {
      const fault = entryFault(entry, { isTenants });
      return fault === undefined ? [] : [`${at}[${index}]: ${entry} is not allowed: ${fault}`];
    });
  return [
    ...faultsOf(tenant.allowed_logout_urls, 'tenant.allowed_logout_urls', true),
    ...clients.flatMap((client, index) =>
      URL_LISTS.flatMap((list) => faultsOf(client[list], `clients[${index}].${list}`, false)),
    ),
    ...clients.flatMap(({ initiate_login_uri: address = '' }, index) =>
      hasMark(address) ? [`clients[${index}].initiate_login_uri: ${address} is no single address`] : [],
    ),
  ];
}

/** Returns warnings about entries that match nothing, or only the text that they are. */
export function urlWarnings({ clients }: TenantFile): string[] {
  return clients.flatMap((client, at) =>
    URL_LISTS.flatMap((list) =>
      client[list].flatMap((entry, index) => {
        const place = `clients[${at}].${list}[${index}]`;
        if (isPattern(entry))
          return isInForce(entry, client) ? [] : [`${place}: ${entry} matches nothing in this application`];
        return entry.includes('*')
          ? [`${place}: * in ${entry} stands for itself: it is a wildcard in the host only`]
          : [];
      }),
    ),
  );
}

/** Returns warnings about wildcards, for production. */
export function wildcardWarnings({ tenant, clients }: TenantFile): string[] {
  const own = wildcardsOf(tenant);
  return [
    ...(own.length > 0
      ? [`tenant.allowed_logout_urls: ${own.join(', ')}: name the hosts in production`]
      : []),
    ...clients.flatMap((client, index) => {
      const entries = wildcardsOf(client);
      const advice =
        'whoever gets a page at such a host gets logins of this application; name the hosts, or use {organization_name}';
      return entries.length > 0 ? [`clients[${index}]: ${entries.join(', ')}: ${advice}`] : [];
    }),
  ];
}
