// The order of `gatehouse move in --from`: by which application the old tenant is read.
import { z } from 'zod';
import type { OldTenantSource } from '../../moving/old-tenant.ts';
import { isOpen, MOVE } from '../../records/tenant/move.ts';
import { order, recordOrder } from './order.ts';

/**
 * Returns the old tenant with its credentials, to the user alone that runs the server.
 * @throws Error if no move from it is open
 */
export const moveSource = order({
  body: z.strictObject({ domain: z.string().min(1).max(255) }),
  run: async ({ store, clock, events }, { domain }): Promise<OldTenantSource> => {
    const move = await store.collection('moves').get(MOVE);
    if (move === undefined || !isOpen(move, move, clock()))
      throw new Error('no move is open: gatehouse move open begins one');
    const { origin, management } = move;
    if (![origin, new URL(origin).host].includes(domain.replace(/\/$/, '')))
      throw new Error(`the open move is from ${new URL(origin).host}`);
    if (management.client_secret === undefined)
      throw new Error('the secret for the old tenant is not here any more: gatehouse move open sets it');
    recordOrder(events, 'move in --from', 'Read the tenant of the open move', { after: { origin } });
    return { origin, management };
  },
});
