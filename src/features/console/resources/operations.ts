// Paths of the console's pages for places and operations of the Management API, and the rights to open them.

import { allowsRole } from '../../management/answer.ts';
import type { CallRules } from '../../management/call.ts';
import { mayCallUnrestricted } from '../../management/roles/support-role.ts';
import type { ConsoleSession } from '../console-session.ts';
import { fillPath, type Operation, type Place } from './declared.ts';

const RESOURCES = '/console/resources';

export type Params = Readonly<Record<string, string>>;

export const pageOf = (path: string, params: Params = {}): string => `${RESOURCES}${fillPath(path, params)}`;

export const operationPath = (operation: Operation | 'reveal', path: string, params: Params = {}): string =>
  `/console/${operation}${fillPath(path, params)}`;

/** Returns the name of a call as `callApi` takes it. */
export const nameOfCall = ({ method, path }: CallRules): string => `${method} ${path}`;

/** Reports whether the administrator's role may make a call with any parameters. */
export function mayCall(session: Pick<ConsoleSession, 'can' | 'administrator'>, call: CallRules): boolean {
  return allowsRole(call, session.can) && mayCallUnrestricted(session.administrator.role, nameOfCall(call));
}

/** Returns the operations of a place in the order in which they are offered. */
export const operationsOf = (place: Place): [Operation, CallRules][] =>
  (['change', 'replace', 'create', 'remove'] as const).flatMap((operation) => {
    const call = place[operation];
    return call === undefined ? [] : [[operation, call] as [Operation, CallRules]];
  });

// docs/understand/decisions/console-account.md#some-changes-require-a-fresh-login-in-the-console-on-whichever-page-they-are-made
/**
 * Places whose forms do not require a recent login. All others do, even for a new record, because it may grant
 * access, contain code, or say where secrets are sent. For example the domain of an organization says where its
 * members log in; an application has callbacks, a secret and a login page; an API has the secret that signs its
 * tokens.
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

/** Reports whether the forms of a place do not require a recent login. */
export const isHarmless = ({ path }: Pick<Place, 'path'>): boolean => HARMLESS.has(path);
