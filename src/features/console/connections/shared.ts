// What the pages of a connection share.
import type { Context } from 'koa';
import type { LimitLogin } from '../../../capabilities/protection/attempts.ts';
import { AuthError } from '../../../http/errors.ts';
import type { Connection } from '../../../records/collections.ts';
import { type ApiCallDependencies, callApi } from '../api-calls.ts';
import { CONSOLE } from '../console-callbacks.ts';
import type { ConsolePageDependencies } from '../console-page.ts';
import type { ConsoleSession } from '../console-session.ts';
import { fieldsBelow } from '../forms.ts';
import type { FaultyField } from '../render.ts';
import { scriptKinds } from './console-connection-scripts.ts';
import { type Kind, kindOf, missingOptionsOf, titleOf } from './kinds.ts';
import type { TryDependencies } from './try.ts';

export interface ConnectionsDependencies
  extends ConsolePageDependencies,
    ApiCallDependencies,
    TryDependencies {
  limitLogin: LimitLogin;
}

export const SECTION = 'connections';
export const PATH = `${CONSOLE}/connections` as const;
/** Path of the page to which the browser returns after a trial login. */
export const TRY_RESULT = `${PATH}/tried` as const;
export const READ = ['read:connections'];
export const DISPLAY_NAME: FaultyField = { id: 'display_name', label: 't:console.connections.displayName' };
export const CHANGE = ['update:connections'];

/** A connection as returned by the Management API. */
export interface ShownConnection
  extends Pick<Connection, 'id' | 'name' | 'strategy' | 'options' | 'enabled_clients'> {
  display_name?: string;
  is_domain_connection?: boolean;
  show_as_button?: boolean;
}

/** Returns the connection of the request's path. @throws AuthError 404 */
export async function connectionAt(
  deps: ConnectionsDependencies,
  ctx: Context,
  session: ConsoleSession,
): Promise<ShownConnection> {
  const { body } = await callApi(deps, ctx, session, 'GET /connections/:id', {
    params: { id: String(ctx.params.id) },
  });
  return body as ShownConnection;
}

/**
 * Returns the connection as logins use it: answers of the Management API lack the secrets of scripts.
 * @throws AuthError 404
 */
export async function recordOf(
  { config }: Pick<ConnectionsDependencies, 'config'>,
  { id, name }: Pick<ShownConnection, 'id' | 'name'>,
): Promise<Connection> {
  const found = await config.connection(name);
  if (found?.id !== id) throw new AuthError(404, 'not_found', 'Not Found');
  return found;
}

/** What the head of every page of a connection reads. */
export interface ConnectionFrame {
  connection: {
    id: string;
    name: string;
    title: string;
    path: string;
    kind: Kind;
    /** The names of required options that have no value. */
    lacking: string[];
  };
  tab: string;
  scriptsPath: string | undefined;
  mayChange: boolean;
}

export function headOf(session: ConsoleSession, connection: ShownConnection, tab: string): ConnectionFrame {
  const { id, strategy } = connection;
  const [script] = scriptKinds(strategy);
  return {
    connection: {
      id,
      name: connection.name,
      title: titleOf(connection),
      path: `${PATH}/${id}`,
      kind: kindOf(strategy),
      lacking: missingOptionsOf(connection),
    },
    tab,
    scriptsPath: script === undefined ? undefined : `${PATH}/${id}/scripts/${script.name}`,
    mayChange: CHANGE.every(session.can),
  };
}

/** Returns the options of a form as entered. A switch that is off sends nothing, so the form lists its switches. */
export function enteredOptions(ctx: Context): Record<string, string> {
  const switches = Object.keys(fieldsBelow(ctx, 'switch.')).map((name) => [name, '']);
  return { ...Object.fromEntries(switches), ...fieldsBelow(ctx, 'option.') };
}
