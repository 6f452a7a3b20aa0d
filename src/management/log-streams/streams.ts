// Sends the tenant's log events to log streams, in order and at least once. The position of a stream is stored after
// the receiver has accepted a batch, so that a restart continues there. Memory holds at most one batch of each
// stream.
import type { Logger } from 'pino';
import type { Outbound } from '../../http/outbound.ts';
import type { DocumentRecord } from '../../records/documents.ts';
import type { LogStreamPositionRecord } from '../../records/log-events.ts';
import { type FileSink, type HttpSink, isSentType, piiConfigSchema } from '../../records/log-streams.ts';
import type { Frozen } from '../../records/record.ts';
import type { Background } from '../../runtime/background.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Measures } from '../../runtime/measures.ts';
import type { Random } from '../../runtime/random.ts';
import type { Store } from '../../store/contract.ts';
import type { Leases } from '../../store/leases.ts';
import { sharedSecret } from '../../store/shared-secret.ts';
import type { Config } from '../../tenant/config.ts';
import { type Events, eventIdAt } from '../../tenant/events.ts';
import { documentsOf } from '../document-resource.ts';
import { type LogEvent, logContextOf, logView } from '../log-view.ts';
import { takes } from './categories.ts';
import { appendBatch } from './file-sink.ts';
import { type Sent, type StreamedEvent, sendBatch } from './http-sink.ts';
import { withoutPersonal } from './pii.ts';

interface LogStreamsDependencies {
  store: Store;
  config: Pick<Config, 'clients' | 'connections'>;
  events: Pick<Events, 'flush' | 'listen'>;
  outbound: Pick<Outbound, 'fetch'>;
  background: Background;
  clock: Clock;
  random: Random;
  log: Logger;
  leases: Pick<Leases, 'ifFree'>;
  /** Directory for streams of type file; undefined if the operator has not allowed them. */
  filesDirectory: string | undefined;
  measures?: Pick<Measures, 'streamed'> | undefined;
  /** Aborted when the server shuts down. */
  ending: AbortSignal;
}

type Stream = Frozen<DocumentRecord>;
type Position = Frozen<LogStreamPositionRecord>;

/** Highest number of events in a batch. */
const BATCH = 100;
/** How long events are collected for a batch, in milliseconds. */
const COLLECT_TIME = 50;
/** How often streams are checked for a pause that is over, in milliseconds. */
const POLL_INTERVAL = 1_000;
/** The first pause after a failure, and the longest, in milliseconds. Each pause is twice the last one. */
const FIRST_PAUSE = 1_000;
const LONGEST_PAUSE = 3_600_000;
/**
 * How far in the future a stored position may be, because clocks differ, in milliseconds. If a position is corrected,
 * events of this time may be sent twice.
 */
const CLOCK_TOLERANCE = 60_000;
/** The age, in milliseconds, at which no other process can still write an event with a smaller id. */
const SETTLE_TIME = 3_000;
/** A stream whose receiver accepts nothing for this long is suspended: seven days, in milliseconds. */
const SUSPEND_AFTER = 7 * 86_400_000;

/** Whether this server sends the stream's events. Streams of other types are only stored. */
const isInForce = ({ filesDirectory }: Pick<LogStreamsDependencies, 'filesDirectory'>, { body }: Stream) =>
  isSentType(body.type) && (body.type !== 'file' || filesDirectory !== undefined);

