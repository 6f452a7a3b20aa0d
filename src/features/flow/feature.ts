// The login in a browser: the pages of a waiting request, and logins at pages of applications.
import { feature } from '../../engine/feature.ts';
import type { Limits } from '../../records/limits.ts';
import { actionRedirectRoutes } from './action-redirects.ts';
import { type AppLinksDependencies, appLinkRoutes } from './app-links.ts';
import { type CrossOriginDependencies, crossOriginRoutes } from './cross-origin.ts';
import { type FlowDependencies, requestRoutes } from './routes.ts';
import { type WidgetDependencies, widgetRoutes } from './widget.ts';

interface FlowFeatureDependencies
  extends FlowDependencies,
    CrossOriginDependencies,
    WidgetDependencies,
    AppLinksDependencies {}

const limits = {
  coAuthenticate: { capacity: 50, perMinute: 300, per: 'address', where: '`/co/authenticate`' },
  hosted: { capacity: 300, perMinute: 300, per: 'address', where: 'the hosted pages and their forms' },
} satisfies Limits;

const events = {
  scoa: 'Credentials from a page of the application were accepted; it got a login ticket.',
  fcoa: 'Credentials from a page of the application were refused.',
};

declare module '../../records/limits.ts' {
  interface LimitNames extends Record<keyof typeof limits, Bucket> {}
}
declare module '../../records/log-events.ts' {
  interface EventTypes extends Record<keyof typeof events, string> {}
}

export const flow = feature<FlowFeatureDependencies>({
  name: 'flow',
  limits,
  events,
  routes: {
    ...requestRoutes,
    ...actionRedirectRoutes,
    ...crossOriginRoutes,
    ...widgetRoutes,
    ...appLinkRoutes,
  },
  pages: ['login/account', 'login/consent', 'login/organization', 'login/organization-name'],
});
