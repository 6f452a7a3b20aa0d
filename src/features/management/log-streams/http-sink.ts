// Sends events to an HTTP endpoint: one POST for each batch, in the format that the stream asks for.
import { createHmac } from 'node:crypto';
import type { Outbound } from '../../../http/outbound.ts';
import type { HttpSink } from '../../../records/log-streams.ts';
import { type Clock, epochSeconds } from '../../../runtime/clock.ts';

/** Timeout for a response, in milliseconds. */
const TIMEOUT_MS = 10_000;

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

/** Returns the request bodies for a batch: one for each event if the receiver takes a single object. */
function bodiesOf({ httpContentFormat: format }: HttpSink, events: readonly StreamedEvent[]): string[] {
  if (events.length === 0) return [];
  if (format === 'JSONOBJECT') return events.map((event) => JSON.stringify(event));
  if (format === 'JSONARRAY') return [JSON.stringify(events)];
  return [events.map((event) => JSON.stringify(event)).join('\n')];
}

/** Sends a batch. @returns how many events were accepted, and the reason if not all were */
export async function sendBatch(
  { outbound, clock, ending }: { outbound: Pick<Outbound, 'fetch'>; clock: Clock; ending: AbortSignal },
  sink: HttpSink,
  events: readonly StreamedEvent[],
): Promise<SendResult> {
  let acceptedCount = 0;
  try {
    for (const body of bodiesOf(sink, events)) {
      const response = await outbound.fetch(sink.httpEndpoint, {
        method: 'POST',
        headers: [...headersOf(sink), ...signatureOf(sink, body, epochSeconds(clock))],
        body,
        // A redirect is not followed: the credentials are for this address alone.
        redirect: 'manual',
        signal: ending,
        timeout: TIMEOUT_MS,
        headOnly: true,
      });
      if (!response.ok) return { acceptedCount, fault: `the receiver answered ${response.status}` };
      acceptedCount += sink.httpContentFormat === 'JSONOBJECT' ? 1 : events.length;
    }
    return { acceptedCount };
  } catch (thrown) {
    return { acceptedCount, fault: thrown instanceof Error ? thrown.message : 'the request failed' };
  }
}

function headersOf({ httpAuthorization, httpContentType, httpCustomHeaders }: HttpSink): [string, string][] {
  return [
    ...(httpCustomHeaders ?? []).map(({ header, value }): [string, string] => [header, value]),
    ['content-type', httpContentType ?? 'application/json'],
    ...(httpAuthorization ? [['authorization', httpAuthorization] as [string, string]] : []),
  ];
}

/**
 * Returns the signature header, by which a receiver verifies sender and time: `t=<epoch seconds>,v1=<HMAC-SHA256 of
 * "<t>.<body>", hex>`.
 */
function signatureOf(
  { httpSigningSecret: secret }: HttpSink,
  body: string,
  timestamp: number,
): [string, string][] {
  if (!secret) return [];
  const digest = createHmac('sha256', secret).update(`${timestamp}.${body}`).digest('hex');
  return [['gatehouse-signature', `t=${timestamp},v1=${digest}`]];
}
