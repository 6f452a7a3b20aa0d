// The list of all features, and of the other parts that declare limits or log events. A feature that is not
// listed here does not exist.

import { actions } from '../capabilities/actions/actions-declaration.ts';
import { delivery } from '../capabilities/delivery/delivery-declaration.ts';
import { protection } from '../capabilities/protection/protection-declaration.ts';
import { samlMessages } from '../capabilities/saml-messages/saml-messages-declaration.ts';
import { STANDARD_GRANTS } from '../engine/base/parameter-schemas.ts';
import { engine } from '../engine/provider/engine-routes.ts';
import type { Feature } from '../engine/provider/feature.ts';
import { account } from '../features/account/account-feature.ts';
import { database } from '../features/connections/database/database-feature.ts';
import { identifier } from '../features/connections/identifier/identifier-feature.ts';
import { linking } from '../features/connections/linking/linking-feature.ts';
import { passkeys } from '../features/connections/passkeys/passkeys-feature.ts';
import { passwordless } from '../features/connections/passwordless/passwordless-feature.ts';
import { revocation } from '../features/connections/revocation/revocation-feature.ts';
import { samlUpstream } from '../features/connections/samlp/samlp-feature.ts';
import { upstream } from '../features/connections/upstream/upstream-feature.ts';
import { consoleFeature } from '../features/console/console-feature.ts';
import { development } from '../features/development/development-feature.ts';
import { mfa } from '../features/factors/factors-feature.ts';
import { authenticator } from '../features/factors/push/push-feature.ts';
import { flow } from '../features/flow/flow-feature.ts';
import { anonymous } from '../features/grants/anonymous/anonymous-feature.ts';
import { ciba } from '../features/grants/ciba/ciba-feature.ts';
import { device } from '../features/grants/device/device-feature.ts';
import { health } from '../features/health.ts';
import { logout } from '../features/logout/logout-feature.ts';
import { management } from '../features/management/management-feature.ts';
import type { MetricsSettings } from '../features/metrics/metrics-settings.ts';
import { isPublic, metricsFeature } from '../features/metrics/serve.ts';
import { move } from '../features/move/move-feature.ts';
import { registration } from '../features/registration/registration-feature.ts';
import { saml } from '../features/saml/saml-feature.ts';
import { httpLimits, type Limit, type Limits } from '../http/limits.ts';
import { parameterNames } from '../http/parameter-schemas.ts';
import type { EventTypes } from '../records/base/log-events.ts';
import type { Declaration } from '../records/declaration.ts';
import type { Settings } from '../settings/index.ts';
import { tenant } from '../tenant/tenant-declaration.ts';
import { users } from '../users/users-declaration.ts';
import type { Capabilities } from './capabilities.ts';
import type { Declared, Parts } from './parts.ts';

/** A feature whose needs a tenant's capabilities meet. */
type Served = Feature<Capabilities, Parts>;

/** Lists features. The compiler names the one that needs what no capability offers. */
export const served = (...features: readonly Served[]): readonly Served[] => features;

export const FEATURES = served(
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
  move,
  registration,
);

/**
 * Returns the features that a server has with these settings: that of metrics only where they are served at `BASE_URL`.
 */
function servedFeatures(metrics: Partial<MetricsSettings> = {}): readonly Served[] {
  return isPublic(metrics) ? FEATURES : FEATURES.filter((one) => one.name !== metricsFeature.name);
}

/** Every part that declares limits or log events. */
export const DECLARATIONS: readonly Declaration[] = [
  ...FEATURES,
  protection,
  delivery,
  users,
  tenant,
  actions,
  samlMessages,
  { name: 'http', limits: httpLimits },
];

/** The parameters that the endpoints of OAuth, OpenID Connect, logins and SAML understand. */
export const OWN_PARAMETERS: ReadonlySet<string> = new Set([
  ...Object.values(STANDARD_GRANTS).flatMap(parameterNames),
  ...FEATURES.filter(({ hasResources }) => hasResources !== true).flatMap(({ routes, grants }) => [
    ...Object.values(routes).flatMap(({ query, body, uncheckedBody }) =>
      [query, body, uncheckedBody].flatMap(parameterNames),
    ),
    ...grants.flatMap(({ parameters }) => parameterNames(parameters)),
  ]),
]);

export const LIMITS: Limits = collected(DECLARATIONS, 'limits');

/** The limits of routes. Each process counts them without waiting for the store (src/capabilities/protection/rate-limit.ts). */
export const ROUTE_LIMITS: ReadonlySet<Limit> = new Set([
  ...FEATURES.flatMap(({ routes }) => Object.values(routes).map(({ limit }) => limit)).filter(
    (limit) => limit !== 'unlimited',
  ),
  ...Object.values(LIMITS).filter(({ ofRoute }) => ofRoute === true),
]);

export const EVENTS: EventTypes = collected(DECLARATIONS, 'events');

/** Joins what parts declare under a key. @throws Error when two of them declare the same name. */
export function collected<K extends 'limits' | 'events'>(
  declarations: readonly Pick<Declaration, K>[],
  key: K,
): NonNullable<Declaration[K]> {
  const all = declarations.flatMap((one) => Object.entries(one[key] ?? {}));
  for (const [index, [name]] of all.entries()) {
    if (all.findIndex(([other]) => other === name) !== index) throw new Error(`${name} is declared twice`);
  }
  return Object.fromEntries(all) as NonNullable<Declaration[K]>;
}

export function declaredBy({ metrics }: Pick<Settings, 'metrics'>): Declared {
  return {
    features: servedFeatures(metrics),
    builtIns: FEATURES.flatMap(({ builtIns = [] }) => builtIns),
    routeLimits: ROUTE_LIMITS,
    eventTypes: EVENTS,
    endpointParameters: OWN_PARAMETERS,
  };
}
