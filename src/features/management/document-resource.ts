// Resources whose bodies are stored as documents and returned unchanged. Each is one declaration.

import type { z } from 'zod';
import type { TenantLiquid } from '../../capabilities/liquid/liquid.ts';
import type { Frozen } from '../../records/base/record.ts';
import type { DocumentRecord } from '../../records/tenant/documents.ts';
import type { Random } from '../../runtime/secrets.ts';
import type { Store } from '../../store/contract.ts';
import type { ListShape } from './list.ts';
import type { notFound } from './resource.ts';
import { isObject } from './section.ts';

export interface DocumentDependencies {
  store: Store;
  random: Random;
  /** ISO 8601. */
  now(): string;
  /** Renders templates, to try them. */
  liquid: Pick<TenantLiquid, 'render'>;
}

export interface DocumentResource {
  kind: string;
  path: string;
  /** The name in summaries, singular. */
  name: string;
  noun: string;
  /** The member of the response that holds the id. Default: `id`. */
  idMember?: string;
  newId(random: Random): string;
  createBody: z.ZodType<Record<string, unknown>>;
  patchBody: z.ZodType<Record<string, unknown>>;
  /** Members of every response that are not stored. */
  constantMembers?: Record<string, unknown>;
  /**
   * Whether empty objects and lists are left out of responses, as at the hosted service: Terraform takes an empty object
   * for a block that its file does not have.
   */
  omitsEmpty?: boolean;
  /** Default members of a new document. */
  defaults?: Record<string, unknown>;
  generated?(
    deps: DocumentDependencies,
    body: Readonly<Record<string, unknown>>,
  ): Record<string, unknown> | Promise<Record<string, unknown>>;
  /** The member whose value must be unique, ignoring case. */
  uniqueMember?: string;
  list: ListShape;
  /** Members that a list leaves out; only the response for one document has them. */
  omittedFromList?: readonly string[];
  /**
   * Set if a list always returns all documents: as an array, wrapped in its member, or as an array unless the query
   * asks for a cursor.
   */
  unpaged?: 'bare' | 'wrapped' | 'bare unless taken';
  hasPut?: boolean;
  /**
   * Returns the body after a change. Default: the members asked for replace those of before.
   * @param now ISO 8601.
   */
  change?(
    before: Record<string, unknown>,
    changes: Record<string, unknown>,
    now: string,
  ): Record<string, unknown>;
  /** Refuses an invalid body, new or changed, as a whole. @throws AuthError 400 */
  validate?(body: Readonly<Record<string, unknown>>): void;
  /** Returns what of a new or changed body has no effect here. */
  warnings?(body: Readonly<Record<string, unknown>>): string[];
  /** Paths of secret members (`a.b` is b within a), which are stored and never returned. */
  hidden?: readonly string[];
  /**
   * Runs before a document is deleted. Refuses that if something depends on the document; if forced, it may remove
   * the dependency instead.
   * @param isForced whether the query has `force=true`.
   * @throws AuthError 409
   */
  beforeRemoval?(deps: DocumentDependencies, id: string, isForced: boolean): Promise<void>;
  /** Deletes what belongs to a deleted document. */
  afterRemoval?(deps: DocumentDependencies, id: string): Promise<void>;
  filters?: z.ZodRawShape;
  /** Members that the query parameter `sort` may name, if `filters` declares it. */
  sortable?: readonly string[];
  matches?(item: Readonly<Record<string, unknown>>, query: Readonly<Record<string, unknown>>): boolean;
  missing: ReturnType<typeof notFound>;
  taken: string;
  createStatus?: number;
  isRemovalStrict?: boolean;
  hasDates?: boolean;
}

type Document = Frozen<DocumentRecord>;

export function documentView(
  {
    idMember = 'id',
    hasDates = true,
    hidden = [],
    constantMembers = {},
    omitsEmpty = false,
  }: Pick<DocumentResource, 'idMember' | 'hasDates' | 'hidden' | 'constantMembers' | 'omitsEmpty'>,
  document: Document,
): Record<string, unknown> {
  const { id, body, created_at, updated_at } = document;
  const stored = omitsEmpty
    ? Object.fromEntries(Object.entries(body).filter(([, value]) => !isEmpty(value)))
    : body;
  const visible = hidden.reduce(
    (rest, path) => without(rest, path.split('.')),
    stored as Record<string, unknown>,
  );
  return { [idMember]: id, ...constantMembers, ...visible, ...(hasDates ? { created_at, updated_at } : {}) };
}

const isEmpty = (value: unknown) =>
  typeof value === 'object' && value !== null && Object.keys(value).length === 0;

function without(object: Record<string, unknown>, [name = '', ...path]: string[]): Record<string, unknown> {
  const { [name]: member, ...rest } = object;
  if (path.length === 0) return rest;
  return isObject(member) ? { ...rest, [name]: without(member, path) } : object;
}

/** Returns all documents of a kind, oldest first. */
export async function documentsOf(store: Store, kind: string): Promise<Document[]> {
  const found = await store.collection('documents').findBy('kind', kind);
  return [...found].sort((a, b) => (a.created_at + a.id < b.created_at + b.id ? -1 : 1));
}

/** @throws AuthError 404 */
export async function documentOf(
  store: Store,
  resource: Pick<DocumentResource, 'kind' | 'missing'>,
  id = '',
): Promise<Document> {
  const found = await store.collection('documents').get(id);
  if (found === undefined || found.kind !== resource.kind) throw resource.missing();
  return found;
}

/** Reads and replaces an object that is stored under an id. Putting an empty object deletes the document. */
export function storedObject({ store, now }: DocumentDependencies) {
  const documents = store.collection('documents');
  return {
    read: async (id: string): Promise<object> => (await documents.get(id))?.body ?? {},
    put: async (id: string, kind: string, body: object): Promise<void> => {
      if (Object.keys(body).length === 0) {
        await documents.delete(id);
        return;
      }
      const timestamp = now();
      await documents.upsert(
        id,
        (current): DocumentRecord => ({
          id,
          kind,
          body: body as Record<string, unknown>,
          created_at: current?.created_at ?? timestamp,
          updated_at: timestamp,
        }),
      );
    },
  };
}

/**
 * Copies the secrets that a new body leaves out from the body before: a client that sends back what it read has none
 * of them.
 */
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
