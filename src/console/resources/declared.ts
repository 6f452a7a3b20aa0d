// Which resources there are: read off the calls of the Management API, so that a new one needs no line here.
import type { CallRules } from '../../management/call.ts';
import { MANAGEMENT_CALLS } from '../../management/calls.ts';

/** An address of the Management API, and what can be done there. */
export interface Place {
  /** Below `/api/v2`; `:name` is one segment. */
  path: string;
  read?: CallRules;
  create?: CallRules;
  change?: CallRules;
  replace?: CallRules;
  remove?: CallRules;
  /**
   * `list`: records, each at {@link child}, or without an address of its own. `record`: one of a list. `setting`: one
   * record that there always is. `action`: something that is done.
   */
  kind: 'list' | 'record' | 'setting' | 'action';
  /** The address of one record of a list. */
  child?: string;
}

/** What a call of that method is here. */
const OPERATIONS = {
  GET: 'read',
  POST: 'create',
  PATCH: 'change',
  PUT: 'replace',
  DELETE: 'remove',
} as const;

export type Operation = Exclude<(typeof OPERATIONS)[keyof typeof OPERATIONS], 'read'>;

/** Calls that a person at the console can make: with scopes of their role, and no file. */
const isForConsole = ({ scopes, allScopes, file }: CallRules): boolean =>
  file === undefined && (allScopes ?? scopes).length > 0;

/** All places of these calls, in the order in which they are declared. */
export function placesOf(calls: readonly CallRules[] = MANAGEMENT_CALLS): ReadonlyMap<string, Place> {
  const places = new Map<string, Place>();
  for (const call of calls.filter(isForConsole)) {
    const place: Place = places.get(call.path) ?? { path: call.path, kind: 'action' };
    place[OPERATIONS[call.method]] = call;
    places.set(call.path, place);
  }
  const children = new Map<string, string>();
  for (const path of [...places.keys()].filter(isRecord)) {
    const parent = path.slice(0, path.lastIndexOf('/'));
    if (!children.has(parent)) children.set(parent, path);
  }
  for (const place of places.values()) {
    const child = children.get(place.path);
    if (child !== undefined) place.child = child;
    place.kind = kindOf(place);
  }
  return places;
}

function kindOf({ path, read, create, change, replace, child }: Place): Place['kind'] {
  if (read === undefined) return isRecord(path) ? 'record' : 'action';
  if (isRecord(path)) return 'record';
  if (child !== undefined && change === undefined && replace === undefined) return 'list';
  const asked = Object.entries(read.query?.shape ?? {});
  const isPaged = asked.some(([name]) => name === 'per_page');
  // What has to be told first what is looked for is searched.
  if (isPaged || asked.some(([, schema]) => !schema.safeParse(undefined).success)) return 'list';
  return change === undefined && replace === undefined && create !== undefined ? 'list' : 'setting';
}

const isRecord = (path: string): boolean => /\/:\w+$/.test(path);

/** The names of a path's parameters, in their order. */
export function parametersOf(path: string): string[] {
  return [...path.matchAll(/:(\w+)/g)].map(([, name = '']) => name);
}

/** A path with values in the places of its parameters. */
export function filled(path: string, params: Readonly<Record<string, string>>): string {
  return path.replaceAll(/:(\w+)/g, (_all, name: string) => encodeURIComponent(params[name] ?? ''));
}

/**
 * What a place is called: the words of its path since the last parameter, as people write them. `/branding/themes/:id` is
 * "Branding themes", `/roles/:id/users` "Users".
 */
export function titleOf(path: string): string {
  const parts = path.replace(/\/:\w+$/, '').split('/');
  const words = parts
    .slice(parts.findLastIndex((part) => part.startsWith(':')) + 1)
    .filter((part) => part !== '');
  const text = [...new Set(words)].join(' ').replaceAll(/[-_]/g, ' ');
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** The first word of a path, under which places stand together. */
export const groupOf = (path: string): string => path.split('/')[1] ?? '';

/** The places that stand below a record, or do something with it: `/roles/:id/users` of `/roles/:id`. */
export function placesBelow(places: ReadonlyMap<string, Place>, path: string): Place[] {
  return [...places.values()].filter(
    (place) =>
      place.path.startsWith(`${path}/`) && parametersOf(place.path).length === parametersOf(path).length,
  );
}

/** Members that name a record for people, the best first. */
const NAMING = [
  'name',
  'display_name',
  'friendly_name',
  'title',
  'email',
  'domain',
  'identifier',
  'subject',
  'username',
];

/** Whether a member of that name says what people call a record. */
export const isNaming = (name: string): boolean => NAMING.includes(name);

/** What people call a record; its id where nothing names it. */
export function nameOf(record: Readonly<Record<string, unknown>>): string | undefined {
  for (const member of NAMING) {
    const value = record[member];
    if (typeof value === 'string' && value !== '') return value;
  }
  return undefined;
}

/**
 * By what a record of a list is found at its own address.
 * @param child that address: `/keys/signing/:kid`.
 */
export function idOf(record: Readonly<Record<string, unknown>>, child: string): string | undefined {
  const parameter = parametersOf(child).at(-1) ?? 'id';
  const words = child.split('/').filter((part) => part !== '' && !part.startsWith(':'));
  const noun = (words.at(-1) ?? '').replaceAll('-', '_');
  const singular = noun.replace(/ies$/, 'y').replace(/s$/, '');
  const candidates = [parameter, 'id', `${singular}_id`, 'client_id', 'user_id', 'kid', 'key', 'name'];
  for (const member of candidates) {
    const value = record[member];
    if (typeof value === 'string' && value !== '') return value;
  }
  return undefined;
}
