// The pictures beside the names of connections. They are drawn for this project (views/assets/marks) and served by it: a
// page that asked a provider for its logo would tell the provider who looks at it.
import { SOCIAL_STRATEGIES } from '../records/social.ts';

/** Strategies that share one. */
const SHARED = new Map<string, string>([
  ['google-oauth2', 'google'],
  ['google-apps', 'google'],
  ['windowslive', 'microsoft'],
  ['waad', 'microsoft'],
  ['adfs', 'microsoft'],
  ['office365', 'microsoft'],
  ['samlp', 'saml'],
  ['pingfederate', 'saml'],
  ['ad', 'directory'],
  ['auth0-adldap', 'directory'],
  ['paypal-sandbox', 'paypal'],
  ['salesforce-sandbox', 'salesforce'],
  ['salesforce-community', 'salesforce'],
]);

/** Strategies with a drawing of their own, by its name: the well-known providers that share none, and these. */
const OWN = new Set<string>([
  ...SOCIAL_STRATEGIES.filter((name) => !SHARED.has(name)),
  'apple',
  'oidc',
  'okta',
]);

/** The mark that stands for any connection. */
export const GENERIC = 'marks/connection.svg';

/**
 * The mark of a connection, for one that has no `icon_url`.
 * @param strategy a strategy's name, built in or not.
 * @returns the name of an asset (the filter `asset`, or `Assets.path`): {@link GENERIC} where the strategy has none.
 */
export function markOf(strategy: string): string {
  const name = OWN.has(strategy) ? strategy : SHARED.get(strategy);
  return name === undefined ? GENERIC : `marks/${name}.svg`;
}
