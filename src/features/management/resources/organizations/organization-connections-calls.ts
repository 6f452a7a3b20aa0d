// `/organizations/{id}/connections`, which older tools call `enabled_connections`: both paths give the same
// responses.
import { z } from 'zod';
import type { Organization, Records } from '../../../../records/collections.ts';
import { isEnabled } from '../../../../records/users/organizations.ts';
import type { Store } from '../../../../store/contract.ts';
import { type Call, callsWith, created, noContent, ok } from '../../call.ts';
import { arrayAnswer, pageQuery } from '../../list.ts';
import { flag } from '../../management-fields.ts';
import { conflict, notFound } from '../../resource.ts';
import {
  type EnabledConnection,
  enabledConnection,
  noOrganization,
  organizationOf,
  requireConnection,
} from './organizations.ts';

const call = callsWith<{ store: Store }>();
const noun = 'organization_connections';
const notEnabled = notFound('No connection found by that id', 'inexistent_organization_connection');

function enabledOf(organization: Organization): EnabledConnection[] {
  return (organization.enabled_connections as EnabledConnection[] | undefined) ?? [];
}

async function enabledView(store: Store, enabled: EnabledConnection) {
  const connection = await store.collection('connections').get(enabled.connection_id);
  return {
    assign_membership_on_login: false,
    show_as_button: true,
    is_signup_enabled: false,
    ...enabled,
    connection: { name: connection?.name, strategy: connection?.strategy },
  };
}

async function changeEnabled(
  store: Store,
  organization: Organization,
  change: (all: EnabledConnection[]) => EnabledConnection[],
) {
  const after = await store.collection('organizations').update(organization.id, (current) => ({
    ...(current as Records['organizations']),
    enabled_connections: change(enabledOf(current)),
  }));
  if (after === undefined) throw noOrganization();
  return { before: enabledOf(organization), after: enabledOf(after) };
}

/** @param word the last segment of the path, `/organizations/{id}/<word>`. */
function listCalls(word: string): Call<{ store: Store }>[] {
  const path = `/organizations/:id/${word}`;
  return [
    call({
      method: 'GET',
      path,
      scopes: [`read:${noun}`],
      summary: 'Get the connections of an organization',
      query: z.strictObject({ ...pageQuery, is_enabled: flag.optional() }),
      handle: async ({ store }, { params, query }) => {
        const all = await Promise.all(
          enabledOf(await organizationOf(store, params.id))
            .filter((one) => query.is_enabled === undefined || isEnabled(one) === query.is_enabled)
            .map((one) => enabledView(store, one)),
        );
        // Sorted by name, because connections that were added concurrently are in no particular order.
        all.sort((a, b) => (String(a.connection.name) < String(b.connection.name) ? -1 : 1));
        return ok(await arrayAnswer(query, all, (one) => one.connection_id, { key: word }));
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
  ];
}

/** @param word the segment of the list's path, `/organizations/{id}/<word>`. */
function singleCalls(word: string): Call<{ store: Store }>[] {
  const path = `/organizations/:id/${word}/:connection_id`;
  return [
    call({
      method: 'GET',
      path,
      scopes: [`read:${noun}`],
      summary: 'Get a connection of an organization',
      handle: async ({ store }, { params }) => {
        const found = enabledOf(await organizationOf(store, params.id)).find(
          (one) => one.connection_id === params.connection_id,
        );
        if (found === undefined) throw notEnabled();
        return ok(await enabledView(store, found));
      },
    }),
    call({
      method: 'PATCH',
      path,
      scopes: [`update:${noun}`],
      summary: 'Update a connection of an organization',
      body: enabledConnection.omit({ connection_id: true }),
      handle: async ({ store }, { params, body }) => {
        const organization = await organizationOf(store, params.id);
        const log = await changeEnabled(store, organization, (all) => {
          const before = all.find((one) => one.connection_id === params.connection_id);
          if (before === undefined) throw notEnabled();
          return all.map((one) => (one === before ? { ...before, ...body } : one));
        });
        const changed = log.after.find((one) => one.connection_id === params.connection_id);
        return ok(await enabledView(store, changed ?? { connection_id: params.connection_id ?? '' }), log);
      },
    }),
    call({
      method: 'DELETE',
      path,
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
}

export const organizationConnectionCalls: Call<{ store: Store }>[] = [
  'connections',
  'enabled_connections',
].flatMap((word) => [...listCalls(word), ...singleCalls(word)]);
