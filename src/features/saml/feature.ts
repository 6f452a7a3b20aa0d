// The SAML identity provider.
import { feature } from '../../engine/feature.ts';
import type { Limits } from '../../records/limits.ts';
import { type LogoutPropagationDependencies, samlLogoutChannel } from './logout-propagation.ts';
import { type SamlRoutesDependencies, samlRoutes } from './routes.ts';

const limits = {
  samlp: { capacity: 200, perMinute: 300, per: 'address', where: '`/samlp/*`' },
} satisfies Limits;

declare module '../../records/limits.ts' {
  interface LimitNames extends Record<keyof typeof limits, Bucket> {}
}

export const saml = feature<SamlRoutesDependencies, LogoutPropagationDependencies>({
  name: 'saml',
  limits,
  logoutChannels: (deps) => [samlLogoutChannel(deps)],
  routes: samlRoutes,
  collections: ['samlSessions', 'samlLogouts', 'samlMessages'],
  pages: ['saml/post'],
});
