// This server as the service provider of SAML identity providers: its metadata, and single logout.
import { feature } from '../../../engine/feature.ts';
import { type SamlUpstreamDependencies, samlUpstreamRoutes } from './routes.ts';

export const samlUpstream = feature<SamlUpstreamDependencies>({
  name: 'samlp',
  routes: samlUpstreamRoutes,
});
