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

/** Returns addresses of a login that have a wildcard or a placeholder, where one address is needed. */
export function urlFaults({ clients }: TenantFile): string[] {
  return clients.flatMap(({ initiate_login_uri: address = '' }, index) =>
    hasMark(address) ? [`clients[${index}].initiate_login_uri: ${address} is no single address`] : [],
  );
}

/**
 * Returns warnings about entries that match nothing, or only the text that they are. What the Management API refuses is no
 * fault in a file: tenants of the hosted service have such entries, and the rest of the file is not to wait for them.
 */
export function urlWarnings({ tenant, clients }: TenantFile): string[] {
  return [
    ...tenant.allowed_logout_urls.flatMap((entry, index) => {
      const reason = entryFault(entry, { isTenants: true });
      return reason === undefined ? [] : [idle(`tenant.allowed_logout_urls[${index}]`, entry, reason)];
    }),
    ...clients.flatMap((client, at) =>
      URL_LISTS.flatMap((list) =>
        client[list].flatMap((entry, index) => {
          const place = `clients[${at}].${list}[${index}]`;
          const reason = idleReason(entry, client);
          if (reason !== undefined) return [idle(place, entry, reason)];
          if (isPattern(entry)) return [];
          return entry.includes('*')
            ? [`${place}: * in ${entry} stands for itself: it is a wildcard in the host only`]
            : [];
        }),
      ),
    ),
  ];
}

const idle = (place: string, entry: string, reason: string) =>
  `${place}: ${entry} matches nothing: ${reason}`;

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
