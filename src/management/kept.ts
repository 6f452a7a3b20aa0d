// Resources that are kept as they were sent and read back: one declaration each.
import { z } from 'zod';
import type { DocumentRecord } from '../records/documents.ts';
import type { Frozen } from '../records/record.ts';
import type { Random } from '../runtime/random.ts';
import { type Store, UniqueKeyError } from '../store/contract.ts';
import { type Call, callsWith, created, noContent, ok } from './call.ts';
import { fieldsQuery, selectFields } from './fields.ts';
import { arraySource, cursorQuery, type ListShape, listAnswer, pageQuery } from './list.ts';
import { conflict, merged, type notFound } from './resource.ts';
import { isObject } from './section.ts';

export interface KeptDependencies {
  store: Store;
  random: Random;
  /** ISO 8601. */
  now(): string;
}

export interface Kept {
  kind: string;
  path: string;
  /** In summaries. */
  name: string;
  noun: string;
  /** The member that holds the id; `id`. */
  idMember?: string;
  newId(random: Random): string;
  createBody: z.ZodType<Record<string, unknown>>;
  patchBody: z.ZodType<Record<string, unknown>>;
  /** What a new one has beside its body. */
  usual?: Record<string, unknown>;
  /** Which member no two share. */
  uniqueMember?: string;
  list: ListShape;
  /** How a list is answered that has all of them whatever the query asks: bare, in its member, or bare unless a cursor is asked for. */
  whole?: 'bare' | 'wrapped' | 'bare unless taken';
  /** Members that are secrets, `a.b` is b within a: they are kept, and never answered. */
  hidden?: readonly string[];
  /** What goes with one that was removed. */
  removed?(deps: KeptDependencies, id: string): Promise<void>;
  filters?: z.ZodRawShape;
  matches?(item: Readonly<Record<string, unknown>>, query: Readonly<Record<string, unknown>>): boolean;
  missing: ReturnType<typeof notFound>;
  taken: string;
  createStatus?: number;
  isRemovalStrict?: boolean;
  hasDates?: boolean;
}

type Document = Frozen<DocumentRecord>;

/** As it is answered. */
export function keptView(
  { idMember = 'id', hasDates = true, hidden = [] }: Pick<Kept, 'idMember' | 'hasDates' | 'hidden'>,
  one: Document,
): Record<string, unknown> {
  const { id, body, created_at, updated_at } = one;
  const shown = hidden.reduce(
    (rest, path) => without(rest, path.split('.')),
    body as Record<string, unknown>,
  );
  return { [idMember]: id, ...shown, ...(hasDates ? { created_at, updated_at } : {}) };
}

/** A copy of an object without a member, or one within a member. */
function without(object: Record<string, unknown>, [name = '', ...path]: string[]): Record<string, unknown> {
  const { [name]: member, ...rest } = object;
  if (path.length === 0) return rest;
  return isObject(member) ? { ...rest, [name]: without(member, path) } : object;
}

/** All documents of a kind, oldest first. */
export async function documentsOf(store: Store, kind: string): Promise<Document[]> {
  const found = await store.collection('documents').findBy('kind', kind);
  return [...found].sort((a, b) => (a.created_at + a.id < b.created_at + b.id ? -1 : 1));
}

/** One document of a kind. @throws AuthError 404 */
export async function documentOf(
  store: Store,
  resource: Pick<Kept, 'kind' | 'missing'>,
  id = '',
): Promise<Document> {
  const found = await store.collection('documents').get(id);
  if (found === undefined || found.kind !== resource.kind) throw resource.missing();
  return found;
}

const call = callsWith<KeptDependencies>();

/** The five calls of such a resource. */
export function keptCalls(resource: Kept): Call<KeptDependencies>[] {
  const { path, name, noun, kind } = resource;
  const nameOf = (body: Readonly<Record<string, unknown>>) =>
    resource.uniqueMember === undefined ? {} : { name: String(body[resource.uniqueMember]).toLowerCase() };
  const refuseTaken = (thrown: unknown): never => {
    throw thrown instanceof UniqueKeyError ? conflict(resource.taken)() : thrown;
  };
  return [
    call({
      method: 'GET',
      path,
      scopes: [`read:${noun}`],
      summary: `List ${name}s`,
      query: z.strictObject({ ...pageQuery, ...cursorQuery, ...fieldsQuery, ...resource.filters }),
      handle: async (deps, { query }) => {
        const all = (await documentsOf(deps.store, kind))
          .map((one) => keptView(resource, one))
          .filter((item) => resource.matches?.(item, query) ?? true);
        const isByNumber = query.take === undefined && query.from === undefined;
        if (resource.whole === 'wrapped') return ok({ [resource.list.key]: all });
        if (resource.whole === 'bare' || (resource.whole === 'bare unless taken' && isByNumber))
          return ok(all);
        const source = arraySource(all, (item) => String(item[resource.idMember ?? 'id']));
        return ok(await listAnswer(query, source, resource.list));
      },
    }),
    call({
      method: 'POST',
      path,
      scopes: [`create:${noun}`],
      summary: `Create a ${name}`,
      body: resource.createBody,
      handle: async (deps, { body }) => {
        const at = deps.now();
        const whole = merged({ ...resource.usual }, body);
        const record: DocumentRecord = {
          id: resource.newId(deps.random),
          kind,
          ...nameOf(whole),
          body: whole,
          created_at: at,
          updated_at: at,
        };
        await deps.store.collection('documents').insert(record).catch(refuseTaken);
        return { ...created(keptView(resource, record)), status: resource.createStatus ?? 201 };
      },
    }),
    call({
      method: 'GET',
      path: `${path}/:id`,
      scopes: [`read:${noun}`],
      summary: `Get a ${name}`,
      query: z.strictObject(fieldsQuery),
      handle: async (deps, { params, query }) =>
        ok(selectFields(keptView(resource, await documentOf(deps.store, resource, params.id)), query)),
    }),
    call({
      method: 'PATCH',
      path: `${path}/:id`,
      scopes: [`update:${noun}`],
      summary: `Update a ${name}`,
      body: resource.patchBody,
      handle: async (deps, { params, body }) => {
        const before = await documentOf(deps.store, resource, params.id);
        const at = deps.now();
        const after = await deps.store
          .collection('documents')
          .update(before.id, (current) => {
            const changed = merged(structuredClone(current.body) as Record<string, unknown>, body);
            return { ...current, ...nameOf(changed), body: changed, updated_at: at };
          })
          .catch(refuseTaken);
        if (after === undefined) throw resource.missing();
        const view = keptView(resource, after);
        return ok(view, { before: keptView(resource, before), after: view });
      },
    }),
    call({
      method: 'DELETE',
      path: `${path}/:id`,
      scopes: [`delete:${noun}`],
      summary: `Delete a ${name}`,
      query: z.strictObject({ force: z.string().optional() }),
      handle: async (deps, { params }) => {
        const found = await deps.store.collection('documents').get(params.id ?? '');
        if (found === undefined || found.kind !== kind) {
          if (resource.isRemovalStrict === true) throw resource.missing();
          return noContent();
        }
        await deps.store.collection('documents').delete(found.id);
        await resource.removed?.(deps, found.id);
        return noContent({ before: keptView(resource, found) });
      },
    }),
  ];
}
