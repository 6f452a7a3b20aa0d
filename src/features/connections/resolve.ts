// Decides which connection a request means, for every endpoint. How a refusal is worded is left to the endpoint.

import { AuthError } from '../../http/errors.ts';
import { canonicalDomain, domainOf } from '../../records/base/email.ts';
import type { Connection, Organization } from '../../records/collections.ts';
import { connectionPurposes, strategyRecord } from '../../records/connections/connections.ts';
import { passwordUse } from '../../records/database-options.ts';
import { discoveryDomainsOf, enabledConnectionsOf, opensSignUp } from '../../records/users/organizations.ts';
import type { Config } from '../../tenant/config.ts';
import { acceptsConnection, type RequestPage, stepPath } from '../flow/request-page.ts';
import { GENERIC_MARK, markOf } from './marks.ts';
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
const anyStrategy: StrategyFilter<Strategy> = (strategy): strategy is Strategy => strategy !== undefined;

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

// docs/understand/decisions/authorize.md#without-a-connection-one-is-chosen-in-a-fixed-order
// docs/understand/decisions/connections.md#the-name-in-a-request-decides-then-the-domain-of-the-address-then-the-default
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

// Home realm discovery: finds the connection of an e-mail address by the address's domain alone. No account is looked up, so
// the answer does not reveal whether one exists.

export interface UsableConnection {
  connection: Connection;
  strategy: Strategy;
}

/** Strategies whose option `domain` is a domain of e-mail addresses. For others, it is the provider's own host. */
const EMAIL_DOMAIN_STRATEGIES: ReadonlySet<string> = new Set(['google-apps', 'waad']);

// docs/understand/decisions/connections.md#a-connections-domains-are-domain_aliases-tenant_domain-and-for-some-domain
/**
 * Returns the e-mail domains of a connection's users, in their canonical form: those of the options `domain_aliases` and
 * `tenant_domain`, and for some strategies `domain`.
 */
export function domainsOf({ options, strategy }: Pick<Connection, 'options' | 'strategy'>): string[] {
  const { domain_aliases: aliases, tenant_domain: tenant, domain } = options;
  const all = [aliases, tenant, EMAIL_DOMAIN_STRATEGIES.has(strategy) ? domain : undefined].flat();
  return all
    .filter((one) => typeof one === 'string' && one !== '')
    .map((one) => canonicalDomain(String(one)) ?? String(one));
}

/** Whether a connection is an enterprise connection: the directory or identity provider of one company. */
export function isEnterprise(connection: Pick<Connection, 'strategy'>): boolean {
  const strategy = strategyOf(connection);
  if (strategy?.page === 'redirect') return !strategy.isSocial;
  return strategy !== undefined && strategyRecord(connection.strategy)?.isUpstream === true;
}

/**
 * Returns the connection of an e-mail address: the first one that declares the address's domain. If none does, and the
 * organization has verified that domain, it is the organization's enterprise connection, provided there is exactly one.
 * @param usable the connections that may be used, in order of preference.
 * @param organization the organization that the login is for, if any.
 * @param identifier what the user typed, or what the request says.
 * @returns undefined when no connection matches, and when the identifier is not an e-mail address.
 */
export function homeRealmOf<U extends UsableConnection>(
  usable: readonly U[],
  organization: Organization | undefined,
  identifier: string | undefined,
): U | undefined {
  const domain = domainOf(identifier ?? '');
  if (domain === undefined) return undefined;
  const declared = usable.find(({ connection }) => domainsOf(connection).includes(domain));
  if (declared !== undefined || !isDomainOf(organization, domain)) return declared;
  const enterprise = usable.filter(({ connection }) => isEnterprise(connection));
  return enterprise.length === 1 ? enterprise[0] : undefined;
}

function isDomainOf(organization: Organization | undefined, domain: string): boolean {
  return discoveryDomainsOf(organization ?? {}).some(
    (one) => canonicalDomain(one.domain) === domain && one.status === 'verified',
  );
}

/** Whether the domain of an e-mail address can select one of these connections ({@link homeRealmOf}). */
function hasHomeRealms(usable: readonly UsableConnection[], organization: Organization | undefined): boolean {
  const enterprise = usable.filter(({ connection }) => isEnterprise(connection));
  const isVerified = discoveryDomainsOf(organization ?? {}).some(({ status }) => status === 'verified');
  return (
    enterprise.some(({ connection }) => domainsOf(connection).length > 0) ||
    (enterprise.length === 1 && isVerified)
  );
}

