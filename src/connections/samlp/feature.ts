// We as the service provider of SAML identity providers: what they are given of us, and what they send unasked.
import { feature } from '../../engine/feature.ts';
import { type SamlUpstreamDependencies, samlUpstreamRoutes } from './routes.ts';

export const samlUpstream = feature<SamlUpstreamDependencies>({
  name: 'samlp',
  routes: samlUpstreamRoutes,
});
