// Resources that are kept as they were sent and read back: one declaration each.
import type { z } from 'zod';
import type { DocumentRecord } from '../records/documents.ts';
import type { Frozen } from '../records/record.ts';
import type { Random } from '../runtime/random.ts';
import type { Store } from '../store/contract.ts';
import type { ListShape } from './list.ts';
import type { notFound } from './resource.ts';
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
  /** What is answered of each and stored of none. */
  shown?: Record<string, unknown>;
  /** What a new one has beside its body. */
  usual?: Record<string, unknown>;
  /** What is made for a new one. */
  made?(
    deps: KeptDependencies,
    body: Readonly<Record<string, unknown>>,
  ): Record<string, unknown> | Promise<Record<string, unknown>>;
  /** Which member no two share. */
  uniqueMember?: string;
  list: ListShape;
  /** Members that are read of one document alone: a list leaves them out. */
  unlisted?: readonly string[];
  /** How a list is answered that has all of them whatever the query asks: bare, in its member, or bare unless a cursor is asked for. */
  whole?: 'bare' | 'wrapped' | 'bare unless taken';
  /** Whether a list is read by a cursor alone, and wrapped always. */
  isByCursorAlone?: boolean;
  /** Whether PUT replaces one. */
  isPutToo?: boolean;
  /** What a change makes of a body; its members over those of before otherwise. @param now ISO 8601. */
  change?(
    before: Record<string, unknown>,
    asked: Record<string, unknown>,
    now: string,
  ): Record<string, unknown>;
  /** Refuses a body as a whole, new or changed. @throws AuthError 400 */
  judge?(body: Readonly<Record<string, unknown>>): void;
  /** Members that are secrets, `a.b` is b within a: they are kept, and never answered. */
  hidden?: readonly string[];
  /**
   * Before one is removed: refuses that where something needs it, or has that go on without it.
   * @param isForced whether the latter is asked for. @throws AuthError 409
   */
  removing?(deps: KeptDependencies, id: string, isForced: boolean): Promise<void>;
  /** What goes with one that was removed. */
  removed?(deps: KeptDependencies, id: string): Promise<void>;
  filters?: z.ZodRawShape;
  /** Members that the query's `sort` can name, where its filters have that. */
  sortable?: readonly string[];
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
  {
    idMember = 'id',
    hasDates = true,
    hidden = [],
    shown: always = {},
  }: Pick<Kept, 'idMember' | 'hasDates' | 'hidden' | 'shown'>,
  one: Document,
): Record<string, unknown> {
  const { id, body, created_at, updated_at } = one;
  const shown = hidden.reduce(
    (rest, path) => without(rest, path.split('.')),
    body as Record<string, unknown>,
  );
  return { [idMember]: id, ...always, ...shown, ...(hasDates ? { created_at, updated_at } : {}) };
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
export function withSecretsOf(hidden: readonly string[], before: unknown, after: Record<string, unknown>) {
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
