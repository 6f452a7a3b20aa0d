// The metrics of a process in the format of Prometheus, in a registry of their own.
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { Measures } from '../../runtime/measures.ts';
import { LOGINS } from './logins.ts';

/** Values that are read for each scrape. */
interface Readings {
  /** Returns the signing keys in use, and the age of each, seconds. */
  signingKeys(): Promise<readonly { alg: string; age: number }[]>;
  /** Returns how many passwords wait to be hashed or verified. */
  hashQueue(): number;
  /** Returns how many messages and logout tokens wait in the store. */
  deliveries(): Promise<number>;
  /** Returns how many log streams have a receiver that did not accept the latest batch. */
  failingStreams(): Promise<number>;
}

export interface Metrics {
  measures: Measures;
  /** Adds gauges for values that are read for each scrape. */
  read(readings: Readings): void;
  text(): Promise<string>;
  contentType: string;
}

/** Seconds. A request without a password takes about a millisecond, one with a password tens of milliseconds. */
const REQUEST_BUCKETS = [0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const STORE_BUCKETS = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 5];
const HASH_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** @param version the version of Gatehouse. */
export function createMetrics(version: string): Metrics {
  const registry = new Registry();
  // Memory, processor, garbage collection and the lag of the event loop.
  collectDefaultMetrics({ register: registry });
  const registers = [registry];
  new Gauge({
    name: 'gatehouse_build_info',
    help: 'The version that runs; always 1',
    labelNames: ['version'],
    registers,
  }).set({ version }, 1);
  const measures = { ...requestMeasures(registers), ...loginMeasures(registers), ...partMeasures(registers) };
  return {
    measures,
    read: (readings) => readGauges(registers, readings),
    text: () => registry.metrics(),
    contentType: registry.contentType,
  };
}

function requestMeasures(registers: Registry[]): Pick<Measures, 'requestBegan' | 'requestEnded' | 'limited'> {
  const total = new Counter({
    name: 'gatehouse_http_requests_total',
    help: 'Requests that were answered, by declared route and status',
    labelNames: ['method', 'route', 'status'],
    registers,
  });
  const duration = new Histogram({
    name: 'gatehouse_http_request_duration_seconds',
    help: 'Time to answer a request',
    labelNames: ['method', 'route'],
    buckets: REQUEST_BUCKETS,
    registers,
  });
  const inFlight = new Gauge({
    name: 'gatehouse_http_requests_in_flight',
    help: 'Requests that are being answered',
    registers,
  });
  const limited = new Counter({
    name: 'gatehouse_limited_total',
    help: 'Requests and messages that a limit refused, by limit',
    labelNames: ['limit'],
    registers,
  });
  return {
    requestBegan: () => inFlight.inc(),
    requestEnded: ({ method: sent, route = 'none', status }, seconds) => {
      inFlight.dec();
      const method = METHODS.has(sent) ? sent : 'other';
      total.inc({ method, route, status });
      duration.observe({ method, route }, seconds);
    },
    limited: (limit) => limited.inc({ limit }),
  };
}

/** Other methods share one label, because a client can send any number of them. */
const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

function loginMeasures(registers: Registry[]): Pick<Measures, 'event' | 'tokensIssued'> {
  const events = new Counter({
    name: 'gatehouse_log_events_total',
    help: "Events of the tenant's log by type, also those that were too many to be recorded",
    labelNames: ['type'],
    registers,
  });
  const logins = new Counter({
    name: 'gatehouse_logins_total',
    help: 'Logins that ended, by way, strategy of the connection and outcome',
    labelNames: ['way', 'strategy', 'outcome'],
    registers,
  });
  const tokens = new Counter({
    name: 'gatehouse_token_responses_total',
    help: 'Answers with tokens, by grant type',
    labelNames: ['grant_type'],
    registers,
  });
  return {
    event: (type, strategy = 'none') => {
      events.inc({ type });
      const login = LOGINS.get(type);
      if (login !== undefined) logins.inc({ ...login, strategy });
    },
    tokensIssued: (grant_type) => tokens.inc({ grant_type }),
  };
}

/** Returns the measures of what requests wait for: password hashes, the store, messages, log streams. */
function partMeasures(
  registers: Registry[],
): Pick<Measures, 'hashed' | 'storeOperation' | 'message' | 'messageTryFailed' | 'streamed'> {
  const histogram = (name: string, help: string, buckets: number[], labelNames: string[] = []) =>
    new Histogram({ name, help, buckets, labelNames, registers });
  const waits = histogram(
    'gatehouse_password_hash_wait_seconds',
    'Time that a password waited for its turn to be hashed or verified',
    [0.001, ...HASH_BUCKETS],
  );
  const hashes = histogram(
    'gatehouse_password_hash_duration_seconds',
    'Time to hash or verify a password, without the wait',
    HASH_BUCKETS,
  );
  const store = histogram(
    'gatehouse_store_operation_duration_seconds',
    "Time of the store's operations",
    STORE_BUCKETS,
    ['operation'],
  );
  const messages = new Counter({
    name: 'gatehouse_messages_total',
    help: 'Messages that were sent or given up',
    labelNames: ['kind', 'channel', 'outcome'],
    registers,
  });
  const failedTries = new Counter({
    name: 'gatehouse_message_tries_failed_total',
    help: 'Tries to send a message that failed; a message is tried several times before it is given up',
    labelNames: ['channel'],
    registers,
  });
  // They start at zero, so that the first failures after a start are an increase.
  for (const channel of ['email', 'sms']) failedTries.inc({ channel }, 0);
  const streamed = new Counter({
    name: 'gatehouse_log_stream_events_total',
    help: 'Events that receivers of log streams have taken',
    registers,
  });
  const failures = new Counter({
    name: 'gatehouse_log_stream_failures_total',
    help: 'Batches that a receiver of a log stream did not take',
    registers,
  });
  return {
    streamed: (events, isGood) => {
      streamed.inc(events);
      if (!isGood) failures.inc();
    },
    hashed: (waited, took) => {
      waits.observe(waited);
      hashes.observe(took);
    },
    storeOperation: (operation, seconds) => store.observe({ operation }, seconds),
    message: (kind, channel, outcome) => messages.inc({ kind, channel, outcome }),
    messageTryFailed: (channel) => failedTries.inc({ channel }),
  };
}

function readGauges(
  registers: Registry[],
  { signingKeys, hashQueue, deliveries, failingStreams }: Readings,
): void {
  new Gauge({
    name: 'gatehouse_signing_key_age_seconds',
    help: 'Age of the key that signs, by algorithm',
    labelNames: ['alg'],
    registers,
    async collect() {
      // While the store fails, the other metrics are needed most.
      const keys = await signingKeys().catch(() => []);
      this.reset();
      for (const { alg, age } of keys) this.set({ alg }, age);
    },
  });
  new Gauge({
    name: 'gatehouse_password_hash_queue_length',
    help: 'Passwords that wait for their turn to be hashed or verified',
    registers,
    collect() {
      this.set(hashQueue());
    },
  });
  const ofStore = (name: string, help: string, count: () => Promise<number>) =>
    new Gauge({
      name,
      help,
      registers,
      async collect() {
        this.set(await count().catch(() => Number.NaN));
      },
    });
  ofStore(
    'gatehouse_deliveries_waiting',
    'Messages and logout tokens that wait in the store to be sent, by any process',
    deliveries,
  );
  ofStore(
    'gatehouse_log_streams_failing',
    'Log streams whose receiver did not accept the latest batch',
    failingStreams,
  );
}
