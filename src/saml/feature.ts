// The SAML identity provider.
import { feature } from '../engine/feature.ts';
import type { Limits } from '../records/limits.ts';
import { type SamlRoutesDependencies, samlRoutes } from './routes.ts';

const limits = {
  samlp: { capacity: 200, perMinute: 300, per: 'address', where: '`/samlp/*`' },
} satisfies Limits;

declare module '../records/limits.ts' {
  interface LimitNames extends Record<keyof typeof limits, Bucket> {}
}

export const saml = feature<SamlRoutesDependencies>({
  name: 'saml',
  limits,
  routes: samlRoutes,
  collections: ['samlSessions', 'samlLogouts', 'samlMessages'],
  pages: ['saml/post'],
});
