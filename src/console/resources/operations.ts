// The addresses of the console's own pages for what the Management API has.
import type { CallRules } from '../../management/call.ts';
import type { AtConsole } from '../session.ts';
import { isWhollyOf } from '../support.ts';
import { filled, type Operation, type Place } from './declared.ts';

const RESOURCES = '/console/resources';

export type Params = Readonly<Record<string, string>>;

/** The page of a place. */
export const pageOf = (path: string, params: Params = {}): string => `${RESOURCES}${filled(path, params)}`;

/** The page where something is done there. */
export const operationPath = (operation: Operation | 'reveal', path: string, params: Params = {}): string =>
  `/console/${operation}${filled(path, params)}`;

/** A call by its name, as `ask` takes it. */
export const nameOfCall = ({ method, path }: CallRules): string => `${method} ${path}`;

/** Whether the administrator's role has the scopes of a call, one or all of them, and may ask all that it takes. */
export function mayCall(here: Pick<AtConsole, 'can' | 'administrator'>, call: CallRules): boolean {
  const { scopes, allScopes } = call;
  const has = allScopes === undefined ? scopes.some(here.can) : allScopes.every(here.can);
  return has && isWhollyOf(here.administrator.role, nameOfCall(call));
}

/** What can be done at a place, in the order in which it is offered. */
export const operationsOf = (place: Place): [Operation, CallRules][] =>
  (['change', 'replace', 'create', 'remove'] as const).flatMap((operation) => {
    const call = place[operation];
    return call === undefined ? [] : [[operation, call] as [Operation, CallRules]];
  });

/**
 * Places whose forms need no fresh login. All others ask for one, a new resource too: what is sent there may open a door, run,
 * or say where secrets go. A domain of an organization says where its people log in. An application has callbacks, a secret and the login page of all; an API, the secret of its tokens.
 */
const HARMLESS: ReadonlySet<string> = new Set([
  ...['/roles', '/roles/:id', '/organizations', '/organizations/:id'],
  ...[
    '/branding',
    '/branding/themes',
    '/branding/themes/:id',
    '/prompts',
    '/prompts/:prompt/custom-text/:language',
  ],
]);

/** @see HARMLESS */
export const isHarmless = ({ path }: Pick<Place, 'path'>): boolean => HARMLESS.has(path);
