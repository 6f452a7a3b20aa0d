// Logout: its endpoints, its pages and the back channel.
import { feature } from '../../engine/feature.ts';
import type { LogoutChannel } from '../../engine/logout-channels.ts';
import type { Limits } from '../../records/limits.ts';
import { type LogoutDependencies, logoutRoutes } from './routes.ts';

const limits = {
  logout: { capacity: 200, perMinute: 300, per: 'address', where: '`/v2/logout`, `/oidc/logout`' },
} satisfies Limits;

const events = {
  slo: 'A user logged out.',
  flo: 'A logout was refused; the description says why.',
  oidc_backchannel_logout_succeeded: 'An application accepted the logout token of a session that ended.',
  oidc_backchannel_logout_failed: 'An application did not accept the logout token of a session that ended.',
};

declare module '../../records/limits.ts' {
  interface LimitNames extends Record<keyof typeof limits, Bucket> {}
}

declare module '../../records/log-events.ts' {
  interface EventTypes extends Record<keyof typeof events, string> {}
}

export const logout = feature<LogoutDependencies, { backChannel: LogoutChannel }>({
  name: 'logout',
  limits,
  events,
  logoutChannels: ({ backChannel }) => [backChannel],
  routes: logoutRoutes,
  pages: ['logout/consent', 'logout/kept', 'logout/signed-out'],
});
