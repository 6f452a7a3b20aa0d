// The limits and log events of logins at other providers.
import { limitsOf } from '../../../http/limits.ts';
import { eventTypesOf } from '../../../records/base/log-events.ts';

export const upstreamLimits = limitsOf({
  nativeSocial: {
    capacity: 50,
    perMinute: 50,
    per: 'address',
    where: "`/oauth/token` with a code or token of a provider's native SDK",
  },
});

export const upstreamEvents = eventTypesOf({
  sens: "Tokens were issued for a code or token of a provider's native SDK.",
  fens: "No tokens were issued for a code or token of a provider's native SDK.",
  secte: 'Tokens were issued for a token that an action verified (custom token exchange).',
  fecte: 'No tokens were issued for a token that an action had to verify (custom token exchange).',
  account_name_reused:
    'A login was refused: the account at the provider has the name of an earlier one, but may be another person’s.',
  connected_token_given: "An application was given the access token of a user's connected account.",
  connected_token_refused: "An application was refused the access token of a user's connected account.",
});
