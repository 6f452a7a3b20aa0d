// The calls of a resource whose records are a collection of the configuration: list, get, create, update, delete.

import { z } from 'zod';
import type { AuthError } from '../../http/errors.ts';
import { collectionByName, UniqueKeyError } from '../../store/contract.ts';
import { listAll } from '../../store/list-all.ts';
import { isRemovalPending, isSlowlyRemoved, SLOWLY_REMOVED } from '../../tenant/pending-removals.ts';
import { removeReferences } from '../../tenant/references.ts';
import { type Call, type Caller, type CallRequest, callsWith, created, noContent, ok } from './call.ts';
import { arraySource, cursorQuery, type ListSource, listAnswer, mapped, pageQuery } from './list.ts';
import { apiError, validationError } from './management-errors.ts';
import { fieldsQuery, selectFields } from './management-fields.ts';
import type { ConfigurationName, Resource, ResourceDependencies, Stored } from './resource-declaration.ts';
import { sortedBy } from './search/sort.ts';

/** Returns the record that a path names. */
function lookUp<N extends ConfigurationName, D extends ResourceDependencies>(
  deps: D,
  resource: Resource<N, D>,
  id = '',
): Promise<Stored<N> | undefined> {
  const found = resource.find?.(deps, id) ?? deps.store.collection(resource.collection).get(id);
  return found as Promise<Stored<N> | undefined>;
}

/** Returns the record that a path names. @throws AuthError 404 */
async function require<N extends ConfigurationName, D extends ResourceDependencies>(
  deps: D,
  resource: Resource<N, D>,
  id: string | undefined,
): Promise<Stored<N>> {
  const record = await lookUp(deps, resource, id);
  if (record === undefined) throw resource.missing();
  return record;
}

export function resourceCalls<N extends ConfigurationName, D extends ResourceDependencies>(
  resource: Resource<N, D>,
): Call<D>[] {
  return [...collectionCalls(resource), ...recordCalls(resource)];
}

/** Returns the calls at the resource's path: list and create. */
function collectionCalls<N extends ConfigurationName, D extends ResourceDependencies>(
  resource: Resource<N, D>,
): Call<D>[] {
  const call = callsWith<D>();
  const { path, name, noun, readScopes = [], statuses = {} } = resource;
  return [
    call({
      method: 'GET',
      path,
      scopes: [`read:${noun}`, ...readScopes],
      summary: `List ${pluralOf(name)}`,
      query: z.strictObject({ ...pageQuery, ...cursorQuery, ...fieldsQuery, ...resource.filters }),
      handle: async (deps, { query, caller }) => ok(await list(deps, resource, query, caller)),
    }),
    call({
      method: 'POST',
      path,
      scopes: [`create:${noun}`],
      summary: `Create ${withArticle(name)}`,
      body: resource.createBody,
      handle: async (deps, { body, caller, admitAgain }) => {
        const completedBody = await completed(deps, resource, { body, admitAgain }, undefined);
        const record = await resource.make(deps, completedBody);
        await resource.check?.(deps, record);
        await refuseWhilePending(deps, resource, record);
        // The cast is needed because the type of the record depends on N.
        await deps.store
          .collection(resource.collection)
          .insert(record as never)
          .catch(refuseTaken(resource));
        // Again: one of the same name may have been deleted in the meantime.
        await refuseWhilePending(deps, resource, record).catch(async (refusal: unknown) => {
          await deps.store.collection(resource.collection).delete((record as Stored<N>).id);
          throw refusal;
        });
        await resource.afterWrite?.(deps, record as Stored<N>);
        const view = await viewOf(deps, resource, record as Stored<N>, caller);
        const answer = created(view, resource.warnings?.(record as Stored<N>));
        return { ...answer, status: statuses.create ?? 201 };
      },
    }),
  ];
}

/** Refuses a new record while an earlier one of the same name is being removed. @throws AuthError 409 */
async function refuseWhilePending<N extends ConfigurationName, D extends ResourceDependencies>(
  { store }: D,
  { collection, name }: Resource<N, D>,
  record: object,
): Promise<void> {
  if (!isSlowlyRemoved(collection) || !(await isRemovalPending(store, collection, record))) return;
  const { member } = SLOWLY_REMOVED[collection];
  throw apiError(409, `A ${name} with the same ${member} is being deleted, try again later`);
}

