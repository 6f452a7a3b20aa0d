// The calls of resources that are stored as documents: list, create, get, update, replace, delete.
import { z } from 'zod';
import type { DocumentRecord } from '../../records/tenant/documents.ts';
import { UniqueKeyError } from '../../store/contract.ts';
import { type Call, callsWith, created, noContent, ok } from './call.ts';
import {
  type DocumentDependencies,
  type DocumentResource,
  documentOf,
  documentsOf,
  documentView,
  withSecretsOf,
} from './document-resource.ts';
import { arraySource, cursorQuery, listAnswer, mapped, pageQuery } from './list.ts';
import { fieldsQuery, selectFields } from './management-fields.ts';
import { conflict, merged, pluralOf, withArticle } from './resource.ts';
import { sortedBy } from './search/sort.ts';

const call = callsWith<DocumentDependencies>();

/** Returns the calls of a resource: list, create, get, update, delete, and replace if it declares that. */
export function documentResourceCalls(resource: DocumentResource): Call<DocumentDependencies>[] {
  return [...collectionCalls(resource), ...documentCalls(resource)];
}

function listView(
  resource: DocumentResource,
  document: Parameters<typeof documentView>[1],
): Record<string, unknown> {
  const { omittedFromList: unlisted = [] } = resource;
  return Object.fromEntries(
    Object.entries(documentView(resource, document)).filter(([member]) => !unlisted.includes(member)),
  );
}

/** Returns the indexed name of a document if its resource has a unique member. */
function nameOf({ uniqueMember }: DocumentResource, body: Readonly<Record<string, unknown>>) {
  return uniqueMember === undefined ? {} : { name: String(body[uniqueMember]).toLowerCase() };
}

function refuseTaken({ taken }: DocumentResource) {
  return (thrown: unknown): never => {
    throw thrown instanceof UniqueKeyError ? conflict(taken)() : thrown;
  };
}

/** Changes a document atomically; hidden members that the change leaves out are kept. @throws AuthError 404, 409 */
async function changeOf(
  deps: DocumentDependencies,
  resource: DocumentResource,
  id: string | undefined,
  change: (before: Record<string, unknown>) => Record<string, unknown>,
) {
  const before = await documentOf(deps.store, resource, id);
  const timestamp = deps.now();
  const after = await deps.store
    .collection('documents')
    .update(before.id, (current) => {
      const changed = withSecretsOf(
        resource.hidden ?? [],
        current.body,
        change(structuredClone(current.body) as Record<string, unknown>),
      );
      resource.validate?.(changed);
      return { ...current, ...nameOf(resource, changed), body: changed, updated_at: timestamp };
    })
    .catch(refuseTaken(resource));
  if (after === undefined) throw resource.missing();
  const view = documentView(resource, after);
  const warnings = resource.warnings?.(after.body) ?? [];
  return ok(view, { before: documentView(resource, before), after: view, warnings });
}

function collectionCalls(resource: DocumentResource): Call<DocumentDependencies>[] {
  const { path, name, noun, kind } = resource;
  return [
    call({
      method: 'GET',
      path,
      scopes: [`read:${noun}`],
      summary: `List ${pluralOf(name)}`,
      query: z.strictObject({ ...pageQuery, ...cursorQuery, ...fieldsQuery, ...resource.filters }),
      handle: async (deps, { query }) => {
        const matching = (await documentsOf(deps.store, kind))
          .map((one) => listView(resource, one))
          .filter((item) => resource.matches?.(item, query) ?? true);
        const all = sortedBy(matching, (query as { sort?: unknown }).sort, resource.sortable);
        const isByNumber = query.take === undefined && query.from === undefined;
        if (resource.unpaged === 'wrapped') return ok({ [resource.list.key]: all });
        if (resource.unpaged === 'bare' || (resource.unpaged === 'bare unless taken' && isByNumber))
          return ok(all);
        const source = arraySource(all, (item) => String(item[resource.idMember ?? 'id']));
        return ok(
          await listAnswer(
            query,
            mapped(source, (item) => selectFields(item, query)),
            resource.list,
          ),
        );
      },
    }),
    call({
      method: 'POST',
      path,
      scopes: [`create:${noun}`],
      summary: `Create ${withArticle(name)}`,
      body: resource.createBody,
      handle: async (deps, { body }) => {
        const timestamp = deps.now();
        const completeBody = {
          ...merged({ ...resource.defaults }, body),
          ...(await resource.generated?.(deps, body)),
        };
        resource.validate?.(completeBody);
        const record: DocumentRecord = {
          id: resource.newId(deps.random),
          kind,
          ...nameOf(resource, completeBody),
          body: completeBody,
          created_at: timestamp,
          updated_at: timestamp,
        };
        await deps.store.collection('documents').insert(record).catch(refuseTaken(resource));
        const warnings = resource.warnings?.(completeBody);
        return { ...created(documentView(resource, record), warnings), status: resource.createStatus ?? 201 };
      },
    }),
  ];
}

function documentCalls(resource: DocumentResource): Call<DocumentDependencies>[] {
  const { path, name, noun } = resource;
  return [
    call({
      method: 'GET',
      path: `${path}/:id`,
      scopes: [`read:${noun}`],
      summary: `Get ${withArticle(name)}`,
      query: z.strictObject(fieldsQuery),
      handle: async (deps, { params, query }) =>
        ok(selectFields(documentView(resource, await documentOf(deps.store, resource, params.id)), query)),
    }),
    call({
      method: 'PATCH',
      path: `${path}/:id`,
      scopes: [`update:${noun}`],
      summary: `Update ${withArticle(name)}`,
      body: resource.patchBody,
      handle: (deps, { params, body }) =>
        changeOf(deps, resource, params.id, (before) =>
          (resource.change ?? merged)(before, structuredClone(body), deps.now()),
        ),
    }),
    deleteCall(resource),
    ...(resource.hasPut === true
      ? [
          call({
            method: 'PUT',
            path: `${path}/:id`,
            scopes: [`update:${noun}`],
            summary: `Replace a ${name}`,
            body: resource.createBody,
            handle: (deps, { params, body }) =>
              changeOf(deps, resource, params.id, () => ({ ...resource.defaults, ...structuredClone(body) })),
          }),
        ]
      : []),
  ];
}

function deleteCall(resource: DocumentResource): Call<DocumentDependencies> {
  const { path, name, noun, kind } = resource;
  return call({
    method: 'DELETE',
    path: `${path}/:id`,
    scopes: [`delete:${noun}`],
    summary: `Delete ${withArticle(name)}`,
    query: z.strictObject({ force: z.string().optional() }),
    handle: async (deps, { params, query }) => {
      const found = await deps.store.collection('documents').get(params.id ?? '');
      if (found === undefined || found.kind !== kind) {
        if (resource.isRemovalStrict === true) throw resource.missing();
        return noContent();
      }
      await resource.beforeRemoval?.(deps, found.id, query.force === 'true');
      await deps.store.collection('documents').delete(found.id);
      await resource.afterRemoval?.(deps, found.id);
      return noContent({ before: documentView(resource, found) });
    },
  });
}
