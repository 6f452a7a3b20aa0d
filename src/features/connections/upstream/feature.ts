// Logins at external identity providers, for every protocol.
import { feature } from '../../../engine/feature.ts';
import type { Limits } from '../../../records/limits.ts';
import { type ConnectedGrantDependencies, connectedGrant } from '../connected/grant.ts';
import { type NativeGrantDependencies, nativeGrant } from '../native/grant.ts';
import { type UpstreamRouteDependencies, upstreamRoutes } from './routes.ts';

const limits = {
  nativeSocial: {
    capacity: 50,
    perMinute: 50,
    per: 'address',
    where: "`/oauth/token` with a code or token of a provider's native SDK",
  },
} satisfies Limits;

const events = {
  sens: "Tokens were issued for a code or token of a provider's native SDK.",
  fens: "No tokens were issued for a code or token of a provider's native SDK.",
  secte: 'Tokens were issued for a token that an action verified (custom token exchange).',
  fecte: 'No tokens were issued for a token that an action had to verify (custom token exchange).',
  account_name_reused:
    'A login was refused: the account at the provider has the name of an earlier one, but may be another person’s.',
  connected_token_given: "An application was given the access token of a user's connected account.",
  connected_token_refused: "An application was refused the access token of a user's connected account.",
};

declare module '../../../records/limits.ts' {
  interface LimitNames extends Record<keyof typeof limits, Bucket> {}
}

declare module '../../../records/log-events.ts' {
  interface EventTypes extends Record<keyof typeof events, string> {}
}

export const upstream = feature<
  UpstreamRouteDependencies,
  NativeGrantDependencies & ConnectedGrantDependencies
>({
  name: 'upstream',
  limits,
  events,
  grants: [nativeGrant, connectedGrant],
  routes: upstreamRoutes,
  pages: ['login/connections', 'login/elsewhere'],
});
