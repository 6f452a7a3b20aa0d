// Derives the resources from the calls of the Management API, so that a new one needs no declaration here.
// docs/understand/decisions/console-account.md#the-consoles-resource-pages-are-generated-from-the-declarations-of-calls
import type { CallRules } from '../../management/call.ts';
import { MANAGEMENT_CALLS } from '../../management/calls.ts';

/** A path of the Management API with its operations. */
export interface Place {
  /** Path below `/api/v2`; `:name` is one segment. */
  path: string;
  read?: CallRules;
  create?: CallRules;
  change?: CallRules;
  replace?: CallRules;
  remove?: CallRules;
  /**
   * `list`: records, each at {@link child} or without a path of its own. `record`: one of a list. `setting`: a single
   * record that always exists. `action`: a call without a readable record.
   */
  kind: 'list' | 'record' | 'setting' | 'action';
  /** The path of one record of a list. */
  child?: string;
}

const OPERATIONS = {
  GET: 'read',
  POST: 'create',
  PATCH: 'change',
  PUT: 'replace',
  DELETE: 'remove',
} as const;

export type Operation = Exclude<(typeof OPERATIONS)[keyof typeof OPERATIONS], 'read'>;

/** Reports whether the console offers a call: it requires scopes, which roles can have, and takes no file. */
const isForConsole = ({ scopes, allScopes, file }: CallRules): boolean =>
  file === undefined && (allScopes ?? scopes).length > 0;

/** Returns the places of all offered calls, in the order of their declaration. */
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
  const parameters = Object.entries(read.query?.shape ?? {});
  const isPaged = parameters.some(([name]) => name === 'per_page');
  // A required parameter is a search term.
  if (isPaged || parameters.some(([, schema]) => !schema.safeParse(undefined).success)) return 'list';
  return change === undefined && replace === undefined && create !== undefined ? 'list' : 'setting';
}

const isRecord = (path: string): boolean => /\/:\w+$/.test(path);

/** Returns the names of a path's parameters, in their order. */
export function parametersOf(path: string): string[] {
  return [...path.matchAll(/:(\w+)/g)].map(([, name = '']) => name);
}

export function fillPath(path: string, params: Readonly<Record<string, string>>): string {
  return path.replaceAll(/:(\w+)/g, (_all, name: string) => encodeURIComponent(params[name] ?? ''));
}

/**
 * Returns a title for a place: the words of its path after the last parameter. `/branding/themes/:id` gives "Branding
 * themes", `/roles/:id/users` gives "Users".
 */
export function titleOf(path: string): string {
  const parts = path.replace(/\/:\w+$/, '').split('/');
  const words = parts
    .slice(parts.findLastIndex((part) => part.startsWith(':')) + 1)
    .filter((part) => part !== '');
  const text = [...new Set(words)].join(' ').replaceAll(/[-_]/g, ' ');
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Returns the first segment of a path, by which places are grouped. */
export const groupOf = (path: string): string => path.split('/')[1] ?? '';

/** Returns the places directly below a record, including actions on it: `/roles/:id/users` for `/roles/:id`. */
export function placesBelow(places: ReadonlyMap<string, Place>, path: string): Place[] {
  return [...places.values()].filter(
    (place) =>
      place.path.startsWith(`${path}/`) && parametersOf(place.path).length === parametersOf(path).length,
  );
}

/** Members that contain a human-readable name, the best first. */
const NAME_MEMBERS = [
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

/** Reports whether a member contains a human-readable name. */
export const isNameMember = (name: string): boolean => NAME_MEMBERS.includes(name);

/** Returns the human-readable name of a record; undefined when it has none. */
export function nameOf(record: Readonly<Record<string, unknown>>): string | undefined {
  for (const member of NAME_MEMBERS) {
    const value = record[member];
    if (typeof value === 'string' && value !== '') return value;
  }
  return undefined;
}

/** Returns the id of a list's record in its own path. @param child that path: `/keys/signing/:kid`. */
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
