// The logos of connections. They are drawn for this project (views/assets/marks) and served by this server: loading a logo
// from a provider would tell the provider who is looking at the login page.
import { SOCIAL_STRATEGIES } from '../../records/connections/social.ts';

/** Strategies that share a logo, with the logo's name. */
const SHARED_MARKS = new Map<string, string>([
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

/** Strategies with a logo of their own, which has the strategy's name. */
const OWN_MARKS = new Set<string>([
  ...SOCIAL_STRATEGIES.filter((name) => !SHARED_MARKS.has(name)),
  'apple',
  'oidc',
  'okta',
]);

/** The logo of connections whose strategy has none. */
export const GENERIC_MARK = 'marks/connection.svg';

/**
 * Returns the logo of a connection that has no `icon_url`.
 * @param strategy the name of its strategy, built in or not.
 * @returns the name of an asset (for the Liquid filter `asset`, or `Assets.path`); {@link GENERIC_MARK} if the strategy has no logo.
 */
export function markOf(strategy: string): string {
  const name = OWN_MARKS.has(strategy) ? strategy : SHARED_MARKS.get(strategy);
  return name === undefined ? GENERIC_MARK : `marks/${name}.svg`;
}
