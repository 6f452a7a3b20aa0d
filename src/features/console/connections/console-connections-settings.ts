// One connection: the data its provider needs, its options, and its removal.
import { isDeepStrictEqual } from 'node:util';
import type { Context } from 'koa';
import { bodyTexts } from '../../../http/server/body.ts';
import { isSaml, samlpOptions } from '../../connections/samlp/provider.ts';
import { consumerUrl, entityId, logoutUrl } from '../../connections/samlp/service-provider.ts';
import { CALLBACK } from '../../connections/upstream/begin.ts';
import { callApi } from '../api-calls.ts';
import { redirectAfterForm } from '../console-page.ts';
import type { ConsoleSession } from '../console-session.ts';
import { type FormFault, faultIn } from '../form-fault.ts';
import { refusalOf, refusalOptions } from '../forms.ts';
import { declareConsolePage, renderConsole } from '../render.ts';
import { type FilledFields, faultyOption, filledFields, withEntered } from './console-connection-options.ts';
import {
  type ConnectionFrame,
  type ConnectionsDependencies,
  connectionAt,
  DISPLAY_NAME,
  enteredOptions,
  headOf,
  PATH,
  recordOf,
  type ShownConnection,
} from './shared.ts';
import { tryMethodOf } from './try.ts';

/** Shows the connection. With `?check=1` it checks whether the provider is available for logins. */
export async function showSettings(
  deps: ConnectionsDependencies,
  ctx: Context,
  session: ConsoleSession,
): Promise<void> {
  const connection = await connectionAt(deps, ctx, session);
  const check = ctx.query.check === '1' ? await statusOf(deps, ctx, session, connection) : undefined;
  await showForm(deps, ctx, session, connection, { check });
}

export async function saveSettings(
  deps: ConnectionsDependencies,
  ctx: Context,
  session: ConsoleSession,
): Promise<void> {
  const connection = await connectionAt(deps, ctx, session);
  const entered = enteredOptions(ctx);
  const { options, faults } = withEntered(connection.strategy, connection.options, entered);
  const { display_name = '' } = bodyTexts(ctx);
  const [parseFault] = Object.values(faults);
  if (parseFault !== undefined)
    return showForm(deps, ctx, session, connection, { entered, faults, fault: parseFault });
  const entitled = display_name.trim();
  // docs/understand/decisions/console-account.md#a-form-writes-what-somebody-has-changed
  const body = {
    ...(entitled !== displayNameOf(connection) && { display_name: entitled === '' ? null : entitled }),
    ...(!isDeepStrictEqual(options, connection.options) && {
      options: withoutDefaults(options, connection.options, (await recordOf(deps, connection)).options),
    }),
  };
  const { id } = connection;
  try {
    if (Object.keys(body).length > 0)
      await callApi(deps, ctx, session, 'PATCH /connections/:id', { params: { id }, body });
    redirectAfterForm(ctx, `${PATH}/${id}`, 'console.said.saved');
  } catch (thrown) {
    await showForm(deps, ctx, session, connection, { entered, fault: refusalOf(thrown) });
  }
}

/** The name that is shown to users, where it is not that of the connection. */
const displayNameOf = ({ name, display_name = '' }: ShownConnection): string =>
  display_name === name ? '' : display_name;

type Options = Readonly<Record<string, unknown>>;

/** Returns options with those that are as the API has shown them as they are stored: it shows defaults, too. */
const withoutDefaults = (options: Options, shown: Options, stored: Options): Options =>
  Object.fromEntries(
    Object.entries(options).flatMap(([name, value]) => {
      if (!isDeepStrictEqual(value, shown[name])) return [[name, value]];
      return Object.hasOwn(stored, name) ? [[name, stored[name]]] : [];
    }),
  );

interface ConnectionsDeleteModel extends ConnectionFrame {
  applications: number;
  users: number | undefined;
}

export const CONNECTIONS_DELETE_PAGE = declareConsolePage<ConnectionsDeleteModel>(
  'console/connections-delete',
);

export async function showRemoval(
  deps: ConnectionsDependencies,
  ctx: Context,
  session: ConsoleSession,
): Promise<void> {
  const connection = await connectionAt(deps, ctx, session);
  await renderConsole(deps, ctx, session, {
    page: CONNECTIONS_DELETE_PAGE,
    title: { text: headOf(session, connection, '').connection.title },
    model: {
      ...headOf(session, connection, ''),
      applications: connection.enabled_clients.length,
      users: session.can('read:users') ? await usersOf(deps, ctx, session, connection) : undefined,
    },
  });
}