// The connections of a waiting authorization request: the one that its user logs in with, and the others that a page offers.

/** A link or button of a login page that leads to another connection. */
export interface LoginChoice {
  url: string;
  /** A message key. */
  text: string;
  /** The name of the connection, if the message includes it. */
  name?: string;
  // docs/understand/decisions/login-pages.md#provider-buttons-are-in-the-order-of-the-connections-names
  /** The URL of an image. At most one of `logo`, `mark`, `icon` and `initial` is shown, in this order. */
  logo?: string;
  /** The name of an asset. */
  mark?: string;
  /** The name of one of our icons. */
  icon?: string;
  /** The first character of the name. */
  initial?: string;
}

/** Empty if the request names a connection. */
export async function loginChoices(config: Config, page: RequestPage): Promise<LoginChoice[]> {
  const { waiting, client, organization } = page;
  if (waiting.params.connection !== undefined) return [];
  const all = await connectionsFor(config, client.client_id, organization?.id);
  const hidden = enabledConnectionsOf(organization ?? {}).filter((one) => one.show_as_button === false);
  return all.flatMap((connection) => {
    if (hidden.some(({ connection_id }) => connection_id === connection.id)) return [];
    const strategy = strategyOf(connection);
    if (strategy?.page === 'step')
      return [
        {
          url: stepPath(waiting, strategy.step(connection)),
          text: strategy.text,
          icon: strategy.icon,
        },
      ];
    return strategy?.page === 'redirect' ? upstreamChoice(waiting, connection, strategy) : [];
  });
}

/** Returns those of {@link loginChoices} whose users authenticate at this server. */
export async function localChoices(config: Config, page: RequestPage): Promise<LoginChoice[]> {
  return (await loginChoices(config, page)).filter(({ icon }) => icon !== undefined);
}

export function passwordChoice({ waiting }: RequestPage): LoginChoice {
  return { url: stepPath(waiting, 'login'), text: 'login.withPassword', icon: 'key' };
}

/** Returns the button of a connection at an external provider; none if the connection is configured not to have one. */
function upstreamChoice(
  pending: RequestPage['waiting'],
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
  { clientId, params }: Pick<RequestPage['waiting'], 'clientId' | 'params'>,
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
export function identifierOf({ waiting: { remembered } }: RequestPage): string | undefined {
  return typeof remembered.identifier === 'string' ? remembered.identifier : undefined;
}

// docs/understand/decisions/login-pages.md#an-e-mail-address-is-asked-for-first-where-its-domain-may-choose-the-connection
/**
 * Whether the user is asked for an identifier before anything else: when the domain of an address may lead to another
 * connection, and when the tenant wants it for every form (`prompts.identifier_first`).
 */
export async function asksIdentifierFirst(
  config: Config,
  { client, organization, waiting }: RequestPage,
): Promise<boolean> {
  if (waiting.params.connection !== undefined) return false;
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
  { client, waiting, organization }: RequestPage,
): Promise<boolean> {
  return (await connectionsFor(config, client.client_id, organization?.id)).some((connection) => {
    const strategy = strategyOf(connection);
    return (
      strategy !== undefined &&
      byForm(strategy) &&
      passwordUse(connection).logsIn &&
      acceptsConnection(waiting, connection)
    );
  });
}

/**
 * @param identifier the e-mail address or name of the user, if known; its domain may select the connection.
 * @returns undefined when the application has no connection that can be used.
 */
export async function connectionOf(
  config: Config,
  { waiting: { clientId, params } }: RequestPage,
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

// Finds the password connection that a request names.

/**
 * Returns the connection that a request names, and its strategy.
 * @param filter accepts a connection; by default any whose users type a password into a form.
 * @throws AuthError 400 `invalid_request` if there is none, or it is not enabled for the application.
 */
export async function databaseFor(
  config: Config,
  query: ConnectionQuery,
  filter = byForm,
): Promise<{ connection: Connection; strategy: FormStrategy }> {
  const found = await resolveConnection(config, query, filter);
  if ('strategy' in found) return found;
  throw new AuthError(
    400,
    'invalid_request',
    'The connection was not found or is not enabled for this application.',
  );
}
