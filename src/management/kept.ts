// Resources that are kept as they were sent and read back: one declaration each.
import { z } from 'zod';
import type { DocumentRecord } from '../records/documents.ts';
import type { Frozen } from '../records/record.ts';
import type { Random } from '../runtime/random.ts';
import { type Store, UniqueKeyError } from '../store/contract.ts';
import { type Call, callsWith, created, noContent, ok } from './call.ts';
import { fieldsQuery, selectFields } from './fields.ts';
import { arraySource, cursorQuery, type ListShape, listAnswer, mapped, pageQuery } from './list.ts';
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
  /** Whether a list is read by a cursor alone, and wrapped always. */
  isByCursorAlone?: boolean;
  /** Whether PUT replaces one. */
  isPutToo?: boolean;
  /** What a change makes of a body; its members over those of before otherwise. */
  change?(before: Record<string, unknown>, asked: Record<string, unknown>): Record<string, unknown>;
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

/** What is kept under a key: an object as it was put. */
export function keptObject({ store, now }: KeptDependencies) {
  const documents = store.collection('documents');
  return {
    read: async (id: string): Promise<object> => (await documents.get(id))?.body ?? {},
    put: async (id: string, kind: string, body: object): Promise<void> => {
      if (Object.keys(body).length === 0) {
        await documents.delete(id);
        return;
      }
      const at = now();
      await documents.upsert(
        id,
        (current): DocumentRecord => ({
          id,
          kind,
          body: body as Record<string, unknown>,
          created_at: current?.created_at ?? at,
          updated_at: at,
        }),
      );
    },
  };
}

/** A new body, with the secrets of the one before that it leaves out: what is read back has none of them. */
function withSecretsOf(hidden: readonly string[], before: unknown, after: Record<string, unknown>) {
  for (const path of hidden) {
    const names = path.split('.');
    const last = names.pop() ?? '';
    const [from, to] = [before, after].map((value) => names.reduce<unknown>(memberOf, value));
    if (isObject(to) && to[last] === undefined && isObject(from) && from[last] !== undefined)
      to[last] = from[last];
  }
  return after;
}

const memberOf = (value: unknown, name: string) => (isObject(value) ? value[name] : undefined);

const call = callsWith<KeptDependencies>();

/** The five calls of such a resource. */
export function keptCalls(resource: Kept): Call<KeptDependencies>[] {
  const { path, name, noun, kind } = resource;
  const nameOf = (body: Readonly<Record<string, unknown>>) =>
    resource.uniqueMember === undefined ? {} : { name: String(body[resource.uniqueMember]).toLowerCase() };
  const refuseTaken = (thrown: unknown): never => {
    throw thrown instanceof UniqueKeyError ? conflict(resource.taken)() : thrown;
  };
  const changeOf = async (
    deps: KeptDependencies,
    id: string | undefined,
    change: (before: Record<string, unknown>) => Record<string, unknown>,
  ) => {
    const before = await documentOf(deps.store, resource, id);
    const at = deps.now();
    const after = await deps.store
      .collection('documents')
      .update(before.id, (current) => {
        const changed = withSecretsOf(
          resource.hidden ?? [],
          current.body,
          change(structuredClone(current.body) as Record<string, unknown>),
        );
        return { ...current, ...nameOf(changed), body: changed, updated_at: at };
      })
      .catch(refuseTaken);
    if (after === undefined) throw resource.missing();
    const view = keptView(resource, after);
    return ok(view, { before: keptView(resource, before), after: view });
  };
  const put =
    resource.isPutToo === true
      ? [
          call({
            method: 'PUT',
            path: `${path}/:id`,
            scopes: [`update:${noun}`],
            summary: `Replace a ${name}`,
            body: resource.createBody,
            handle: (deps, { params, body }) =>
              changeOf(deps, params.id, () => ({ ...resource.usual, ...structuredClone(body) })),
          }),
        ]
      : [];
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
        const paging = resource.isByCursorAlone === true ? { take: 50, ...query } : query;
        return ok(
          await listAnswer(
            paging,
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
      handle: (deps, { params, body }) =>
        changeOf(deps, params.id, (before) => (resource.change ?? merged)(before, structuredClone(body))),
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
    ...put,
  ];
}
