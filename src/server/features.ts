// The list of all features, and of the other parts that declare limits, log events or pages. A feature that is not
// listed here does not exist.
import { account } from '../account/feature.ts';
import { accountPage } from '../account/page/feature.ts';
import { actions } from '../actions/declaration.ts';
import { database } from '../connections/database/feature.ts';
import { identifier } from '../connections/identifier/feature.ts';
import { linking } from '../connections/linking/feature.ts';
import { passkeys } from '../connections/passkeys/feature.ts';
import { passwordless } from '../connections/passwordless/feature.ts';
import { revocation } from '../connections/revocation/feature.ts';
import { samlUpstream } from '../connections/samlp/feature.ts';
import { upstream } from '../connections/upstream/feature.ts';
import { consoleFeature } from '../console/feature.ts';
import { delivery } from '../delivery/declaration.ts';
import { development } from '../development/feature.ts';
import type { Feature } from '../engine/feature.ts';
import { STANDARD_GRANTS } from '../engine/parameter-schemas.ts';
import { engine } from '../engine/routes.ts';
import { mfa } from '../factors/feature.ts';
import { authenticator } from '../factors/push/feature.ts';
import { flow } from '../flow/feature.ts';
import { anonymous } from '../grants/anonymous/feature.ts';
import { ciba } from '../grants/ciba/feature.ts';
import { device } from '../grants/device/feature.ts';
import { health } from '../health.ts';
import { parameterNames } from '../http/parameter-schemas.ts';
import { logout } from '../logout/feature.ts';
import { management } from '../management/feature.ts';
import { isPublic, type MetricsSettings, metricsFeature } from '../metrics/serve.ts';
import { protection } from '../protection/declaration.ts';
import type { Declaration, EventMeanings } from '../records/declaration.ts';
import type { Limits } from '../records/limits.ts';
import { saml } from '../saml/feature.ts';
import { tenant } from '../tenant/declaration.ts';
import { users } from '../users/declaration.ts';

/** The features: the parts that answer requests. */
export const FEATURES: readonly Feature<never>[] = [
  engine,
  flow,
  database,
  passwordless,
  passkeys,
  identifier,
  upstream,
  samlUpstream,
  revocation,
  linking,
  accountPage,
  consoleFeature,
  mfa,
  account,
  authenticator,
  anonymous,
  device,
  ciba,
  logout,
  saml,
  management,
  development,
  health,
  metricsFeature,
];

/**
 * Returns the features that a server has with these settings: that of metrics only where they are served at `BASE_URL`.
 */
export function servedFeatures(metrics: Partial<MetricsSettings> = {}): readonly Feature<never>[] {
  return isPublic(metrics) ? FEATURES : FEATURES.filter((one) => one.name !== metricsFeature.name);
}

/** Every part that declares limits, log events or pages. */
export const DECLARATIONS: readonly Declaration[] = [
  ...FEATURES,
  protection,
  delivery,
  users,
  tenant,
  actions,
];

/** Features whose calls have a resource as JSON in the body; its members are no parameters of a protocol. */
const OF_RESOURCES: ReadonlySet<string> = new Set(
  [account, accountPage, authenticator, consoleFeature, development, management].map(({ name }) => name),
);

/** The parameters that the endpoints of OAuth, OpenID Connect, logins and SAML understand. */
export const OWN_PARAMETERS: ReadonlySet<string> = new Set([
  ...Object.values(STANDARD_GRANTS).flatMap(parameterNames),
  ...FEATURES.filter(({ name }) => !OF_RESOURCES.has(name)).flatMap(({ routes = {}, grants = [] }) => [
    ...Object.values(routes).flatMap(({ query, body }) => [
      ...parameterNames(query),
      ...parameterNames(body),
    ]),
    ...grants.flatMap(({ parameters }) => parameterNames(parameters)),
  ]),
]);

/** All limits, by name. */
export const LIMITS: Limits = collected('limits');

/** The limits of routes. Each process counts them without waiting for the store (src/protection/counters.ts). */
export const ROUTE_LIMITS: ReadonlySet<string> = new Set([
  ...FEATURES.flatMap(({ routes = {} }) => Object.values(routes).map(({ limit }) => limit)),
  ...Object.keys(LIMITS).filter((name) => LIMITS[name]?.ofRoute === true),
]);

/** All log events, by type. */
export const EVENTS: EventMeanings = collected('events');

/** Joins what all parts declare under a key. @throws Error when two parts declare the same name. */
function collected<K extends 'limits' | 'events'>(key: K): NonNullable<Declaration[K]> {
  const all = DECLARATIONS.flatMap((one) => Object.entries(one[key] ?? {}));
  for (const [index, [name]] of all.entries()) {
    if (all.findIndex(([other]) => other === name) !== index) throw new Error(`${name} is declared twice`);
  }
  return Object.fromEntries(all) as NonNullable<Declaration[K]>;
}
