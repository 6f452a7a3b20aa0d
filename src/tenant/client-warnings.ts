// Warnings about valid settings of applications.
import type { TenantFile } from '../records/tenant.ts';

/** One sentence for each setting that may not do what its author expects. */
export function clientWarnings({ clients }: TenantFile): string[] {
  return clients
    .map((client, index) => ({ client, at: `clients[${index}]` }))
    .filter(({ client }) => client.organization_usage === 'require')
    .map(
      ({ at }) =>
        `${at}.organization_usage: organizations have no members yet, so nobody can log in to an application that is for members alone`,
    );
}
