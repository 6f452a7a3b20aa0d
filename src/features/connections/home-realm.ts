// Home realm discovery: finds the connection of an e-mail address by the address's domain alone. No account is looked up, so
// the answer does not reveal whether one exists.
import type { Connection, Organization } from '../../records/collections.ts';
import { strategyRecord } from '../../records/connections.ts';
import { canonicalDomain, domainOf } from '../../records/email.ts';
import { discoveryDomainsOf } from '../../records/organizations.ts';
import { strategyOf } from './strategies.ts';
import type { Strategy } from './strategy.ts';

/** A connection whose strategy is built in, with that strategy. */
export interface UsableConnection {
  connection: Connection;
  strategy: Strategy;
}

/** Strategies whose option `domain` is a domain of e-mail addresses. For others, it is the provider's own host. */
const EMAIL_DOMAIN_STRATEGIES: ReadonlySet<string> = new Set(['google-apps', 'waad']);

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
export function hasHomeRealms(
  usable: readonly UsableConnection[],
  organization: Organization | undefined,
): boolean {
  const enterprise = usable.filter(({ connection }) => isEnterprise(connection));
  const isVerified = discoveryDomainsOf(organization ?? {}).some(({ status }) => status === 'verified');
  return (
    enterprise.some(({ connection }) => domainsOf(connection).length > 0) ||
    (enterprise.length === 1 && isVerified)
  );
}
