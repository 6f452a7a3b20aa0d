// The strategies that are built in. A new one is a folder, a line here, and a line in `STRATEGIES` (src/records/connections/connections.ts),
// which has what the tenant file and the store need to know about it.
// docs/understand/decisions/connections.md#seven-oauth2-connections-of-the-hosted-service-are-also-strategies-here
import type { Connection } from '../../records/collections.ts';
import { database } from './database/database-strategy.ts';
import { directoryStrategies } from './ldap/ldap-strategy.ts';
import { oauth2 } from './oauth2/oauth2-strategy.ts';
import { openIdStrategies } from './oidc/strategies.ts';
import { email } from './passwordless/email.ts';
import { sms } from './passwordless/sms.ts';
import { samlStrategies } from './samlp/samlp-strategy.ts';
import { socialStrategies } from './social/social-strategy.ts';
import type { Strategy } from './strategy.ts';

export const strategies: readonly Strategy[] = [
  database,
  email,
  sms,
  oauth2,
  ...openIdStrategies,
  ...directoryStrategies,
  ...samlStrategies,
  ...socialStrategies,
];

// docs/understand/decisions/authorize.md#a-connection-whose-strategy-is-not-built-in-leads-nowhere
/** Returns the strategy of a connection; undefined if it is not built in. */
export function strategyOf({ strategy }: Pick<Connection, 'strategy'>): Strategy | undefined {
  return strategies.find(({ name }) => name === strategy);
}
