// The log events of orders, which come from somebody with access to the data directory.
import { redacted } from '../../features/management/call.ts';
import type { Events } from '../../tenant/events.ts';

/** The user name in log events of orders. */
const LOCAL = 'local administrator';

/** Records what an order changed, without secrets. @param command the command as it is typed. */
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
