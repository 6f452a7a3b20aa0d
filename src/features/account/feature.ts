// The My Account API, by which users manage their own account.
import { feature } from '../../engine/feature.ts';
import type { Area } from '../../http/routes.ts';
import type { Limits } from '../../records/limits.ts';
import { type ConnectedRoutesDependencies, connectedAccountRoutes } from './connected-routes.ts';
import { problemShape } from './errors.ts';
import { accountRoutes } from './routes.ts';

const limits = {
  myAccount: { capacity: 100, perMinute: 100, per: 'address', where: '`/me/`' },
} satisfies Limits;

const events = {
  passkey_removed: 'A user removed one of their passkeys.',
  account_connected: 'A user connected an account at another provider, for its tokens.',
  account_disconnected: 'A user removed an account that they had connected, with its tokens.',
};

declare module '../../records/limits.ts' {
  interface LimitNames extends Record<keyof typeof limits, Bucket> {}
}

declare module '../../records/log-events.ts' {
  interface EventTypes extends Record<keyof typeof events, string> {}
}

export const account = feature<ConnectedRoutesDependencies>({
  name: 'account',
  limits,
  events,
  routes: { ...accountRoutes, ...connectedAccountRoutes },
});

/** Below `/me/`, unknown paths are answered in the API's error format, too. */
export const accountArea: Area = { prefix: '/me/', limit: 'myAccount', errors: problemShape };
