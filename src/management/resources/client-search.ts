// `q` of `GET /clients`: applications by their client grants. Nothing else can be asked so, as at the hosted service.
import type { Client } from '../../records/collections.ts';
import type { Store } from '../../store/contract.ts';
import { listAll } from '../../store/list-all.ts';
import { apiError } from '../errors.ts';
import { grantsOf } from './organizations/client-grants.ts';

const QUERY = /^client_grant\.(?:organization_id:"?(org_\w+)"?|allow_any_organization:true)$/;

/**
 * Which applications a query asks for: those with a grant that an organization has, or that any organization may use.
 * @returns undefined where nothing is asked
 * @throws AuthError 400 for any other query
 */
export async function grantedBy(
  store: Store,
  q: string | undefined,
): Promise<((client: Client) => boolean) | undefined> {
  if (q === undefined) return undefined;
  const asked = QUERY.exec(q);
  if (asked === null)
    throw apiError(
      400,
      'The query (q) must be client_grant.organization_id:<id> or client_grant.allow_any_organization:true',
      'invalid_query_string',
    );
  const [, organizationId] = asked;
  const organization =
    organizationId === undefined ? undefined : await store.collection('organizations').get(organizationId);
  const had = organization === undefined ? [] : grantsOf(organization);
  const chosen = (await listAll(store.collection('clientGrants'))).filter((grant) =>
    organizationId === undefined ? grant.allow_any_organization === true : had.includes(grant.id),
  );
  const clients = new Set(chosen.map(({ client_id }) => client_id));
  return ({ client_id }) => clients.has(client_id);
}