/** Starts to send events to all active streams: new ones, and those recorded before and not sent yet. */
export function startLogStreams(deps: LogStreamsDependencies): void {
  const { store, events, background, ending } = deps;
  const busy = new Set<string>();
  let waiting: NodeJS.Timeout | undefined;
  const warn = warnOnce(deps);
  let known: { revision: number; ids: string[] } | undefined;
  /**
   * Returns the ids of the streams to send to. The list is read again only after a change of the configuration, so
   * that an event costs no read.
   */
  const streams = async (): Promise<string[]> => {
    const revision = store.revision();
    if (known?.revision !== revision) {
      const all = await documentsOf(store, 'log-stream');
      const sent = all.filter((one) => isInForce(deps, one));
      for (const one of all) if (!sent.includes(one)) warn(one);
      known = { revision, ids: sent.filter(({ body }) => body.status === 'active').map(({ id }) => id) };
    }
    return known.ids;
  };
  const begin = async () => {
    waiting = undefined;
    if (ending.aborted) return;
    for (const id of await streams()) {
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
    waiting ??= setTimeout(() => background.run('log streams', begin), COLLECT_TIME).unref();
  };
  events.listen(wake);
  const look = setInterval(wake, POLL_INTERVAL).unref();
  ending.addEventListener('abort', () => {
    clearInterval(look);
    clearTimeout(waiting);
  });
  wake();
}

/** Sends batches until nothing is left. */
async function drain(deps: LogStreamsDependencies, id: string): Promise<void> {
  while (!deps.ending.aborted && (await step(deps, id)));
}

/** Sends one batch. @returns whether there may be more to send now. */
async function step(deps: LogStreamsDependencies, id: string): Promise<boolean> {
  const { store, clock, log } = deps;
  const stream = await store.collection('documents').get(id);
  if (stream?.body.status !== 'active' || !isInForce(deps, stream)) return false;
  const positions = store.collection('logStreamPositions');
  const noted = await positions.get(id);
  const position = noted === undefined ? beginningOf(stream) : await notAhead(deps, noted);
  const isChanged = position.version !== stream.updated_at;
  const pause = (position.retryAt ?? 0) - clock();
  // A longer pause was computed by a clock that was ahead, and is ignored.
  if (!isChanged && pause > 0 && pause <= LONGEST_PAUSE) return false;
  const { records, isMore } = await recorded(deps, position.after);
  const last = records.at(-1);
  if (last === undefined) return false;
  const filters = stream.body.filters as readonly { name?: unknown }[] | undefined;
  const chosen = records.filter(({ type }) => takes(filters ?? undefined, type));
  const sent = await sendChosen(deps, stream, chosen);
  if (deps.ending.aborted && sent.fault !== undefined) return false;
  deps.measures?.streamed(sent.taken, sent.fault === undefined);
  if (sent.fault === undefined) {
    await positions.put({ id, after: last.id, failures: 0, version: stream.updated_at });
    return isMore;
  }
  const after = sent.taken === 0 ? position.after : (chosen[sent.taken - 1]?.id ?? position.after);
  const failed = failedPosition({ ...position, after, ...(isChanged && { failures: 0 }) }, stream, clock());
  await positions.put(failed);
  log.warn({ stream: id, failures: failed.failures, fault: sent.fault }, 'a log stream could not be sent');
  if (clock() - (failed.failingSince ?? clock()) >= SUSPEND_AFTER) await suspend(deps, stream);
  return false;
}

/** Sends events to the stream's destination, without the personal data that the stream excludes. */
async function sendChosen(
  deps: LogStreamsDependencies,
  { body }: Stream,
  chosen: readonly LogEvent[],
): Promise<Sent> {
  const known = await logContextOf(deps);
  const events = chosen.map((event): StreamedEvent => ({ log_id: event.id, data: logView(event, known) }));
  const config = body.pii_config as object | null | undefined;
  if (config != null && Object.keys(config).length > 0) {
    const { data: pii } = piiConfigSchema.safeParse(config);
    if (pii === undefined) return { taken: 0, fault: 'its pii_config is not understood' };
    const strip = withoutPersonal(pii, await sharedSecret(deps, 'log-streams-pii'));
    for (const event of events) event.data = strip(event.data);
  }
  if (body.type === 'file') return appendBatch(deps.filesDirectory ?? '', body.sink as FileSink, events);
  return sendBatch(deps, body.sink as HttpSink, events);
}

/** Returns a function that warns that nothing is sent to a stream, once for each stream. */
function warnOnce({ log }: Pick<LogStreamsDependencies, 'log'>): (stream: Stream) => void {
  const warned = new Set<string>();
  return ({ id, body: { type } }) => {
    if (warned.has(id)) return;
    warned.add(id);
    const why = type === 'file' ? 'LOG_STREAM_FILES is not set' : 'its type is not built in';
    log.warn({ stream: id, type }, `nothing is sent to a log stream: ${why}`);
  };
}

/** Returns the first position of a stream: at `startFrom`, or when the stream was created. */
function beginningOf({ id, body, created_at, updated_at }: Stream): Position {
  const from = Date.parse(String(body.startFrom ?? created_at));
  const after = eventIdAt(Number.isNaN(from) ? Date.parse(created_at) : from);
  return { id, after, failures: 0, version: updated_at };
}

/**
 * Returns the position, corrected if it is in the future: a clock that was ahead stored it, and the events recorded
 * until then would never be sent.
 */
async function notAhead(
  { store, clock, log }: LogStreamsDependencies,
  position: Position,
): Promise<Position> {
  if (position.after < eventIdAt(clock() + CLOCK_TOLERANCE)) return position;
  const now = { ...position, after: eventIdAt(clock() - CLOCK_TOLERANCE) };
  await store.collection('logStreamPositions').put(now);
  log.warn({ stream: position.id }, 'a log stream goes on from now: the clock was ahead');
  return now;
}

/**
 * Returns the next events after a position, up to the time at which no event with a smaller id can still be written.
 */
async function recorded({ store, events, clock }: LogStreamsDependencies, after: string) {
  // `flush` covers this process alone, not the others that share the store.
  const until = eventIdAt(clock() - (store.exclusive === true ? 0 : SETTLE_TIME));
  await events.flush();
  const { records } = await store.collection('logs').list({ after, limit: BATCH });
  const settled: LogEvent[] = records.filter(({ id }) => id < until);
  return { records: settled, isMore: settled.length === BATCH };
}

function failedPosition(position: Position, { id, updated_at }: Stream, now: number): Position {
  const failures = position.failures + 1;
  const pause = Math.min(FIRST_PAUSE * 2 ** (failures - 1), LONGEST_PAUSE);
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
  const at = new Date(clock()).toISOString();
  let isChanged = false;
  await store.collection('documents').update(id, (current) => {
    isChanged = current.updated_at !== version;
    return isChanged
      ? current
      : { ...current, body: { ...current.body, status: 'suspended' }, updated_at: at };
  });
  if (!isChanged) log.warn({ stream: id }, 'a log stream was suspended: its receiver takes nothing');
}
