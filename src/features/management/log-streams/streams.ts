// Sends the tenant's log events to log streams, in order and at least once. The position of a stream is stored after
// the receiver has accepted a batch, so that a restart continues there. Memory holds at most one batch of each
// stream.
// docs/understand/decisions/management-api.md#log-streams-of-the-type-http-send-events-in-order-and-at-least-once

import { createHmac } from 'node:crypto';
import type { Logger } from 'pino';
import type { LogStreamPositionRecord } from '../../../records/base/log-events.ts';
import type { Frozen } from '../../../records/base/record.ts';
import type { SendResult, Sink, SinkNeeds, StreamedEvent } from '../../../records/sinks/sink.ts';
import type { DocumentRecord } from '../../../records/tenant/documents.ts';
import { type PiiConfig, piiConfigSchema, sinkOf } from '../../../records/tenant/log-streams.ts';
import type { Background } from '../../../runtime/background.ts';
import type { Measures } from '../../../runtime/measures.ts';
import type { Random } from '../../../runtime/secrets.ts';
import type { Store } from '../../../store/contract.ts';
import type { Leases } from '../../../store/leases.ts';
import { sharedSecret } from '../../../store/shared-secret.ts';
import type { Config } from '../../../tenant/config.ts';
import { type Events, eventIdAt } from '../../../tenant/events.ts';
import { documentsOf } from '../document-resource.ts';
import { type LogEvent, logContextOf, logView } from '../log-view.ts';
import { includesType } from './categories.ts';

interface LogStreamsDependencies extends SinkNeeds {
  store: Store;
  config: Pick<Config, 'clients' | 'connections'>;
  events: Pick<Events, 'flush' | 'listen'>;
  background: Background;
  random: Random;
  log: Logger;
  leases: Pick<Leases, 'ifFree'>;
  measures?: Pick<Measures, 'streamed'> | undefined;
}

type Stream = Frozen<DocumentRecord>;
type Position = Frozen<LogStreamPositionRecord>;

const MAX_BATCH_EVENTS = 100;
/** How long events are collected for a batch, in milliseconds. */
const COLLECT_TIME_MS = 50;
/** How often streams are checked for a pause that is over, in milliseconds. */
const POLL_INTERVAL_MS = 1_000;
/** The first pause after a failure, and the longest, in milliseconds. Each pause is twice the last one. */
const FIRST_PAUSE_MS = 1_000;
const MAX_PAUSE_MS = 3_600_000;
/**
 * How far in the future a stored position may be, because clocks differ, in milliseconds. If a position is corrected,
 * events of this time may be sent twice.
 */
const CLOCK_TOLERANCE_MS = 60_000;
/** The age, in milliseconds, at which no other process can still write an event with a smaller id. */
const SETTLE_TIME_MS = 3_000;
/** A stream whose receiver accepts nothing for this long is suspended: seven days, in milliseconds. */
const SUSPEND_AFTER_MS = 7 * 86_400_000;

/** Starts to send events to all active streams: new ones, and those recorded before and not sent yet. */
export function startLogStreams(deps: LogStreamsDependencies): void {
  const { store, events, background, ending } = deps;
  const busy = new Set<string>();
  let timer: NodeJS.Timeout | undefined;
  const warn = warnOnce(deps);
  let cachedIds: { revision: number; ids: string[] } | undefined;
  /** The list is read again only after a change of the configuration, so that an event costs no read. */
  const activeStreamIds = async (): Promise<string[]> => {
    const revision = store.revision();
    if (cachedIds?.revision !== revision) {
      const all = await documentsOf(store, 'log-stream');
      const sent = all.filter((one) => {
        const sink = sinkOf(one.body.type);
        const reason = sink === undefined ? 'its type is not built in' : sink.missing(deps);
        if (reason !== undefined) warn(one, reason);
        return reason === undefined;
      });
      cachedIds = {
        revision,
        ids: sent.filter(({ body }) => body.status === 'active').map(({ id }) => id),
      };
    }
    return cachedIds.ids;
  };
  const start = async () => {
    timer = undefined;
    if (ending.aborted) return;
    for (const id of await activeStreamIds()) {
      if (busy.has(id)) continue;
      busy.add(id);
      background.run('a log stream', async () => {
        // Only one process sends: otherwise events would come twice and out of order.
        const work = (lost: AbortSignal) => drain({ ...deps, ending: AbortSignal.any([ending, lost]) }, id);
        await deps.leases.ifFree(`log stream ${id}`, work).finally(() => busy.delete(id));
      });
    }
  };
  const wake = () => {
    if (ending.aborted) return;
    timer ??= setTimeout(() => background.run('log streams', start), COLLECT_TIME_MS).unref();
  };
  events.listen(wake);
  const poll = setInterval(wake, POLL_INTERVAL_MS).unref();
  ending.addEventListener('abort', () => {
    clearInterval(poll);
    clearTimeout(timer);
  });
  wake();
}

