// The declaration of a resource whose records are a collection of the configuration.
import type { z } from 'zod';
import type { AuthError } from '../../http/errors.ts';
import type { Frozen } from '../../records/base/record.ts';
import type { Records } from '../../records/collections.ts';
import type { Store } from '../../store/contract.ts';
import type { Caller } from './call.ts';
import type { ListShape, ListSource } from './list.ts';

/** Collections that are small enough to be filtered in memory. */
export type ConfigurationName =
  | 'clients'
  | 'resourceServers'
  | 'clientGrants'
  | 'connections'
  | 'organizations'
  | 'roles';

export type Stored<N extends ConfigurationName> = Frozen<Records[N]> & { readonly id: string };

/** A resource. @template D the dependencies of its own functions. */
export interface Resource<N extends ConfigurationName, D extends ResourceDependencies> {
  collection: N;
  /** Below `/api/v2`. */
  path: string;
  /** The name in summaries, singular: `client`, `resource server`. */
  name: string;
  /** Scopes are `read:<noun>`, `create:<noun>`, `update:<noun>` and `delete:<noun>`. */
  noun: string;
  /** Other scopes that also allow reading. */
  readScopes?: readonly string[];
  updateScopes?: readonly string[];
  list: ListShape;
  /** Members that are returned besides those that `fields` names. */
  always?: readonly string[];
  /** Query parameters of the list, besides those of paging and `fields`. */
  filters?: z.ZodRawShape;
  matches?(record: Stored<N>, query: Readonly<Record<string, unknown>>): boolean;
  /** Returns a filter of the list that depends on other records, or undefined for none. @throws AuthError 400 */
  relatedFilter?(
    deps: D,
    query: Readonly<Record<string, unknown>>,
  ): Promise<((record: Stored<N>) => boolean) | undefined>;
  /** Records that are not in the collection; a list includes them. */
  builtIn?(
    deps: D,
    query: Readonly<Record<string, unknown>>,
  ): Promise<readonly Stored<N>[]> | readonly Stored<N>[];
  /** Returns the list that a query asks for, if it is one that the store pages; others are made in memory. */
  source?(deps: D, query: Readonly<Record<string, unknown>>): Promise<ListSource | undefined>;
  /**
   * Changes a record that is not in the collection. Returns the record itself if the body changes nothing, and undefined
   * for a record that is treated like those of the store.
   */
  changeBuiltIn?(deps: D, record: Stored<N>, body: Record<string, unknown>): Promise<Stored<N> | undefined>;
  /** Returns further members of an item of a list, if the query asks for them. */
  listMembers?(record: Stored<N>, query: Readonly<Record<string, unknown>>): object;
  /** Members that the query parameter `sort` may name, if `filters` declares it. */
  sortable?: readonly string[];
  /** Returns the text that a list is sorted by. Default: the id. */
  orderOf?(record: Stored<N>): string;
  /**
   * The tenant file's schema of a record. Other members than its own, those of the bodies and `builtInMembers` are not
   * shown. Default: `view` selects the members.
   */
  schema?: z.ZodObject;
  /** Members that only records of the server itself have. */
  builtInMembers?: readonly string[];
  createBody: z.ZodType<Record<string, unknown>>;
  patchBody: z.ZodType<Record<string, unknown>>;
  /**
   * Transforms a body before the record is made or changed, if that needs a request to another server.
   * A body that needs none is returned itself.
   * @throws AuthError 4xx
   */
  complete?(
    deps: D,
    body: Record<string, unknown>,
    before: Stored<N> | undefined,
  ): Promise<Record<string, unknown>>;
  /** @throws AuthError 4xx */
  make(deps: D, body: Record<string, unknown>): Promise<Frozen<Records[N]>>;
  /** Returns the record with the changes of a body; `check` validates the result. @throws AuthError 4xx */
  change(deps: D, record: Stored<N>, body: Record<string, unknown>): Frozen<Records[N]>;
  /** Refuses a record that could not work or contradicts other records. @throws AuthError 4xx */
  check?(deps: D, record: Frozen<Records[N]>): Promise<void>;
  /** Returns what of a new or changed record has no effect here. */
  warnings?(record: Stored<N>): string[];
  /** Runs after a record was written, to create what it needs. */
  afterWrite?(deps: D, record: Stored<N>): Promise<void>;
  view(deps: D, record: Stored<N>, caller: Caller): object;
  /**
   * Returns members that depend on other records. Only responses for one record have them: a list would have to read
   * the others for each item.
   */
  related?(deps: D, record: Stored<N>): Promise<object>;
  /** Finds a record by the id in a path. Default: by its key in the store. */
  find?(deps: D, id: string): Promise<Stored<N> | undefined>;
  missing: () => AuthError;
  taken: (key: string) => AuthError;
  /** Runs before a record is deleted, to store what a restart needs to complete an interrupted removal. */
  beforeRemoval?(deps: D, record: Stored<N>): Promise<void>;
  /** Runs after a record was deleted, to delete what belongs to it. */
  afterRemoval?(deps: D, record: Stored<N>): Promise<void>;
  /** Returns the response body of a removal. Default: none. */
  removedBody?(deps: D): object;
  /** Refuses to change or delete a record that the server itself defines. @throws AuthError 4xx */
  guard?(deps: D, record: Stored<N>): void;
  /** Status of a creation and of a removal. Default: 201 and 204. */
  statuses?: { create?: number; remove?: number };
  /** Whether deleting a record that does not exist is a 404. Default: 204. */
  isRemovalStrict?: boolean;
}

export interface ResourceDependencies {
  store: Store;
}
