// The parameter `q` of `GET /clients`, which selects clients by their client grants. As at the hosted service, it
// supports nothing else.
import type { Client } from '../../../records/collections.ts';
import type { Store } from '../../../store/contract.ts';
import { listAll } from '../../../store/list-all.ts';
import { apiError } from '../errors.ts';
import { grantsOf } from './organizations/client-grants.ts';

const QUERY = /^client_grant\.(?:organization_id:"?(org_\w+)"?|allow_any_organization:true)$/;

/**
 * Returns a test for the clients that a query selects: those with a grant of the organization, or with a grant that
 * any organization may use.
 * @returns undefined if there is no query
 * @throws AuthError 400 for any other query
 */
export async function grantedBy(
  store: Store,
  q: string | undefined,
): Promise<((client: Client) => boolean) | undefined> {
  if (q === undefined) return undefined;
  const result = QUERY.exec(q);
  if (result === null)
    throw apiError(
      400,
      'The query (q) must be client_grant.organization_id:<id> or client_grant.allow_any_organization:true',
      'invalid_query_string',
    );
  const [, organizationId] = result;
  const organization =
    organizationId === undefined ? undefined : await store.collection('organizations').get(organizationId);
  const grantIds = organization === undefined ? [] : grantsOf(organization);
  const grants = (await listAll(store.collection('clientGrants'))).filter((grant) =>
    organizationId === undefined ? grant.allow_any_organization === true : grantIds.includes(grant.id),
  );
  const clients = new Set(grants.map(({ client_id }) => client_id));
  return ({ client_id }) => clients.has(client_id);
}
