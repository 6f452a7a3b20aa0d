// Sends events to an HTTP endpoint: one POST for each batch, in the format that the stream asks for.
import { createHmac } from 'node:crypto';
import { z } from 'zod';
import { hasUserInfo } from '../../http/outbound/outbound.ts';
import { epochSeconds } from '../../runtime/clock.ts';
import { hidden, open, secret, type ValuesOf } from '../base/members.ts';
import { type SendResult, type SinkNeeds, type StreamedEvent, sink } from './sink.ts';

/** A header name (RFC 9110 §5.1) that the request does not set itself. */
const headerName = z
  .string()
  .max(255)
  .regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/)
  .refine(
    (name) =>
      !/^(host|content-length|transfer-encoding|connection|upgrade|te|trailer|expect|gatehouse-signature)$/i.test(
        name,
      ),
    "This header is the request's own",
  );
/** A header value: visible characters and spaces. */
const headerValue = z
  .string()
  .max(4096)
  .regex(/^[\t\x20-\x7e]*$/);

const members = {
  // `fetch` refuses a URL with a password, and its message, which is logged, would contain the URL.
  httpEndpoint: open(
    z
      .url({ protocol: /^https?$/ })
      .max(2048)
      .refine((url) => !hasUserInfo(url), 'must hold no user and password: they go into httpAuthorization'),
  ),
  httpAuthorization: secret(headerValue.nullish()),
  httpContentFormat: open(z.enum(['JSONLINES', 'JSONARRAY', 'JSONOBJECT']).nullish()),
  httpContentType: open(headerValue.max(255).nullish()),
  httpCustomHeaders: secret(
    z
      .array(z.strictObject({ header: headerName, value: headerValue }))
      .max(20)
      .nullish(),
  ),
  /** An extension of the hosted API: the key that requests are signed with. */
  httpSigningSecret: hidden(z.string().min(22).max(255).nullish()),
};

type HttpTarget = ValuesOf<typeof members>;

export const httpSink = sink({
  type: 'http',
  members,
  address: ({ httpEndpoint }) => httpEndpoint,
  send: sendBatch,
});

/** Timeout for a response, in milliseconds. */
const TIMEOUT_MS = 10_000;

/** @returns how many events were accepted, and the reason if not all were */
async function sendBatch(
  { outbound, clock, ending }: SinkNeeds,
  target: HttpTarget,
  events: readonly StreamedEvent[],
): Promise<SendResult> {
  let acceptedCount = 0;
  try {
    for (const body of bodiesOf(target, events)) {
      const response = await outbound.fetch(target.httpEndpoint, {
        method: 'POST',
        headers: [...headersOf(target), ...signatureOf(target, body, epochSeconds(clock))],
        body,
        // A redirect is not followed: the credentials are for this address alone.
        redirect: 'manual',
        signal: ending,
        timeout: TIMEOUT_MS,
        headOnly: true,
      });
      if (!response.ok) return { acceptedCount, fault: `the receiver answered ${response.status}` };
      acceptedCount += target.httpContentFormat === 'JSONOBJECT' ? 1 : events.length;
    }
    return { acceptedCount };
  } catch (thrown) {
    return { acceptedCount, fault: thrown instanceof Error ? thrown.message : 'the request failed' };
  }
}

/** Returns the request bodies for a batch: one for each event if the receiver takes a single object. */
function bodiesOf({ httpContentFormat: format }: HttpTarget, events: readonly StreamedEvent[]): string[] {
  if (events.length === 0) return [];
  if (format === 'JSONOBJECT') return events.map((event) => JSON.stringify(event));
  if (format === 'JSONARRAY') return [JSON.stringify(events)];
  return [events.map((event) => JSON.stringify(event)).join('\n')];
}

function headersOf({
  httpAuthorization,
  httpContentType,
  httpCustomHeaders,
}: HttpTarget): [string, string][] {
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
  { httpSigningSecret: key }: HttpTarget,
  body: string,
  timestamp: number,
): [string, string][] {
  if (!key) return [];
  const digest = createHmac('sha256', key).update(`${timestamp}.${body}`).digest('hex');
  return [['gatehouse-signature', `t=${timestamp},v1=${digest}`]];
}
