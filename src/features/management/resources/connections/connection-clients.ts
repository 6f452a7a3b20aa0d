// `/connections/{id}/clients` and `/clients/{id}/connections`: which clients a connection is enabled for.
import { z } from 'zod';
import type { Connection } from '../../../../records/collections.ts';
import type { Store } from '../../../../store/contract.ts';
import { listAll } from '../../../../store/list-all.ts';
import { type Call, callsWith, noContent, ok } from '../../call.ts';
import { arrayAnswer, cursorQuery } from '../../list.ts';
import { repeatable } from '../../management-fields.ts';
import { textsOf } from './connection-body.ts';
import { connectionOf, connectionView, requireClient } from './connections-calls.ts';

const call = callsWith<{ store: Store }>();

export const connectionClientCalls: Call<{ store: Store }>[] = [
  call({
    method: 'GET',
    path: '/connections/:id/clients',
    scopes: ['read:connections'],
    summary: 'Get enabled clients of a connection',
    query: z.strictObject(cursorQuery),
    handle: async (deps, { params, query }) => {
      const { enabled_clients } = await connectionOf(deps, params.id);
      const clients = enabled_clients.map((client_id) => ({ client_id }));
      const idOf = (client: { client_id: string }) => client.client_id;
      return ok(await arrayAnswer(query, clients, idOf, { key: 'clients', isCursorOnly: true }));
    },
  }),
  call({
    method: 'PATCH',
    path: '/connections/:id/clients',
    scopes: ['update:connections'],
    summary: 'Update enabled clients of a connection',
    body: z
      .array(z.strictObject({ client_id: z.string().max(255), status: z.boolean() }))
      .min(1)
      .max(50),
    handle: async (deps, { params, body }) => {
      const { id, enabled_clients: before } = await connectionOf(deps, params.id);
      for (const { client_id, status } of body) if (status) await requireClient(deps.store, client_id);
      const after = await deps.store.collection('connections').update(id, (current) => {
        const enabled = new Set(current.enabled_clients);
        for (const { client_id, status } of body) {
          if (status) enabled.add(client_id);
          else enabled.delete(client_id);
        }
        return { ...current, enabled_clients: [...enabled] };
      });
      return noContent({ before, after: after?.enabled_clients });
    },
  }),
  call({
    method: 'GET',
    path: '/clients/:id/connections',
    scopes: ['read:connections', 'read:clients', 'read:client_summary'],
    summary: 'Get enabled connections of a client',
    query: z.strictObject({
      ...cursorQuery,
      strategy: repeatable.optional(),
      fields: z.string().optional(),
      include_fields: z.string().optional(),
    }),
    handle: async (deps, { params, query }) => {
      const clientId = params.id ?? '';
      await requireClient(deps.store, clientId);
      const enabled = (await listAll(deps.store.collection('connections')))
        .filter((one) => one.enabled_clients.includes(clientId))
        .filter((one) => query.strategy === undefined || textsOf(query.strategy).includes(one.strategy));
      const views = enabled.map((one) => connectionView(one) as Connection);
      return ok(await arrayAnswer(query, views, ({ id }) => id, { key: 'connections', isCursorOnly: true }));
    },
  }),
];
