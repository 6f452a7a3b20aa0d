// `/connections/{id}/directory-provisioning`: how a directory's users would be brought here. It is kept; nothing is
// fetched from a directory.
import { z } from 'zod';
import { type Call, callsWith, created, noContent, ok } from '../call.ts';
import { documentsOf, type KeptDependencies, keptObject } from '../kept.ts';
import { arraySource, cursorQuery, listAnswer } from '../list.ts';
import { conflict, notFound } from '../resource.ts';

const KIND = 'directory-provisioning';
const PATH = '/connections/:id/directory-provisioning';

const settings = z.strictObject({
  mapping: z
    .array(z.strictObject({ auth0: z.string().max(255), idp: z.string().max(255) }))
    .max(100)
    .optional(),
  synchronize_automatically: z.boolean().optional(),
  synchronize_groups: z.enum(['all', 'off', 'selected']).optional(),
});

const MAPPING = [
  { auth0: 'email', idp: 'mail' },
  { auth0: 'name', idp: 'displayName' },
];

const missing = notFound('Not Found');

async function connectionOf({ store }: KeptDependencies, id = '') {
  const found = await store.collection('connections').get(id);
  if (found === undefined) throw notFound('The connection does not exist', 'inexistent_connection')();
  return found;
}

/** The key of a connection's. */
export const directoryProvisioningKey = (connectionId: string): string => `${KIND}/${connectionId}`;

/** What is set of a connection. @throws AuthError 404 */
async function provisioningOf(deps: KeptDependencies, id: string | undefined) {
  const connection = await connectionOf(deps, id);
  const found = await deps.store.collection('documents').get(directoryProvisioningKey(connection.id));
  if (found === undefined) throw missing();
  return { connection, found, view: viewOf(connection, found) };
}

function viewOf(
  { id, name, strategy }: { id: string; name: string; strategy: string },
  { body, created_at, updated_at }: { body: object; created_at: string; updated_at: string },
) {
  return { connection_id: id, connection_name: name, strategy, ...body, created_at, updated_at };
}

const call = callsWith<KeptDependencies>();

/** All calls. */
export const directoryProvisioningCalls: Call<KeptDependencies>[] = [
  call({
    method: 'GET',
    path: '/connections-directory-provisionings',
    scopes: ['read:directory_provisionings'],
    summary: 'List directory provisionings',
    query: z.strictObject(cursorQuery),
    handle: async (deps, { query }) => {
      const all = await Promise.all(
        (await documentsOf(deps.store, KIND)).map(async (one) => {
          const connection = await deps.store.collection('connections').get(one.id.split('/')[1] ?? '');
          return connection === undefined ? [] : [viewOf(connection, one)];
        }),
      );
      const source = arraySource(all.flat(), ({ connection_id }) => connection_id);
      return ok(await listAnswer({ take: 50, ...query }, source, { key: 'directory_provisionings' }));
    },
  }),
  call({
    method: 'GET',
    path: PATH,
    scopes: ['read:directory_provisionings'],
    summary: 'Get the directory provisioning of a connection',
    handle: async (deps, { params }) => ok((await provisioningOf(deps, params.id)).view),
  }),
  call({
    method: 'GET',
    path: `${PATH}/default-mapping`,
    scopes: ['read:directory_provisionings'],
    summary: 'Get the usual mapping of a directory',
    handle: async (deps, { params }) => {
      await connectionOf(deps, params.id);
      return ok({ mapping: MAPPING });
    },
  }),
  call({
    method: 'POST',
    path: PATH,
    scopes: ['create:directory_provisionings'],
    summary: 'Create the directory provisioning of a connection',
    body: settings,
    handle: async (deps, { params, body }) => {
      const { id } = await connectionOf(deps, params.id);
      const key = directoryProvisioningKey(id);
      if ((await deps.store.collection('documents').get(key)) !== undefined)
        throw conflict('The connection has a directory provisioning already.')();
      await keptObject(deps).put(key, KIND, { mapping: MAPPING, synchronize_automatically: false, ...body });
      return created((await provisioningOf(deps, id)).view);
    },
  }),
  call({
    method: 'PATCH',
    path: PATH,
    scopes: ['update:directory_provisionings'],
    summary: 'Update the directory provisioning of a connection',
    body: settings,
    handle: async (deps, { params, body }) => {
      const { found, view: before } = await provisioningOf(deps, params.id);
      await keptObject(deps).put(found.id, KIND, { ...found.body, ...body });
      const { view } = await provisioningOf(deps, params.id);
      return ok(view, { before, after: view });
    },
  }),
  call({
    method: 'DELETE',
    path: PATH,
    scopes: ['delete:directory_provisionings'],
    summary: 'Delete the directory provisioning of a connection',
    handle: async (deps, { params }) => {
      const { found, view: before } = await provisioningOf(deps, params.id);
      await deps.store.collection('documents').delete(found.id);
      return noContent({ before });
    },
  }),
];
