// `gatehouse-only.yaml` beside a tenant file: what of a tenant only Gatehouse knows. The hosted service's deploy tool refuses a
// tenant file with members that it does not know, so they have a file of their own, and are joined with the tenant here.
// docs/understand/decisions/moving.md#what-only-gatehouse-knows-is-in-a-file-of-its-own
import { readFileSync, realpathSync } from 'node:fs';
import { basename, join } from 'node:path';
import { z } from 'zod';
import { isJsonObject } from '../runtime/json.ts';
import { readYaml } from './document.ts';
import { isFile, isOutside, OUTSIDE } from './included-files.ts';
import { keyOf, SECTION_KEYS } from './sections.ts';
import { placed, readText, type Source } from './source.ts';
import type { Values } from './variables.ts';

export const GATEHOUSE_FILE = 'gatehouse-only.yaml';

/** The number of the form that is described here. */
export const GATEHOUSE_FORM = 1;

const sectionsSchema = z.record(z.string(), z.unknown());

const fileSchema = z.strictObject({
  gatehouse: z.literal(GATEHOUSE_FORM),
  /** Names that are no variables in this tenant: `##NAME##` and its like are texts. */
  texts: z.array(z.string().regex(/^[A-Za-z_][\w-]*$/)).default([]),
  /** Members of the tenant file that are for the deploy tool alone, because Gatehouse has them elsewhere: paths. */
  for_the_tool: z.array(z.string().min(1)).default([]),
  /** Members that are added to those of the tenant file, and replace them. Items of lists have those that they are known by. */
  members: sectionsSchema.default({}),
  /** Whole items that the deploy tool does not take. */
  items: z.record(z.string(), z.array(z.unknown())).default({}),
});

/** What such a file says. */
export type GatehouseFile = z.input<typeof fileSchema>;

interface OwnFile {
  values: Values;
  /** Returns the tenant joined with what the file says. */
  joined(main: Source): Source;
}

/**
 * Reads the file beside a tenant.
 * @param directory the folder of the tenant file, or of the tenant.
 * @param tenant the tenant file or folder itself.
 * @param onFile called with the path before it is read.
 * @returns undefined if there is none.
 */
export function readGatehouseFile(
  { directory, tenant, values }: { directory: string; tenant: string; values: Values },
  onFile: (path: string) => void,
): OwnFile | undefined {
  const file = join(directory, GATEHOUSE_FILE);
  if (basename(tenant) === GATEHOUSE_FILE || !isFile(file)) return undefined;
  onFile(file);
  const failed = (faults: readonly string[]): OwnFile => ({
    values,
    joined: (main) => ({ ...main, faults: [...main.faults, ...faults] }),
  });
  if (isOutside(realpathSync(directory), realpathSync(file))) return failed([`${file}: ${OUTSIDE}`]);
  const text = readFileSync(file, 'utf8');
  const plain = readYaml(text);
  const asIs = 'faults' in plain ? undefined : Object(plain.value);
  // Names that are no variables are none in this file, too.
  const texts = new Set([asIs?.texts ?? []].flat().map(String));
  const known = { ...values, texts };
  const own = readText(text, known, file);
  if (own.value === undefined || own.faults.length > 0) return failed(own.faults);
  const { data, error } = fileSchema.safeParse(own.value);
  if (data === undefined)
    return failed(
      error.issues.map(({ path, message }) =>
        placed(`${path.join('.')}: ${message}`, own.placeOf(path.map(String))),
      ),
    );
  return { values: known, joined: (main) => joinedSource(main, own, data) };
}

type Members = Readonly<Record<string, unknown>>;

function joinedSource(main: Source, own: Source, file: z.output<typeof fileSchema>): Source {
  if (main.value === undefined) return main;
  const faults: string[] = [];
  /** Where in the own file a value is, by its path in the tenant. */
  const places = new Map<string, readonly string[]>();
  const take = (value: unknown, at: readonly string[], from: readonly string[]) => {
    places.set(JSON.stringify(at), from);
    return value;
  };
  const merged = (
    before: unknown,
    value: unknown,
    at: readonly string[],
    from: readonly string[],
  ): unknown => {
    if (at.length === 1 && SECTION_KEYS[at[0] ?? ''] !== undefined && Array.isArray(value))
      return mergedItems(before, value, at, from);
    if (!isJsonObject(before) || !isJsonObject(value)) return take(value, at, from);
    const names = [...new Set([...Object.keys(before), ...Object.keys(value)])];
    return Object.fromEntries(
      names.map((name) => [
        name,
        Object.hasOwn(value, name)
          ? merged(memberOf(before, name), value[name], [...at, name], [...from, name])
          : before[name],
      ]),
    );
  };
  const mergedItems = (
    before: unknown,
    items: readonly unknown[],
    at: readonly string[],
    from: readonly string[],
  ): unknown[] => {
    const [section = ''] = at;
    const all: unknown[] = Array.isArray(before) ? [...before] : [];
    const positions = Map.groupBy(all.keys(), (position) => keyOf(section, all[position]));
    for (const [index, item] of items.entries()) {
      const key = keyOf(section, item);
      // Of several with equal keys, each stands for one, in their order.
      const found = positions.get(key)?.shift();
      const path = [...from, String(index)];
      if (found === undefined)
        faults.push(placed(`${path.join('.')}: the tenant has no item ${key}`, own.placeOf(path)));
      else all[found] = merged(all[found], item, [...at, String(found)], path);
    }
    return all;
  };
  const without = file.for_the_tool.reduce<unknown>(
    (value, path) => withoutMember(value, path.split('.')),
    main.value,
  );
  const withMembers = merged(without, file.members, [], ['members']);
  const value = Object.entries(file.items).reduce<unknown>((document, [section, items]) => {
    const before = memberOf(Object(document) as Members, section);
    const list: unknown[] = Array.isArray(before) ? before : [];
    for (const index of items.keys())
      take(items[index], [section, String(list.length + index)], ['items', section, String(index)]);
    return { ...Object(document), [section]: [...list, ...items] };
  }, withMembers);
  /** Returns where in the own file a value of the tenant is. */
  const ownPath = (path: readonly string[]): string[] | undefined => {
    for (let length = path.length; length > 0; length -= 1) {
      const from = places.get(JSON.stringify(path.slice(0, length)));
      if (from !== undefined) return [...from, ...path.slice(length)];
    }
    return undefined;
  };
  return {
    value,
    isEmpty: main.isEmpty && places.size === 0,
    faults: [...main.faults, ...faults],
    warnings: [...main.warnings, ...own.warnings],
    placeOf: (path) => {
      const at = ownPath(path);
      return at === undefined ? main.placeOf(path) : own.placeOf(at);
    },
    // Texts of the own file are never the path of another one.
    foldersOf: (path) => (ownPath(path) === undefined ? main.foldersOf(path) : []),
  };
}

const memberOf = (members: Members, name: string): unknown =>
  Object.hasOwn(members, name) ? members[name] : undefined;

function withoutMember(value: unknown, [step = '', ...rest]: readonly string[]): unknown {
  if (!isJsonObject(value) || !Object.hasOwn(value, step)) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, member]): [string, unknown][] =>
      name !== step ? [[name, member]] : rest.length === 0 ? [] : [[name, withoutMember(member, rest)]],
    ),
  );
}