/** Sends batches until nothing is left. */
async function drain(deps: LogStreamsDependencies, id: string): Promise<void> {
  while (!deps.ending.aborted && (await sendNextBatch(deps, id)));
}

/** @returns whether there may be more to send now. */
async function sendNextBatch(deps: LogStreamsDependencies, id: string): Promise<boolean> {
  const { store, clock, log } = deps;
  const stream = await store.collection('documents').get(id);
  const sink = sinkOf(stream?.body.type);
  if (stream?.body.status !== 'active' || sink === undefined || sink.missing(deps) !== undefined)
    return false;
  const positions = store.collection('logStreamPositions');
  const storedPosition = await positions.get(id);
  const position =
    storedPosition === undefined ? firstPosition(stream) : await correctedPosition(deps, storedPosition);
  const isChanged = position.version !== stream.updated_at;
  const pause = (position.retryAt ?? 0) - clock();
  // A longer pause was computed by a clock that was ahead, and is ignored.
  if (!isChanged && pause > 0 && pause <= MAX_PAUSE_MS) return false;
  const { records, isMore } = await readEvents(deps, position.after);
  const last = records.at(-1);
  if (last === undefined) return false;
  const filters = stream.body.filters as readonly { name?: unknown }[] | undefined;
  const events = records.filter(({ type }) => includesType(filters ?? undefined, type));
  const result = await sendEvents(deps, sink, { stream, events });
  if (deps.ending.aborted && result.fault !== undefined) return false;
  deps.measures?.streamed(result.acceptedCount, result.fault === undefined);
  if (result.fault === undefined) {
    await positions.put({ id, after: last.id, failures: 0, version: stream.updated_at });
    return isMore;
  }
  const after =
    result.acceptedCount === 0 ? position.after : (events[result.acceptedCount - 1]?.id ?? position.after);
  const failed = failedPosition({ ...position, after, ...(isChanged && { failures: 0 }) }, stream, clock());
  await positions.put(failed);
  log.warn({ stream: id, failures: failed.failures, fault: result.fault }, 'a log stream could not be sent');
  if (clock() - (failed.failingSince ?? clock()) >= SUSPEND_AFTER_MS) await suspend(deps, stream);
  return false;
}

/** Sends events to the stream's destination, without the personal data that the stream excludes. */
async function sendEvents(
  deps: LogStreamsDependencies,
  sink: Sink,
  { stream: { body }, events: logEvents }: { stream: Stream; events: readonly LogEvent[] },
): Promise<SendResult> {
  const logContext = await logContextOf(deps);
  const events = logEvents.map(
    (event): StreamedEvent => ({ log_id: event.id, data: logView(event, logContext) }),
  );
  const config = body.pii_config as object | null | undefined;
  if (config != null && Object.keys(config).length > 0) {
    const { data: pii } = piiConfigSchema.safeParse(config);
    if (pii === undefined) return { acceptedCount: 0, fault: 'its pii_config is not understood' };
    const strip = personalDataRemover(pii, await sharedSecret(deps, 'log-streams-pii'));
    for (const event of events) event.data = strip(event.data);
  }
  return sink.send(deps, body.sink, events);
}

/** Returns a function that warns that nothing is sent to a stream, once for each stream. */
function warnOnce({ log }: Pick<LogStreamsDependencies, 'log'>): (stream: Stream, reason: string) => void {
  const warned = new Set<string>();
  return ({ id, body: { type } }, reason) => {
    if (warned.has(id)) return;
    warned.add(id);
    log.warn({ stream: id, type }, `nothing is sent to a log stream: ${reason}`);
  };
}

/** Returns the first position of a stream: at `startFrom`, or when the stream was created. */
function firstPosition({ id, body, created_at, updated_at }: Stream): Position {
  const startTime = Date.parse(String(body.startFrom ?? created_at));
  const after = eventIdAt(Number.isNaN(startTime) ? Date.parse(created_at) : startTime);
  return { id, after, failures: 0, version: updated_at };
}

/**
 * Returns the position, corrected if it is in the future: a clock that was ahead stored it, and the events recorded
 * until then would never be sent.
 */
async function correctedPosition(
  { store, clock, log }: LogStreamsDependencies,
  position: Position,
): Promise<Position> {
  if (position.after < eventIdAt(clock() + CLOCK_TOLERANCE_MS)) return position;
  const corrected = { ...position, after: eventIdAt(clock() - CLOCK_TOLERANCE_MS) };
  await store.collection('logStreamPositions').put(corrected);
  log.warn({ stream: position.id }, 'a log stream goes on from now: the clock was ahead');
  return corrected;
}

