// Decides which connection a request means. All endpoints ask here; each words the refusal itself.

import type { Connection } from '../records/collections.ts';
import { connectionPurposes } from '../records/connections.ts';
import { enabledConnectionsOf } from '../records/organizations.ts';
import type { Config } from '../tenant/config.ts';
import { domainsOf, homeOf, isEnterprise, type UsableConnection } from './home.ts';
import type { RedirectStrategy } from './redirect.ts';
import { strategyOf } from './strategies.ts';
import type { FormStrategy, Strategy } from './strategy.ts';

/** What a request says of the connection that it means. */
export interface ConnectionQuery {
  /** The application; undefined where the request need not name one. */
  clientId: string | undefined;
  /** The name of a connection. */
  connection?: string | undefined;
  /** The name of a connection, or one of its `realms`. */
  realm?: string | undefined;
  /** The e-mail address or name that the user is about to log in with, where the request has it. */
  identifier?: string | undefined;
  /** The id of the organization that the user is to be a member of. */
  organization?: string | undefined;
}

/** Why there is none: not there, not of a strategy that is wanted, or not the application's (and organization's). */
export type ConnectionFault = 'unknown' | 'strategy' | 'disabled';

/** The connection, or all that is wrong with the one that was named. */
type Resolved<S extends Strategy = Strategy> =
  | { connection: Connection; strategy: S }
  | { faults: readonly ConnectionFault[]; connection?: Connection | undefined };

/** Whether a strategy is one that an endpoint is for. */
type StrategyFilter<S extends Strategy> = (strategy: Strategy) => strategy is S;

/** Any that is built in. */
export const anyStrategy: StrategyFilter<Strategy> = (strategy): strategy is Strategy =>
  strategy !== undefined;

/** One whose users type a password. */
export const byForm: StrategyFilter<FormStrategy> = (strategy): strategy is FormStrategy =>
  strategy.page === 'form';

/** One whose users' passwords are kept here: they sign up, and set new ones. */
export const byOwnPassword: StrategyFilter<FormStrategy> = (strategy): strategy is FormStrategy =>
  strategy.page === 'form' && strategy.managesPasswords;

/** One whose users log in at a provider elsewhere. */
export const byRedirect: StrategyFilter<RedirectStrategy> = (strategy): strategy is RedirectStrategy =>
  strategy.page === 'redirect';

/**
 * The connections that users log in to an application by, in name order; for an organization those that it has enabled, too.
 * @param organization its id.
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

/** Those of {@link connectionsFor} whose strategies are built in. */
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
 * The connection that a request means: the one that it names; else of the application's own connections the one that the
 * user's e-mail address belongs to ({@link homeOf}), the tenant's default directory, the first with passwords (those that are kept here come first), or the first of all, by name.
 */
export async function resolveConnection<S extends Strategy>(
  config: Config,
  asked: ConnectionQuery,
  wanted: StrategyFilter<S>,
): Promise<Resolved<S>> {
  const name = asked.connection ?? asked.realm;
  const all =
    asked.clientId === undefined
      ? undefined
      : await connectionsFor(config, asked.clientId, asked.organization);
  const judge = (connection: Connection): Resolved<S> => {
    const strategy = strategyOf(connection);
    const isEnabled =
      all === undefined ? connectionPurposes(connection).logsIn : all.some(({ id }) => id === connection.id);
    if (strategy !== undefined && wanted(strategy)) {
      return isEnabled ? { connection, strategy } : { faults: ['disabled'], connection };
    }
    return { faults: isEnabled ? ['strategy'] : ['strategy', 'disabled'], connection };
  };
  if (name !== undefined) {
    const named = (await config.connections()).filter(
      (one) => one.name === name || isRealm(one, asked.realm),
    );
    // Its own name comes before one that it shares with realms of others.
    const answers = named.sort((a, b) => Number(b.name === name) - Number(a.name === name)).map(judge);
    return answers.find((one) => 'strategy' in one) ?? answers.at(0) ?? { faults: ['unknown'] };
  }
  const own = (all ?? []).map(judge).filter((one) => 'strategy' in one);
  const { default_directory: preferred } = config.settings().tenant;
  const organization =
    asked.organization === undefined ? undefined : await config.organization(asked.organization);
  return (
    homeOf(own, organization, asked.identifier) ??
    own.find(({ connection }) => connection.name === preferred) ??
    own.find(({ strategy }) => byOwnPassword(strategy)) ??
    own.find(({ strategy }) => byForm(strategy)) ??
    own.at(0) ?? { faults: ['unknown'] }
  );
}

function isRealm({ realms }: Connection, name: string | undefined): boolean {
  return name !== undefined && realms?.includes(name) === true;
}

/** Whether an application has a connection of that name or realm, whatever its strategy. */
export async function hasRealm(config: Config, clientId: string, realm: string): Promise<boolean> {
  const found = await resolveConnection(config, { clientId, realm }, anyStrategy);
  return 'strategy' in found || (found.connection !== undefined && !found.faults.includes('disabled'));
}

/**
 * What the vendor's login widget is told of an application's connections, by strategy. It takes the first one with a
 * form, which is the one that a request means that names none.
 * @param organization the id of the one that the login is for: its connections alone, without those that it hides.
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
    const isClosed = organization !== undefined && enabled.get(connection.id)?.is_signup_enabled !== true;
    return {
      name,
      display_name,
      ...describedBy(strategy, connection),
      ...(isClosed && strategy?.page === 'form' && { showSignup: false }),
    };
  };
  return [...new Set(ordered.map(({ strategy }) => strategy))].map((name) => ({
    name,
    connections: ordered.filter(({ strategy }) => strategy === name).map(describe),
  }));
}

function describedBy(strategy: Strategy | undefined, connection: Connection): object {
  if (strategy?.page === 'form') return strategy.describe(connection);
  const { icon_url } = connection.options;
  const domains = isEnterprise(connection) ? domainsOf(connection) : [];
  return {
    ...(strategy?.page === 'redirect' && typeof icon_url === 'string' && icon_url !== '' && { icon_url }),
    // The widget sends users with an address of these domains to the connection.
    ...(domains.length > 0 && { domain: domains[0], domain_aliases: domains.slice(1) }),
  };
}

/**
 * Why an authorization request may not name a connection, in the words of its answer; undefined when it may.
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