export const withArticle = (noun: string): string => `${/^[aeio]/.test(noun) ? 'an' : 'a'} ${noun}`;

/** Returns the calls at the path of one record: get, update, delete. */
function recordCalls<N extends ConfigurationName, D extends ResourceDependencies>(
  resource: Resource<N, D>,
): Call<D>[] {
  const call = callsWith<D>();
  const { name, noun, readScopes = [], updateScopes = [], statuses = {} } = resource;
  const path = `${resource.path}/:id`;
  return [
    call({
      method: 'GET',
      path,
      scopes: [`read:${noun}`, ...readScopes],
      summary: `Get ${withArticle(name)}`,
      query: z.strictObject(fieldsQuery),
      handle: async (deps, { params, query, caller }) => {
        const record = await require(deps, resource, params.id);
        return ok(selectFields(await viewOf(deps, resource, record, caller), query, resource.always));
      },
    }),
    call({
      method: 'PATCH',
      path,
      scopes: [`update:${noun}`, ...updateScopes],
      summary: `Update ${withArticle(name)}`,
      body: resource.patchBody,
      handle: async (deps, { params, body, caller, admitAgain }) => {
        const before = await require(deps, resource, params.id);
        const completedBody = await completed(deps, resource, { body, admitAgain }, before);
        const builtIn = await resource.changeBuiltIn?.(deps, before, completedBody);
        const after = builtIn ?? (await patch(deps, resource, before, completedBody));
        const view = (record: Stored<N>) => shown(deps, resource, record, caller);
        const responseBody = await viewOf(deps, resource, after, caller);
        const log = { before: view(before), after: view(after), warnings: resource.warnings?.(after) ?? [] };
        return ok(responseBody, builtIn === before ? { ...log, isUnchanged: true } : log);
      },
    }),
    call({
      method: 'DELETE',
      path,
      scopes: [`delete:${noun}`],
      summary: `Delete ${withArticle(name)}`,
      handle: async (deps, { params, caller }) => {
        const record = await lookUp(deps, resource, params.id);
        if (record === undefined) {
          if (resource.isRemovalStrict === true) throw resource.missing();
          return noContent();
        }
        resource.guard?.(deps, record);
        await resource.beforeRemoval?.(deps, record);
        const endReferences = () => removeReferences(deps.store, resource.collection, record.id);
        await endReferences();
        const isDeleted = await deps.store.collection(resource.collection).delete(record.id);
        await endReferences();
        if (isDeleted) await resource.afterRemoval?.(deps, record);
        const log = { before: shown(deps, resource, record, caller) };
        return { ...noContent(log), status: statuses.remove ?? 204, body: resource.removedBody?.(deps) };
      },
    }),
  ];
}

/** Returns the body as the resource completes it. The caller is admitted again if that had to wait for another server. */
async function completed<N extends ConfigurationName, D extends ResourceDependencies>(
  deps: D,
  { complete }: Resource<N, D>,
  { body, admitAgain }: Pick<CallRequest<unknown, Record<string, unknown>>, 'body' | 'admitAgain'>,
  before: Stored<N> | undefined,
): Promise<Record<string, unknown>> {
  if (complete === undefined) return body;
  const completedBody = await complete(deps, body, before);
  if (completedBody !== body) await admitAgain();
  return completedBody;
}

function refuseTaken<N extends ConfigurationName, D extends ResourceDependencies>({ taken }: Resource<N, D>) {
  return (thrown: unknown): never => {
    throw thrown instanceof UniqueKeyError ? taken(thrown.key) : thrown;
  };
}

async function list<N extends ConfigurationName, D extends ResourceDependencies>(
  deps: D,
  resource: Resource<N, D>,
  query: Readonly<Record<string, unknown>>,
  caller: Caller,
): Promise<unknown> {
  const view = (record: Stored<N>) => {
    const item = { ...shown(deps, resource, record, caller), ...resource.listMembers?.(record, query) };
    return selectFields(item, query, resource.always);
  };
  const source = (await resource.source?.(deps, query)) ?? (await memorySource(deps, resource, query));
  return listAnswer(query, mapped(source, view as (record: object) => object), resource.list);
}

