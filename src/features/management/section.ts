// Settings of the tenant that are a member of the tenant's record: reading and changing them.
import type { z } from 'zod';
import type { Frozen } from '../../records/base/record.ts';
import type { TenantRecord } from '../../records/tenant/tenant.ts';
import type { Store } from '../../store/contract.ts';
import { type Call, callsWith, ok } from './call.ts';
import { checkedBy } from './resource.ts';

interface Section<T> {
  /** Returns the stored value; undefined if it was never set. */
  read(deps: SectionDependencies): Promise<Frozen<T> | undefined>;
  /** What the schema refuses is not stored. @returns the values before and after. @throws AuthError 400 */
  change(
    deps: SectionDependencies,
    change: (current: Frozen<T> | undefined) => unknown,
  ): Promise<{ before: Frozen<T> | undefined; after: T }>;
}

export interface SectionDependencies {
  store: Store;
}

/** @param name its member in the tenant file. */
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

/** Settings that can be read at a path and changed there member by member: a section, or part of one. */
interface SettingsAt<T> {
  path: string;
  /** Scopes are `read:<noun>` and `update:<noun>`. */
  noun: string;
  /** The name in summaries. */
  name: string;
  body: z.ZodType<object>;
  view(value: Frozen<T> | undefined): unknown;
  /** Returns the section as a body changes it. Default: the body is merged into the section, at all depths. */
  change?(current: Frozen<T> | undefined, body: object): unknown;
}

const call = callsWith<SectionDependencies>();

export function settingsCalls<T>(
  part: Section<T>,
  { path, noun, name, body, view, change = deeplyMerged }: SettingsAt<T>,
): Call<SectionDependencies>[] {
  return [
    call({
      method: 'GET',
      path,
      scopes: [`read:${noun}`],
      summary: `Get ${name} settings`,
      handle: async (deps) => ok(view(await part.read(deps))),
    }),
    call({
      method: 'PATCH',
      path,
      scopes: [`update:${noun}`],
      summary: `Update ${name} settings`,
      body,
      handle: async (deps, request) => {
        const { before, after } = await part.change(deps, (current) => change(current, request.body));
        return ok(view(after as Frozen<T>), { before: view(before), after: view(after as Frozen<T>) });
      },
    }),
  ];
}

/** Returns a record with the members of a body, at all depths; null removes a member. */
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

/** Whether a JSON value is an object, and neither null nor an array. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
