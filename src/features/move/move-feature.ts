// The bridges to the old tenant while a move from it is open (src/records/tenant/move.ts).
import { feature } from '../../engine/provider/feature.ts';

export const move = feature({
  name: 'move',
  collections: ['moves', 'moveCounts'],
});
