// `/connections/{id}/directory-provisioning`: settings for importing users from a directory. They are stored and have
// no effect.
import { z } from 'zod';
import { type Call, callsWith, created, noContent, ok } from '../../call.ts';
import { type DocumentDependencies, documentsOf, storedObject } from '../../document-resource.ts';
import { arraySource, cursorQuery, listAnswer } from '../../list.ts';
import { apiError } from '../../management-errors.ts';
import { searchQuery } from '../../management-fields.ts';
import { conflict, notFound } from '../../resource.ts';

// Groups of a directory that are selected for synchronization.

/** Groups to synchronize, for `synchronize_groups: selected`. */
const groups = z
  .array(
    z.strictObject({
      id: z.string().min(1).max(255),
      name: z.string().max(255).optional(),
      email: z.email("Object didn't pass validation for format email: ").max(320).optional(),
      direct_members_count: z.int().min(0).optional(),
    }),
  )
  .max(100);
type Group = z.output<typeof groups>[number];

/** Returns the groups without repeated ids; the last one of an id is kept. */
const unique = (groups: readonly Group[]): Group[] => [
  ...new Map(groups.map((one) => [one.id, one])).values(),
];

/** Returns the groups without those whose ids others have. */
function without(groups: readonly Group[], others: readonly Group[]): Group[] {
  const ids = new Set(others.map(({ id }) => id));
  return groups.filter(({ id }) => !ids.has(id));
}

/**
 * Returns a test for groups by name or address: exact, or by prefix as in `name:engineering*`. Case is ignored.
 * @throws AuthError 400
 */
function matching(q: string | undefined): (group: Group) => boolean {
  if (q === undefined) return () => true;
  const [, field, start = '', wildcard] = /^(name|email):"?([^"*]*)"?(\*)?$/.exec(q) ?? [];
  if (field !== 'name' && field !== 'email')
    throw apiError(400, 'Groups are searched by name or email.', 'invalid_query_string');
  const wanted = start.toLowerCase();
  return (group) => {
    const value = group[field]?.toLowerCase() ?? '';
    return wildcard === undefined ? value === wanted : value.startsWith(wanted);
  };
}

const KIND = 'directory-provisioning';
const PATH = '/connections/:id/directory-provisioning';
const GROUPS_PATH = `${PATH}/synchronized-groups`;

const settings = z.strictObject({
  mapping: z
    .array(z.strictObject({ auth0: z.string().max(255), idp: z.string().max(255) }))
    .max(100)
    .optional(),
  synchronize_automatically: z.boolean().optional(),
  synchronize_groups: z.enum(['all', 'off', 'selected']).optional(),
});

/**
 * The default mapping, as at the hosted service: members of the directory and members of users, `name=other` if the
 * names differ.
 */
const GOOGLE_MAPPING =
  'id=app_metadata.external_id primaryEmail=email primaryEmail name.fullName=name name.givenName=given_name ' +
  'name.familyName=family_name isAdmin isAdmin=is_admin isDelegatedAdmin agreedToTerms agreedToTerms=tou_accepted ' +
  'suspended suspended=is_suspended suspended=blocked suspensionReason archived ipWhitelisted ' +
  'ipWhitelisted=is_ipWhitelisted kind etag customerId orgUnitPath emails phones externalIds aliases addresses ' +
  'organizations nonEditableAliases relations languages posixAccounts notes websites locations keywords gender ims ' +
  'creationTime lastLoginTime changePasswordAtNextLogin isMailboxSetup includeInGlobalAddressList thumbnailPhotoUrl ' +
  'thumbnailPhotoEtag isEnrolledIn2Sv isEnforcedIn2Sv recoveryEmail recoveryPhone sshPublicKeys customSchemas';

const DEFAULT_MAPPING = GOOGLE_MAPPING.split(' ').map((entry) => {
  const [idp = '', auth0 = idp] = entry.split('=');
  return { idp, auth0 };
});

const groupsBody = z.strictObject({ groups: groups.min(1) });

const missing = notFound('Not Found');

async function connectionOf({ store }: DocumentDependencies, id = '') {
  const found = await store.collection('connections').get(id);
  if (found === undefined) throw notFound('The connection does not exist', 'inexistent_connection')();
  return found;
}

