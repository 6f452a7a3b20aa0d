// Log streams: what the tenant's log records is sent on, in its order, at least once. How far a stream has come is kept
// when its receiver has taken a batch, so that a restart goes on there; what is in memory is one batch of each stream.
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
import { documentsOf } from '../kept.ts';
import { knownOf, type LogEvent, logView } from '../log-view.ts';
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
  /** Where files of events are; undefined where the operator allows none. */
  filesDirectory: string | undefined;
  measures?: Pick<Measures, 'streamed'> | undefined;
  /** Aborted when the server is about to end. */
  ending: AbortSignal;
}

type Stream = Frozen<DocumentRecord>;
type Position = Frozen<LogStreamPositionRecord>;

/** Events of a batch. */
const BATCH = 100;
/** Events that are gathered for so long make one batch, milliseconds. */
const GATHER = 50;
/** How often it is asked whether a pause between tries is over, milliseconds. */
const LOOK = 1_000;
/** The first pause after a failure and the longest, milliseconds; each is twice the one before. */
const FIRST_PAUSE = 1_000;
const LONGEST_PAUSE = 3_600_000;
/** How far ahead a place may be by clocks that differ; what is recorded in that time is sent twice where one was. Milliseconds. */
const AHEAD = 60_000;
/** How old an event is when no other process can still be writing one that comes before it, milliseconds. */
const SETTLED = 3_000;
/** A stream whose receiver takes nothing for so long is suspended, milliseconds: seven days. */
const GIVE_UP = 7 * 86_400_000;

/** Whether a stream is sent here; otherwise it is kept alone. */
const isInForce = ({ filesDirectory }: Pick<LogStreamsDependencies, 'filesDirectory'>, { body }: Stream) =>
  isSentType(body.type) && (body.type !== 'file' || filesDirectory !== undefined);

/** Sends on what is recorded, from now on and what was recorded before and not sent. */
export function startLogStreams(deps: LogStreamsDependencies): void {
  const { store, events, background, ending } = deps;
  const busy = new Set<string>();
  let waiting: NodeJS.Timeout | undefined;
  const warn = warnOnce(deps);
  let known: { revision: number; ids: string[] } | undefined;
  /** Those to send to, read anew when the configuration was changed: an event costs no reading of its own. */
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
        // Of several processes one sends: an event would come twice, and out of order.
        const work = (lost: AbortSignal) => drain({ ...deps, ending: AbortSignal.any([ending, lost]) }, id);
        await deps.leases.ifFree(`log stream ${id}`, work).finally(() => busy.delete(id));
      });
    }
  };
  const wake = () => {
    if (ending.aborted) return;
    waiting ??= setTimeout(() => background.run('log streams', begin), GATHER).unref();
  };
  events.listen(wake);
  const look = setInterval(wake, LOOK).unref();
  ending.addEventListener('abort', () => {
    clearInterval(look);
    clearTimeout(waiting);
  });
  wake();
}

/** Sends all that there is for a stream, batch by batch. */
async function drain(deps: LogStreamsDependencies, id: string): Promise<void> {
  while (!deps.ending.aborted && (await step(deps, id)));
}

/** Sends a batch. @returns whether there may be more to send now. */
async function step(deps: LogStreamsDependencies, id: string): Promise<boolean> {
  const { store, clock, log } = deps;
  const stream = await store.collection('documents').get(id);
  if (stream?.body.status !== 'active' || !isInForce(deps, stream)) return false;
  const positions = store.collection('logStreamPositions');
  const noted = await positions.get(id);
  const position = noted === undefined ? beginningOf(stream) : await notAhead(deps, noted);
  const isChanged = position.version !== stream.updated_at;
  const pause = (position.retryAt ?? 0) - clock();
  // No pause is longer, unless a clock that was ahead began it.
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
  if (clock() - (failed.failingSince ?? clock()) >= GIVE_UP) await suspend(deps, stream);
  return false;
}

/** Sends events to where a stream goes, without what is personal where that was asked for. */
async function sendChosen(
  deps: LogStreamsDependencies,
  { body }: Stream,
  chosen: readonly LogEvent[],
): Promise<Sent> {
  const known = await knownOf(deps);
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

/** Says of each stream that nothing is sent to it: once, and not each time that the configuration is read. */
function warnOnce({ log }: Pick<LogStreamsDependencies, 'log'>): (stream: Stream) => void {
  const warned = new Set<string>();
  return ({ id, body: { type } }) => {
    if (warned.has(id)) return;
    warned.add(id);
    const why = type === 'file' ? 'LOG_STREAM_FILES is not set' : 'its type is not built in';
    log.warn({ stream: id, type }, `nothing is sent to a log stream: ${why}`);
  };
}

/** Where a new stream begins: with what was recorded since `startFrom`, or since it was made. */
function beginningOf({ id, body, created_at, updated_at }: Stream): Position {
  const from = Date.parse(String(body.startFrom ?? created_at));
  const after = eventIdAt(Number.isNaN(from) ? Date.parse(created_at) : from);
  return { id, after, failures: 0, version: updated_at };
}

/** A place that is still to come was noted by a clock that was ahead: what is recorded until then would never be sent. */
async function notAhead(
  { store, clock, log }: LogStreamsDependencies,
  position: Position,
): Promise<Position> {
  if (position.after < eventIdAt(clock() + AHEAD)) return position;
  const now = { ...position, after: eventIdAt(clock() - AHEAD) };
  await store.collection('logStreamPositions').put(now);
  log.warn({ stream: position.id }, 'a log stream goes on from now: the clock was ahead');
  return now;
}

/** The events after one that are all there: none with an id between them can still be on its way to the store. */
async function recorded({ store, events, clock }: LogStreamsDependencies, after: string) {
  // What other processes record is not flushed here.
  const until = eventIdAt(clock() - (store.exclusive === true ? 0 : SETTLED));
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

/** What it has not sent stays to be sent when somebody sets it to active again. */
async function suspend({ store, clock, log }: LogStreamsDependencies, { id }: Stream): Promise<void> {
  await store.collection('documents').update(id, (current) => ({
    ...current,
    body: { ...current.body, status: 'suspended' },
    updated_at: new Date(clock()).toISOString(),
  }));
  log.warn({ stream: id }, 'a log stream was suspended: its receiver takes nothing');
}
