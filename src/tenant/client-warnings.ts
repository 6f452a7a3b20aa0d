// What a tenant file may say of an application, but the application's users or developers should know of.
import type { TenantFile } from '../records/tenant.ts';

/** One sentence for each setting of an application that works, though not as its author may think. */
export function clientWarnings({ clients }: TenantFile): string[] {
  return clients
    .map((client, index) => ({ client, at: `clients[${index}]` }))
    .filter(({ client }) => client.organization_usage === 'require')
    .map(
      ({ at }) =>
        `${at}.organization_usage: organizations have no members yet, so nobody can log in to an application that is for members alone`,
    );
}