/**
 * Returns the next events after a position, up to the time at which no event with a smaller id can still be written.
 */
async function readEvents({ store, events, clock }: LogStreamsDependencies, after: string) {
  // `flush` covers this process alone, not the others that share the store.
  const endId = eventIdAt(clock() - (store.exclusive === true ? 0 : SETTLE_TIME_MS));
  await events.flush();
  const { records } = await store.collection('logs').list({ after, limit: MAX_BATCH_EVENTS });
  const settledEvents: LogEvent[] = records.filter(({ id }) => id < endId);
  return { records: settledEvents, isMore: settledEvents.length === MAX_BATCH_EVENTS };
}

function failedPosition(position: Position, { id, updated_at }: Stream, now: number): Position {
  const failures = position.failures + 1;
  const pause = Math.min(FIRST_PAUSE_MS * 2 ** (failures - 1), MAX_PAUSE_MS);
  const failingSince = failures === 1 ? now : (position.failingSince ?? now);
  return { id, after: position.after, failures, failingSince, retryAt: now + pause, version: updated_at };
}

/**
 * Suspends a stream, unless it was changed while its receiver was asked. Its unsent events are sent when somebody
 * sets it to active again.
 */
async function suspend(
  { store, clock, log }: LogStreamsDependencies,
  { id, updated_at: version }: Stream,
): Promise<void> {
  const timestamp = new Date(clock()).toISOString();
  let isChanged = false;
  await store.collection('documents').update(id, (current) => {
    isChanged = current.updated_at !== version;
    return isChanged
      ? current
      : { ...current, body: { ...current.body, status: 'suspended' }, updated_at: timestamp };
  });
  if (!isChanged) log.warn({ stream: id }, 'a log stream was suspended: its receiver takes nothing');
}

// Masks or hashes personal data in events before they are sent.

type Field = PiiConfig['log_fields'][number];

/** The names of the members that hold each field, at any depth of an event. */
const MEMBERS: Readonly<Record<Field, readonly string[]>> = {
  first_name: ['first_name', 'given_name', 'name', 'nickname'],
  last_name: ['last_name', 'family_name', 'name'],
  username: ['username', 'preferred_username', 'nickname'],
  email: ['email'],
  phone: ['phone', 'phone_number'],
  address: ['address', 'formatted', 'street_address', 'locality', 'region', 'postal_code'],
};

const MASK = '*****';
/** Splits a text, path or identifier into words that may be an address or a number. */
const WORD = /[^\s"'<>()[\]{},;:=&?/\\|]+/g;
const EMAIL = /^[^@]+@[^@]+$|^(?=[^@]+$).+%40./i;
const PHONE = /^(?:\+|%2B)\d{6,15}$/i;
const DIGITS = /^\+?\d{6,15}$/;

// docs/understand/decisions/management-api.md#pii_config-of-a-log-stream-is-applied-to-what-is-sent
/**
 * Returns a function that masks or hashes the given fields of an event. E-mail addresses and phone numbers are found
 * in all texts, the other fields only in members of their names.
 * @param key of the hashes. Without a key, a receiver could hash known addresses and compare.
 */
function personalDataRemover({ log_fields, method }: PiiConfig, key: Buffer): <T>(event: T) => T {
  const fields = new Set(log_fields);
  const members = new Set(log_fields.flatMap((field) => MEMBERS[field]));
  const replace = (value: string): string =>
    method === 'hash'
      ? createHmac('sha256', key).update(value.trim().toLowerCase()).digest('hex').slice(0, 32)
      : MASK;
  const isPersonalWord = (word: string) =>
    (fields.has('email') && EMAIL.test(word)) || (fields.has('phone') && PHONE.test(word));
  const isPersonal = (member: string, value: unknown) =>
    member === 'user_name' ? typeof value === 'string' && fields.has(kindOf(value)) : members.has(member);
  const maskValue = (value: unknown, isWhole: boolean): unknown => {
    if (typeof value === 'string')
      return isWhole
        ? replace(value)
        : value.replace(WORD, (word) => (isPersonalWord(word) ? replace(word) : word));
    if (typeof value === 'number' && isWhole) return replace(String(value));
    if (Array.isArray(value)) return value.map((one) => maskValue(one, isWhole));
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(
      Object.entries(value).map(([name, one]) => [name, maskValue(one, isWhole || isPersonal(name, one))]),
    );
  };
  return <T>(event: T) => maskValue(event, false) as T;
}

/** Returns the field that a login identifier is: e-mail address, phone number or username. */
function kindOf(identifier: string): Field {
  if (identifier.includes('@')) return 'email';
  return DIGITS.test(identifier) ? 'phone' : 'username';
}
