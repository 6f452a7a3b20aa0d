// The kinds of connections, as the console offers and lists them.
import { markOf } from '../../connections/marks.ts';
import { strategyOf } from '../../connections/strategies.ts';
import { DATABASE, strategyRecord } from '../../records/connections.ts';
import { SOCIAL_STRATEGIES } from '../../records/social.ts';

/** A strategy as a tile or a heading shows it. */
export interface Kind {
  strategy: string;
  /** What the provider is called; undefined where it is a protocol, which a message names. */
  label: string | undefined;
  /** The name of an asset. */
  mark: string;
}

/** By group, in the order of the page. */
const GROUPS: readonly { group: string; strategies: readonly string[] }[] = [
  { group: 'database', strategies: [DATABASE, 'ad'] },
  { group: 'passwordless', strategies: ['email', 'sms'] },
  {
    group: 'enterprise',
    strategies: ['oidc', 'samlp', 'waad', 'okta', 'google-apps', 'adfs', 'pingfederate'],
  },
  { group: 'social', strategies: ['google-oauth2', 'apple', ...SOCIAL_STRATEGIES, 'oauth2'] },
];

/** Strategies whose names say nothing to people: messages name them. */
const NAMED: ReadonlySet<string> = new Set([
  ...[DATABASE, 'ad', 'auth0-adldap', 'email', 'sms', 'oidc', 'samlp', 'adfs', 'pingfederate', 'oauth2'],
]);

/** Products whose strategies do not bear their names, or one name for two. */
const PRODUCTS: Readonly<Record<string, string>> = {
  waad: 'Microsoft Entra ID',
  okta: 'Okta',
  'google-apps': 'Google Workspace',
  'paypal-sandbox': 'PayPal Sandbox',
  'salesforce-sandbox': 'Salesforce Sandbox',
};

/** All that can be made, by group. */
export function kindsByGroup(): { group: string; kinds: Kind[] }[] {
  return GROUPS.map(({ group, strategies }) => ({ group, kinds: strategies.map(kindOf) }));
}

/** Whether connections of a strategy can be made here. */
export function isKnown(strategy: string): boolean {
  return strategyRecord(strategy) !== undefined;
}

/** @see Kind */
export function kindOf(strategy: string): Kind {
  const known = strategyOf({ strategy });
  const own = known?.page === 'redirect' ? known.label : undefined;
  const label = NAMED.has(strategy) ? undefined : (PRODUCTS[strategy] ?? own ?? strategy);
  return { strategy, label, mark: markOf(strategy) };
}

/** What a connection is called: by its display name, else by its name. */
export function titleOf({ name, display_name }: { name: string; display_name?: string | undefined }): string {
  return display_name?.trim() || name;
}

/** Why nobody can log in with a connection, as far as its options tell: names of members that they lack. */
export function lackingOf({
  strategy,
  options,
}: {
  strategy: string;
  options: Readonly<Record<string, unknown>>;
}): string[] {
  return strategyRecord(strategy)?.lacking?.(options) ?? [];
}
