// Entries of lists of URLs in a tenant file: those that must not be there, and those that may not do what they look like.
import {
  entryFault,
  hasMark,
  idleReason,
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
        const reason = idleReason(entry, client);
        if (reason !== undefined) return [`${place}: ${entry} matches nothing: ${reason}`];
        if (isPattern(entry)) return [];
        return entry.includes('*')
          ? [`${place}: * in ${entry} stands for itself: it is a wildcard in the host only`]
          : [];
      }),
    ),
  );
}

const MAX_NAMED = 5;

/** Returns warnings about wildcards, for production; one for each application. */
export function wildcardWarnings({ tenant, clients }: TenantFile): string[] {
  const warningOf = (at: string, owner: Parameters<typeof wildcardsOf>[0], advice: string) => {
    const entries = wildcardsOf(owner);
    const more = entries.length > MAX_NAMED ? ` and ${entries.length - MAX_NAMED} more` : '';
    return entries.length === 0 ? [] : [`${at}: ${entries.slice(0, MAX_NAMED).join(', ')}${more}: ${advice}`];
  };
  return [
    ...warningOf('tenant.allowed_logout_urls', tenant, 'name the hosts in production'),
    ...clients.flatMap((client, index) =>
      warningOf(
        `clients[${index}]`,
        client,
        'whoever gets a page at such a host gets logins of this application; name the hosts, or use {organization_name}',
      ),
    ),
  ];
}
