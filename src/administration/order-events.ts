// What the log says of orders: whoever may open the data directory gave them.
import { redacted } from '../management/events.ts';
import type { Events } from '../tenant/events.ts';

/** Who gives orders by the command. */
const LOCAL = 'local administrator';

/**
 * Records what an order changed, without secrets.
 * @param command as it is typed.
 */
export function recordOrder(
  events: Pick<Events, 'record'>,
  command: string,
  description: string,
  { before, after }: { before?: object | undefined; after?: object | undefined },
): void {
  events.record({
    type: 'sapi',
    description,
    user_name: LOCAL,
    details: {
      request: { channel: 'local', command: `gatehouse ${command}` },
      ...(before === undefined ? {} : { before: redacted(before) }),
      ...(after === undefined ? {} : { after: redacted(after) }),
    },
  });
}
