// What an order of a command about a tenant is. The server that has the store open carries it out, or the command itself
// if there is none.
import type { Logger } from 'pino';
import type { z } from 'zod';
import { redacted } from '../../features/management/call.ts';
import { managementEvents } from '../../features/management/management-declaration.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Random } from '../../runtime/secrets.ts';
import type { Waits } from '../../runtime/waits.ts';
import type { Settings } from '../../settings/index.ts';
import type { Store } from '../../store/contract.ts';
import type { ApplyDependencies } from '../../tenant/apply.ts';
import type { Events } from '../../tenant/events.ts';
import type { Administrators } from '../../users/administrators.ts';

export interface OrderDependencies {
  settings: Settings;
  store: Store;
  users: ApplyDependencies['users'];
  administrators: Administrators;
  clock: Clock;
  random: Random;
  waits?: Waits;
  log: Pick<Logger, 'info' | 'error'>;
  events: Pick<Events, 'record'>;
  endBlocked(userId: string): Promise<void>;
  /** Continues recorded removals. Without a server, the next start does. */
  resumeRemovals(): void;
  /** Checks in the background whether the providers of connections answer. Without a server, the next start does. */
  checkConnections(): Promise<void>;
}

export interface OrderDeclaration<Body extends z.ZodType, Result> {
  body: Body;
  /** Carries the order out. @throws TenantFault; Error with the reason */
  run(deps: OrderDependencies, body: z.output<Body>): Result | Promise<Result>;
}

export const order = <Body extends z.ZodType, Result>(declared: OrderDeclaration<Body, Result>) => declared;

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
    type: managementEvents.sapi,
    description,
    user_name: LOCAL,
    details: {
      request: { channel: 'local', command: `gatehouse ${command}` },
      ...(before === undefined ? {} : { before: redacted(before) }),
      ...(after === undefined ? {} : { after: redacted(after) }),
    },
  });
}
