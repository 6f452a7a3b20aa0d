// Organizations: `/organizations`, their connections, members, member roles and client grants.
import { z } from 'zod';
import type { Organization, Records } from '../../records/collections.ts';
import { membershipId } from '../../records/organizations.ts';
import { organizationSchema } from '../../records/tenant.ts';
import type { Random } from '../../runtime/random.ts';
import type { Store } from '../../store/contract.ts';
import { type Call, callsWith, created, noContent, ok } from '../call.ts';
import { apiError } from '../errors.ts';
import { fieldsQuery, selectFields } from '../fields.ts';
import { idOf } from '../ids.ts';
import { arraySource, cursorQuery, listAnswer, mapped, pageQuery } from '../list.ts';
import { checkedBy, conflict, merged, notFound, type Resource, resourceCalls } from '../resource.ts';
import { memberView } from './roles.ts';

export interface OrganizationsDependencies {
  store: Store;
  random: Random;
}

const object = z.record(z.string(), z.unknown());
const enabledConnection = z.strictObject({
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
  metadata: z
    .record(z.string().max(255), z.string().max(255).nullable())
    .refine((all) => Object.keys(all).length <= 25, 'At most 25 keys')
    .nullish(),
  token_quota: object.nullish(),
  third_party_client_access: z.string().max(64).nullish(),
};
const name = z
  .string()
  .min(1)
  .max(50)
  .regex(/^[a-z0-9][a-z0-9_-]*$/, 'String does not match pattern ^[a-z0-9][a-z0-9_-]*$');

const missing = notFound('No organization found by that id or name');
type Enabled = z.output<typeof enabledConnection>;

function enabledOf(organization: Organization): Enabled[] {
  return (organization.enabled_connections as Enabled[] | undefined) ?? [];
}

const resource: Resource<'organizations', OrganizationsDependencies> = {
  collection: 'organizations',
  path: '/organizations',
  name: 'organization',
  noun: 'organizations',
  readScopes: ['read:organizations_summary'],
  list: { key: 'organizations', isByCursor: true },
  filters: { sort: z.string().max(255).optional(), q: z.string().max(1024).optional() },
  orderOf: (organization) => `${organization.name}\n${organization.id}`,
  createBody: z.strictObject({
    ...members,
    name,
    enabled_connections: z.array(enabledConnection).max(50).optional(),
  }),
  patchBody: z.strictObject({ ...members, name: name.optional() }),
  make: async ({ store, random }, body) => {
    for (const { connection_id } of (body.enabled_connections as Enabled[] | undefined) ?? []) {
      await requireConnection(store, connection_id);
    }
    return { ...checkedBy(organizationSchema, merged({}, body)), id: idOf('org', random) };
  },
  change: (_deps, organization, body) => ({
    ...checkedBy(organizationSchema, merged(structuredClone(organization) as Record<string, unknown>, body)),
    id: organization.id,
  }),
  view: (_deps, { enabled_connections: _, client_grants: _grants, ...organization }) => organization,
  missing,
  taken: conflict('An organization with this name already exists.', 'organization_conflict'),
  isRemovalStrict: true,
  removed: async ({ store }, { id }) => {
    await store.collection('memberships').deleteBy('organization', id);
    await store.collection('invitations').deleteBy('organization', id);
  },
};

async function requireConnection(store: Store, id: string) {
  const connection = await store.collection('connections').get(id);
  if (connection === undefined) throw apiError(404, 'The connection does not exist', 'inexistent_connection');
  return connection;
}

/** The organization of a path. @throws AuthError 404 */
export async function organizationOf(store: Store, id = ''): Promise<Organization> {
  const found = await store.collection('organizations').get(id);
  if (found === undefined) throw missing();
  return found;
}

async function enabledView(store: Store, enabled: Enabled) {
  const connection = await store.collection('connections').get(enabled.connection_id);
  return {
    assign_membership_on_login: false,
    show_as_button: true,
    is_signup_enabled: false,
    ...enabled,
    connection: { name: connection?.name, strategy: connection?.strategy },
  };
}

async function changeEnabled(store: Store, organization: Organization, make: (all: Enabled[]) => Enabled[]) {
  const after = await store.collection('organizations').update(organization.id, (current) => ({
    ...(current as Records['organizations']),
    enabled_connections: make(enabledOf(current)),
  }));
  if (after === undefined) throw missing();
  return { before: enabledOf(organization), after: enabledOf(after) };
}

const call = callsWith<OrganizationsDependencies>();

/** `/connections` of today and `/enabled_connections` of older tools: the same. */
function connectionCalls(): Call<OrganizationsDependencies>[] {
  const noun = 'organization_connections';
  const absent = notFound('No connection found by that id', 'inexistent_organization_connection');
  return ['connections', 'enabled_connections'].flatMap((word) => {
    const path = `/organizations/:id/${word}`;
    return [
      call({
        method: 'GET',
        path,
        scopes: [`read:${noun}`],
        summary: 'Get the connections of an organization',
        query: z.strictObject({ ...pageQuery, is_enabled: z.string().optional() }),
        handle: async ({ store }, { params, query }) => {
          const all = await Promise.all(
            enabledOf(await organizationOf(store, params.id)).map((one) => enabledView(store, one)),
          );
          return ok(
            await listAnswer(
              query,
              arraySource(all, (one) => one.connection_id),
              { key: word },
            ),
          );
        },
      }),
      call({
        method: 'POST',
        path,
        scopes: [`create:${noun}`],
        summary: 'Add a connection to an organization',
        body: enabledConnection,
        handle: async ({ store }, { params, body }) => {
          const organization = await organizationOf(store, params.id);
          await requireConnection(store, body.connection_id);
          const log = await changeEnabled(store, organization, (all) => {
            if (all.some((one) => one.connection_id === body.connection_id)) {
              throw conflict('Connection is already enabled for this organization', 'connection_conflict')();
            }
            return [...all, body];
          });
          return { ...created(await enabledView(store, body)), ...log };
        },
      }),
      call({
        method: 'GET',
        path: `${path}/:connection_id`,
        scopes: [`read:${noun}`],
        summary: 'Get a connection of an organization',
        handle: async ({ store }, { params }) => {
          const found = enabledOf(await organizationOf(store, params.id)).find(
            (one) => one.connection_id === params.connection_id,
          );
          if (found === undefined) throw absent();
          return ok(await enabledView(store, found));
        },
      }),
      call({
        method: 'PATCH',
        path: `${path}/:connection_id`,
        scopes: [`update:${noun}`],
        summary: 'Update a connection of an organization',
        body: enabledConnection.omit({ connection_id: true }),
        handle: async ({ store }, { params, body }) => {
          const organization = await organizationOf(store, params.id);
          const log = await changeEnabled(store, organization, (all) => {
            if (!all.some((one) => one.connection_id === params.connection_id)) throw absent();
            return all.map((one) => (one.connection_id === params.connection_id ? { ...one, ...body } : one));
          });
          const changed = log.after.find((one) => one.connection_id === params.connection_id);
          return ok(await enabledView(store, changed ?? { connection_id: params.connection_id ?? '' }), log);
        },
      }),
      call({
        method: 'DELETE',
        path: `${path}/:connection_id`,
        scopes: [`delete:${noun}`],
        summary: 'Remove a connection from an organization',
        handle: async ({ store }, { params }) => {
          const organization = await organizationOf(store, params.id);
          return noContent(
            await changeEnabled(store, organization, (all) =>
              all.filter((one) => one.connection_id !== params.connection_id),
            ),
          );
        },
      }),
    ];
  });
}

const userIds = z.strictObject({ members: z.array(z.string().min(1).max(255)).min(1).max(50) });
const roleIds = z.strictObject({ roles: z.array(z.string().min(1).max(64)).min(1).max(50) });

async function roleViews(store: Store, ids: readonly string[]) {
  const found = await Promise.all(ids.map((id) => store.collection('roles').get(id)));
  return found.flatMap((role) =>
    role === undefined ? [] : [{ id: role.id, name: role.name, description: role.description }],
  );
}

async function membershipOf(store: Store, params: Readonly<Record<string, string>>) {
  const { id } = await organizationOf(store, params.id);
  const found = await store.collection('memberships').get(membershipId(id, params.user_id ?? ''));
  if (found !== undefined) return found;
  throw notFound('The user is not a member of the organization.', 'inexistent_member')();
}

function memberCalls(): Call<OrganizationsDependencies>[] {
  const path = '/organizations/:id/members';
  return [
    call({
      method: 'GET',
      path,
      scopes: ['read:organization_members'],
      summary: 'Get members of an organization',
      query: z.strictObject({ ...pageQuery, ...cursorQuery, ...fieldsQuery }),
      handle: async ({ store }, { params, query }) => {
        const { id } = await organizationOf(store, params.id);
        const all = await store.collection('memberships').findBy('organization', id);
        const withRoles = (query.fields ?? '').split(',').includes('roles');
        const views = await Promise.all(
          all.map(async ({ user_id, roles }) => {
            const user = await store.collection('users').get(user_id);
            if (user === undefined) return [];
            return [{ ...memberView(user), ...(withRoles ? { roles: await roleViews(store, roles) } : {}) }];
          }),
        );
        const items = views.flat();
        const source = mapped(
          arraySource(items, (one) => one.user_id),
          (one) => selectFields(one, query),
        );
        return ok(await listAnswer(query, source, { key: 'members', isByCursor: true, reach: 1000 }));
      },
    }),
    call({
      method: 'POST',
      path,
      scopes: ['create:organization_members'],
      summary: 'Add members to an organization',
      body: userIds,
      handle: async ({ store }, { params, body }) => {
        const { id } = await organizationOf(store, params.id);
        for (const userId of body.members) {
          if ((await store.collection('users').get(userId)) === undefined) {
            throw apiError(404, 'The user does not exist.', 'inexistent_user');
          }
        }
        for (const user_id of body.members) {
          await store.collection('memberships').upsert(membershipId(id, user_id), (current) => ({
            id: membershipId(id, user_id),
            organization_id: id,
            user_id,
            roles: [...(current?.roles ?? [])],
          }));
        }
        return noContent({ after: body.members });
      },
    }),
    call({
      method: 'DELETE',
      path,
      scopes: ['delete:organization_members'],
      summary: 'Remove members from an organization',
      body: userIds,
      handle: async ({ store }, { params, body }) => {
        const { id } = await organizationOf(store, params.id);
        for (const userId of body.members)
          await store.collection('memberships').delete(membershipId(id, userId));
        return noContent({ before: body.members });
      },
    }),
    call({
      method: 'GET',
      path: `${path}/:user_id/roles`,
      scopes: ['read:organization_member_roles'],
      summary: 'Get the roles of a member',
      query: z.strictObject(pageQuery),
      handle: async ({ store }, { params, query }) => {
        const roles = await roleViews(store, (await membershipOf(store, params)).roles);
        return ok(
          await listAnswer(
            query,
            arraySource(roles, ({ id }) => id),
            { key: 'roles' },
          ),
        );
      },
    }),
    call({
      method: 'POST',
      path: `${path}/:user_id/roles`,
      scopes: ['create:organization_member_roles'],
      summary: 'Give roles to a member',
      body: roleIds,
      handle: async ({ store }, { params, body }) => {
        const { id, roles: before } = await membershipOf(store, params);
        for (const role of body.roles) {
          if ((await store.collection('roles').get(role)) === undefined)
            throw notFound('Role not found', 'inexistent_role')();
        }
        const after = await store.collection('memberships').update(id, (current) => ({
          ...current,
          roles: [...new Set([...current.roles, ...body.roles])],
        }));
        return noContent({ before, after: after?.roles });
      },
    }),
    call({
      method: 'DELETE',
      path: `${path}/:user_id/roles`,
      scopes: ['delete:organization_member_roles'],
      summary: 'Take roles from a member',
      body: roleIds,
      handle: async ({ store }, { params, body }) => {
        const { id, roles: before } = await membershipOf(store, params);
        const after = await store.collection('memberships').update(id, (current) => ({
          ...current,
          roles: current.roles.filter((role) => !body.roles.includes(role)),
        }));
        return noContent({ before, after: after?.roles });
      },
    }),
  ];
}

/** Which client grants an organization may use; older tools ask for its clients and domains, of which there are none. */
function grantCalls(): Call<OrganizationsDependencies>[] {
  const path = '/organizations/:id/client-grants';
  const grantsOf = (organization: Organization) => (organization.client_grants as string[] | undefined) ?? [];
  const noun = 'organization_client_grants';
  return [
    call({
      method: 'GET',
      path,
      scopes: [`read:${noun}`],
      summary: 'Get the client grants of an organization',
      query: z.strictObject({
        ...pageQuery,
        audience: z.string().optional(),
        client_id: z.string().optional(),
        grant_ids: z.union([z.string(), z.array(z.string())]).optional(),
      }),
      handle: async ({ store }, { params, query }) => {
        const ids = grantsOf(await organizationOf(store, params.id));
        const found = await Promise.all(ids.map((id) => store.collection('clientGrants').get(id)));
        const chosen = found
          .flatMap((grant) => (grant === undefined ? [] : [grant]))
          .filter((grant) => query.audience === undefined || grant.audience === query.audience)
          .filter((grant) => query.client_id === undefined || grant.client_id === query.client_id)
          .filter((grant) => query.grant_ids === undefined || [query.grant_ids].flat().includes(grant.id));
        return ok(
          await listAnswer(
            query,
            arraySource(chosen, ({ id }) => id),
            { key: 'client_grants' },
          ),
        );
      },
    }),
    call({
      method: 'POST',
      path,
      scopes: [`create:${noun}`],
      summary: 'Let an organization use a client grant',
      body: z.strictObject({ grant_id: z.string().max(64) }),
      handle: async ({ store }, { params, body }) => {
        const organization = await organizationOf(store, params.id);
        const grant = await store.collection('clientGrants').get(body.grant_id);
        if (grant === undefined)
          throw notFound('The client grant does not exist', 'inexistent_client_grant')();
        await store.collection('organizations').update(organization.id, (current) => {
          const grants = grantsOf(current);
          if (grants.includes(grant.id))
            throw conflict('The client grant is already associated with this organization')();
          return { ...(current as Records['organizations']), client_grants: [...grants, grant.id] };
        });
        return created(grant);
      },
    }),
    call({
      method: 'DELETE',
      path: `${path}/:grant_id`,
      scopes: [`delete:${noun}`],
      summary: 'Take a client grant from an organization',
      handle: async ({ store }, { params }) => {
        const organization = await organizationOf(store, params.id);
        if (!grantsOf(organization).includes(params.grant_id ?? '')) {
          throw notFound('The client grant does not exist', 'inexistent_client_grant')();
        }
        await store.collection('organizations').update(organization.id, (current) => ({
          ...(current as Records['organizations']),
          client_grants: grantsOf(current).filter((id) => id !== params.grant_id),
        }));
        return noContent({ before: params.grant_id });
      },
    }),
    ...(
      [
        ['clients', 'clients'],
        ['discovery-domains', 'domains'],
      ] as const
    ).map(([word, key]) =>
      call({
        method: 'GET',
        path: `/organizations/:id/${word}`,
        scopes: [`read:organization_${word.replace('-', '_')}`],
        summary: `Get the ${key} of an organization: there are none`,
        query: z.strictObject({ ...pageQuery, ...cursorQuery }),
        handle: async ({ store }, { params, query }) => {
          await organizationOf(store, params.id);
          return ok(await listAnswer(query, arraySource([], String), { key, isByCursor: true }));
        },
      }),
    ),
  ];
}

/** All calls of organizations but for invitations. */
export const organizationCalls: Call<OrganizationsDependencies>[] = [
  ...resourceCalls(resource),
  call({
    method: 'GET',
    path: '/organizations/name/:name',
    scopes: ['read:organizations'],
    summary: 'Get an organization by name',
    handle: async (deps, { params, caller }) => {
      const [found] = await deps.store.collection('organizations').findBy('name', params.name ?? '');
      if (found === undefined) throw missing();
      return ok(resource.view(deps, found, caller));
    },
  }),
  ...connectionCalls(),
  ...memberCalls(),
  ...grantCalls(),
];
