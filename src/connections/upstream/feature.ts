// Logins at external identity providers, for every protocol.
import { feature } from '../../engine/feature.ts';
import type { Limits } from '../../records/limits.ts';
import { type ConnectedGrantDependencies, connectedGrant } from '../connected/grant.ts';
import { type NativeGrantDependencies, nativeGrant } from '../native/grant.ts';
import { type UpstreamRouteDependencies, upstreamRoutes } from './routes.ts';

const limits = {
  nativeSocial: {
    capacity: 50,
    perMinute: 50,
    per: 'address',
    where: "`/oauth/token` with what an app got of a provider's own kit",
  },
} satisfies Limits;

const events = {
  sens: "Tokens were given for what an app got of a provider's own kit.",
  fens: "No tokens were given for what an app got of a provider's own kit.",
  secte: 'Tokens were given for a token that an action judged (custom token exchange).',
  fecte: 'No tokens were given for a token that an action judged.',
  connected_token_given: "An application was given the access token of a user's connected account.",
  connected_token_refused: "An application was refused the access token of a user's connected account.",
};

declare module '../../records/limits.ts' {
  interface LimitNames extends Record<keyof typeof limits, Bucket> {}
}

declare module '../../records/log-events.ts' {
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
