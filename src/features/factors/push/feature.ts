// The authenticator: the page that approves logins, and the API behind it.
import { feature } from '../../../engine/feature.ts';
import type { Limits } from '../../../records/limits.ts';
import { type DeviceRoutesDependencies, deviceRoutes } from './device-routes.ts';

const limits = {
  deviceStream: {
    capacity: 60,
    perMinute: 60,
    per: 'user',
    where: 'event streams that the devices of a user open; each ends after at most a minute',
  },
} satisfies Limits;

declare module '../../../records/limits.ts' {
  interface LimitNames extends Record<keyof typeof limits, Bucket> {}
}

export const authenticator = feature<DeviceRoutesDependencies>({
  name: 'authenticator',
  limits,
  routes: deviceRoutes,
  pages: ['authenticator'],
});
