// The connections of a waiting request: the one that its user logs in with, and the others that a page offers.
import { type RequestPage, stepPath, takesConnection } from '../flow/request-page.ts';
import type { Connection } from '../records/collections.ts';
import { passwordUse } from '../records/database-options.ts';
import { enabledConnectionsOf } from '../records/organizations.ts';
import type { Config } from '../tenant/config.ts';
import { domainsOf, hasHomes, homeOf, isEnterprise } from './home.ts';
import { GENERIC, markOf } from './marks.ts';
import type { RedirectStrategy } from './redirect.ts';
import { anyStrategy, byForm, connectionsFor, resolveConnection, usableConnections } from './resolve.ts';
import { strategyOf } from './strategies.ts';
import type { Strategy } from './strategy.ts';

/** A way to log in, as a page offers it. */
export interface LoginChoice {
  url: string;
  /** A message key. */
  text: string;
  /** What the connection is called, where the text says it. */
  name?: string;
  /** What is shown beside it: an image's address, the name of an asset, of an icon of ours, or the first character of the name. */
  logo?: string;
  mark?: string;
  icon?: string;
  initial?: string;
}

/**
 * The connections of the request's application that have pages of their own, or log in elsewhere; none where the request
 * has chosen.
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

/** Those of {@link loginChoices} whose users prove here who they are. */
export async function localChoices(config: Config, page: RequestPage): Promise<LoginChoice[]> {
  return (await loginChoices(config, page)).filter(({ icon }) => icon !== undefined);
}

/** The link from another connection's page to the password form. */
export function passwordChoice({ pending }: RequestPage): LoginChoice {
  return { url: stepPath(pending, 'login'), text: 'login.withPassword', icon: 'key' };
}

/** The button of a connection whose users log in elsewhere; none where it says that it has none. */
function upstreamChoice(
  pending: RequestPage['pending'],
  connection: Connection,
  { label }: RedirectStrategy,
): LoginChoice[] {
  const { name, display_name, options, strategy } = connection;
  // Users of an enterprise connection with domains are found by their address, and need no button.
  const isFoundByAddress = isEnterprise(connection) && domainsOf(connection).length > 0;
  if (!(connection.show_as_button ?? !isFoundByAddress)) return [];
  const { icon_url: icon } = options;
  const mark = markOf(strategy);
  // An empty name says nothing.
  const shown = display_name?.trim() || label || name;
  return [
    {
      url: stepPath(pending, `connection/${name}`),
      text: 'login.with',
      name: shown,
      ...(typeof icon === 'string' && icon !== '' && { logo: icon }),
      ...(mark === GENERIC ? { initial: firstCharacter(shown) } : { mark }),
    },
  ];
}

/** As a reader counts them: an emoji of several code points is one. */
function firstCharacter(text: string): string {
  const [first] = new Intl.Segmenter().segment(text);
  return first?.segment.toUpperCase() ?? '';
}

/**
 * The provider that a request's user logs in at without being asked: the one that the request names, or whose domain its
 * `login_hint` has, or the only way in that the application has.
 */
export async function directProvider(
  config: Config,
  { clientId, params }: Pick<RequestPage['pending'], 'clientId' | 'params'>,
): Promise<{ connection: Connection; strategy: RedirectStrategy } | undefined> {
  const { connection: named, organization, login_hint: identifier } = params;
  const asked = { clientId, connection: named, organization, identifier };
  const found = await resolveConnection(config, asked, anyStrategy);
  if (!('strategy' in found) || found.strategy.page !== 'redirect') return undefined;
  const { connection, strategy } = found;
  if (named !== undefined) return { connection, strategy };
  const usable = await usableConnections(config, clientId, organization);
  const record = organization === undefined ? undefined : await config.organization(organization);
  const isOnlyOne = usable.length === 1;
  return isOnlyOne || homeOf(usable, record, identifier)?.connection.id === connection.id
    ? { connection, strategy }
    : undefined;
}

/** The address or name that the request's user typed on the first page. */
export function identifierOf({ pending: { remembered } }: RequestPage): string | undefined {
  return typeof remembered.identifier === 'string' ? remembered.identifier : undefined;
}

/**
 * Whether the request's user is asked for an address before anything else: where addresses could lead elsewhere, and where
 * the tenant wants it of all forms (`prompts.identifier_first`).
 */
export async function asksIdentifierFirst(
  config: Config,
  { client, organization, pending }: RequestPage,
): Promise<boolean> {
  if (pending.params.connection !== undefined) return false;
  const usable = await usableConnections(config, client.client_id, organization?.id);
  if (config.settings().prompts?.identifier_first === true)
    return usable.some(({ strategy }) => byForm(strategy)) || hasHomes(usable, organization);
  return usable.length > 1 && hasHomes(usable, organization);
}

/** Whether an address belongs to a connection, of those that the request's user may log in with. */
export async function isHome(
  config: Config,
  { client, organization }: RequestPage,
  { id }: Connection,
  identifier: string,
): Promise<boolean> {
  const usable = await usableConnections(config, client.client_id, organization?.id);
  return homeOf(usable, organization, identifier)?.connection.id === id;
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
      takesConnection(pending, connection)
    );
  });
}

/**
 * The connection that a request's user logs in with.
 * @param identifier as whom, as far as the request says.
 * @returns undefined when the application has none.
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