/** Deletes the connection and its users. */
export async function remove(
  deps: ConnectionsDependencies,
  ctx: Context,
  session: ConsoleSession,
): Promise<void> {
  await callApi(deps, ctx, session, 'DELETE /connections/:id', { params: { id: String(ctx.params.id) } });
  redirectAfterForm(ctx, PATH, 'console.said.deleted');
}

async function usersOf(
  deps: ConnectionsDependencies,
  ctx: Context,
  session: ConsoleSession,
  { name }: ShownConnection,
): Promise<number> {
  const query = {
    q: `identities.connection:"${name}"`,
    per_page: '1',
    include_totals: 'true',
    search_engine: 'v3',
  };
  const { body } = await callApi(deps, ctx, session, 'GET /users', { query });
  return Number((body as { total?: number }).total ?? 0);
}

/** Checks the provider. @returns the fault, if there is one. */
async function statusOf(
  deps: ConnectionsDependencies,
  ctx: Context,
  session: ConsoleSession,
  { id }: ShownConnection,
): Promise<{ fault?: string }> {
  try {
    await callApi(deps, ctx, session, 'GET /connections/:id/status', { params: { id } });
    return {};
  } catch (thrown) {
    const { status, error_description } = thrown as { status?: number; error_description?: string };
    if (status !== 404 || error_description === undefined) throw thrown;
    return { fault: error_description };
  }
}

interface Form {
  entered?: Record<string, string>;
  /** Faults of options that cannot be parsed, by name. */
  faults?: Record<string, FormFault>;
  fault?: FormFault;
  check?: { fault?: string } | undefined;
}

interface ConnectionsSettingsModel extends ConnectionFrame {
  faults: { display_name?: FormFault };
  check: { fault?: string } | undefined;
  mayDelete: boolean;
  addresses: { text: string; value: string }[];
  displayName: string;
  fields: FilledFields;
}

export const CONNECTIONS_SETTINGS_PAGE = declareConsolePage<ConnectionsSettingsModel>(
  'console/connections-settings',
);

async function showForm(
  deps: ConnectionsDependencies,
  ctx: Context,
  session: ConsoleSession,
  connection: ShownConnection,
  { entered, faults, fault, check }: Form,
): Promise<void> {
  const { strategy, options } = connection;
  const head = headOf(session, connection, 'settings');
  const fields = filledFields(strategy, options, { entered, faults, fault });
  const displayNameFault = faultIn(fault, 'display_name');
  const faulty = displayNameFault ? DISPLAY_NAME : faultyOption(fields, deps.views.locale(ctx).has);
  await renderConsole(deps, ctx, session, {
    page: CONNECTIONS_SETTINGS_PAGE,
    title: { text: head.connection.title },
    ...refusalOptions(fault, faulty),
    model: {
      ...head,
      faults: displayNameFault ? { display_name: displayNameFault } : {},
      check,
      mayDelete: session.can('delete:connections'),
      addresses: await addressesOf(deps, connection),
      displayName: bodyTexts(ctx).display_name ?? displayNameOf(connection),
      fields,
    },
  });
}

/** Returns the addresses that have to be registered with the provider, each with a message key. */
async function addressesOf(
  deps: ConnectionsDependencies,
  connection: ShownConnection,
): Promise<{ text: string; value: string }[]> {
  const { baseUrl } = deps;
  if (!isSaml(connection))
    return tryMethodOf(connection).kind === 'redirect'
      ? [{ text: 'callback', value: `${baseUrl}${CALLBACK}` }]
      : [];
  const record = await recordOf(deps, connection);
  const { name } = connection;
  const options = samlpOptions(record);
  return [
    { text: 'consumer', value: options.recipientUrl || consumerUrl(baseUrl, connection) },
    { text: 'entity', value: entityId(deps, connection, options) },
    { text: 'metadata', value: `${baseUrl}/samlp/metadata?connection=${encodeURIComponent(name)}` },
    { text: 'logout', value: logoutUrl(baseUrl) },
  ];
}
