// `/organizations`: the organizations.
import { z } from 'zod';
import type { Organization, Records } from '../../../../records/collections.ts';
import { organizationSchema } from '../../../../records/tenant/tenant.ts';
import type { Random } from '../../../../runtime/secrets.ts';
import type { Store } from '../../../../store/contract.ts';
import { listAll } from '../../../../store/list-all.ts';
import { type Call, callsWith, ok } from '../../call.ts';
import { idOf } from '../../ids.ts';
import { apiError } from '../../management-errors.ts';
import { metadataTexts } from '../../management-fields.ts';
import { checkedBy, conflict, merged, notFound, resourceCalls } from '../../resource.ts';
import type { Resource } from '../../resource-declaration.ts';

export interface OrganizationsDependencies {
  store: Store;
  random: Random;
}

const object = z.record(z.string(), z.unknown());
export const enabledConnection = z.strictObject({
  connection_id: z.string().max(64),
  assign_membership_on_login: z.boolean().optional(),
  show_as_button: z.boolean().optional(),
  is_signup_enabled: z.boolean().optional(),
  is_enabled: z.boolean().optional(),
  organization_connection_name: z.string().max(255).optional(),
  organization_access_level: z.string().max(64).optional(),
});

const members = {
  display_name: z.string().max(255).nullish(),
  branding: object.nullish(),
  metadata: metadataTexts(25).nullish(),
  token_quota: object.nullish(),
  third_party_client_access: z.enum(['block', 'allow']).nullish(),
  is_app_entitlement_active: z.boolean().nullish(),
};
const name = z
  .string()
  .min(1)
  .max(50)
  .regex(/^[a-z0-9][a-z0-9_-]*$/, 'String does not match pattern ^[a-z0-9][a-z0-9_-]*$');

/** The error for an organization that does not exist. */
export const noOrganization = notFound('No organization found by that id or name');
export type EnabledConnection = z.output<typeof enabledConnection>;

/** Members with calls of their own. */
const SEPARATE_MEMBERS = new Set(['enabled_connections', 'client_grants', 'discovery_domains', 'clients']);

const resource: Resource<'organizations', OrganizationsDependencies> = {
  collection: 'organizations',
  path: '/organizations',
  name: 'organization',
  noun: 'organizations',
  readScopes: ['read:organizations_summary'],
  list: { key: 'organizations' },
  filters: {
    sort: z.string().max(255).optional(),
    include_client_association_for: z.string().max(255).optional(),
  },
  // Tools sort by `created_at`, which is not stored; the result is sorted by name.
  sortable: ['name', 'display_name', 'created_at'],
  listMembers: ({ clients = [] }, { include_client_association_for: id }) => {
    const found = (clients as readonly { client_id: string; use_for_member_access: boolean }[]).find(
      ({ client_id }) => client_id === id,
    );
    return found === undefined ? {} : { client: { use_for_member_access: found.use_for_member_access } };
  },
  orderOf: (organization) => `${organization.name}\n${organization.id}`,
  schema: organizationSchema,
  createBody: z.strictObject({
    ...members,
    name,
    enabled_connections: z.array(enabledConnection).max(50).optional(),
  }),
  patchBody: z.strictObject({ ...members, name: name.optional() }),
  make: async ({ store, random }, body) => {
    for (const { connection_id } of (body.enabled_connections as EnabledConnection[] | undefined) ?? [])
      await requireConnection(store, connection_id);
    return { ...checkedBy(organizationSchema, merged({}, body)), id: idOf('org', random) };
  },
  change: (_deps, organization, body) => ({
    ...checkedBy(organizationSchema, merged(organization, body)),
    id: organization.id,
  }),
  view: (_deps, organization) =>
    Object.fromEntries(Object.entries(organization).filter(([member]) => !SEPARATE_MEMBERS.has(member))),
  missing: noOrganization,
  taken: conflict('An organization with this name already exists.', 'organization_conflict'),
  isRemovalStrict: true,
};

/** @throws AuthError 404 */
export async function requireConnection(store: Store, id: string) {
  const connection = await store.collection('connections').get(id);
  if (connection === undefined) throw apiError(404, 'The connection does not exist', 'inexistent_connection');
  return connection;
}

/** Returns the organization that a path names. @throws AuthError 404 */
export async function organizationOf(store: Store, id = ''): Promise<Organization> {
  const found = await store.collection('organizations').get(id);
  if (found === undefined) throw noOrganization();
  return found;
}

/** Returns the organization with a name, in any letters. */
async function organizationNamed(store: Store, name: string): Promise<Organization | undefined> {
  const [found] = await store.collection('organizations').findBy('name', name);
  if (found !== undefined) return found;
  const all = await listAll(store.collection('organizations'));
  return all.find((one) => one.name.toLowerCase() === name.toLowerCase());
}

/** @throws AuthError 404 */
export async function changeOrganization(
  store: Store,
  id: string,
  change: (current: Organization) => Record<string, unknown>,
): Promise<Organization> {
  const after = await store
    .collection('organizations')
    .update(id, (current) => ({ ...current, ...change(current) }) as Records['organizations']);
  if (after === undefined) throw noOrganization();
  return after;
}

const call = callsWith<OrganizationsDependencies>();

export const organizationCalls: Call<OrganizationsDependencies>[] = [
  ...resourceCalls(resource),
  call({
    method: 'GET',
    path: '/organizations/name/:name',
    scopes: ['read:organizations'],
    summary: 'Get an organization by name',
    handle: async (deps, { params, caller }) => {
      const found = await organizationNamed(deps.store, params.name ?? '');
      if (found === undefined) throw noOrganization();
      return ok(resource.view(deps, found, caller));
    },
  }),
];
