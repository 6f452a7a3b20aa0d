// Logins at identity providers elsewhere, whatever their protocol.
import { feature } from '../../engine/feature.ts';
import { type UpstreamRouteDependencies, upstreamRoutes } from './routes.ts';

export const upstream = feature<UpstreamRouteDependencies>({
  name: 'upstream',
  routes: upstreamRoutes,
  pages: ['login/connections', 'login/elsewhere'],
});
