// Anonymous sessions: tokens for users who have not logged in.
import { feature } from '../../../engine/feature.ts';
import type { Limits } from '../../../records/limits.ts';
import { type AnonymousDependencies, anonymousRoutes } from './routes.ts';

const limits = {
  anonymous: { capacity: 50, perMinute: 100, per: 'address', where: '`/anonymous/`' },
} satisfies Limits;

const events = {
  anonymous_session: 'An anonymous session began, for a visitor who has not logged in.',
};

declare module '../../../records/limits.ts' {
  interface LimitNames extends Record<keyof typeof limits, Bucket> {}
}

declare module '../../../records/log-events.ts' {
  interface EventTypes extends Record<keyof typeof events, string> {}
}

export const anonymous = feature<AnonymousDependencies>({
  name: 'anonymous',
  limits,
  events,
  routes: anonymousRoutes,
});
