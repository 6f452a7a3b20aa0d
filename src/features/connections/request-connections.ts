// The connections of a waiting authorization request: the one that its user logs in with, and the others that a page offers.

import type { Connection } from '../../records/collections.ts';
import { passwordUse } from '../../records/database-options.ts';
import { enabledConnectionsOf } from '../../records/organizations.ts';
import type { Config } from '../../tenant/config.ts';
import { acceptsConnection, type RequestPage, stepPath } from '../flow/request-page.ts';
import { domainsOf, hasHomeRealms, homeRealmOf, isEnterprise } from './home-realm.ts';
import { GENERIC_MARK, markOf } from './marks.ts';
import type { RedirectStrategy } from './redirect.ts';
import { anyStrategy, byForm, connectionsFor, resolveConnection, usableConnections } from './resolve.ts';
import { strategyOf } from './strategies.ts';
import type { Strategy } from './strategy.ts';

/** A link or button of a login page that leads to another connection. */
export interface LoginChoice {
  url: string;
  /** A message key. */
  text: string;
  /** The name of the connection, if the message includes it. */
  name?: string;
  /** The URL of an image. At most one of `logo`, `mark`, `icon` and `initial` is shown, in this order. */
  logo?: string;
  /** The name of an asset. */
  mark?: string;
  /** The name of one of our icons. */
  icon?: string;
  /** The first character of the name. */
  initial?: string;
}

/**
 * Returns the choices of a login page: the application's connections that have pages of their own or are at an external
 * provider. Empty if the request names a connection.
 */
export async function loginChoices(config: Config, page: RequestPage): Promise<LoginChoice[]> {
  const { pending, client, organization } = page;
  if (pending.params.connection !== undefined) return [];
  const all = await connectionsFor(config, client.client_id, organization?.id);
  const hidden = enabledConnectionsOf(organization ?? {}).filter((one) => one.show_as_button === false);
  return all.flatMap((connection) => {
    if (hidden.some(({ connection_id }) => connection_id === connection.id)) return [];
    const strategy = strategyOf(connection);
    if (strategy?.page === 'step')
      return [
        {
          url: stepPath(pending, strategy.step(connection)),
          text: strategy.text,
          icon: strategy.icon,
        },
      ];
    return strategy?.page === 'redirect' ? upstreamChoice(pending, connection, strategy) : [];
  });
}

/** Returns those of {@link loginChoices} whose users authenticate at this server. */
export async function localChoices(config: Config, page: RequestPage): Promise<LoginChoice[]> {
  return (await loginChoices(config, page)).filter(({ icon }) => icon !== undefined);
}

/** Returns the link from another connection's page to the password form. */
export function passwordChoice({ pending }: RequestPage): LoginChoice {
  return { url: stepPath(pending, 'login'), text: 'login.withPassword', icon: 'key' };
}

/** Returns the button of a connection at an external provider; none if the connection is configured not to have one. */
function upstreamChoice(
  pending: RequestPage['pending'],
  connection: Connection,
  { label }: RedirectStrategy,
): LoginChoice[] {
  const { name, display_name, options, strategy } = connection;
  // The domain of the user's e-mail address leads to such a connection, so it needs no button.
  const isFoundByAddress = isEnterprise(connection) && domainsOf(connection).length > 0;
  if (!(connection.show_as_button ?? !isFoundByAddress)) return [];
  const { icon_url: icon } = options;
  const mark = markOf(strategy);
  // An empty display_name counts as none.
  const displayedName = display_name?.trim() || label || name;
  return [
    {
      url: stepPath(pending, `connection/${name}`),
      text: 'login.with',
      name: displayedName,
      ...(typeof icon === 'string' && icon !== '' && { logo: icon }),
      ...(mark === GENERIC_MARK ? { initial: firstCharacter(displayedName) } : { mark }),
    },
  ];
}

/** Returns the first grapheme in upper case: an emoji of several code points is one character. */
function firstCharacter(text: string): string {
  const [first] = new Intl.Segmenter().segment(text);
  return first?.segment.toUpperCase() ?? '';
}

/**
 * Returns the provider that a request goes to without showing a login page: the one that the request names, the one that
 * the domain of its `login_hint` leads to, or the application's only connection.
 * @returns undefined when a page has to be shown first.
 */
export async function directProvider(
  config: Config,
  { clientId, params }: Pick<RequestPage['pending'], 'clientId' | 'params'>,
): Promise<{ connection: Connection; strategy: RedirectStrategy } | undefined> {
  const { connection: connectionName, organization, login_hint: identifier } = params;
  const query = { clientId, connection: connectionName, organization, identifier };
  const found = await resolveConnection(config, query, anyStrategy);
  if (!('strategy' in found) || found.strategy.page !== 'redirect') return undefined;
  const { connection, strategy } = found;
  if (connectionName !== undefined) return { connection, strategy };
  const usable = await usableConnections(config, clientId, organization);
  const record = organization === undefined ? undefined : await config.organization(organization);
  const isOnlyOne = usable.length === 1;
  return isOnlyOne || homeRealmOf(usable, record, identifier)?.connection.id === connection.id
    ? { connection, strategy }
    : undefined;
}

/** Returns the identifier that the user typed on the page that asks for it first; undefined if there was no such page. */
export function identifierOf({ pending: { remembered } }: RequestPage): string | undefined {
  return typeof remembered.identifier === 'string' ? remembered.identifier : undefined;
}

/**
 * Whether the user is asked for an identifier before anything else: when the domain of an address may lead to another
 * connection, and when the tenant wants it for every form (`prompts.identifier_first`).
 */
export async function asksIdentifierFirst(
  config: Config,
  { client, organization, pending }: RequestPage,
): Promise<boolean> {
  if (pending.params.connection !== undefined) return false;
  const usable = await usableConnections(config, client.client_id, organization?.id);
  if (config.settings().prompts?.identifier_first === true)
    return usable.some(({ strategy }) => byForm(strategy)) || hasHomeRealms(usable, organization);
  return usable.length > 1 && hasHomeRealms(usable, organization);
}

/** Whether an e-mail address leads to a connection by its domain, among those that the request's user may log in with. */
export async function isHomeRealm(
  config: Config,
  { client, organization }: RequestPage,
  { id }: Connection,
  identifier: string,
): Promise<boolean> {
  const usable = await usableConnections(config, client.client_id, organization?.id);
  return homeRealmOf(usable, organization, identifier)?.connection.id === id;
}

/** Whether the request's user may log in with a password. */
export async function mayUsePassword(
  config: Config,
  { client, pending, organization }: RequestPage,
): Promise<boolean> {
  return (await connectionsFor(config, client.client_id, organization?.id)).some((connection) => {
    const strategy = strategyOf(connection);
    return (
      strategy !== undefined &&
      byForm(strategy) &&
      passwordUse(connection).logsIn &&
      acceptsConnection(pending, connection)
    );
  });
}

/**
 * Returns the connection that a request's user logs in with.
 * @param identifier the e-mail address or name of the user, if known; its domain may select the connection.
 * @returns undefined when the application has no connection that can be used.
 */
export async function connectionOf(
  config: Config,
  { pending: { clientId, params } }: RequestPage,
  identifier?: string,
): Promise<{ connection: Connection; strategy: Strategy } | undefined> {
  const { connection, organization } = params;
  const found = await resolveConnection(
    config,
    { clientId, connection, organization, identifier },
    anyStrategy,
  );
  return 'strategy' in found ? found : undefined;
}
