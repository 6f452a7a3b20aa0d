// The kinds of connections that the console offers and lists.

import { DATABASE, strategyRecord } from '../../../records/connections/connections.ts';
import { SOCIAL_STRATEGIES } from '../../../records/connections/social.ts';
import { markOf } from '../../connections/marks.ts';
import { strategyOf } from '../../connections/strategies.ts';

/** A strategy as a tile or heading shows it. */
export interface Kind {
  strategy: string;
  /** The name of the provider; undefined for a protocol, which a message names. */
  label: string | undefined;
  /** The name of the asset with its logo. */
  mark: string;
}

/** The offered strategies by group, in the order of the page. */
const GROUPS: readonly { group: string; strategies: readonly string[] }[] = [
  { group: 'database', strategies: [DATABASE, 'ad'] },
  { group: 'passwordless', strategies: ['email', 'sms'] },
  {
    group: 'enterprise',
    strategies: ['oidc', 'samlp', 'waad', 'okta', 'google-apps', 'adfs', 'pingfederate'],
  },
  { group: 'social', strategies: ['google-oauth2', 'apple', ...SOCIAL_STRATEGIES, 'oauth2'] },
];

/** Strategies whose own names are not descriptive: messages name them. */
const NAMED: ReadonlySet<string> = new Set([
  ...[DATABASE, 'ad', 'auth0-adldap', 'email', 'sms', 'oidc', 'samlp', 'adfs', 'pingfederate', 'oauth2'],
]);

/** Product names of strategies that are called differently. */
const PRODUCTS: Readonly<Record<string, string>> = {
  waad: 'Microsoft Entra ID',
  okta: 'Okta',
  'google-apps': 'Google Workspace',
  'paypal-sandbox': 'PayPal Sandbox',
  'salesforce-sandbox': 'Salesforce Sandbox',
};

export function kindsByGroup(): { group: string; kinds: Kind[] }[] {
  return GROUPS.map(({ group, strategies }) => ({ group, kinds: strategies.map(kindOf) }));
}

export function isKnown(strategy: string): boolean {
  return strategyRecord(strategy) !== undefined;
}

export function kindOf(strategy: string): Kind {
  const definition = strategyOf({ strategy });
  const providerLabel = definition?.page === 'redirect' ? definition.label : undefined;
  const label = NAMED.has(strategy) ? undefined : (PRODUCTS[strategy] ?? providerLabel ?? strategy);
  return { strategy, label, mark: markOf(strategy) };
}

/** Returns the display name of a connection, or else its name. */
export function titleOf({ name, display_name }: { name: string; display_name?: string | undefined }): string {
  return display_name?.trim() || name;
}

/** Returns the names of missing options without which nobody can log in. */
export function missingOptionsOf({
  strategy,
  options,
}: {
  strategy: string;
  options: Readonly<Record<string, unknown>>;
}): string[] {
  return strategyRecord(strategy)?.missingOptions?.(options) ?? [];
}
