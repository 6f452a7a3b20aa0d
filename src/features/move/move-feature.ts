// The bridges to the old tenant while a move from it is open (src/records/tenant/move.ts).
import { feature } from '../../engine/provider/feature.ts';
import { moveEvents, moveLimits } from './move-declaration.ts';
import { type SessionCallbackDependencies, sessionRoutes } from './sessions.ts';

export const move = feature<SessionCallbackDependencies>({
  name: 'move',
  limits: moveLimits,
  events: moveEvents,
  collections: ['moves', 'moveCounts', 'trustedKeys'],
  routes: sessionRoutes,
});
