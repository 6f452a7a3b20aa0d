// A destination of log streams: what its stream says about it, and how events get there. Each is a file in this folder
// and a line of `SINKS` (src/records/tenant/log-streams.ts).
import { z } from 'zod';
import type { Outbound } from '../../http/outbound/outbound.ts';
import type { Clock } from '../../runtime/clock.ts';
import { type Members, shapeOf, type ValuesOf } from '../base/members.ts';

/** An event as receivers get it. */
export interface StreamedEvent {
  log_id: string;
  data: object;
}

/** How many events of a batch were accepted, and the reason if not all were. */
export interface SendResult {
  acceptedCount: number;
  fault?: string;
}

/** What sinks may use to send events. */
export interface SinkNeeds {
  outbound: Pick<Outbound, 'fetch'>;
  clock: Clock;
  /** Directory for streams of type file; undefined if the operator has not allowed them. */
  filesDirectory: string | undefined;
  /** Aborted when the server shuts down, and when another process sends the stream's events. */
  ending: AbortSignal;
}

interface SinkDeclaration<M extends Members> {
  /** The stream's `type`. */
  type: string;
  /** The members of the stream's `sink`. None that is `hidden` may be sent. */
  members: M;
  /** Returns the address that events are sent to, which the doctor asks; undefined for a sink without one. */
  address(target: ValuesOf<M>): string | undefined;
  /** Returns why this server sends nothing to such streams; undefined if it does. */
  missing?(needs: SinkNeeds): string | undefined;
  /** Sends a batch, in its order. */
  send(needs: SinkNeeds, target: ValuesOf<M>, events: readonly StreamedEvent[]): Promise<SendResult>;
}

/** A {@link SinkDeclaration} for every type of members: it reads them itself. */
export interface Sink {
  type: string;
  members: Members;
  /** Accepts a stream's `sink` that has no other members. */
  schema: z.ZodType;
  address(target: unknown): string | undefined;
  missing(needs: SinkNeeds): string | undefined;
  send(needs: SinkNeeds, target: unknown, events: readonly StreamedEvent[]): Promise<SendResult>;
}

export function sink<M extends Members>({
  type,
  members,
  address,
  missing = () => undefined,
  send,
}: SinkDeclaration<M>): Sink {
  const shape = shapeOf(members);
  // Tenant files may have further members, of which the server warns.
  const read = (target: unknown) => z.object(shape).safeParse(target).data as ValuesOf<M> | undefined;
  return {
    type,
    members,
    schema: z.strictObject(shape),
    address: (target) => {
      const own = read(target);
      return own && address(own);
    },
    missing,
    send: async (needs, target, events) => {
      const own = read(target);
      return own === undefined
        ? { acceptedCount: 0, fault: 'its sink is not understood' }
        : send(needs, own, events);
    },
  };
}