async function memorySource<N extends ConfigurationName, D extends ResourceDependencies>(
  deps: D,
  resource: Resource<N, D>,
  query: Readonly<Record<string, unknown>>,
): Promise<ListSource> {
  const all = (await listAll(collectionByName(deps.store, resource.collection))) as Stored<N>[];
  const order = resource.orderOf ?? ((record: Stored<N>) => record.id);
  const isRelated = await resource.relatedFilter?.(deps, query);
  const matching = [...all, ...((await resource.builtIn?.(deps, query)) ?? [])]
    .filter((record) => (resource.matches?.(record, query) ?? true) && (isRelated?.(record) ?? true))
    .sort((a, b) => (order(a) < order(b) ? -1 : 1));
  return arraySource(sortedBy(matching, query.sort, resource.sortable), ({ id }) => id);
}

/** Returns a record as a response for it alone shows it. */
async function viewOf<N extends ConfigurationName, D extends ResourceDependencies>(
  deps: D,
  resource: Resource<N, D>,
  record: Stored<N>,
  caller: Caller,
): Promise<object> {
  return { ...shown(deps, resource, record, caller), ...(await resource.related?.(deps, record)) };
}

// docs/understand/decisions/management-api.md#unknown-members-of-a-tenant-file-are-kept-for-its-export-not-for-answers
/**
 * Returns the members of a record that are shown. A tenant file may have brought members that nothing here knows. They are
 * kept for its export, but the calls refuse them, so a tool that sends back what it reads must not get them.
 */
export function shown<N extends ConfigurationName, D extends ResourceDependencies>(
  deps: D,
  resource: Resource<N, D>,
  record: Stored<N>,
  caller: Caller,
): object {
  const { schema, builtInMembers = [], createBody, patchBody } = resource;
  if (schema === undefined) return resource.view(deps, record, caller);
  const isKnown = (member: string) =>
    ['id', ...builtInMembers].includes(member) ||
    [schema, createBody, patchBody].some((one) => hasMember(one, member));
  const known = Object.fromEntries(Object.entries(record).filter(([member]) => isKnown(member)));
  return resource.view(deps, known as Stored<N>, caller);
}

const hasMember = (schema: z.ZodType, member: string): boolean =>
  schema instanceof z.ZodObject && Object.hasOwn(schema.shape, member);

/**
 * Changes a record. The change is applied to the stored record, so that concurrent changes of other members are kept.
 */
async function patch<N extends ConfigurationName, D extends ResourceDependencies>(
  deps: D,
  resource: Resource<N, D>,
  before: Stored<N>,
  body: Record<string, unknown>,
): Promise<Stored<N>> {
  resource.guard?.(deps, before);
  await resource.check?.(deps, resource.change(deps, before, body));
  // The cast is needed because the type of the record depends on N.
  const after = await deps.store
    .collection(resource.collection)
    .update(before.id, (current) => resource.change(deps, current as Stored<N>, body) as never)
    .catch(refuseTaken(resource));
  if (after === undefined) throw resource.missing();
  await resource.afterWrite?.(deps, after as Stored<N>);
  return after as Stored<N>;
}

/**
 * Parses a record with the schema of the tenant file, so that the API accepts only what a file could contain.
 * @throws AuthError 400
 */
export function checkedBy<S extends z.ZodType>(schema: S, value: unknown): z.output<S> {
  const result = schema.safeParse(value, { reportInput: true });
  if (!result.success) throw validationError('body', result.error);
  return result.data;
}

/** Returns a record with the members of a body; null removes a member. */
export function merged<T extends object>(record: T, body: Readonly<Record<string, unknown>>): T {
  const changed: Record<string, unknown> = { ...record, ...body };
  return Object.fromEntries(Object.entries(changed).filter(([, value]) => value !== null)) as T;
}

export const notFound = (message: string, code?: string) => (): AuthError => apiError(404, message, code);

export const conflict = (message: string, code?: string) => (): AuthError => apiError(409, message, code);

/** Returns the plural of a resource's name, such as `rate limit policies` or `connections of flows`. */
export function pluralOf(name: string): string {
  const [noun = '', ...rest] = name.split(' of ');
  const plural = /[^aeiou]y$/.test(noun) ? `${noun.slice(0, -1)}ies` : `${noun}s`;
  return [plural, ...rest].join(' of ');
}
