// Decides which connection a request means, for every endpoint. How a refusal is worded is left to the endpoint.

import type { Connection } from '../../records/collections.ts';
import { connectionPurposes } from '../../records/connections.ts';
import { enabledConnectionsOf, opensSignUp } from '../../records/organizations.ts';
import type { Config } from '../../tenant/config.ts';
import { domainsOf, homeRealmOf, isEnterprise, type UsableConnection } from './home-realm.ts';
import type { RedirectStrategy } from './redirect.ts';
import { strategyOf } from './strategies.ts';
import type { FormStrategy, Strategy } from './strategy.ts';

/** The parameters of a request by which its connection is found. */
export interface ConnectionQuery {
  /** The application; undefined if the connection need not be enabled for one. */
  clientId: string | undefined;
  /** The name of a connection. */
  connection?: string | undefined;
  /** The name of a connection, or one of its `realms`. */
  realm?: string | undefined;
  /** The e-mail address or name that the user is about to log in with, if known. */
  identifier?: string | undefined;
  /** The id of the organization that the user is to be a member of. */
  organization?: string | undefined;
}

/** `unknown`: no such connection; `strategy`: not a suitable one; `disabled`: not enabled for the application or organization. */
export type ConnectionFault = 'unknown' | 'strategy' | 'disabled';

/** The connection, or every reason why there is none, with the connection that the request named. */
type Resolution<S extends Strategy = Strategy> =
  | { connection: Connection; strategy: S }
  | { faults: readonly ConnectionFault[]; connection?: Connection | undefined };

/** Whether an endpoint can use a strategy. */
type StrategyFilter<S extends Strategy> = (strategy: Strategy) => strategy is S;

/** Accepts every strategy that is built in. */
export const anyStrategy: StrategyFilter<Strategy> = (strategy): strategy is Strategy =>
  strategy !== undefined;

/** Accepts strategies whose users type a password into our form. */
export const byForm: StrategyFilter<FormStrategy> = (strategy): strategy is FormStrategy =>
  strategy.page === 'form';

/** Accepts strategies whose users sign up and reset their passwords at this server. */
export const byOwnPassword: StrategyFilter<FormStrategy> = (strategy): strategy is FormStrategy =>
  strategy.page === 'form' && strategy.managesPasswords;

/** Accepts strategies whose users log in at an external provider. */
export const byRedirect: StrategyFilter<RedirectStrategy> = (strategy): strategy is RedirectStrategy =>
  strategy.page === 'redirect';

/**
 * Returns the connections that an application's users may log in with, ordered by name.
 * @param organization the id of an organization: only the connections that it has enabled, too, are returned.
 */
export async function connectionsFor(
  config: Config,
  clientId: string,
  organization: string | undefined,
): Promise<Connection[]> {
  const all = (await config.connectionsOf(clientId)).filter((one) => connectionPurposes(one).logsIn);
  if (organization === undefined) return all;
  const enabled = enabledConnectionsOf((await config.organization(organization)) ?? {});
  return all.filter(({ id }) => enabled.some(({ connection_id }) => connection_id === id));
}

/** Returns those of {@link connectionsFor} whose strategies are built in. */
export async function usableConnections(
  config: Config,
  clientId: string,
  organization: string | undefined,
): Promise<UsableConnection[]> {
  const all = await connectionsFor(config, clientId, organization);
  return all.flatMap((connection) => {
    const strategy = strategyOf(connection);
    return strategy === undefined ? [] : [{ connection, strategy }];
  });
}

/**
 * Returns the connection that a request means. That is the connection that it names, or else the first of these among the
 * application's suitable connections, ordered by name: the one that the user's e-mail address leads to ({@link homeRealmOf});
 * the tenant's default directory; one whose passwords are managed here; one with a password form; any.
 */
