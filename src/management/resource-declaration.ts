// What a resource of the Management API declares, whose records are a collection of the configuration.
import type { z } from 'zod';
import type { AuthError } from '../http/errors.ts';
import type { Records } from '../records/collections.ts';
import type { Frozen } from '../records/record.ts';
import type { Store } from '../store/contract.ts';
import type { Caller } from './call.ts';
import type { ListShape } from './list.ts';

/** The collections that are small enough to be filtered in memory. */
export type ConfigurationName =
  | 'clients'
  | 'resourceServers'
  | 'clientGrants'
  | 'connections'
  | 'organizations'
  | 'roles';

export type Stored<N extends ConfigurationName> = Frozen<Records[N]> & { readonly id: string };

/**
 * A resource.
 * @template D what its own rules are given.
 */
export interface Resource<N extends ConfigurationName, D extends ResourceDependencies> {
  collection: N;
  /** Below `/api/v2`. */
  path: string;
  /** What it is called in summaries: `client`, `resource server`. */
  name: string;
  /** Scopes are `read:<noun>` and so on. */
  noun: string;
  /** Further scopes that allow reading. */
  readScopes?: readonly string[];
  updateScopes?: readonly string[];
  list: ListShape;
  /** Members that are answered beside those that `fields` names. */
  always?: readonly string[];
  /** Query members of the list, beside those of paging and `fields`. */
  filters?: z.ZodRawShape;
  matches?(record: Stored<N>, query: Readonly<Record<string, unknown>>): boolean;
  /** What a list is filtered by that other records say. @throws AuthError 400 */
  narrow?(
    deps: D,
    query: Readonly<Record<string, unknown>>,
  ): Promise<((record: Stored<N>) => boolean) | undefined>;
  /** Records of our own that are in no store, which a list shows, too. */
  more?(deps: D): Promise<readonly Stored<N>[]> | readonly Stored<N>[];
  /** Changes one of those. @returns undefined for a record of the store. */
  changeOwn?(deps: D, record: Stored<N>, body: Record<string, unknown>): Promise<Stored<N> | undefined>;
  /** What the answer for one in a list has beside its view, where the query asks for it. */
  listed?(record: Stored<N>, query: Readonly<Record<string, unknown>>): object;
  /** Members that the query's `sort` can name, where its filters have that. */
  sortable?: readonly string[];
  /** In which order a list is, by this text; by id otherwise. */
  orderOf?(record: Stored<N>): string;
  createBody: z.ZodType<Record<string, unknown>>;
  patchBody: z.ZodType<Record<string, unknown>>;
  /** What a body becomes before it is made a record, where others have to be asked for that. @throws AuthError 4xx */
  complete?(
    deps: D,
    body: Record<string, unknown>,
    before: Stored<N> | undefined,
  ): Promise<Record<string, unknown>>;
  /** The record that a body asks for. @throws AuthError 4xx */
  make(deps: D, body: Record<string, unknown>): Promise<Frozen<Records[N]>>;
  /** The record with what a body changes; judged as a whole afterwards. @throws AuthError 4xx */
  change(deps: D, record: Stored<N>, body: Record<string, unknown>): Frozen<Records[N]>;
  /** Refuses a record that could not work, or that contradicts others. @throws AuthError 4xx */
  check?(deps: D, record: Frozen<Records[N]>): Promise<void>;
  /** What a record needs beside, made once it is written. */
  written?(deps: D, record: Stored<N>): Promise<void>;
  /** As it is answered. */
  view(deps: D, record: Stored<N>, caller: Caller): object;
  /** What other records say of one, in the answer for that one alone: a list would read them for each. */
  beside?(deps: D, record: Stored<N>): Promise<object>;
  /** By the id of a path. */
  find?(deps: D, id: string): Promise<Stored<N> | undefined>;
  missing: () => AuthError;
  taken: (key: string) => AuthError;
  /** What is to be known before a record is removed, lest a crash leave it half done. */
  removing?(deps: D, record: Stored<N>): Promise<void>;
  /** What goes with a record that was removed. */
  removed?(deps: D, record: Stored<N>): Promise<void>;
  /** The body of the answer to a removal, where it has one. */
  removedBody?(deps: D): object;
  /** Refuses a change or removal of a record of our own. @throws AuthError 4xx */
  guard?(deps: D, record: Stored<N>): void;
  /** Of the answer to a creation and a removal, where they are not 201 and 204. */
  statuses?: { create?: number; remove?: number };
  /** Whether removing or patching what is not there is 404; removing is 204 otherwise. */
  isRemovalStrict?: boolean;
}

export interface ResourceDependencies {
  store: Store;
}
