// Account linking during a login: a user who logs in with a new identity may link it to the account they have already.
import { feature } from '../../../engine/feature.ts';
import { type LinkingRouteDependencies, linkingRoutes } from './routes.ts';

const events = {
  account_linked: 'Another account, which the description names, became an identity of the user.',
  account_absorbed: 'An account became an identity of another user, whom the description names.',
  account_link_declined: 'A user declined to link a new account to an existing one.',
};

declare module '../../../records/log-events.ts' {
  interface EventTypes extends Record<keyof typeof events, string> {}
}

export const linking = feature<LinkingRouteDependencies>({
  name: 'linking',
  events,
  routes: linkingRoutes,
  pages: ['login/link'],
});