export async function resolveConnection<S extends Strategy>(
  config: Config,
  query: ConnectionQuery,
  filter: StrategyFilter<S>,
): Promise<Resolution<S>> {
  const name = query.connection ?? query.realm;
  const enabled =
    query.clientId === undefined
      ? undefined
      : await connectionsFor(config, query.clientId, query.organization);
  const resolutionOf = (connection: Connection): Resolution<S> => {
    const strategy = strategyOf(connection);
    const isEnabled =
      enabled === undefined
        ? connectionPurposes(connection).logsIn
        : enabled.some(({ id }) => id === connection.id);
    if (strategy !== undefined && filter(strategy)) {
      return isEnabled ? { connection, strategy } : { faults: ['disabled'], connection };
    }
    return { faults: isEnabled ? ['strategy'] : ['strategy', 'disabled'], connection };
  };
  if (name !== undefined) {
    const candidates = (await config.connections()).filter(
      (one) => one.name === name || isRealm(one, query.realm),
    );
    // A connection of that name comes before those that have it as a realm.
    const results = candidates
      .sort((a, b) => Number(b.name === name) - Number(a.name === name))
      .map(resolutionOf);
    return results.find((one) => 'strategy' in one) ?? results.at(0) ?? { faults: ['unknown'] };
  }
  const suitable = (enabled ?? []).map(resolutionOf).filter((one) => 'strategy' in one);
  const { default_directory: defaultDirectory } = config.settings().tenant;
  const organization =
    query.organization === undefined ? undefined : await config.organization(query.organization);
  return (
    homeRealmOf(suitable, organization, query.identifier) ??
    suitable.find(({ connection }) => connection.name === defaultDirectory) ??
    suitable.find(({ strategy }) => byOwnPassword(strategy)) ??
    suitable.find(({ strategy }) => byForm(strategy)) ??
    suitable.at(0) ?? { faults: ['unknown'] }
  );
}

function isRealm({ realms }: Connection, name: string | undefined): boolean {
  return name !== undefined && realms?.includes(name) === true;
}

/** Whether an application has a connection of that name or realm, of any strategy. */
export async function hasRealm(config: Config, clientId: string, realm: string): Promise<boolean> {
  const found = await resolveConnection(config, { clientId, realm }, anyStrategy);
  return 'strategy' in found || (found.connection !== undefined && !found.faults.includes('disabled'));
}

/**
 * Returns an application's connections, grouped by strategy, as the vendor's login widget expects them. The widget logs in
 * with the first connection that has a form, so the one that {@link resolveConnection} chooses by default is put first.
 * @param organization the id of an organization: only its connections are described, without those that it hides.
 */
export async function describeConnections(
  config: Config,
  clientId: string,
  organization?: string,
): Promise<object[]> {
  const first = await resolveConnection(config, { clientId, organization }, byForm);
  const record = organization === undefined ? undefined : await config.organization(organization);
  const enabled = new Map(enabledConnectionsOf(record ?? {}).map((one) => [one.connection_id, one]));
  const isShown = (one: Connection, { page }: Strategy) =>
    page === 'form' || enabled.get(one.id)?.show_as_button !== false;
  const all = (await connectionsFor(config, clientId, organization)).filter((one) => {
    const strategy = strategyOf(one);
    return strategy !== undefined && isShown(one, strategy);
  });
  const isFirst = ({ id }: Connection) => Number('strategy' in first && first.connection.id === id);
  const ordered = [...all].sort((a, b) => isFirst(b) - isFirst(a));
  const describe = (connection: Connection) => {
    const { name, display_name } = connection;
    const strategy = strategyOf(connection);
    const isClosed = organization !== undefined && !opensSignUp(enabled.get(connection.id));
    return {
      name,
      display_name,
      ...describeStrategy(strategy, connection),
      ...(isClosed && strategy?.page === 'form' && { showSignup: false }),
    };
  };
  return [...new Set(ordered.map(({ strategy }) => strategy))].map((name) => ({
    name,
    connections: ordered.filter(({ strategy }) => strategy === name).map(describe),
  }));
}

function describeStrategy(strategy: Strategy | undefined, connection: Connection): object {
  if (strategy?.page === 'form') return strategy.describe(connection);
  const { icon_url } = connection.options;
  const domains = isEnterprise(connection) ? domainsOf(connection) : [];
  return {
    ...(strategy?.page === 'redirect' && typeof icon_url === 'string' && icon_url !== '' && { icon_url }),
    // The widget sends users whose address has one of these domains to the connection.
    ...(domains.length > 0 && { domain: domains[0], domain_aliases: domains.slice(1) }),
  };
}

/**
 * Returns why an authorization request may not name a connection, as an error description; undefined when it may.
 * @param name the request's `connection`.
 */
export async function connectionFault(
  config: Config,
  clientId: string,
  name: string,
): Promise<string | undefined> {
  const found = await resolveConnection(config, { clientId, connection: name }, anyStrategy);
  if (!('faults' in found)) return undefined;
  const { faults, connection } = found;
  if (connection === undefined) return 'the connection was not found';
  if (faults.includes('disabled')) return 'the connection is not enabled for this application';
  return `the connection ${name} is of a kind (${connection.strategy}) that is not available here`;
}
