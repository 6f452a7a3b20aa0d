// The kinds of token exchange (RFC 8693): those of the engine's own tokens, those that the tenant's actions judge, and
// those for tokens of connected accounts.

import type { SecondFactor } from '../engine/admission/second-factor.ts';
import type { CheckPossession } from '../engine/binding/proof-of-possession.ts';
import { actorOfIdToken } from '../engine/token/actor-token.ts';
import { subjectTokenReader } from '../engine/token/subject-tokens.ts';
import {
  type ExchangeDependencies,
  type ExchangeToken,
  tokenExchange,
} from '../engine/token/token-exchange.ts';
import { askToVerify } from '../features/connections/database/verification-link.ts';
import { customExchange } from '../features/connections/exchange/custom.ts';
import type { Capabilities, ServedDependencies } from './capabilities.ts';

/** Makes the token exchanges of a tenant. @param tokenReading verifies the tokens that the tenant itself issued. */
export function tokenExchanges(
  deps: ServedDependencies,
  capabilities: Capabilities,
  tokenReading: Omit<ExchangeDependencies, 'config' | 'users' | 'wallClock'> & {
    checkPossession: CheckPossession;
    enrolledFactors: SecondFactor['enrolledFactors'];
  },
) {
  const { users, wallClock } = deps;
  const own = { ...tokenReading, config: capabilities.config, users, wallClock };
  return {
    exchangeToken: tokenExchange(own),
    exchangeCustomToken: foreignExchange(deps, capabilities, tokenReading),
    readSubjectToken: subjectTokenReader(own),
  };
}

/** Makes the exchange of foreign tokens, which the tenant's actions judge. */
function foreignExchange(
  deps: ServedDependencies,
  capabilities: Capabilities,
  tokenReading: Pick<ExchangeDependencies, 'readIdTokenSubject'> & {
    enrolledFactors: SecondFactor['enrolledFactors'];
  },
): ExchangeToken {
  const { baseUrl } = deps.settings;
  const users = capabilities.tenantUsers;
  return customExchange({
    ...deps,
    ...capabilities,
    users,
    enrolledFactors: tokenReading.enrolledFactors,
    actorOfIdToken: (token) => actorOfIdToken({ ...tokenReading, users }, token),
    askToVerify: async (user, connection, clientId, ip) => {
      const client = await capabilities.config.client(clientId);
      await askToVerify({ ...capabilities, baseUrl }, { user, connection, client, languages: [], ip });
    },
  });
}