/** Returns the id of the document with a connection's settings. */
export const directoryProvisioningKey = (connectionId: string): string => `${KIND}/${connectionId}`;

/** Returns the settings of a connection. @throws AuthError 404 */
async function provisioningOf(deps: DocumentDependencies, id: string | undefined) {
  const connection = await connectionOf(deps, id);
  const found = await deps.store.collection('documents').get(directoryProvisioningKey(connection.id));
  if (found === undefined) throw missing();
  return { connection, found, view: viewOf(connection, found) };
}

interface Provisioning {
  groups?: readonly Group[];
}

/** Highest number of groups of one connection, because they are stored in one record. */
const MAX_GROUPS = 1000;

function viewOf(
  { id, name, strategy }: { id: string; name: string; strategy: string },
  { body, created_at, updated_at }: { body: object; created_at: string; updated_at: string },
) {
  const { groups: _, ...shown } = body as Provisioning;
  return { connection_id: id, connection_name: name, strategy, ...shown, created_at, updated_at };
}

/** @throws AuthError 404 */
async function changeGroups(
  deps: DocumentDependencies,
  id: string | undefined,
  change: (groups: readonly Group[]) => Group[],
) {
  const { found } = await provisioningOf(deps, id);
  await deps.store.collection('documents').update(found.id, (current) => {
    const { groups = [] } = current.body as Provisioning;
    const next = change(groups);
    if (next.length > MAX_GROUPS)
      throw apiError(400, `At most ${MAX_GROUPS} groups are selected`, 'invalid_body');
    return { ...current, body: { ...current.body, groups: next } };
  });
  return noContent();
}

const call = callsWith<DocumentDependencies>();

export const directoryProvisioningCalls: Call<DocumentDependencies>[] = [
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
      return ok(await listAnswer(query, source, { key: 'directory_provisionings', isCursorOnly: true }));
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
    summary: 'Get the default attribute mapping of a directory',
    handle: async (deps, { params }) => {
      await connectionOf(deps, params.id);
      return ok({ mapping: DEFAULT_MAPPING });
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
      await storedObject(deps).put(key, KIND, {
        mapping: DEFAULT_MAPPING,
        synchronize_automatically: false,
        synchronize_groups: 'off',
        ...body,
      });
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
      const updated_at = deps.now();
      await deps.store
        .collection('documents')
        .update(found.id, (current) => ({ ...current, body: { ...current.body, ...body }, updated_at }));
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
  call({
    method: 'GET',
    path: GROUPS_PATH,
    scopes: ['read:directory_provisionings'],
    summary: 'List the selected groups of a directory',
    query: z.strictObject({ ...cursorQuery, ...searchQuery(256) }),
    handle: async (deps, { params, query: { q, search_engine: _, ...page } }) => {
      const { groups = [] } = (await provisioningOf(deps, params.id)).found.body as Provisioning;
      const source = arraySource(groups.filter(matching(q)), ({ id }) => id);
      return ok(await listAnswer(page, source, { key: 'groups', isCursorOnly: true }));
    },
  }),
  call({
    method: 'POST',
    path: GROUPS_PATH,
    scopes: ['update:directory_provisionings'],
    summary: 'Select groups of a directory',
    body: groupsBody,
    handle: (deps, { params, body }) =>
      changeGroups(deps, params.id, (groups) => [...without(groups, body.groups), ...unique(body.groups)]),
  }),
  call({
    method: 'PUT',
    path: GROUPS_PATH,
    scopes: ['update:directory_provisionings'],
    summary: 'Replace the selected groups of a directory',
    body: z.strictObject({ groups }),
    handle: (deps, { params, body }) => changeGroups(deps, params.id, () => unique(body.groups)),
  }),
  call({
    method: 'DELETE',
    path: GROUPS_PATH,
    scopes: ['update:directory_provisionings'],
    summary: 'Deselect groups of a directory',
    body: groupsBody,
    handle: (deps, { params, body }) =>
      changeGroups(deps, params.id, (groups) => without(groups, body.groups)),
  }),
];
