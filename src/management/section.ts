// Sections of the tenant that are one record: what is read and changed of them.
import type { z } from 'zod';
import type { Frozen } from '../records/record.ts';
import type { TenantRecord } from '../records/tenant.ts';
import type { Store } from '../store/contract.ts';
import { checkedBy } from './resource.ts';

export interface Section<T> {
  /** As it is stored; undefined where it was never set. */
  read(deps: SectionDependencies): Promise<Frozen<T> | undefined>;
  /**
   * Changes it; what the schema refuses is not stored.
   * @returns before and after. @throws AuthError 400
   */
  change(
    deps: SectionDependencies,
    change: (current: Frozen<T> | undefined) => unknown,
  ): Promise<{ before: Frozen<T> | undefined; after: T }>;
}

/** What sections are kept in. */
export interface SectionDependencies {
  store: Store;
}

/** A section of the tenant's record, by its name in the tenant file. */
export function section<N extends keyof TenantRecord & string, S extends z.ZodType>(
  name: N,
  schema: S,
): Section<z.output<S>> {
  type Value = z.output<S>;
  return {
    read: async ({ store }) =>
      (await store.collection('tenant').get('tenant'))?.[name] as Frozen<Value> | undefined,
    change: async ({ store }, change) => {
      let before: Frozen<Value> | undefined;
      let after: Value | undefined;
      await store.collection('tenant').update('tenant', (current) => {
        before = current[name] as Frozen<Value> | undefined;
        const value = change(before);
        after = value === undefined ? undefined : checkedBy(schema, value);
        const { [name]: _, ...rest } = current;
        return (after === undefined ? rest : { ...current, [name]: after }) as typeof current;
      });
      return { before, after: after as Value };
    },
  };
}

/** The members of a body over those of a record, objects within objects too; null removes a member. */
export function deeplyMerged(current: unknown, body: unknown): unknown {
  if (!isObject(body)) return body;
  const base = isObject(current) ? current : {};
  const result: Record<string, unknown> = { ...base };
  for (const [name, value] of Object.entries(body)) {
    if (value === null) delete result[name];
    else result[name] = deeplyMerged(base[name], value);
  }
  return result;
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
