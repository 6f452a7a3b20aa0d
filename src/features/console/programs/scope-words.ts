// What scopes of the Management API mean, in words: the titles of the resources that they are for.
import type { CallRules } from '../../management/call.ts';
import { MANAGEMENT_CALLS } from '../../management/calls.ts';
import { groupOf, titleOf } from '../resources/declared.ts';

/** The scopes for one kind of thing. */
export interface ScopeArea {
  /** Titles, of which a page has the words: what it is, after what it belongs to. */
  titles: string[];
  /** The first parts of the scopes, such as `create`. */
  verbs: string[];
  scopes: string[];
}

/** Returns scopes by what they are for, those that only read apart from the others. */
export function scopeWords(scopes: readonly string[]): { reading: ScopeArea[]; changing: ScopeArea[] } {
  const isReading = (scope: string) => scope.startsWith('read:');
  return {
    reading: areasOf(scopes.filter(isReading)),
    changing: areasOf(scopes.filter((scope) => !isReading(scope))),
  };
}

function areasOf(scopes: readonly string[]): ScopeArea[] {
  const areas = new Map<string, ScopeArea>();
  for (const scope of scopes) {
    const [verb = '', noun = ''] = scope.split(':');
    const titles = titlesOf(noun);
    const key = titles.join('\n');
    const area = areas.get(key) ?? { titles, verbs: [], scopes: [] };
    areas.set(key, area);
    area.scopes.push(scope);
    if (!area.verbs.includes(verb)) area.verbs.push(verb);
  }
  return [...areas.values()];
}

/** Returns the titles of the resource that scopes with a noun are for. */
function titlesOf(noun: string): string[] {
  const paths = MANAGEMENT_CALLS.filter((call) => nounsOf(call).includes(noun)).map(({ path }) => path);
  const own = paths.filter((path) => singular(partsOf(path).join('_')) === singular(noun));
  const [path = ''] = (own.length > 0 ? own : paths).sort((a, b) => a.length - b.length);
  // A scope for all that is below one part of the API.
  const group = paths.map(groupOf).find((one) => singular(one) === singular(noun));
  if (own.length === 0 && group !== undefined) return [titleOf(`/${group}`)];
  const owner = /^(\/[^:]+)\/:\w+\/[^:]/.exec(path)?.[1];
  return [...(owner === undefined ? [] : [owner]), path].map(titleOf).filter((title) => title !== '');
}

const partsOf = (path: string) => path.split('/').filter((part) => part !== '' && !part.startsWith(':'));

/** Returns a name in which the number of its words and how they are joined make no difference. */
const singular = (name: string) =>
  name
    .split(/[-_]/)
    .map((word) => (word.endsWith('s') ? word.slice(0, -1) : word))
    .join('_');

const nounsOf = ({ scopes, allScopes = [] }: CallRules): (string | undefined)[] =>
  [...scopes, ...allScopes].map((scope) => scope.split(':')[1]);
